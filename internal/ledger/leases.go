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

// projectGone is the answer to a fenced write of a project that was deleted
// meanwhile: its lease is lost for good, and it is ErrNotFound too.
func projectGone() *fault.Error {
	return fault.Wrap(ErrNotFound, fault.Waiting, fault.ReasonLeaseLost, "the project was deleted meanwhile")
}

// ClaimLease claims a project's sync lease: one conditional update, won when
// the lease is free or was not renewed for domain.LeaseDuration (R-LEASE-02).
// Two claimers never both win. The token of a lease is higher than that of all
// before it.
func (l *Ledger) ClaimLease(ctx context.Context, projectID int64, holder string, now time.Time) (domain.Lease, bool, error) {
	lease := domain.Lease{ProjectID: projectID, Holder: holder, RenewedAt: now}
	var won bool
	var err error
	lease.Token, won, err = perhaps(ctx, l, scalar[int64], `
		UPDATE projects SET sync_lease_token = sync_lease_token + 1, sync_lease_holder = $2, sync_job_at = $3
		WHERE id = $1 AND released_at IS NULL AND (sync_job_at IS NULL OR sync_job_at < $4)
		RETURNING sync_lease_token`, projectID, holder, now, now.Add(-domain.LeaseDuration))
	if !won {
		return domain.Lease{}, false, err
	}
	return lease, true, nil
}

// TakeOverLeases frees the leases of every other holder: called by a process
// that just became the leader, about processes that no longer are. Whatever
// those still try to record is refused from then on. It returns how many
// leases were freed.
func (l *Ledger) TakeOverLeases(ctx context.Context, except string, _ time.Time) (int, error) {
	return l.exec(ctx, `UPDATE projects SET sync_lease_holder = NULL, sync_job_at = NULL WHERE sync_lease_holder <> $1`, except)
}

// RenewLease keeps a held lease; LeaseLost when it is no longer held
// (R-LEASE-05). A renewal never makes a lease older.
func (l *Ledger) RenewLease(ctx context.Context, lease domain.Lease, now time.Time) (domain.Lease, error) {
	err := l.fenced(ctx, lease, func(ctx context.Context, q db) error { return renew(ctx, q, lease, now) })
	if err != nil {
		return lease, err
	}
	lease.RenewedAt = now
	return lease, nil
}

func renew(ctx context.Context, q db, lease domain.Lease, now time.Time) error {
	_, err := write(ctx, q, `UPDATE projects SET sync_job_at = greatest(sync_job_at, $2) WHERE id = $1`, lease.ProjectID, now)
	return err
}

// ReleaseLease gives a held lease back (R-LEASE-06); LeaseLost, and nothing
// changed, when it is no longer held.
func (l *Ledger) ReleaseLease(ctx context.Context, lease domain.Lease) error {
	return l.fenced(ctx, lease, func(ctx context.Context, q db) error { return release(ctx, q, lease) })
}

func release(ctx context.Context, q db, lease domain.Lease) error {
	_, err := write(ctx, q, `UPDATE projects SET sync_lease_holder = NULL, sync_job_at = NULL WHERE id = $1`, lease.ProjectID)
	return err
}

// fenced runs f in a transaction that holds the project's row, after making
// sure that the lease still is held (R-LEASE-03, R-LEASE-05). Otherwise
// nothing is written and the error is LeaseLost.
func (l *Ledger) fenced(ctx context.Context, lease domain.Lease, f func(context.Context, db) error) error {
	return l.tx(ctx, func(ctx context.Context, q db) error {
		var held bool
		err := q.QueryRow(ctx, `SELECT sync_lease_token = $2 AND sync_lease_holder IS NOT DISTINCT FROM $3 AND released_at IS NULL
			FROM projects WHERE id = $1 FOR NO KEY UPDATE`, lease.ProjectID, lease.Token, lease.Holder).Scan(&held)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return projectGone()
		case err != nil:
			return err
		case !held:
			return leaseLost()
		}
		return f(ctx, q)
	})
}

// workDue is the time at which a project's rows ask for something: a build, a
// pass to go on with, or a waiting request; null when for nothing. A problem's
// time and a lease that somebody holds put it off.
const workDue = `
	greatest(
		CASE
			WHEN p.built_at IS NULL AND p.stage <> 'Archived' OR EXISTS (SELECT 1 FROM passes a WHERE a.project_id = p.id AND a.finished_at IS NULL)
			THEN '-infinity'::timestamptz
			ELSE (SELECT min(coalesce(r.retry_at, '-infinity')) FROM sync_requests r WHERE r.project_id = p.id AND r.answer = 'Waiting')
		END,
		coalesce(p.problem_retry_at, '-infinity'),
		coalesce(p.sync_job_at + $1, '-infinity'))`

// workAsked is the condition under which workDue counts: greatest ignores
// nulls, so that there is something to do is asked apart.
const workAsked = `p.released_at IS NULL AND NOT p.suspended AND (
	p.built_at IS NULL AND p.stage <> 'Archived'
	OR EXISTS (SELECT 1 FROM passes a WHERE a.project_id = p.id AND a.finished_at IS NULL)
	OR EXISTS (SELECT 1 FROM sync_requests r WHERE r.project_id = p.id AND r.answer = 'Waiting'))`

// ProjectsWithWork returns the projects whose rows ask for something that is
// due now, ordered by id: a build, a waiting request, or a pass to go on with
// (also of an archived project, for it to be ended). A project whose lease is
// held is left to its holder.
func (l *Ledger) ProjectsWithWork(ctx context.Context, now time.Time) ([]int64, error) {
	return all(ctx, l, scalar[int64], `SELECT p.id FROM projects p WHERE `+workAsked+` AND `+workDue+` <= $2
		AND (p.sync_job_at IS NULL OR p.sync_job_at + $1 < $2) ORDER BY p.id`, domain.LeaseDuration, now)
}

// NextWorkAt returns the earliest time at which some project has work, in the
// past when one has it already; ok is false when nothing waits.
func (l *Ledger) NextWorkAt(ctx context.Context) (at time.Time, ok bool, err error) {
	due, err := one(ctx, l, scalar[*time.Time], `
		SELECT CASE WHEN t = '-infinity' THEN 'epoch' ELSE t END FROM (
			SELECT min(`+workDue+`) AS t FROM projects p WHERE `+workAsked+`) soonest`, domain.LeaseDuration)
	if err != nil || due == nil {
		return time.Time{}, false, err
	}
	return *due, true, nil
}
