// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dumpschema writes what hack/dump-schema.sh promises. It runs in the
// repository's root.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/ledger"
	"github.com/sluice-dev/sluice/internal/testenv/pgtest"
)

const (
	migrations = "internal/ledger/migrations"
	testdata   = "internal/ledger/testdata"
	database   = "sluice"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "dumpschema:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	out := filepath.Join(testdata, fmt.Sprintf("schema-%04d.sql", ledger.SchemaVersion))
	if _, err := os.Stat(out); err == nil {
		return fmt.Errorf("%s is there already: a dump is made once, when its migration is new", out)
	}
	server, err := pgtest.Start(ctx, pgtest.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := server.CreateDatabase(ctx, database); err != nil {
		return err
	}
	dsn := server.DSN(database)
	if _, _, err := ledger.Migrate(ctx, dsn, func(string) {}); err != nil {
		return err
	}
	if err := addSample(ctx, dsn); err != nil {
		return err
	}
	dump, err := dump(ctx, dsn)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, dump, 0o644); err != nil {
		return err
	}
	fmt.Println("Wrote", out)
	return writeChecksums()
}

func addSample(ctx context.Context, dsn string) error {
	sample, err := os.ReadFile(filepath.Join(testdata, "sample.sql"))
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, string(sample))
	return errors.Join(err, conn.Close(ctx))
}

// dump returns pg_dump's output as plain SQL: without psql's own commands and
// without comments, which name versions of programs.
func dump(ctx context.Context, dsn string) ([]byte, error) {
	program, err := pgtest.Binary("pg_dump")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "--inserts", "--no-owner", "--no-privileges", "--dbname", dsn)
	cmd.Stderr = os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("pg_dump: %w", err)
	}
	var b strings.Builder
	b.WriteString("-- Copyright The Sluice Authors.\n-- SPDX-License-Identifier: Apache-2.0\n\n-- Made by hack/dump-schema.sh; never changed afterwards.\n")
	blank := false
	for _, line := range strings.Split(string(raw), "\n") {
		if strings.HasPrefix(line, "--") || strings.HasPrefix(line, `\`) {
			continue
		}
		if line == "" && blank {
			continue
		}
		blank = line == ""
		b.WriteString(line + "\n")
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n"), nil
}

// writeChecksums lists the migrations with their checksums. A line that is
// there already never changes: a test holds the files to it.
func writeChecksums() error {
	out := filepath.Join(testdata, "checksums.txt")
	old, err := os.ReadFile(out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	names, err := filepath.Glob(filepath.Join(migrations, "*.sql"))
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(content), filepath.Base(name))
	}
	if !strings.HasPrefix(b.String(), string(old)) {
		return fmt.Errorf("a migration listed in %s was changed: restore it and write a new one", out)
	}
	return os.WriteFile(out, []byte(b.String()), 0o644)
}
