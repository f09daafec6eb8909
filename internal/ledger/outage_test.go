// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/testenv/pgtest"
)

const password = "hunter2-very-secret"

// secretless fails when an error or anything in its chain shows the password.
func secretless(g *WithT, err error) {
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, format := range []string{"%s", "%v", "%+v", "%#v"} {
			g.Expect(fmt.Sprintf(format, e)).NotTo(ContainSubstring(password))
		}
		var connect *pgconn.ConnectError
		g.Expect(errors.As(e, &connect)).To(BeFalse(), "it holds the configuration with its password")
	}
}

func TestOpenRefusesAMalformedURLWithoutQuotingIt_R_CORE_10(t *testing.T) {
	for _, url := range []string{
		"postgres://sluice:" + password + "@host:notaport/db",
		"postgres://sluice:" + password + "@ho st/db",
		"postgres://sluice:" + password + "%@host/db",
		"host=x password=" + password + " port=z",
		"postgres://sluice:" + password + "@host/db?pool_max_conns=many",
		"postgres://sluice:" + password + "@host/db?sslmode=perhaps",
	} {
		g := NewWithT(t)
		_, err := Open(t.Context(), url, Options{})
		g.Expect(err).To(MatchError(ContainSubstring("postgres://user:password@host")), "says how to write it")
		secretless(g, err)
		_, _, err = Migrate(t.Context(), url, nil)
		g.Expect(err).To(HaveOccurred())
		secretless(g, err)
	}
}

func TestNobodyListens(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.Close()).To(Succeed())
	url := fmt.Sprintf("postgres://sluice:%s@%s/sluice?sslmode=disable", password, l.Addr())
	w := open(t, url, Options{})
	for name, f := range everyKind(w) {
		err := f(w.ctx)
		w.reason(err, fault.Retryable, fault.ReasonDatabaseUnavailable)
		w.Expect(err).To(MatchError(ContainSubstring("does not answer at "+l.Addr().String())), name)
		secretless(g, err)
	}
	_, _, err = Migrate(w.ctx, url, nil)
	w.reason(err, fault.Retryable, fault.ReasonDatabaseUnavailable)
	secretless(g, err)
}

// everyKind is one operation of each kind.
func everyKind(w *world) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Ready":       w.Ready,
		"read":        func(ctx context.Context) error { _, err := w.IsSource(ctx, 1); return err },
		"list":        func(ctx context.Context) error { _, err := w.ProjectsWithWork(ctx, t0); return err },
		"write":       func(ctx context.Context) error { return w.ClearProblem(ctx, 1) },
		"snapshot":    func(ctx context.Context) error { _, err := w.RepositoryView(ctx, 1); return ignoreMissing(err) },
		"transaction": func(ctx context.Context) error { _, err := w.MarkDeleted(ctx, 1, "x", t0); return err },
		"clock":       func(ctx context.Context) error { _, err := w.ClockOffset(ctx); return err },
	}
}

func ignoreMissing(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func TestPostgresStopsAndComesBack(t *testing.T) {
	server := pgtest.Dedicated(t)
	g := NewWithT(t)
	g.Expect(server.CreateDatabase(t.Context(), "sluice")).To(Succeed())
	dsn := strings.Replace(server.DSN("sluice"), "sluice@", "sluice:"+password+"@", 1)
	_, _, err := Migrate(t.Context(), dsn, nil)
	g.Expect(err).NotTo(HaveOccurred())
	w := open(t, dsn, Options{})
	hints := w.Wakeups(t.Context())
	w.Eventually(hints).WithTimeout(10 * time.Second).Should(Receive())
	w.ok(w.Ready(w.ctx))

	server.Pause()
	for range 2 { // first on connections that were cut, then on none
		for name, f := range everyKind(w) {
			err := f(w.ctx)
			w.Expect(err).To(HaveOccurred(), name)
			w.reason(err, fault.Retryable, fault.ReasonDatabaseUnavailable)
			w.Expect(err).To(MatchError(ContainSubstring(server.Address())), name)
			secretless(w.WithT, err)
		}
	}
	w.ok(server.Resume(t.Context()))
	w.Eventually(func() error { return w.Ready(w.ctx) }).WithTimeout(10 * time.Second).Should(Succeed())
	for _, f := range everyKind(w) {
		w.ok(f(w.ctx))
	}
	w.Eventually(hints).WithTimeout(30*time.Second).Should(Receive(), "it listens again by itself")
}

func TestConnectionsAreCut(t *testing.T) {
	w := newWorld(t)
	err := w.do(w.ctx, func(ctx context.Context, q db) error {
		_, err := q.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
		return err
	})
	w.reason(err, fault.Retryable, fault.ReasonDatabaseUnavailable)
	w.ok(w.Ready(w.ctx))
}

// A server that takes connections and never answers, as behind a lost network.
func TestPostgresIsSilent(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(listener.Close()).To(Succeed()) }()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
	}()
	w := open(t, fmt.Sprintf("postgres://sluice:%s@%s/sluice?sslmode=disable", password, listener.Addr()), Options{Timeout: 200 * time.Millisecond})
	err = w.Ready(w.ctx)
	w.reason(err, fault.Retryable, fault.ReasonDatabaseUnavailable)
	w.Expect(err).To(MatchError(context.DeadlineExceeded))
	secretless(g, err)
}

