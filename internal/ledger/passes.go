// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/domain"
)

const requestColumns = `r.id, r.project_id, r.source, r.token, r.requested_by, r.answer, r.reason, r.message, r.attempts, r.created_at, r.answered_at, r.retry_at`

func scanRequest(row pgx.Row) (domain.Request, error) {
	var r domain.Request
	var retry *time.Time
	err := row.Scan(&r.ID, &r.ProjectID, &r.Source, &r.Value, &r.RequestedBy, &r.Answer, &r.Reason, &r.Message, &r.Attempts, &r.CreatedAt, &r.AnsweredAt, &retry)
	r.RetryAt = orZero(retry)
	return r, err
}

// RecordRequest records a token with its first answer. A token seen before
// changes nothing and is returned as it stands, created=false: the same value
// never runs twice. A new waiting token makes an older waiting one Superseded.
func (l *Ledger) RecordRequest(ctx context.Context, projectID int64, t domain.Token, a domain.Answer, reason, message string, now time.Time) (r domain.Request, created bool, err error) {
	err = l.tx(ctx, func(tx pgx.Tx) error {
		// The project's row orders concurrent callers.
		if err := tx.QueryRow(ctx, `SELECT id FROM projects WHERE id = $1 FOR UPDATE`, projectID).Scan(&projectID); err != nil {
			return err
		}
		r, err = scanRequest(tx.QueryRow(ctx, `SELECT `+requestColumns+` FROM sync_requests r WHERE r.project_id = $1 AND r.source = $2 AND r.token = $3`,
			projectID, string(t.Source), t.Value))
		if err == nil || !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		created = true
		if a == domain.AnswerWaiting {
			if _, err := tx.Exec(ctx, `UPDATE sync_requests SET answer = 'Superseded', reason = '', message = 'a newer request took its place', answered_at = $2
				WHERE project_id = $1 AND answer = 'Waiting'`, projectID, now); err != nil {
				return err
			}
		}
		r, err = scanRequest(tx.QueryRow(ctx, `
			INSERT INTO sync_requests AS r (project_id, source, token, requested_by, answer, reason, message, created_at, answered_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) RETURNING `+requestColumns,
			projectID, string(t.Source), t.Value, t.RequestedBy, string(a), reason, message, now))
		return err
	})
	return r, created, err
}

// NextRequest returns the project's waiting request if it is due.
func (l *Ledger) NextRequest(ctx context.Context, projectID int64, now time.Time) (domain.Request, bool, error) {
	r, err := scanRequest(l.pool.QueryRow(ctx, `SELECT `+requestColumns+` FROM sync_requests r
		WHERE r.project_id = $1 AND r.answer = 'Waiting' AND (r.retry_at IS NULL OR r.retry_at <= $2)`, projectID, now))
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Request{}, false, nil
	}
	return r, err == nil, l.fault(err)
}

