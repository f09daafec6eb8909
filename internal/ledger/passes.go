// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

const (
	passColumns = `a.id, a.project_id, a.request_id, q.source, q.token, q.requested_by, a.heads, a.source_heads, a.changed, a.phase, a.started_at, a.finished_at, a.counts`
	fromPasses  = ` FROM passes a JOIN sync_requests q ON q.id = a.request_id `
)

func scanPass(row pgx.Row) (domain.Pass, error) {
	var p domain.Pass
	var heads, sourceHeads, counts []byte
	err := row.Scan(&p.ID, &p.ProjectID, &p.RequestID, &p.Token.Source, &p.Token.Value, &p.Token.RequestedBy, &heads, &sourceHeads, &p.Changed, &p.Phase, &p.StartedAt, &p.FinishedAt, &counts)
	if err != nil {
		return p, err
	}
	if err := errors.Join(unmarshal(heads, &p.Heads), unmarshal(sourceHeads, &p.SourceHeads), unmarshal(counts, &p.Counts)); err != nil {
		return p, fmt.Errorf("pass %d: %w", p.ID, err)
	}
	return p, nil
}

// StartPass starts the pass that answers a request, in one transaction: the
// handed-out shas and the distribution's heads are written, the request is
// accepted, every listed repository of a project past Draft becomes a target,
// and the request is audited (R-REQ-02, R-REQ-07). A request that does not wait
// answers ErrNotFound, a pass under way the fault SyncInProgress; both write
// nothing.
func (l *Ledger) StartPass(ctx context.Context, lease domain.Lease, s domain.PassStart, now time.Time) (pass domain.Pass, err error) {
	s.Changed, s.Heads, s.SourceHeads = list(s.Changed), heads(s.Heads), heads(s.SourceHeads)
	err = l.fenced(ctx, lease, func(ctx context.Context, q db) error {
		token, err := scalar[string](q.QueryRow(ctx, `UPDATE sync_requests SET answer = 'Accepted', reason = '', message = '', answered_at = $3, retry_at = NULL
			WHERE id = $1 AND project_id = $2 AND answer = 'Waiting' RETURNING token`, s.RequestID, lease.ProjectID, now))
		if err != nil {
			return err
		}
		uid, err := scalar[string](q.QueryRow(ctx, `UPDATE projects SET source_heads = $2, distribution_heads = $3 WHERE id = $1 RETURNING uid`,
			lease.ProjectID, s.SourceHeads, s.Heads))
		if err != nil {
			return err
		}
		id, err := scalar[int64](q.QueryRow(ctx, `
			INSERT INTO passes (project_id, request_id, heads, source_heads, changed, phase, started_at)
			VALUES ($1, $2, $3, $4, $5, 'Pushing', $6) RETURNING id`,
			lease.ProjectID, s.RequestID, s.Heads, s.SourceHeads, s.Changed, now))
		if err != nil {
			return err
		}
		if _, err := write(ctx, q, `
			INSERT INTO pass_targets (pass_id, repository_id)
			SELECT $1, r.id FROM repositories r JOIN projects p ON p.id = r.project_id
			WHERE p.id = $2 AND p.stage <> 'Draft' AND r.listed AND NOT r.excluded AND r.released_at IS NULL`, id, lease.ProjectID); err != nil {
			return err
		}
		if err := audit(ctx, q, domain.AuditEntry{Actor: s.Actor, Action: "project.sync_requested", ProjectID: lease.ProjectID, Subject: projectSubject(uid), At: now,
			Payload: map[string]any{"token": token, "changed": s.Changed, "sourceHeads": s.SourceHeads}}); err != nil {
			return err
		}
		pass, err = scanPass(q.QueryRow(ctx, `SELECT `+passColumns+fromPasses+`WHERE a.id = $1`, id))
		return err
	})
	if violates(err, "passes_active") {
		return domain.Pass{}, fault.Wrap(err, fault.Waiting, fault.ReasonSyncInProgress, "another pass of the project is under way; the request waits for its end")
	}
	return pass, err
}

// heads returns heads that are stored as an empty map when there are none.
func heads(h domain.Heads) domain.Heads {
	if h == nil {
		return domain.Heads{}
	}
	return h
}

// ActivePass returns the project's unfinished pass.
func (l *Ledger) ActivePass(ctx context.Context, projectID int64) (domain.Pass, bool, error) {
	return perhaps(ctx, l, scanPass, `SELECT `+passColumns+fromPasses+`WHERE a.project_id = $1 AND a.finished_at IS NULL`, projectID)
}

