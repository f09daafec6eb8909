// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/testenv/pgtest"
)

func TestSchemaVersionIsTheNewestMigration(t *testing.T) {
	g := NewWithT(t)
	list, err := migrations()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(list).To(HaveLen(SchemaVersion))
}

func TestCommittedMigrationsNeverChange(t *testing.T) {
	g := NewWithT(t)
	listed, err := os.ReadFile("testdata/checksums.txt")
	g.Expect(err).NotTo(HaveOccurred())
	list, err := migrations()
	g.Expect(err).NotTo(HaveOccurred())
	var actual strings.Builder
	for _, m := range list {
		fmt.Fprintf(&actual, "%x  %s\n", sha256.Sum256([]byte(m.sql)), m.name)
	}
	g.Expect(actual.String()).To(Equal(string(listed)), "migrations are append-only: restore what changed and write a new one, then run hack/dump-schema.sh")
}

// dumps returns the kept dumps by schema version.
func dumps(g *WithT) map[int]string {
	files, err := filepath.Glob("testdata/schema-*.sql")
	g.Expect(err).NotTo(HaveOccurred())
	byVersion := map[int]string{}
	for _, f := range files {
		version, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "schema-"), ".sql"))
		g.Expect(err).NotTo(HaveOccurred(), f)
		byVersion[version] = f
	}
	return byVersion
}

func TestUpgradeFromEveryVersion(t *testing.T) {
	byVersion := dumps(NewWithT(t))
	fresh := schemaOf(t, pgtest.Database(t))
	for version := 1; version <= SchemaVersion; version++ {
		t.Run(fmt.Sprintf("from %04d", version), func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(byVersion).To(HaveKey(version), "run hack/dump-schema.sh once for each new migration")
			dsn := emptyDatabase(t)
			restore(g, dsn, byVersion[version])

			from, to, err := Migrate(t.Context(), dsn, nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect([]int{from, to}).To(Equal([]int{version, SchemaVersion}))
			g.Expect(schemaOf(t, dsn)).To(Equal(fresh), "an upgraded schema is the one a new database gets")
			expectSampleReadable(open(t, dsn, Options{}))
		})
	}
}

// emptyDatabase is a database without a schema.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	dsn := pgtest.Database(t)
	conn, err := pgx.Connect(t.Context(), dsn)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = conn.Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conn.Close(t.Context())).To(Succeed())
	return dsn
}

func restore(g *WithT, dsn, file string) {
	ctx := context.Background()
	dump, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	conn, err := pgx.Connect(ctx, dsn)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = conn.Exec(ctx, string(dump))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conn.Close(ctx)).To(Succeed())
}

// schemaOf describes a database's columns, constraints, indexes and triggers,
// one a line.
func schemaOf(t *testing.T, dsn string) []string {
	t.Helper()
	w := open(t, dsn, Options{})
	var lines []string
	for _, sql := range []string{
		`SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default) FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, column_name`,
		`SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1`,
		`SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1`,
		`SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1`,
	} {
		found, err := collect(w.ctx, w.pool, scalar[string], sql)
		w.ok(err)
		lines = append(lines, found...)
	}
	return lines
}

// expectSampleReadable reads the rows of testdata/sample.sql by the ledger's
// own methods.
func expectSampleReadable(w *world) {
	w.ok(w.Ready(w.ctx))
	v, err := w.ProjectView(w.ctx, "uid-lab1")
	w.ok(err)
	w.Expect(v.Built()).To(BeTrue())
	w.Expect(v.SourceHeads).To(Equal(domain.Heads{"main": "s1", "hints": "s2"}))
	w.Expect(v.Ahead["main"].SHA).To(Equal("s3"))
	w.Expect(v.LastRequest.Value).To(Equal("now"))
	w.Expect(v.LastPass.Counts.Opened).To(Equal(1))
	w.Expect(v.Repositories).To(Equal(domain.RepositoryCounts{Total: 2, Live: 1, Provisioned: 1, ProvisionFailed: 1}))
	r, err := w.RepositoryByObject(w.ctx, domain.ObjectKey{Namespace: "platform", Name: "svc"})
	w.ok(err)
	w.Expect(r.Repo).To(Equal(domain.RepositoryRef{ID: 203, FullName: "acme/svc"}))
	pr, found, err := w.PullRequest(w.ctx, v.ID, "main")
	w.ok(err)
	w.Expect(found).To(BeTrue())
	w.Expect(pr.Number).To(Equal(7))
	due, err := w.ClaimDeliveries(w.ctx, 10, t0)
	w.ok(err)
	w.Expect(due).To(HaveLen(1))
	w.Expect(w.actions(v.ID)).To(Equal([]string{"project.synced"}))
}

