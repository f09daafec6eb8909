// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-dev/sluice/internal/fault"
)

// Migrations are append-only: a committed file never changes again, and
// testdata/checksums.txt holds them to it.
//
//go:embed migrations/*.sql
var migrations embed.FS

// lockKey is the advisory lock that migrations run under.
const lockKey = 7_310_582_364

type migration struct {
	version int
	name    string
	sql     string
}

// allMigrations returns the embedded migrations in order.
func allMigrations() []migration {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	all := make([]migration, 0, len(names))
	for _, name := range names {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "migrations/"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != len(all)+1 {
			panic("migration " + name + " is out of order") // a build error, found by every test
		}
		sql, err := migrations.ReadFile(name)
		if err != nil {
			panic(err) // embedded files are there
		}
		all = append(all, migration{version, name, string(sql)})
	}
	return all
}

// SchemaVersion returns the version of the schema this release works with.
func SchemaVersion() int { return len(allMigrations()) }

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// schemaVersion returns the database's version, 0 for an empty one.
func schemaVersion(ctx context.Context, q querier) (int, error) {
	var version int
	err := q.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM schema_version`).Scan(&version)
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "42P01" {
		return 0, nil
	}
	return version, err
}

// Migrate brings the database's schema to SchemaVersion and returns the
// versions before and after. It takes an advisory lock, so that several may
// run at once; each migration is one transaction together with its version
// row. A database that is newer already is refused.
func Migrate(ctx context.Context, url string, log func(line string)) (from, to int, err error) {
	config, err := poolConfig(url)
	if err != nil {
		return 0, 0, err
	}
	l := &Ledger{address: address(config)}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return 0, 0, l.fault(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	to = SchemaVersion()
	from, err = schemaVersion(ctx, conn)
	if err != nil {
		return 0, 0, l.fault(err)
	}
	if from == to {
		return from, to, nil
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(lockKey)); err != nil {
		return from, from, l.fault(err)
	}
	// Read again: somebody else may have migrated while we waited.
	current, err := schemaVersion(ctx, conn)
	if err != nil {
		return from, from, l.fault(err)
	}
	if current > to {
		return current, current, fault.New(fault.Terminal, fault.ReasonDatabaseSchemaNew,
			"the database's schema is version %d and this release knows %d: run a newer release", current, to)
	}
	for _, m := range allMigrations()[current:] {
		log(fmt.Sprintf("Applying migration %04d", m.version))
		if err := apply(ctx, conn, m); err != nil {
			return from, m.version - 1, fmt.Errorf("migration %s: %w", m.name, l.fault(err))
		}
	}
	return from, to, nil
}

func apply(ctx context.Context, conn *pgx.Conn, m migration) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS schema_version (
			version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, m.sql); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO schema_version (version) VALUES ($1)`, m.version)
		return err
	})
}