// AnswerRequest answers a waiting request; a request that has its last word
// already keeps it.
func (l *Ledger) AnswerRequest(ctx context.Context, lease domain.Lease, requestID int64, a domain.Answer, reason, message string, retryAt, now time.Time) error {
	return l.fenced(ctx, lease, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			UPDATE sync_requests SET answer = $2, reason = $3, message = $4, answered_at = $5, attempts = attempts + 1,
				retry_at = CASE WHEN $2 = 'Waiting' THEN $6::timestamptz END
			WHERE id = $1 AND answer = 'Waiting'`, requestID, string(a), reason, message, now, orNull(retryAt))
		return err
	})
}

const passColumns = `a.id, a.project_id, a.request_id, q.source, q.token, q.requested_by, a.heads, a.source_heads, a.changed, a.phase, a.started_at, a.finished_at, a.counts`

func scanPass(row pgx.Row) (domain.Pass, error) {
	var p domain.Pass
	var heads, sourceHeads, counts []byte
	err := row.Scan(&p.ID, &p.ProjectID, &p.RequestID, &p.Token.Source, &p.Token.Value, &p.Token.RequestedBy, &heads, &sourceHeads, &p.Changed, &p.Phase, &p.StartedAt, &p.FinishedAt, &counts)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(heads, &p.Heads); err != nil {
		return p, err
	}
	if err := json.Unmarshal(sourceHeads, &p.SourceHeads); err != nil {
		return p, err
	}
	if len(counts) > 0 {
		err = json.Unmarshal(counts, &p.Counts)
	}
	return p, err
}

// StartPass starts the pass that answers a request, in one transaction: the
// handed-out shas and the distribution's heads are written, the request is
// accepted, every listed repository of a project past Draft becomes a target,
// and the request is audited (R-REQ-02, R-REQ-07).
func (l *Ledger) StartPass(ctx context.Context, lease domain.Lease, s domain.PassStart, now time.Time) (domain.Pass, error) {
	var pass domain.Pass
	if s.Changed == nil {
		s.Changed = []string{}
	}
	err := l.fenced(ctx, lease, func(tx pgx.Tx) error {
		var uid string
		if err := tx.QueryRow(ctx, `UPDATE projects SET source_heads = $2, distribution_heads = $3 WHERE id = $1 RETURNING uid`,
			lease.ProjectID, s.SourceHeads, s.Heads).Scan(&uid); err != nil {
			return err
		}
		var token string
		if err := tx.QueryRow(ctx, `UPDATE sync_requests SET answer = 'Accepted', reason = '', message = '', answered_at = $2, retry_at = NULL
			WHERE id = $1 AND answer = 'Waiting' RETURNING token`, s.RequestID, now).Scan(&token); err != nil {
			return err
		}
		var id int64
		if err := tx.QueryRow(ctx, `
			INSERT INTO passes (project_id, request_id, heads, source_heads, changed, phase, started_at)
			VALUES ($1, $2, $3, $4, $5, 'Pushing', $6) RETURNING id`,
			lease.ProjectID, s.RequestID, s.Heads, s.SourceHeads, s.Changed, now).Scan(&id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			INSERT INTO pass_targets (pass_id, repository_id)
			SELECT $1, r.id FROM repositories r JOIN projects p ON p.id = r.project_id
			WHERE r.project_id = $2 AND p.stage <> 'Draft' AND r.listed AND NOT r.excluded AND r.released_at IS NULL`, id, lease.ProjectID); err != nil {
			return err
		}
		if err := audit(ctx, tx, domain.AuditEntry{Actor: s.Actor, Action: "project.sync_requested", ProjectID: lease.ProjectID, Subject: "project/" + uid, At: now,
			Payload: map[string]any{"token": token, "changed": s.Changed, "sourceHeads": s.SourceHeads}}); err != nil {
			return err
		}
		var err error
		pass, err = scanPass(tx.QueryRow(ctx, `SELECT `+passColumns+` FROM passes a JOIN sync_requests q ON q.id = a.request_id WHERE a.id = $1`, id))
		return err
	})
	return pass, err
}

// ActivePass returns the project's unfinished pass.
func (l *Ledger) ActivePass(ctx context.Context, projectID int64) (domain.Pass, bool, error) {
	p, err := scanPass(l.pool.QueryRow(ctx, `SELECT `+passColumns+` FROM passes a JOIN sync_requests q ON q.id = a.request_id
		WHERE a.project_id = $1 AND a.finished_at IS NULL`, projectID))
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Pass{}, false, nil
	}
	return p, err == nil, l.fault(err)
}