func TestMigrateTwiceDoesNothing(t *testing.T) {
	g := NewWithT(t)
	dsn := emptyDatabase(t)
	var lines []string
	from, to, err := Migrate(t.Context(), dsn, func(line string) { lines = append(lines, line) })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]int{from, to}).To(Equal([]int{0, SchemaVersion}))
	g.Expect(lines).To(HaveLen(SchemaVersion))
	from, to, err = Migrate(t.Context(), dsn, func(line string) { t.Error("unexpected: " + line) })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]int{from, to}).To(Equal([]int{SchemaVersion, SchemaVersion}))
}

func TestMigrateIsLockFreeWhenCurrent(t *testing.T) {
	w := newWorld(t)
	conn, err := w.pool.Acquire(w.ctx)
	w.ok(err)
	defer conn.Release()
	_, err = conn.Exec(w.ctx, `SELECT pg_advisory_lock($1)`, migrationLock)
	w.ok(err)
	_, _, err = Migrate(w.ctx, w.pool.Config().ConnString(), nil)
	w.ok(err) // would hang if it took the lock
	_, err = conn.Exec(w.ctx, `SELECT pg_advisory_unlock_all()`)
	w.ok(err)
}

func TestMigrateSeveralAtOnce(t *testing.T) {
	w := open(t, emptyDatabase(t), Options{})
	url := w.pool.Config().ConnString()
	migrated := w.together(4, func(int) (bool, error) {
		applied := false
		_, to, err := Migrate(w.ctx, url, func(line string) { applied = applied || strings.HasPrefix(line, "Applying") })
		if err == nil && to != SchemaVersion {
			err = fmt.Errorf("ended at version %d", to)
		}
		return applied, err
	})
	w.Expect(migrated).To(Equal(1), "one migrates, the others wait")
	w.ok(w.Ready(w.ctx))
}

func TestFailedMigrationLeavesNothing(t *testing.T) {
	w := open(t, emptyDatabase(t), Options{})
	conn, err := pgx.Connect(w.ctx, w.pool.Config().ConnString())
	w.ok(err)
	err = apply(w.ctx, conn, migration{1, "0001_broken.sql", "CREATE TABLE half (a int); SELECT 1/0"})
	w.Expect(err).To(HaveOccurred())
	w.ok(conn.Close(w.ctx))
	w.Expect(w.number(`SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'`)).To(Equal(0))
}

func TestReadyKnowsOldAndNewSchemas(t *testing.T) {
	t.Run("empty", func(t *testing.T) {
		w := open(t, emptyDatabase(t), Options{})
		err := w.Ready(w.ctx)
		w.reason(err, fault.Waiting, fault.ReasonDatabaseSchemaOld)
		w.Expect(err).To(MatchError(ContainSubstring(`run "sluice migrate"`)))
		_, err = w.Project(w.ctx, 1)
		w.reason(err, fault.Waiting, fault.ReasonDatabaseSchemaOld)
	})
	t.Run("first version", func(t *testing.T) {
		dsn := emptyDatabase(t)
		restore(NewWithT(t), dsn, "testdata/schema-0001.sql")
		w := open(t, dsn, Options{})
		w.reason(w.Ready(w.ctx), fault.Waiting, fault.ReasonDatabaseSchemaOld)
	})
	t.Run("current", func(t *testing.T) {
		w := newWorld(t)
		w.ok(w.Ready(w.ctx))
	})
	t.Run("newer that this release can work with", func(t *testing.T) {
		w := newWorld(t)
		w.sql(`INSERT INTO schema_version (version) VALUES ($1)`, SchemaVersion+1)
		w.ok(w.Ready(w.ctx))
		from, to, err := Migrate(w.ctx, w.pool.Config().ConnString(), nil)
		w.ok(err)
		w.Expect([]int{from, to}).To(Equal([]int{SchemaVersion + 1, SchemaVersion + 1}))
	})
	t.Run("newer that it cannot work with", func(t *testing.T) {
		w := newWorld(t)
		w.sql(`INSERT INTO schema_version (version, needs) VALUES ($1, $1)`, SchemaVersion+1)
		err := w.Ready(w.ctx)
		w.reason(err, fault.Waiting, fault.ReasonDatabaseSchemaNew)
		w.Expect(err).To(MatchError(ContainSubstring("run a newer release")))
		_, _, err = Migrate(w.ctx, w.pool.Config().ConnString(), nil)
		w.reason(err, fault.Terminal, fault.ReasonDatabaseSchemaNew)
	})
}

func TestEveryTableIsDescribed(t *testing.T) {
	w := newWorld(t)
	missing, err := collect(w.ctx, w.pool, scalar[string], `SELECT relname FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND obj_description(oid, 'pg_class') IS NULL ORDER BY 1`)
	w.ok(err)
	w.Expect(missing).To(BeEmpty())
}
