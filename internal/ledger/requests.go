// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
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
// never runs twice. A new waiting token makes an older waiting one Superseded,
// and is judged at once whatever the project waits for (R-REQ-03), except for
// GitHub's rate limit. A project that nobody knows answers ErrNotFound.
func (l *Ledger) RecordRequest(ctx context.Context, projectID int64, t domain.Token, a domain.Answer, reason, message string, now time.Time) (r domain.Request, created bool, err error) {
	value := clean(t.Value)
	r, found, err := perhaps(ctx, l, scanRequest, seenRequest, projectID, string(t.Source), value)
	if err != nil || found {
		return r, false, err
	}
	err = l.tx(ctx, func(ctx context.Context, q db) error {
		// The project's row makes concurrent callers take turns.
		if _, err := scalar[int64](q.QueryRow(ctx, `SELECT id FROM projects WHERE id = $1 FOR NO KEY UPDATE`, projectID)); err != nil {
			return err
		}
		seen, err := optional(scanRequest(q.QueryRow(ctx, seenRequest, projectID, string(t.Source), value)))
		if err != nil {
			return err
		}
		if seen != nil {
			r = *seen
			return nil
		}
		if a == domain.AnswerWaiting {
			if err := makeWay(ctx, q, projectID, now); err != nil {
				return err
			}
		}
		created = true
		r, err = scanRequest(q.QueryRow(ctx, `
			INSERT INTO sync_requests AS r (project_id, source, token, requested_by, answer, reason, message, created_at, answered_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) RETURNING `+requestColumns,
			projectID, string(t.Source), value, clean(t.RequestedBy), string(a), reason, clean(message), now))
		return err
	})
	if err != nil {
		return domain.Request{}, false, err
	}
	return r, created, nil
}

const seenRequest = `SELECT ` + requestColumns + ` FROM sync_requests r WHERE r.project_id = $1 AND r.source = $2 AND r.token = $3`

// makeWay prepares a project for a new waiting request.
func makeWay(ctx context.Context, q db, projectID int64, now time.Time) error {
	if _, err := write(ctx, q, `UPDATE sync_requests SET answer = 'Superseded', reason = '', message = 'a newer request took its place', answered_at = $2, retry_at = NULL
		WHERE project_id = $1 AND answer = 'Waiting'`, projectID, now); err != nil {
		return err
	}
	_, err := write(ctx, q, `UPDATE projects SET problem_retry_at = $2 WHERE id = $1 AND problem_retry_at > $2 AND problem_class <> $3`,
		projectID, now, string(fault.RateLimited))
	return err
}

// NextRequest returns the project's waiting request if it is due.
func (l *Ledger) NextRequest(ctx context.Context, projectID int64, now time.Time) (domain.Request, bool, error) {
	return perhaps(ctx, l, scanRequest, `SELECT `+requestColumns+` FROM sync_requests r
		WHERE r.project_id = $1 AND r.answer = 'Waiting' AND (r.retry_at IS NULL OR r.retry_at <= $2)
		ORDER BY r.id DESC LIMIT 1`, projectID, now)
}

// AnswerRequest answers a waiting request of the lease's project; a request
// that has its last word already keeps it. retryAt counts only for an answer of
// Waiting; zero means at once.
func (l *Ledger) AnswerRequest(ctx context.Context, lease domain.Lease, requestID int64, a domain.Answer, reason, message string, retryAt, now time.Time) error {
	return l.fenced(ctx, lease, func(ctx context.Context, q db) error {
		_, err := write(ctx, q, `
			UPDATE sync_requests SET answer = $3, reason = $4, message = $5, answered_at = $6, attempts = attempts + 1,
				retry_at = CASE WHEN $3 = 'Waiting' THEN $7::timestamptz END
			WHERE id = $1 AND project_id = $2 AND answer = 'Waiting'`,
			requestID, lease.ProjectID, string(a), reason, clean(message), now, orNull(retryAt))
		return err
	})
}