// PendingTargets returns the repositories of a pass that had no turn yet, in
// an order that does not follow the list (a hash of the repository's GitHub
// id, the row's id where that is unknown).
func (l *Ledger) PendingTargets(ctx context.Context, passID int64) ([]int64, error) {
	rows, err := l.pool.Query(ctx, `SELECT t.repository_id FROM pass_targets t JOIN repositories r ON r.id = t.repository_id
		WHERE t.pass_id = $1 AND t.settled_at IS NULL ORDER BY md5(coalesce(r.github_repo_id, r.id)::text), r.id`, passID)
	if err != nil {
		return nil, l.fault(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return ids, l.fault(err)
}

// RecordBotCommit records a commit as the App's or a workflow's before its ref
// moves (R-CORE-01). The first kind recorded stands.
func (l *Ledger) RecordBotCommit(ctx context.Context, lease domain.Lease, repositoryID int64, sha string, kind domain.BotCommitKind, now time.Time) error {
	return l.fenced(ctx, lease, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO bot_commits (repository_id, sha, kind, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
			repositoryID, sha, string(kind), now)
		return err
	})
}

// IsBotCommit reports whether a commit of a GitHub repository is recorded as
// the App's or a workflow's.
func (l *Ledger) IsBotCommit(ctx context.Context, githubID int64, sha string) (bool, error) {
	var is bool
	err := l.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM bot_commits b JOIN repositories r ON r.id = b.repository_id
		WHERE r.github_repo_id = $1 AND b.sha = $2)`, githubID, sha).Scan(&is)
	return is, l.fault(err)
}

// PullRequest returns the row of a repository's branch.
func (l *Ledger) PullRequest(ctx context.Context, repositoryID int64, branch string) (domain.PullRequest, bool, error) {
	pr := domain.PullRequest{RepositoryID: repositoryID, Branch: branch}
	err := l.pool.QueryRow(ctx, `SELECT number, state, url, updated_at FROM pull_requests WHERE repository_id = $1 AND branch = $2`, repositoryID, branch).
		Scan(&pr.Number, &pr.State, &pr.URL, &pr.UpdatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.PullRequest{}, false, nil
	}
	return pr, err == nil, l.fault(err)
}

// RecordPullRequest writes the row of a repository's branch (R-PR-02). An
// older fact about a higher number never is undone by it.
func (l *Ledger) RecordPullRequest(ctx context.Context, lease domain.Lease, pr domain.PullRequest) error {
	return l.fenced(ctx, lease, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, upsertPullRequest, pr.RepositoryID, pr.Branch, pr.Number, string(pr.State), pr.URL, pr.UpdatedAt)
		return err
	})
}

// upsertPullRequest keeps the guards of R-PR-07: a lower number changes
// nothing, and for the same number an older fact never undoes a newer one.
const upsertPullRequest = `
	INSERT INTO pull_requests AS pr (repository_id, branch, number, state, url, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (repository_id, branch) DO UPDATE SET number = excluded.number, state = excluded.state, url = excluded.url, updated_at = excluded.updated_at
	WHERE excluded.number > pr.number OR (excluded.number = pr.number AND excluded.updated_at >= pr.updated_at
		AND (excluded.state, excluded.url) IS DISTINCT FROM (pr.state, pr.url))`

// Settle records what a repository's turn came to, and renews the lease with
// it (R-LEASE-05). A target settled before keeps its settlement.
func (l *Ledger) Settle(ctx context.Context, lease domain.Lease, passID, repositoryID int64, s domain.Settlement, now time.Time) error {
	return l.fenced(ctx, lease, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE pass_targets SET outcome = $3, reason = $4, message = $5, settled_at = $6
			WHERE pass_id = $1 AND repository_id = $2 AND settled_at IS NULL`,
			passID, repositoryID, string(s.Outcome), s.Reason, s.Message, now)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE repositories SET sync_outcome = $2, sync_reason = $3, sync_message = $4, sync_outcome_at = $5 WHERE id = $1`,
			repositoryID, string(s.Outcome), s.Reason, s.Message, now); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE projects SET sync_job_at = $2 WHERE id = $1`, lease.ProjectID, now)
		return err
	})
}

