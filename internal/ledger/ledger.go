// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger is what happened, in Postgres: the only importer of pgx.
// Guards sit in WHERE clauses, idempotency in UNIQUE constraints (R-CORE-03),
// and `now` is always a parameter. Every write of a pass is conditional on its
// lease (R-LEASE-05). Errors are classified here and carry no secret.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-dev/sluice/internal/fault"
)

// ErrNotFound is returned when a row does not exist.
var ErrNotFound = errors.New("ledger: no such row")

// Options of a Ledger.
type Options struct {
	Logger logr.Logger
	// MaxConns bounds the pool; default 8.
	MaxConns int32
}

// Ledger reads and writes the database.
type Ledger struct {
	pool    *pgxpool.Pool
	address string
	log     logr.Logger
}

// Open returns a Ledger. Postgres need not be there yet: only an address that
// cannot be understood is an error, and its text holds no password.
func Open(ctx context.Context, url string, o Options) (*Ledger, error) {
	config, err := poolConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 8
	if o.MaxConns > 0 {
		config.MaxConns = o.MaxConns
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("setting up the connection pool: %w", redact(err))
	}
	return &Ledger{pool: pool, address: address(config), log: o.Logger}, nil
}

// connectTimeout bounds one attempt to reach Postgres.
const connectTimeout = 3 * time.Second

func poolConfig(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database URL cannot be read: write it as postgres://user:password@host:5432/database")
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.ConnConfig.RuntimeParams["application_name"] = "sluice"
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	return config, nil
}

func address(c *pgxpool.Config) string {
	return fmt.Sprintf("%s:%d", c.ConnConfig.Host, c.ConnConfig.Port)
}

// redact drops the text of errors of pgx that may quote the address.
func redact(err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return fmt.Errorf("%s (SQLSTATE %s)", pg.Message, pg.Code)
	}
	return errors.New("connection settings refused")
}

// Close gives all connections back.
func (l *Ledger) Close() { l.pool.Close() }

// Ready reports whether Postgres answers and its schema is this release's.
func (l *Ledger) Ready(ctx context.Context) error {
	version, err := schemaVersion(ctx, l.pool)
	if err != nil {
		return l.fault(err)
	}
	switch want := SchemaVersion(); {
	case version < want:
		return fault.New(fault.Waiting, fault.ReasonDatabaseSchemaOld,
			"the database's schema is version %d and this release needs %d: run \"sluice migrate\"", version, want)
	case version > want:
		return fault.New(fault.Waiting, fault.ReasonDatabaseSchemaNew,
			"the database's schema is version %d and this release knows %d: run a newer release", version, want)
	}
	return nil
}

// ClockOffset returns the database's clock minus this machine's, corrected by
// half the round trip.
func (l *Ledger) ClockOffset(ctx context.Context) (time.Duration, error) {
	var theirs time.Time
	before := time.Now()
	if err := l.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&theirs); err != nil {
		return 0, l.fault(err)
	}
	after := time.Now()
	return theirs.Sub(before.Add(after.Sub(before) / 2)), nil
}

// fault classifies an error of pgx. Anything but an answer of Postgres is
// taken for a lost database.
func (l *Ledger) fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNotFound
	case errors.Is(err, context.Canceled):
		return err
	}
	var known *fault.Error
	if errors.As(err, &known) || errors.Is(err, ErrNotFound) {
		return err
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code[:2] {
		case "57", "53", "08", "25", "58":
			// Shutting down, out of resources, read-only standby, I/O.
			return fault.Wrap(err, fault.Retryable, fault.ReasonDatabaseUnavailable,
				"Postgres at %s does not serve now: %s", l.address, pg.Message)
		case "28", "3D":
			return fault.Wrap(err, fault.Retryable, fault.ReasonDatabaseUnavailable,
				"Postgres at %s refuses the connection: %s", l.address, pg.Message)
		}
		if pg.Code == "42P01" {
			return fault.Wrap(err, fault.Waiting, fault.ReasonDatabaseSchemaOld,
				"the database's schema is older than this release needs: run \"sluice migrate\"")
		}
		return fmt.Errorf("postgres: %s (SQLSTATE %s): %w", pg.Message, pg.Code, err)
	}
	return fault.Wrap(err, fault.Retryable, fault.ReasonDatabaseUnavailable, "Postgres does not answer at %s", l.address)
}

// constraint returns the name of the violated unique constraint, or "".
func constraint(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == "23505" {
		return pg.ConstraintName
	}
	return ""
}

// tx runs f in one transaction.
func (l *Ledger) tx(ctx context.Context, f func(pgx.Tx) error) error {
	return l.fault(pgx.BeginFunc(ctx, l.pool, f))
}

// Wakeups returns a channel that hints at new deliveries, by LISTEN. It is a
// hint only: a lost connection loses hints, and is made anew with backoff.
func (l *Ledger) Wakeups(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	go func() {
		for attempt := 0; ctx.Err() == nil; attempt++ {
			if l.listen(ctx, hints) {
				attempt = 0
			}
			select {
			case <-ctx.Done():
			case <-time.After(min(time.Duration(attempt+1)*time.Second, 15*time.Second)):
			}
		}
	}()
	return hints
}

func (l *Ledger) listen(ctx context.Context, hints chan<- struct{}) (listened bool) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return false
	}
	// A connection that listened is not given back: LISTEN would stay on it.
	raw := conn.Hijack()
	defer func() {
		_ = raw.Close(context.WithoutCancel(ctx))
	}()
	if _, err := raw.Exec(ctx, `LISTEN sluice_inbox`); err != nil {
		return false
	}
	for {
		if _, err := raw.WaitForNotification(ctx); err != nil {
			return true
		}
		select {
		case hints <- struct{}{}:
		default:
		}
	}
}
