// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/domain"
)

// ours refuses, with ErrNotFound, a write about a repository of another
// project than the lease's.
func ours(ctx context.Context, q db, lease domain.Lease, repositoryID int64) error {
	_, err := scalar[int64](q.QueryRow(ctx, `SELECT id FROM repositories WHERE id = $1 AND project_id = $2 AND released_at IS NULL`, repositoryID, lease.ProjectID))
	return err
}

// RecordBotCommit records a commit as the App's or a workflow's before its ref
// moves (R-CORE-01). The first kind recorded stands. A repository that is not
// the lease's project's answers ErrNotFound, so that nothing moves unrecorded.
func (l *Ledger) RecordBotCommit(ctx context.Context, lease domain.Lease, repositoryID int64, sha string, kind domain.BotCommitKind, now time.Time) error {
	return l.fenced(ctx, lease, func(ctx context.Context, q db) error {
		if err := ours(ctx, q, lease, repositoryID); err != nil {
			return err
		}
		return insertBotCommit(ctx, q, repositoryID, sha, kind, now)
	})
}

func insertBotCommit(ctx context.Context, q db, repositoryID int64, sha string, kind domain.BotCommitKind, now time.Time) error {
	_, err := write(ctx, q, `INSERT INTO bot_commits (repository_id, sha, kind, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
		repositoryID, sha, string(kind), now)
	return err
}

// RecordGraderCommit records a workflow's own commit on a repository that is
// not deleted (R-EVT-01, R-EVT-13). The first kind recorded stands.
func (l *Ledger) RecordGraderCommit(ctx context.Context, repositoryID int64, sha string, now time.Time) error {
	_, err := l.exec(ctx, `INSERT INTO bot_commits (repository_id, sha, kind, created_at)
		SELECT id, $2, $3, $4 FROM repositories WHERE id = $1 AND deleted_at IS NULL ON CONFLICT DO NOTHING`,
		repositoryID, sha, string(domain.BotCommitGrader), now)
	return err
}

// IsBotCommit reports whether a commit of a GitHub repository is recorded as
// the App's or a workflow's.
func (l *Ledger) IsBotCommit(ctx context.Context, githubID int64, sha string) (bool, error) {
	return one(ctx, l, scalar[bool], `SELECT EXISTS (SELECT 1 FROM bot_commits b JOIN repositories r ON r.id = b.repository_id
		WHERE r.github_repo_id = $1 AND b.sha = $2)`, githubID, sha)
}

const pullRequestColumns = `repository_id, branch, number, state, url, updated_at`

func scanPullRequest(row pgx.Row) (pr domain.PullRequest, err error) {
	err = row.Scan(&pr.RepositoryID, &pr.Branch, &pr.Number, &pr.State, &pr.URL, &pr.UpdatedAt)
	return pr, err
}

// PullRequest returns the row of a repository's branch.
func (l *Ledger) PullRequest(ctx context.Context, repositoryID int64, branch string) (domain.PullRequest, bool, error) {
	return perhaps(ctx, l, scanPullRequest, `SELECT `+pullRequestColumns+` FROM pull_requests WHERE repository_id = $1 AND branch = $2`, repositoryID, branch)
}

// RecordPullRequest writes the row of a repository's branch as a pass found or
// made it (R-PR-02), under the guards of R-PR-07. A repository that is not the
// lease's project's answers ErrNotFound.
func (l *Ledger) RecordPullRequest(ctx context.Context, lease domain.Lease, pr domain.PullRequest) error {
	return l.fenced(ctx, lease, func(ctx context.Context, q db) error {
		if err := ours(ctx, q, lease, pr.RepositoryID); err != nil {
			return err
		}
		_, err := upsertPullRequest(ctx, q, pr)
		return err
	})
}

// ApplyPullRequest applies an event's fact about a sync's pull request
// (R-PR-06, R-PR-07); UpdatedAt is the receipt. The caller has made sure that
// the pull request is one. It reports whether number, state or address changed.
// A repository that is unknown or deleted changes nothing (R-EVT-13).
func (l *Ledger) ApplyPullRequest(ctx context.Context, pr domain.PullRequest) (changed bool, err error) {
	err = l.tx(ctx, func(ctx context.Context, q db) error {
		known, err := optional(scalar[int64](q.QueryRow(ctx, `SELECT id FROM repositories WHERE id = $1 AND deleted_at IS NULL`, pr.RepositoryID)))
		if err != nil || known == nil {
			return err
		}
		changed, err = upsertPullRequest(ctx, q, pr)
		return err
	})
	return changed && err == nil, err
}

// upsertPullRequest keeps R-PR-07: a lower number changes nothing, and for the
// same number an older fact never undoes a newer one. A newer fact that says
// the same moves the time on, so that what lies between stays too old.
func upsertPullRequest(ctx context.Context, q db, pr domain.PullRequest) (changed bool, err error) {
	before, err := optional(scanPullRequest(q.QueryRow(ctx, `SELECT `+pullRequestColumns+` FROM pull_requests
		WHERE repository_id = $1 AND branch = $2 FOR UPDATE`, pr.RepositoryID, pr.Branch)))
	if err != nil {
		return false, err
	}
	written, err := write(ctx, q, `
		INSERT INTO pull_requests AS pr (`+pullRequestColumns+`) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (repository_id, branch) DO UPDATE SET number = excluded.number, state = excluded.state, url = excluded.url, updated_at = excluded.updated_at
		WHERE excluded.number > pr.number OR (excluded.number = pr.number AND excluded.updated_at >= pr.updated_at)`,
		pr.RepositoryID, pr.Branch, pr.Number, string(pr.State), pr.URL, pr.UpdatedAt)
	if err != nil || written == 0 {
		return false, err
	}
	return before == nil || before.Number != pr.Number || before.State != pr.State || before.URL != pr.URL, nil
}
