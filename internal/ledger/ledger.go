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
	"net"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-dev/sluice/internal/fault"
)

// Options of a Ledger.
type Options struct {
	Logger logr.Logger
	// MaxConns bounds the pool; default 8.
	MaxConns int32
	// Timeout bounds one operation, getting a connection included; default
	// 15 s. An operation that takes longer is answered DatabaseUnavailable.
	Timeout time.Duration
}

// Ledger reads and writes the database.
type Ledger struct {
	pool    *pgxpool.Pool
	address string
	log     logr.Logger
	timeout time.Duration
}

const (
	defaultMaxConns = 8
	defaultTimeout  = 15 * time.Second
	// connectTimeout bounds one attempt to reach Postgres.
	connectTimeout = 3 * time.Second
)

// Open returns a Ledger. Postgres need not be there yet: only an address that
// cannot be understood is an error, and its text holds no password. The pool
// lives until Close; ctx bounds nothing but its setting up.
func Open(ctx context.Context, url string, o Options) (*Ledger, error) {
	config, err := poolConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = defaultMaxConns
	if o.MaxConns > 0 {
		config.MaxConns = o.MaxConns
	}
	pool, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		// The cause may quote the address: it is dropped.
		return nil, errors.New("the connection pool refuses the settings of the database URL: check its pool_ parameters")
	}
	l := &Ledger{pool: pool, address: address(config.ConnConfig), log: o.Logger, timeout: defaultTimeout}
	if o.Timeout > 0 {
		l.timeout = o.Timeout
	}
	return l, nil
}

// poolConfig understands a database URL. pgx's own error quotes it, so it is
// not passed on.
func poolConfig(url string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the database URL cannot be read: write it as postgres://user:password@host:5432/database?sslmode=verify-full, with special characters in the password percent-encoded")
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.ConnConfig.RuntimeParams["application_name"] = "sluice"
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	config.AfterConnect = readUTC
	return config, nil
}

// readUTC makes times come back in UTC, whatever zone this machine is in.
func readUTC(_ context.Context, conn *pgx.Conn) error {
	conn.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
	return nil
}

func address(c *pgx.ConnConfig) string {
	return net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
}

// Close gives all connections back. Operations after it fail.
func (l *Ledger) Close() { l.pool.Close() }

// Ready returns nil when Postgres answers and this release can work with its
// schema. Else it returns a fault: DatabaseUnavailable, DatabaseSchemaOld (run
// "sluice migrate") or DatabaseSchemaNew (run a newer release). A newer schema
// that takes nothing away from this release is fine, so that a migration does
// not stop the processes that run until they are replaced.
func (l *Ledger) Ready(ctx context.Context) error {
	return l.do(ctx, func(ctx context.Context, q db) error {
		schema, err := readSchema(ctx, q)
		if err != nil {
			return err
		}
		return schema.suits(SchemaVersion)
	})
}

// suits says whether a release that knows version `known` can work with the
// schema.
func (s schema) suits(known int) error {
	switch {
	case s.version < known:
		return fault.New(fault.Waiting, fault.ReasonDatabaseSchemaOld,
			"the database's schema is version %d and this release needs %d: run \"sluice migrate\"", s.version, known)
	case s.needs > known:
		return fault.New(fault.Waiting, fault.ReasonDatabaseSchemaNew,
			"the database's schema is version %d and this release knows %d: run a newer release", s.version, known)
	}
	return nil
}

// clockSamples is how many round trips ClockOffset makes; the shortest counts.
const clockSamples = 3

// ClockOffset returns the database's clock minus this machine's, corrected by
// half the round trip: what clock.Corrected adds, so that all processes agree
// on the time (R-CORE-04).
func (l *Ledger) ClockOffset(ctx context.Context) (offset time.Duration, err error) {
	err = l.do(ctx, func(ctx context.Context, _ db) error {
		// On a connection held before, so that connecting is not measured.
		conn, err := l.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		shortest := time.Duration(-1)
		for range clockSamples {
			var theirs time.Time
			before := time.Now()
			if err := conn.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&theirs); err != nil {
				return err
			}
			if trip := time.Since(before); shortest < 0 || trip < shortest {
				shortest, offset = trip, theirs.Sub(before.Add(trip/2))
			}
		}
		return nil
	})
	return offset, err
}