// PendingTargets returns the repositories of a pass that had no turn yet, in
// an order that does not follow the list and is the same in every pass: by a
// hash of the repository's GitHub id (the row's id where that is unknown).
func (l *Ledger) PendingTargets(ctx context.Context, passID int64) ([]int64, error) {
	return all(ctx, l, scalar[int64], `SELECT t.repository_id FROM pass_targets t JOIN repositories r ON r.id = t.repository_id
		WHERE t.pass_id = $1 AND t.settled_at IS NULL ORDER BY md5(coalesce(r.github_repo_id, r.id)::text), r.id`, passID)
}

// Settle records what a repository's turn came to, on the pass and on the
// repository, and renews the lease with it (R-LEASE-05). A target settled
// before keeps its settlement. A pass that is not the lease's project's, or is
// finished, answers ErrNotFound.
func (l *Ledger) Settle(ctx context.Context, lease domain.Lease, passID, repositoryID int64, s domain.Settlement, now time.Time) error {
	return l.fenced(ctx, lease, func(ctx context.Context, q db) error {
		// A statement that finds no row is one of these.
		if _, err := scalar[int64](q.QueryRow(ctx, `SELECT a.id FROM passes a JOIN pass_targets t ON t.pass_id = a.id
			WHERE a.id = $1 AND a.project_id = $2 AND a.finished_at IS NULL AND t.repository_id = $3`, passID, lease.ProjectID, repositoryID)); err != nil {
			return err
		}
		settled, err := write(ctx, q, `UPDATE pass_targets SET outcome = $3, reason = $4, message = $5, settled_at = $6
			WHERE pass_id = $1 AND repository_id = $2 AND settled_at IS NULL`,
			passID, repositoryID, string(s.Outcome), s.Reason, clean(s.Message), now)
		if err != nil {
			return err
		}
		if settled > 0 {
			if _, err := write(ctx, q, `UPDATE repositories SET sync_outcome = $2, sync_reason = $3, sync_message = $4, sync_outcome_at = $5 WHERE id = $1`,
				repositoryID, string(s.Outcome), s.Reason, clean(s.Message), now); err != nil {
				return err
			}
		}
		return renew(ctx, q, lease, now)
	})
}

// tally is what a pass came to.
type tally struct {
	domain.Counts
	failed []string // full names of failed repositories, sorted
	// blocking is how many targets keep the source ahead: failed, held,
	// pending or not attempted.
	blocking int
}

func (t *tally) add(outcome domain.Outcome, reason, name string) {
	t.Counts = t.Add(outcome)
	if outcome == domain.OutcomeFailed {
		t.failed = append(t.failed, name)
	}
	switch {
	case outcome == "", outcome == domain.OutcomeFailed, outcome == domain.OutcomeHeld, reason == string(fault.ReasonNotAttempted):
		t.blocking++
	}
}

func tallyTargets(ctx context.Context, q db, passID int64) (tally, error) {
	t := tally{failed: []string{}}
	rows, err := q.Query(ctx, `SELECT coalesce(t.outcome, ''), t.reason, coalesce(r.full_name, r.wanted_name)
		FROM pass_targets t JOIN repositories r ON r.id = t.repository_id WHERE t.pass_id = $1 ORDER BY 3`, passID)
	if err != nil {
		return t, err
	}
	var outcome domain.Outcome
	var reason, name string
	_, err = pgx.ForEachRow(rows, []any{&outcome, &reason, &name}, func() error {
		t.add(outcome, reason, name)
		return nil
	})
	return t, err
}

// endPass marks a pass of the lease's project done and gives the lease back.
// first is false when it was done before; nothing is written then.
func endPass(ctx context.Context, q db, lease domain.Lease, passID int64, now time.Time) (pass domain.Pass, t tally, first bool, err error) {
	if t, err = tallyTargets(ctx, q, passID); err != nil {
		return pass, t, false, err
	}
	written, err := write(ctx, q, `UPDATE passes SET phase = 'Done', finished_at = $3, counts = $4 WHERE id = $1 AND project_id = $2 AND finished_at IS NULL`,
		passID, lease.ProjectID, now, t.Counts)
	if err != nil {
		return pass, t, false, err
	}
	pass, err = scanPass(q.QueryRow(ctx, `SELECT `+passColumns+fromPasses+`WHERE a.id = $1 AND a.project_id = $2`, passID, lease.ProjectID))
	if err != nil || written == 0 {
		return pass, t, false, err
	}
	return pass, t, true, release(ctx, q, lease)
}

