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
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// ErrNotFound is returned when a row does not exist.
var ErrNotFound = domain.ErrNotFound

// refusal is an answer of Postgres to a statement. It keeps what decides and
// drops the rest: pgx's own errors hold rows' values, and those of a failed
// connection the whole configuration with its password (R-CORE-10).
type refusal struct{ code, constraint, message string }

// Error returns Postgres' message and its code.
func (r *refusal) Error() string { return fmt.Sprintf("%s (SQLSTATE %s)", r.message, r.code) }

func asRefusal(err error) (*refusal, bool) {
	if known := (*refusal)(nil); errors.As(err, &known) {
		return known, true
	}
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) {
		return &refusal{code: pg.Code, constraint: pg.ConstraintName, message: pg.Message}, true
	}
	return nil, false
}

// Codes of Postgres (its manual, appendix A) that mean more than "refused".
const (
	codeUniqueViolation = "23505"
	codeUndefinedTable  = "42P01"
	codeUndefinedColumn = "42703"
	codeReadOnly        = "25006"
)

// violates reports whether err is the violation of that unique constraint.
func violates(err error, constraint string) bool {
	r, ok := asRefusal(err)
	return ok && r.code == codeUniqueViolation && r.constraint == constraint
}

// fault classifies an error of pgx, once, at this edge. What a caller can tell
// apart passes through: ErrNotFound, faults, a cancelled context.
func (l *Ledger) fault(err error) error {
	var known *fault.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, ErrNotFound):
		return err
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNotFound
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, puddle.ErrClosedPool):
		return fault.New(fault.Waiting, fault.ReasonInterrupted, "the process is stopping; the work is taken up again")
	}
	if r, ok := asRefusal(err); ok {
		return l.refused(r)
	}
	if unreachable(err) {
		return fault.Wrap(bare(err), fault.Retryable, fault.ReasonDatabaseUnavailable,
			"Postgres does not answer at %s: check that it runs and that this process can reach it", l.address)
	}
	return fmt.Errorf("reading the database: %w", err)
}

// refused classifies an answer of Postgres.
func (l *Ledger) refused(r *refusal) error {
	switch class(r.code) {
	case "08", "53", "57", "58":
		// Connection, out of resources, shutting or starting up, I/O.
		return fault.Wrap(r, fault.Retryable, fault.ReasonDatabaseUnavailable, "Postgres at %s does not serve now: %s", l.address, r.message)
	case "28", "3D":
		return fault.Wrap(r, fault.Retryable, fault.ReasonDatabaseUnavailable,
			"Postgres at %s refuses the connection: %s: check user, password and database of the URL", l.address, r.message)
	case "40":
		return fault.Wrap(r, fault.Retryable, fault.ReasonDatabaseUnavailable, "Postgres at %s gave up a transaction that stood in another's way; it is tried again", l.address)
	}
	switch r.code {
	case codeReadOnly:
		return fault.Wrap(r, fault.Retryable, fault.ReasonDatabaseUnavailable, "Postgres at %s is read-only, e.g. a standby: connect to the primary", l.address)
	case codeUndefinedTable, codeUndefinedColumn:
		return fault.Wrap(r, fault.Waiting, fault.ReasonDatabaseSchemaOld, "the database's schema is older than this release needs: run \"sluice migrate\"")
	}
	return fmt.Errorf("postgres refuses: %w", r)
}

// class returns the first two characters of an SQLSTATE, its class.
func class(code string) string {
	if len(code) < 2 {
		return ""
	}
	return code[:2]
}

// unreachable reports whether err is about the connection rather than about
// what was asked.
func unreachable(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	var errno syscall.Errno
	return errors.As(err, &connect) || errors.As(err, &network) || errors.As(err, &errno) ||
		pgconn.Timeout(err) || pgconn.SafeToRetry(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, pgconn.ErrConnClosed)
}

// bare returns an error that tells a timeout from a lost connection and holds
// nothing else.
func bare(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) {
		return context.DeadlineExceeded
	}
	return errors.New("no connection")
}

// clean makes text that came from outside storable: Postgres takes neither
// invalid UTF-8 nor NUL.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
