// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// startTimeout bounds the start of a server on a busy machine.
const startTimeout = 2 * time.Minute

// template is the database that tests' databases are copied from.
const template = "sluice_template"

// shared is the test package's one server.
var shared struct {
	mu       sync.Mutex
	server   *Server
	err      error // why it could not be started, for every later caller
	migrate  func(dsn string) error
	migrated bool
	made     int // databases made so far
}

// Run is for TestMain: it runs a package's tests and then stops the server
// that they shared, if any of them asked for one. A migration given here makes
// the template of the databases that Database returns:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Run(m, migrate)) }
func Run(m *testing.M, migrate ...func(dsn string) error) int {
	for _, f := range migrate {
		shared.migrate = f
	}
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Template runs a migration on the template database at once, starting the
// shared server for it. Without it (and without Run's argument) tests get
// empty databases.
func Template(ctx context.Context, migrate func(dsn string) error) error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.migrated {
		return errors.New("pgtest: the template exists already: call Template once, before any Database")
	}
	shared.migrate = migrate
	_, err := prepare(ctx)
	return err
}

// Database returns the URL of a fresh database of the test's own, a copy of
// the template. It is dropped when the test ends. The server is shared by the
// package's tests and started with the first call.
func Database(t testing.TB) (dsn string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, name, err := copyTemplate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
		defer cancel()
		if err := server.admin(ctx, "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return server.DSN(name)
}

// copyTemplate makes a database from the template. Calls take turns: Postgres
// refuses to copy a database that another session is using.
func copyTemplate(ctx context.Context) (*Server, string, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	server, err := prepare(ctx)
	if err != nil {
		return nil, "", err
	}
	shared.made++
	name := fmt.Sprintf("test_%d", shared.made)
	return server, name, server.admin(ctx, "CREATE DATABASE "+quote(name)+" TEMPLATE "+quote(template))
}

// prepare starts the shared server and makes the template, once. The caller
// holds shared.mu.
func prepare(ctx context.Context) (*Server, error) {
	if shared.migrated || shared.err != nil {
		return shared.server, shared.err
	}
	shared.err = func() (err error) {
		if shared.server, err = Start(ctx, Options{}); err != nil {
			return err
		}
		if err := shared.server.CreateDatabase(ctx, template); err != nil {
			return err
		}
		if shared.migrate == nil {
			return nil
		}
		if err := shared.migrate(shared.server.DSN(template)); err != nil {
			return fmt.Errorf("pgtest: migrating the template: %w", err)
		}
		return nil
	}()
	shared.migrated = shared.err == nil
	return shared.server, shared.err
}

// Dedicated returns a server of the test's own, for tests that stop it. It is
// stopped when the test ends. Its databases are not migrated.
func Dedicated(t testing.TB) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s, err := Start(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}
