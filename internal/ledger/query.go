// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// db is the pool or a transaction.
type db interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// do runs one operation outside of a transaction, within the time an operation
// may take, and classifies its error.
func (l *Ledger) do(ctx context.Context, f func(context.Context, db) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return l.fault(f(ctx, l.pool))
}

// tx runs f in one transaction, otherwise like do.
func (l *Ledger) tx(ctx context.Context, f func(context.Context, db) error) error {
	return l.do(ctx, func(ctx context.Context, _ db) error {
		return pgx.BeginFunc(ctx, l.pool, func(tx pgx.Tx) error { return f(ctx, tx) })
	})
}

// snapshot runs queries that all see the same moment.
func (l *Ledger) snapshot(ctx context.Context, f func(context.Context, db) error) error {
	return l.do(ctx, func(ctx context.Context, _ db) error {
		o := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
		return pgx.BeginTxFunc(ctx, l.pool, o, func(tx pgx.Tx) error { return f(ctx, tx) })
	})
}

// exec runs one statement and returns how many rows it wrote.
func (l *Ledger) exec(ctx context.Context, sql string, args ...any) (written int, err error) {
	err = l.do(ctx, func(ctx context.Context, q db) (err error) {
		written, err = write(ctx, q, sql, args...)
		return err
	})
	return written, err
}

// one returns the row of a query that has just one; ErrNotFound without.
func one[T any](ctx context.Context, l *Ledger, scan func(pgx.Row) (T, error), sql string, args ...any) (row T, err error) {
	err = l.do(ctx, func(ctx context.Context, q db) (err error) {
		row, err = scan(q.QueryRow(ctx, sql, args...))
		return err
	})
	return row, err
}

// perhaps is one for a row that may be missing.
func perhaps[T any](ctx context.Context, l *Ledger, scan func(pgx.Row) (T, error), sql string, args ...any) (row T, found bool, err error) {
	row, err = one(ctx, l, scan, sql, args...)
	if errors.Is(err, ErrNotFound) {
		var none T
		return none, false, nil
	}
	return row, err == nil, err
}

// all returns the rows of a query.
func all[T any](ctx context.Context, l *Ledger, scan func(pgx.Row) (T, error), sql string, args ...any) (rows []T, err error) {
	err = l.do(ctx, func(ctx context.Context, q db) (err error) {
		rows, err = collect(ctx, q, scan, sql, args...)
		return err
	})
	return rows, err
}

// write, collect and optional are exec, all and perhaps within an operation.
func write(ctx context.Context, q db, sql string, args ...any) (written int, err error) {
	tag, err := q.Exec(ctx, sql, args...)
	return int(tag.RowsAffected()), err
}

func collect[T any](ctx context.Context, q db, scan func(pgx.Row) (T, error), sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (T, error) { return scan(r) })
}

func optional[T any](row T, err error) (*T, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &row, nil
}

// scalar reads rows of one column.
func scalar[T any](row pgx.Row) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// list returns a list that is stored as an empty one when there is none.
func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
