// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/fault"
)

// Migrations are append-only: a committed file never changes again, and
// testdata/checksums.txt holds them to it. hack/dump-schema.sh is run once for
// each new one.
//
//go:embed migrations/*.sql
var migrationFiles embed.FS

// SchemaVersion is the version of the schema that this release works with: the
// number of its newest migration.
const SchemaVersion = 2

// migrationLock is the advisory lock that migrations run under.
const migrationLock int64 = 7_310_582_364

type migration struct {
	version int
	name    string
	sql     string
}

// migrations returns the embedded migrations in order, numbered from 1.
func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	list := make([]migration, 0, len(names))
	for _, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != len(list)+1 {
			return nil, fmt.Errorf("migration %s is out of order: expected number %04d", name, len(list)+1)
		}
		sql, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		list = append(list, migration{version, path.Base(name), string(sql)})
	}
	return list, nil
}

// schema is what a database says about its own.
type schema struct {
	version int // 0: empty
	// needs is the oldest version a release must know to work with it.
	needs int
}

// readSchema reads it. The first version has no column `needs`, hence the
// detour over JSON.
func readSchema(ctx context.Context, q db) (s schema, err error) {
	err = q.QueryRow(ctx, `SELECT coalesce(max(version), 0), coalesce(max((to_jsonb(v) ->> 'needs')::integer), 0) FROM schema_version v`).
		Scan(&s.version, &s.needs)
	if r, ok := asRefusal(err); ok && r.code == codeUndefinedTable {
		return schema{}, nil
	}
	return s, err
}

// Migrate brings the database's schema to SchemaVersion and returns the
// versions before and after. Several may run at once: one migrates under an
// advisory lock, the others wait for it; a current database is left alone
// without any lock. Each migration is one transaction together with its
// version row. A newer database is left alone too, unless this release cannot
// work with it (fault DatabaseSchemaNew). log may be nil.
func Migrate(ctx context.Context, url string, log func(line string)) (from, to int, err error) {
	config, err := poolConfig(url)
	if err != nil {
		return 0, 0, err
	}
	if log == nil {
		log = func(string) {}
	}
	l := &Ledger{address: address(config.ConnConfig)}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return 0, 0, l.fault(err)
	}
	// Closing gives the lock back. ctx may have ended by then.
	defer func() { err = errors.Join(err, l.fault(conn.Close(context.WithoutCancel(ctx)))) }()

	before, err := readSchema(ctx, conn)
	if err != nil {
		return 0, 0, l.fault(err)
	}
	if before.version >= SchemaVersion {
		return before.version, before.version, newer(before)
	}
	if err := lock(ctx, conn, log); err != nil {
		return before.version, before.version, l.fault(err)
	}
	// Read again: somebody else may have migrated while this one waited.
	current, err := readSchema(ctx, conn)
	if err != nil {
		return before.version, before.version, l.fault(err)
	}
	if current.version >= SchemaVersion {
		return before.version, current.version, newer(current)
	}
	list, err := migrations()
	if err != nil {
		return before.version, current.version, err
	}
	for _, m := range list[current.version:] {
		log("Applying migration " + m.name)
		if err := apply(ctx, conn, m); err != nil {
			return before.version, m.version - 1, fmt.Errorf("migration %s: %w", m.name, l.fault(err))
		}
	}
	return before.version, SchemaVersion, nil
}

// newer makes it a lasting fault that this release is too old for a schema: no
// waiting ends it.
func newer(s schema) error {
	if f := fault.Of(s.suits(SchemaVersion)); f != nil {
		return fault.New(fault.Terminal, f.Reason, "%s", f.Message)
	}
	return nil
}

func lock(ctx context.Context, conn *pgx.Conn, log func(string)) error {
	var locked bool
	if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, migrationLock).Scan(&locked); err != nil || locked {
		return err
	}
	log("Waiting for another migration to end")
	_, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, migrationLock)
	return err
}

// apply runs a migration. Its version row is written first, so that the
// migration itself can say what it needs.
func apply(ctx context.Context, conn *pgx.Conn, m migration) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS schema_version (
			version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO schema_version (version) VALUES ($1)`, m.version); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, m.sql)
		return err
	})
}
