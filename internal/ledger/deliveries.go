// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/domain"
)

func repositorySubject(id int64) string { return fmt.Sprintf("repository/%d", id) }

// StoreDelivery stores a delivery and, for a push to a tracked downstream or
// distribution repository, its receipt, in one transaction. It reports whether
// it was new: a delivery seen before changes nothing, also after its body was
// purged (R-HOOK-02). A source gets no receipt (R-AHEAD-04), and the first
// receipt of a (repository, sha) stands for ever (R-HOOK-05).
func (l *Ledger) StoreDelivery(ctx context.Context, d domain.Delivery, receipt *domain.Receipt) (stored bool, err error) {
	err = l.tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `INSERT INTO webhook_deliveries (app, guid, event, action, body, received_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
			d.App, d.GUID, d.Event, d.Action, d.Payload, d.ReceivedAt)
		if err != nil {
			return err
		}
		if stored = tag.RowsAffected() > 0; !stored {
			return nil
		}
		if receipt != nil {
			if _, err := tx.Exec(ctx, `
				INSERT INTO push_receipts (github_repo_id, head_sha, branch, received_at, is_bot, forced, commits)
				SELECT $1, $2, $3, $4, $5, $6, $7
				WHERE EXISTS (SELECT 1 FROM repositories WHERE github_repo_id = $1) OR EXISTS (SELECT 1 FROM projects WHERE distribution_repo_id = $1)
				ON CONFLICT DO NOTHING`,
				receipt.RepositoryID, receipt.HeadSHA, receipt.Branch, receipt.ReceivedAt, receipt.Bot, receipt.Forced, receipt.Commits); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `SELECT pg_notify('sluice_inbox', '')`)
		return err
	})
	return stored && err == nil, err
}

// Receipts returns the push receipts of a GitHub repository in the order they
// were received.
func (l *Ledger) Receipts(ctx context.Context, githubID int64) ([]domain.Receipt, error) {
	rows, err := l.pool.Query(ctx, `SELECT github_repo_id, branch, head_sha, received_at, is_bot, forced, commits FROM push_receipts WHERE github_repo_id = $1 ORDER BY received_at, head_sha`, githubID)
	if err != nil {
		return nil, l.fault(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[domain.Receipt])
	return list, l.fault(err)
}

// ObjectsFor returns the objects that an event about a GitHub repository
// concerns: the ProjectSyncs of a source or distribution, the RepoReconcile of
// a downstream repository. Other Apps' objects are left out.
func (l *Ledger) ObjectsFor(ctx context.Context, app string, githubID int64) ([]domain.ObjectRef, error) {
	rows, err := l.pool.Query(ctx, `SELECT namespace, name FROM projects WHERE app = $1 AND (source_repo_id = $2 OR distribution_repo_id = $2) AND released_at IS NULL ORDER BY id`, app, githubID)
	if err != nil {
		return nil, l.fault(err)
	}
	refs, err := collectRefs(rows, domain.KindProjectSync)
	if err != nil {
		return nil, l.fault(err)
	}
	rows, err = l.pool.Query(ctx, `SELECT object_namespace, object_name FROM repositories WHERE app = $1 AND github_repo_id = $2 AND released_at IS NULL ORDER BY id`, app, githubID)
	if err != nil {
		return nil, l.fault(err)
	}
	more, err := collectRefs(rows, domain.KindRepoReconcile)
	return append(refs, more...), l.fault(err)
}

// claimExpiry is how long a claimed delivery stays with its claimer.
const claimExpiry = 2 * time.Minute

// ClaimDeliveries claims up to n unhandled deliveries that are due, oldest
// receipt first.
func (l *Ledger) ClaimDeliveries(ctx context.Context, n int, now time.Time) ([]domain.Delivery, error) {
	rows, err := l.pool.Query(ctx, `
		WITH due AS (
			SELECT app, guid FROM webhook_deliveries
			WHERE processed_at IS NULL AND parked_at IS NULL AND body IS NOT NULL AND (retry_at IS NULL OR retry_at <= $1)
				AND (claimed_at IS NULL OR claimed_at < $2)
			ORDER BY received_at, guid LIMIT $3 FOR UPDATE SKIP LOCKED)
		UPDATE webhook_deliveries d SET claimed_at = $1 FROM due WHERE d.app = due.app AND d.guid = due.guid
		RETURNING d.app, d.guid::text, d.event, d.action, d.body, d.received_at, d.attempts`, now, now.Add(-claimExpiry), n)
	if err != nil {
		return nil, l.fault(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[domain.Delivery])
	if err != nil {
		return nil, l.fault(err)
	}
	sortByReceipt(list)
	return list, nil
}

// DeliveryDone marks a delivery handled.
func (l *Ledger) DeliveryDone(ctx context.Context, app, guid string, now time.Time) error {
	_, err := l.pool.Exec(ctx, `UPDATE webhook_deliveries SET processed_at = $3, claimed_at = NULL, error = '' WHERE app = $1 AND guid = $2 AND processed_at IS NULL`, app, guid, now)
	return l.fault(err)
}

// maxTries is how often a delivery is handled before it is parked (R-HOOK-06).
const maxTries = 5

// DeliveryFailed records a failed attempt: tried again at retryAt, parked
// after the fifth (R-HOOK-06). It reports whether it was parked.
func (l *Ledger) DeliveryFailed(ctx context.Context, app, guid, message string, retryAt, now time.Time) (parked bool, err error) {
	err = l.pool.QueryRow(ctx, `
		UPDATE webhook_deliveries SET attempts = attempts + 1, error = left($3, 1000), retry_at = $4, claimed_at = NULL,
			parked_at = CASE WHEN attempts + 1 >= $6 THEN $5::timestamptz END
		WHERE app = $1 AND guid = $2 AND processed_at IS NULL RETURNING parked_at IS NOT NULL`, app, guid, message, retryAt, now, maxTries).Scan(&parked)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return parked, l.fault(err)
}

// DeliveryDeferred puts a delivery off without spending a try (R-HOOK-07).
func (l *Ledger) DeliveryDeferred(ctx context.Context, app, guid, message string, retryAt time.Time) error {
	_, err := l.pool.Exec(ctx, `UPDATE webhook_deliveries SET error = left($3, 1000), retry_at = $4, claimed_at = NULL WHERE app = $1 AND guid = $2 AND processed_at IS NULL`, app, guid, message, retryAt)
	return l.fault(err)
}

// ApplyPullRequest applies a fact about a sync's pull request (R-PR-06,
// R-PR-07). The caller has made sure that it is one. It returns the objects
// concerned when something changed.
func (l *Ledger) ApplyPullRequest(ctx context.Context, pr domain.PullRequest) (changed bool, err error) {
	tag, err := l.pool.Exec(ctx, upsertPullRequest, pr.RepositoryID, pr.Branch, pr.Number, string(pr.State), pr.URL, pr.UpdatedAt)
	return tag.RowsAffected() > 0, l.fault(err)
}

// RecordPush records a person's push as the repository's last commit
// (R-EVT-01). An older push never undoes a newer one.
func (l *Ledger) RecordPush(ctx context.Context, repositoryID int64, sha string, at time.Time) (changed bool, err error) {
	tag, err := l.pool.Exec(ctx, `UPDATE repositories SET last_commit_sha = $2, last_commit_at = $3
		WHERE id = $1 AND deleted_at IS NULL AND (last_commit_at IS NULL OR last_commit_at < $3)`, repositoryID, sha, at)
	return tag.RowsAffected() > 0, l.fault(err)
}

// RecordGraderCommit records a workflow's own commit (R-EVT-01).
func (l *Ledger) RecordGraderCommit(ctx context.Context, repositoryID int64, sha string, now time.Time) error {
	_, err := l.pool.Exec(ctx, `INSERT INTO bot_commits (repository_id, sha, kind, created_at) VALUES ($1, $2, 'grader', $3) ON CONFLICT DO NOTHING`, repositoryID, sha, now)
	return l.fault(err)
}

func sortByReceipt(list []domain.Delivery) {
	slices.SortFunc(list, func(a, b domain.Delivery) int {
		if c := a.ReceivedAt.Compare(b.ReceivedAt); c != 0 {
			return c
		}
		return cmp.Compare(a.GUID, b.GUID)
	})
}