// FinishPass ends a pass in one transaction (R-SYNC-09): counts, synced_at,
// the clearing rule, one audit entry, the lease given back. cleared reports
// whether the source is no longer ahead. Finishing a finished pass changes
// nothing.
func (l *Ledger) FinishPass(ctx context.Context, lease domain.Lease, passID int64, now time.Time) (pass domain.Pass, cleared bool, err error) {
	err = l.fenced(ctx, lease, func(ctx context.Context, q db) error {
		var t tally
		var first bool
		if pass, t, first, err = endPass(ctx, q, lease, passID, now); err != nil || !first {
			return err
		}
		if t.blocking == 0 {
			if cleared, err = clearAhead(ctx, q, lease.ProjectID, pass.SourceHeads); err != nil {
				return err
			}
		}
		uid, err := scalar[string](q.QueryRow(ctx, `UPDATE projects SET synced_at = $2 WHERE id = $1 RETURNING uid`, lease.ProjectID, now))
		if err != nil {
			return err
		}
		return audit(ctx, q, domain.AuditEntry{Actor: system, Action: "project.synced", ProjectID: lease.ProjectID, Subject: projectSubject(uid), At: now,
			Payload: map[string]any{"token": pass.Token.Value, "opened": t.Opened, "updated": t.Updated, "upToDate": t.UpToDate,
				"held": t.Held, "skipped": t.Skipped, "failed": t.Failed, "failedRepos": t.failed}})
	})
	if err != nil {
		return domain.Pass{}, false, err
	}
	return pass, cleared, nil
}

// clearAhead is the clearing rule after a pass that nothing keeps from it. The
// marks of the branches whose sha the pass synced go. When none is left and the
// project's own sha is one of those synced, the source is no longer ahead
// (R-CLEAR-01); else the project's own mark becomes that of the newest push
// left (R-CLEAR-02). Without handed-out shas nothing is cleared (R-CLEAR-03).
func clearAhead(ctx context.Context, q db, projectID int64, synced domain.Heads) (cleared bool, err error) {
	if len(synced) == 0 {
		return false, nil
	}
	var sha *string
	var marks []byte
	if err := q.QueryRow(ctx, `SELECT source_ahead_sha, source_ahead FROM projects WHERE id = $1`, projectID).Scan(&sha, &marks); err != nil || sha == nil {
		return false, err
	}
	var ahead map[string]domain.AheadBranch
	if err := json.Unmarshal(marks, &ahead); err != nil {
		return false, fmt.Errorf("project %d: %w", projectID, err)
	}
	left, cleared := remaining(*sha, ahead, synced)
	if cleared {
		_, err := write(ctx, q, `UPDATE projects SET source_ahead_sha = NULL, source_pushed_at = NULL, source_ahead = '{}' WHERE id = $1`, projectID)
		return err == nil, err
	}
	if len(left) == len(ahead) {
		return false, nil
	}
	newest, found := newestMark(left)
	if !found { // the project's own sha belongs to no branch: it stays as it is
		_, err = write(ctx, q, `UPDATE projects SET source_ahead = '{}' WHERE id = $1`, projectID)
		return false, err
	}
	_, err = write(ctx, q, `UPDATE projects SET source_ahead_sha = $2, source_pushed_at = $3, source_ahead = $4 WHERE id = $1`,
		projectID, newest.SHA, newest.PushedAt, left)
	return false, err
}

// remaining returns the marks that synced heads leave, and whether the source
// is no longer ahead at all.
func remaining(sha string, ahead map[string]domain.AheadBranch, synced domain.Heads) (left map[string]domain.AheadBranch, cleared bool) {
	left = map[string]domain.AheadBranch{}
	for branch, mark := range ahead {
		if synced[branch] != mark.SHA {
			left[branch] = mark
		}
	}
	for _, s := range synced {
		if s == sha {
			return left, len(left) == 0
		}
	}
	return left, false
}

// newestMark returns the mark of the newest receipt.
func newestMark(marks map[string]domain.AheadBranch) (newest domain.AheadBranch, found bool) {
	for _, m := range marks {
		if !found || m.PushedAt.After(newest.PushedAt) || (m.PushedAt.Equal(newest.PushedAt) && m.SHA < newest.SHA) {
			newest, found = m, true
		}
	}
	return newest, found
}

// AbandonPass ends the pass of a project that was archived meanwhile, quietly:
// no audit entry, nothing cleared; the lease is given back (R-SYNC-01).
func (l *Ledger) AbandonPass(ctx context.Context, lease domain.Lease, passID int64, now time.Time) error {
	return l.fenced(ctx, lease, func(ctx context.Context, q db) error {
		_, _, _, err := endPass(ctx, q, lease, passID, now)
		return err
	})
}