func TestSlowOperationsAreBounded(t *testing.T) {
	w := open(t, pgtest.Database(t), Options{Timeout: 100 * time.Millisecond})
	err := w.do(w.ctx, func(ctx context.Context, q db) error {
		_, err := q.Exec(ctx, `SELECT pg_sleep(60)`)
		return err
	})
	w.reason(err, fault.Retryable, fault.ReasonDatabaseUnavailable)
}

func TestACancelledContextIsNoOutage(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	for name, f := range everyKind(w) {
		err := f(ctx)
		w.Expect(err).To(MatchError(context.Canceled), name)
		w.reason(err, fault.Waiting, fault.ReasonInterrupted)
	}
}

func TestAClosedLedgerIsInterrupted(t *testing.T) {
	w := newWorld(t)
	w.Close()
	w.reason(w.Ready(w.ctx), fault.Waiting, fault.ReasonInterrupted)
}

func TestRefusalsOfPostgres(t *testing.T) {
	for _, c := range []struct {
		code    string
		class   fault.Class
		reason  fault.Reason
		message string
	}{
		{"57P01", fault.Retryable, fault.ReasonDatabaseUnavailable, "does not serve now"},
		{"57P03", fault.Retryable, fault.ReasonDatabaseUnavailable, "does not serve now"},
		{"53300", fault.Retryable, fault.ReasonDatabaseUnavailable, "does not serve now"},
		{"28P01", fault.Retryable, fault.ReasonDatabaseUnavailable, "check user, password and database"},
		{"3D000", fault.Retryable, fault.ReasonDatabaseUnavailable, "check user, password and database"},
		{"40001", fault.Retryable, fault.ReasonDatabaseUnavailable, "tried again"},
		{"25006", fault.Retryable, fault.ReasonDatabaseUnavailable, "connect to the primary"},
		{"42P01", fault.Waiting, fault.ReasonDatabaseSchemaOld, `run "sluice migrate"`},
		{"42703", fault.Waiting, fault.ReasonDatabaseSchemaOld, `run "sluice migrate"`},
		{"23514", fault.Retryable, fault.ReasonUnexpected, "SQLSTATE 23514"},
		{"X", fault.Retryable, fault.ReasonUnexpected, "SQLSTATE X"},
	} {
		t.Run(c.code, func(t *testing.T) {
			w := &world{Ledger: &Ledger{address: "db:5432"}, WithT: NewWithT(t), t: t}
			err := w.fault(fmt.Errorf("pgx: %w", &pgconn.PgError{Code: c.code, Message: "said Postgres", Detail: "Key (x)=(" + password + ")"}))
			w.reason(err, c.class, c.reason)
			w.Expect(err).To(MatchError(ContainSubstring(c.message)))
			secretless(w.WithT, err)
		})
	}
}

func TestErrorsThatAreNotOutages(t *testing.T) {
	w := newWorld(t)
	_, err := one(w.ctx, w.Ledger, scalar[int], `SELECT NULL::int`)
	w.reason(err, fault.Retryable, fault.ReasonUnexpected)
	w.Expect(w.fault(pgx.ErrNoRows)).To(Equal(ErrNotFound))
	w.Expect(w.fault(nil)).To(Succeed())
}

func TestClockOffset_R_CORE_04(t *testing.T) {
	w := newWorld(t)
	offset, err := w.ClockOffset(w.ctx)
	w.ok(err)
	w.Expect(offset).To(BeNumerically("~", 0, time.Second), "one machine has one clock")
}
