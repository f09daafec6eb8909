// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/domain"
)

const (
	// claimExpiry is how long a claimed delivery stays with its claimer.
	claimExpiry = 2 * time.Minute
	// maxTries is how often a delivery is handled before it is parked
	// (R-HOOK-06).
	maxTries = 5
	// maxDeliveryError bounds a stored message (R-HOOK-06), in characters.
	maxDeliveryError = 1000
)

// StoreDelivery stores a delivery and, for a push to a downstream or
// distribution repository of its App, its receipt, in one transaction. It
// reports whether it was new: a delivery seen before changes nothing, also
// after its body was purged (R-HOOK-02). A mere source gets no receipt
// (R-AHEAD-04), and the first receipt of a (repository, sha) stands for ever
// (R-HOOK-05). After an error nothing is stored (R-HOOK-03).
func (l *Ledger) StoreDelivery(ctx context.Context, d domain.Delivery, receipt *domain.Receipt) (stored bool, err error) {
	err = l.tx(ctx, func(ctx context.Context, q db) error {
		written, err := write(ctx, q, `INSERT INTO webhook_deliveries (app, guid, event, action, body, received_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
			d.App, d.GUID, clean(d.Event), clean(d.Action), d.Payload, d.ReceivedAt)
		if err != nil || written == 0 {
			return err
		}
		stored = true
		if receipt != nil {
			if err := insertReceipt(ctx, q, d.App, *receipt); err != nil {
				return err
			}
		}
		_, err = q.Exec(ctx, `SELECT pg_notify($1, '')`, inbox)
		return err
	})
	return stored && err == nil, err
}

// insertReceipt writes a receipt if the repository is tracked. Rows of released
// projects count: what is kept to be taken back keeps its receipts too.
func insertReceipt(ctx context.Context, q db, app string, r domain.Receipt) error {
	_, err := write(ctx, q, `
		INSERT INTO push_receipts (github_repo_id, head_sha, branch, received_at, is_bot, forced, commits)
		SELECT $2, $3, $4, $5, $6, $7, $8
		WHERE EXISTS (SELECT 1 FROM repositories WHERE github_repo_id = $2 AND app = $1)
			OR EXISTS (SELECT 1 FROM projects WHERE distribution_repo_id = $2 AND app = $1)
		ON CONFLICT DO NOTHING`,
		app, r.RepositoryID, clean(r.HeadSHA), clean(r.Branch), r.ReceivedAt, r.Bot, r.Forced, r.Commits)
	return err
}

// Receipts returns the push receipts of a GitHub repository in the order they
// were received.
func (l *Ledger) Receipts(ctx context.Context, githubID int64) ([]domain.Receipt, error) {
	return all(ctx, l, scanReceipt, `SELECT github_repo_id, branch, head_sha, received_at, is_bot, forced, commits
		FROM push_receipts WHERE github_repo_id = $1 ORDER BY received_at, head_sha`, githubID)
}

func scanReceipt(row pgx.Row) (r domain.Receipt, err error) {
	err = row.Scan(&r.RepositoryID, &r.Branch, &r.HeadSHA, &r.ReceivedAt, &r.Bot, &r.Forced, &r.Commits)
	return r, err
}

// ObjectsFor returns the objects that an event about a GitHub repository
// concerns: the ProjectSyncs of a source or distribution, the RepoReconcile of
// a downstream repository. Other Apps' objects and released ones are left out.
func (l *Ledger) ObjectsFor(ctx context.Context, app string, githubID int64) (refs []domain.ObjectRef, err error) {
	err = l.do(ctx, func(ctx context.Context, q db) error {
		refs, err = collectRefs(ctx, q, domain.KindProjectSync, `SELECT namespace, name FROM projects
			WHERE app = $1 AND (source_repo_id = $2 OR distribution_repo_id = $2) AND released_at IS NULL ORDER BY id`, app, githubID)
		if err != nil {
			return err
		}
		more, err := collectRefs(ctx, q, domain.KindRepoReconcile, `SELECT object_namespace, object_name FROM repositories
			WHERE app = $1 AND github_repo_id = $2 AND released_at IS NULL ORDER BY id`, app, githubID)
		refs = append(refs, more...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return refs, nil
}

func scanDelivery(row pgx.Row) (d domain.Delivery, err error) {
	err = row.Scan(&d.App, &d.GUID, &d.Event, &d.Action, &d.Payload, &d.ReceivedAt, &d.Attempts)
	return d, err
}

// ClaimDeliveries claims up to n unhandled deliveries that are due, oldest
// receipt first, and returns them in that order. Two claimers never get the
// same one; a claim that came to no end expires after two minutes.
func (l *Ledger) ClaimDeliveries(ctx context.Context, n int, now time.Time) ([]domain.Delivery, error) {
	claimed, err := all(ctx, l, scanDelivery, `
		WITH due AS (
			SELECT app, guid FROM webhook_deliveries
			WHERE processed_at IS NULL AND parked_at IS NULL AND body IS NOT NULL AND (retry_at IS NULL OR retry_at <= $1)
				AND (claimed_at IS NULL OR claimed_at < $2)
			ORDER BY received_at, guid LIMIT $3 FOR UPDATE SKIP LOCKED)
		UPDATE webhook_deliveries d SET claimed_at = $1 FROM due WHERE d.app = due.app AND d.guid = due.guid
		RETURNING d.app, d.guid::text, d.event, d.action, d.body, d.received_at, d.attempts`, now, now.Add(-claimExpiry), n)
	// RETURNING has no order.
	slices.SortFunc(claimed, func(a, b domain.Delivery) int {
		return cmp.Or(a.ReceivedAt.Compare(b.ReceivedAt), cmp.Compare(a.GUID, b.GUID))
	})
	return claimed, err
}

// DeliveryDone marks a delivery handled.
func (l *Ledger) DeliveryDone(ctx context.Context, app, guid string, now time.Time) error {
	_, err := l.exec(ctx, `UPDATE webhook_deliveries SET processed_at = $3, claimed_at = NULL, retry_at = NULL, parked_at = NULL, error = ''
		WHERE app = $1 AND guid = $2 AND processed_at IS NULL`, app, guid, now)
	return err
}

// DeliveryFailed records a failed attempt: tried again at retryAt, parked with
// the fifth (R-HOOK-06). It reports whether it was parked. The message holds no
// secret. A delivery that was handled or parked meanwhile stays so.
func (l *Ledger) DeliveryFailed(ctx context.Context, app, guid, message string, retryAt, now time.Time) (parked bool, err error) {
	parked, _, err = perhaps(ctx, l, scalar[bool], `
		UPDATE webhook_deliveries SET attempts = attempts + 1, error = left($3, $7), claimed_at = NULL,
			retry_at = CASE WHEN attempts + 1 < $6 THEN $4::timestamptz END,
			parked_at = CASE WHEN attempts + 1 >= $6 THEN $5::timestamptz END
		WHERE app = $1 AND guid = $2 AND processed_at IS NULL AND parked_at IS NULL RETURNING parked_at IS NOT NULL`,
		app, guid, clean(message), retryAt, now, maxTries, maxDeliveryError)
	return parked, err
}

// DeliveryDeferred puts a delivery off without spending a try (R-HOOK-07).
func (l *Ledger) DeliveryDeferred(ctx context.Context, app, guid, message string, retryAt time.Time) error {
	_, err := l.exec(ctx, `UPDATE webhook_deliveries SET error = left($3, $5), retry_at = $4, claimed_at = NULL
		WHERE app = $1 AND guid = $2 AND processed_at IS NULL AND parked_at IS NULL`, app, guid, clean(message), retryAt, maxDeliveryError)
	return err
}
