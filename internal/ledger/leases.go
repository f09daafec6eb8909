// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func leaseLost() *fault.Error {
	return fault.New(fault.Waiting, fault.ReasonLeaseLost, "another process took the project's work over")
}

// ClaimLease claims a project's sync lease: one conditional update, won when
// the lease is free or was not renewed for domain.LeaseDuration (R-LEASE-02).
// Two claimers never both win.
func (l *Ledger) ClaimLease(ctx context.Context, projectID int64, holder string, now time.Time) (domain.Lease, bool, error) {
	lease := domain.Lease{ProjectID: projectID, Holder: holder, RenewedAt: now}
	err := l.pool.QueryRow(ctx, `
		UPDATE projects SET sync_lease_token = sync_lease_token + 1, sync_lease_holder = $2, sync_job_at = $3
		WHERE id = $1 AND released_at IS NULL AND (sync_job_at IS NULL OR sync_job_at < $4)
		RETURNING sync_lease_token`, projectID, holder, now, now.Add(-domain.LeaseDuration)).Scan(&lease.Token)
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Lease{}, false, nil
	}
	return lease, err == nil, l.fault(err)
}

// TakeOverLeases frees the leases of every other holder: called by a process
// that just became the leader, about processes that no longer are. Their token
// is fenced by the next claim. It returns how many were freed.
func (l *Ledger) TakeOverLeases(ctx context.Context, except string, _ time.Time) (int, error) {
	tag, err := l.pool.Exec(ctx, `UPDATE projects SET sync_lease_holder = NULL, sync_job_at = NULL WHERE sync_lease_holder <> $1`, except)
	return int(tag.RowsAffected()), l.fault(err)
}

// RenewLease keeps a held lease; LeaseLost when it is no longer held
// (R-LEASE-05).
func (l *Ledger) RenewLease(ctx context.Context, lease domain.Lease, now time.Time) (domain.Lease, error) {
	err := l.fenced(ctx, lease, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE projects SET sync_job_at = $2 WHERE id = $1`, lease.ProjectID, now)
		return err
	})
	lease.RenewedAt = now
	return lease, err
}

// ReleaseLease gives a held lease back (R-LEASE-06); LeaseLost, and nothing
// changed, when somebody else holds it.
func (l *Ledger) ReleaseLease(ctx context.Context, lease domain.Lease) error {
	tag, err := l.pool.Exec(ctx, `UPDATE projects SET sync_lease_holder = NULL, sync_job_at = NULL
		WHERE id = $1 AND sync_lease_token = $2 AND sync_lease_holder = $3`, lease.ProjectID, lease.Token, lease.Holder)
	if err == nil && tag.RowsAffected() == 0 {
		return leaseLost()
	}
	return l.fault(err)
}

// fenced runs f in a transaction that holds the project's row, after making
// sure that the lease still is held. A lost lease writes nothing.
func (l *Ledger) fenced(ctx context.Context, lease domain.Lease, f func(pgx.Tx) error) error {
	return l.tx(ctx, func(tx pgx.Tx) error {
		var token int64
		var holder string
		err := tx.QueryRow(ctx, `SELECT sync_lease_token, coalesce(sync_lease_holder, '') FROM projects WHERE id = $1 FOR UPDATE`, lease.ProjectID).Scan(&token, &holder)
		if err != nil {
			return err // no row: the project is gone (R-LEASE-03)
		}
		if token != lease.Token || holder != lease.Holder {
			return leaseLost()
		}
		return f(tx)
	})
}

// ProjectsWithWork returns the projects whose rows ask for something that is
// due now, ordered by id: a build, a waiting request, or a pass to go on with.
func (l *Ledger) ProjectsWithWork(ctx context.Context, now time.Time) ([]int64, error) {
	rows, err := l.pool.Query(ctx, `
		SELECT p.id FROM projects p
		WHERE p.released_at IS NULL AND NOT p.suspended
			AND (p.problem_retry_at IS NULL OR p.problem_retry_at <= $1)
			AND (p.sync_job_at IS NULL OR p.sync_job_at < $2)
			AND ((p.built_at IS NULL AND p.stage <> 'Archived')
				OR EXISTS (SELECT 1 FROM passes a WHERE a.project_id = p.id AND a.finished_at IS NULL)
				OR EXISTS (SELECT 1 FROM sync_requests r WHERE r.project_id = p.id AND r.answer = 'Waiting' AND (r.retry_at IS NULL OR r.retry_at <= $1)))
		ORDER BY p.id`, now, now.Add(-domain.LeaseDuration))
	if err != nil {
		return nil, l.fault(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return ids, l.fault(err)
}

// NextWorkAt returns the earliest time at which something waiting is due; ok
// is false when nothing waits.
func (l *Ledger) NextWorkAt(ctx context.Context) (at time.Time, ok bool, err error) {
	var next *time.Time
	err = l.pool.QueryRow(ctx, `
		SELECT min(t) FROM (
			SELECT problem_retry_at AS t FROM projects WHERE released_at IS NULL AND NOT suspended AND problem_retry_at IS NOT NULL
			UNION ALL
			SELECT r.retry_at FROM sync_requests r JOIN projects p ON p.id = r.project_id
			WHERE r.answer = 'Waiting' AND r.retry_at IS NOT NULL AND p.released_at IS NULL AND NOT p.suspended) due`).Scan(&next)
	if err != nil || next == nil {
		return time.Time{}, false, l.fault(err)
	}
	return *next, true, nil
}