// FinishPass ends a pass in one transaction (R-SYNC-09): counts, synced_at,
// the clearing rule, one audit entry, the lease given back. The source's mark
// is cleared only when no repository failed, was held or was not attempted,
// the handed-out shas are known, and the mark still is one of the shas the
// pass synced (R-CLEAR-01, R-CLEAR-02, R-CLEAR-03). Finishing a finished pass
// changes nothing.
func (l *Ledger) FinishPass(ctx context.Context, lease domain.Lease, passID int64, now time.Time) (pass domain.Pass, cleared bool, err error) {
	err = l.fenced(ctx, lease, func(tx pgx.Tx) error {
		counts, failed, err := countTargets(ctx, tx, passID)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `UPDATE passes SET phase = 'Done', finished_at = $2, counts = $3 WHERE id = $1 AND finished_at IS NULL`, passID, now, counts)
		if err != nil {
			return err
		}
		pass, err = scanPass(tx.QueryRow(ctx, `SELECT `+passColumns+` FROM passes a JOIN sync_requests q ON q.id = a.request_id WHERE a.id = $1`, passID))
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		var uid string
		if err := tx.QueryRow(ctx, `UPDATE projects SET synced_at = $2, sync_lease_holder = NULL, sync_job_at = NULL WHERE id = $1 RETURNING uid`, lease.ProjectID, now).Scan(&uid); err != nil {
			return err
		}
		if counts.Failed == 0 && counts.Held == 0 && len(pass.SourceHeads) > 0 {
			if cleared, err = clearAhead(ctx, tx, lease.ProjectID, pass.SourceHeads); err != nil {
				return err
			}
		}
		return audit(ctx, tx, domain.AuditEntry{Actor: "system", Action: "project.synced", ProjectID: lease.ProjectID, Subject: "project/" + uid, At: now,
			Payload: map[string]any{"token": pass.Token.Value, "opened": counts.Opened, "updated": counts.Updated, "upToDate": counts.UpToDate,
				"held": counts.Held, "skipped": counts.Skipped, "failed": counts.Failed, "failedRepos": failed}})
	})
	return pass, cleared, err
}

func countTargets(ctx context.Context, tx pgx.Tx, passID int64) (domain.Counts, []string, error) {
	rows, err := tx.Query(ctx, `SELECT coalesce(t.outcome, ''), coalesce(r.full_name, r.wanted_name) FROM pass_targets t JOIN repositories r ON r.id = t.repository_id
		WHERE t.pass_id = $1 ORDER BY 2`, passID)
	if err != nil {
		return domain.Counts{}, nil, err
	}
	var counts domain.Counts
	failed := []string{}
	var outcome domain.Outcome
	var name string
	_, err = pgx.ForEachRow(rows, []any{&outcome, &name}, func() error {
		counts = counts.Add(outcome)
		if outcome == domain.OutcomeFailed {
			failed = append(failed, name)
		}
		return nil
	})
	return counts, failed, err
}

// clearAhead clears the mark if it still is one of the synced shas, and drops
// the branches' parts that were synced.
func clearAhead(ctx context.Context, tx pgx.Tx, projectID int64, synced domain.Heads) (bool, error) {
	shas := make([]string, 0, len(synced))
	for _, sha := range synced {
		shas = append(shas, sha)
	}
	tag, err := tx.Exec(ctx, `UPDATE projects SET source_ahead_sha = NULL, source_pushed_at = NULL, source_ahead = '{}'
		WHERE id = $1 AND source_ahead_sha = ANY ($2)
			AND NOT EXISTS (SELECT 1 FROM jsonb_each(source_ahead) b WHERE b.value ->> 'sha' <> ALL ($2))`, projectID, shas)
	return err == nil && tag.RowsAffected() > 0, err
}

// AbandonPass ends the pass of an archived project quietly, without an audit
// entry (R-SYNC-01).
func (l *Ledger) AbandonPass(ctx context.Context, lease domain.Lease, passID int64, now time.Time) error {
	return l.fenced(ctx, lease, func(tx pgx.Tx) error {
		counts, _, err := countTargets(ctx, tx, passID)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE passes SET phase = 'Done', finished_at = $2, counts = $3 WHERE id = $1 AND finished_at IS NULL`, passID, now, counts)
		return err
	})
}
