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

const projectColumns = `p.id, p.settings, coalesce(p.source_repo_id, 0), coalesce(p.source_full_name, ''),
	coalesce(p.distribution_repo_id, 0), coalesce(p.distribution_full_name, ''), p.built_at, p.distribution_heads, p.source_heads,
	coalesce(p.source_ahead_sha, ''), p.source_pushed_at, p.source_ahead, p.synced_at,
	p.sync_lease_token, coalesce(p.sync_lease_holder, ''), p.sync_job_at,
	coalesce(p.problem_class, ''), coalesce(p.problem_reason, ''), coalesce(p.problem_message, ''), p.problem_at, p.problem_retry_at`

func scanProject(row pgx.Row) (domain.Project, error) {
	var (
		p                              domain.Project
		settings, distHeads, srcHeads  []byte
		ahead                          []byte
		leaseAt, problemAt, problemTry *time.Time
	)
	err := row.Scan(&p.ID, &settings, &p.SourceRepo.ID, &p.SourceRepo.FullName,
		&p.DistributionRepo.ID, &p.DistributionRepo.FullName, &p.BuiltAt, &distHeads, &srcHeads,
		&p.AheadSHA, &p.PushedAt, &ahead, &p.SyncedAt,
		&p.Lease.Token, &p.Lease.Holder, &leaseAt,
		&p.Problem.Class, &p.Problem.Reason, &p.Problem.Message, &problemAt, &problemTry)
	if err != nil {
		return p, err
	}
	p.Lease.ProjectID = p.ID
	p.Lease.RenewedAt = orZero(leaseAt)
	p.Problem.At, p.Problem.RetryAt = orZero(problemAt), orZero(problemTry)
	for _, f := range []struct {
		from []byte
		to   any
	}{{settings, &p.ProjectSpec}, {distHeads, &p.DistributionHeads}, {srcHeads, &p.SourceHeads}, {ahead, &p.Ahead}} {
		if len(f.from) == 0 {
			continue
		}
		if err := json.Unmarshal(f.from, f.to); err != nil {
			return p, fmt.Errorf("reading project %d: %w", p.ID, err)
		}
	}
	return p, nil
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

// UpsertProject records what a ProjectSync asks for, by its UID, and returns
// the row. Recorded facts stay as they are.
func (l *Ledger) UpsertProject(ctx context.Context, s domain.ProjectSpec, now time.Time) (domain.Project, error) {
	settings, err := json.Marshal(s)
	if err != nil {
		return domain.Project{}, fmt.Errorf("writing the settings of a project: %w", err)
	}
	// Nothing is written when nothing changed.
	_, err = l.pool.Exec(ctx, `
		INSERT INTO projects (uid, namespace, name, app, stage, suspended, source, branches, history, deadline_at, settings, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (uid) DO UPDATE SET namespace = excluded.namespace, name = excluded.name, app = excluded.app, stage = excluded.stage,
			suspended = excluded.suspended, source = excluded.source, branches = excluded.branches, history = excluded.history,
			deadline_at = excluded.deadline_at, settings = excluded.settings, released_at = NULL
		WHERE projects.settings <> excluded.settings OR projects.released_at IS NOT NULL`,
		s.UID, s.Object.Namespace, s.Object.Name, s.App, string(s.Stage), s.Suspended, s.Source, s.Branches, string(s.History), s.DeadlineAt, settings, now)
	if err != nil {
		return domain.Project{}, l.fault(err)
	}
	return l.ProjectByUID(ctx, s.UID)
}

// Project returns a project by its id.
func (l *Ledger) Project(ctx context.Context, id int64) (domain.Project, error) {
	p, err := scanProject(l.pool.QueryRow(ctx, `SELECT `+projectColumns+` FROM projects p WHERE p.id = $1`, id))
	return p, l.fault(err)
}

// ProjectByUID returns a project by its ProjectSync's UID.
func (l *Ledger) ProjectByUID(ctx context.Context, uid string) (domain.Project, error) {
	p, err := scanProject(l.pool.QueryRow(ctx, `SELECT `+projectColumns+` FROM projects p WHERE p.uid = $1`, uid))
	return p, l.fault(err)
}

// ProjectsBySource returns the projects that hand a source out, by its GitHub
// id, ordered by their own id.
func (l *Ledger) ProjectsBySource(ctx context.Context, repoID int64) ([]domain.Project, error) {
	rows, err := l.pool.Query(ctx, `SELECT `+projectColumns+` FROM projects p WHERE p.source_repo_id = $1 AND p.released_at IS NULL ORDER BY p.id`, repoID)
	if err != nil {
		return nil, l.fault(err)
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (domain.Project, error) { return scanProject(r) })
	return list, l.fault(err)
}

// ReleaseProject marks a deleted project's rows as released; they stay for a
// project that is proven to be the same. A project nobody knows is no error.
func (l *Ledger) ReleaseProject(ctx context.Context, uid, actor string, now time.Time) error {
	return l.tx(ctx, func(tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, `UPDATE projects SET released_at = $2 WHERE uid = $1 AND released_at IS NULL RETURNING id`, uid, now).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE repositories SET released_at = $2 WHERE project_id = $1 AND released_at IS NULL`, id, now); err != nil {
			return err
		}
		return audit(ctx, tx, domain.AuditEntry{Actor: actor, Action: "project.release", ProjectID: id, Subject: "project/" + uid, At: now})
	})
}

// PurgeProject deletes a project's rows and, in the same transaction, the
// receipts of its downstream and distribution repositories (R-DIST-13). It
// returns how many receipts went. A project nobody knows is no error.
func (l *Ledger) PurgeProject(ctx context.Context, uid, actor string, now time.Time) (receipts int, err error) {
	err = l.tx(ctx, func(tx pgx.Tx) error {
		var id int64
		err := tx.QueryRow(ctx, `SELECT id FROM projects WHERE uid = $1 FOR UPDATE`, uid).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		// The source's receipts go only when no other project hands it out.
		tag, err := tx.Exec(ctx, `
			DELETE FROM push_receipts WHERE github_repo_id IN (
				SELECT github_repo_id FROM repositories WHERE project_id = $1 AND github_repo_id IS NOT NULL
				UNION SELECT distribution_repo_id FROM projects WHERE id = $1 AND distribution_repo_id IS NOT NULL
				UNION SELECT p.source_repo_id FROM projects p WHERE p.id = $1 AND p.source_repo_id IS NOT NULL
					AND NOT EXISTS (SELECT 1 FROM projects o WHERE o.source_repo_id = p.source_repo_id AND o.id <> p.id))`, id)
		if err != nil {
			return err
		}
		receipts = int(tag.RowsAffected())
		for _, sql := range []string{
			`DELETE FROM passes WHERE project_id = $1`,
			`DELETE FROM projects WHERE id = $1`,
		} {
			if _, err := tx.Exec(ctx, sql, id); err != nil {
				return err
			}
		}
		return audit(ctx, tx, domain.AuditEntry{Actor: actor, Action: "project.delete", ProjectID: id, Subject: "project/" + uid, At: now,
			Payload: map[string]any{"receipts": receipts}})
	})
	return receipts, err
}

// RecordSource writes the source's identity.
func (l *Ledger) RecordSource(ctx context.Context, projectID int64, source domain.RepositoryRef) error {
	_, err := l.pool.Exec(ctx, `UPDATE projects SET source_repo_id = $2, source_full_name = $3 WHERE id = $1
		AND (source_repo_id IS DISTINCT FROM $2 OR source_full_name IS DISTINCT FROM $3)`, projectID, source.ID, source.FullName)
	return l.fault(err)
}

// IsDistribution reports whether a repository is any project's distribution
// (R-DIST-03).
func (l *Ledger) IsDistribution(ctx context.Context, githubID int64) (bool, error) {
	var is bool
	err := l.pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM projects WHERE distribution_repo_id = $1)`, githubID).Scan(&is)
	return is, l.fault(err)
}

// ClaimDistribution writes the distribution's id to the project's row before
// anything is pushed (R-DIST-06). A repository that another project claimed
// answers DistributionNameTaken; a project that is gone, ErrNotFound.
func (l *Ledger) ClaimDistribution(ctx context.Context, lease domain.Lease, d domain.RepositoryRef, _ time.Time) error {
	err := l.fenced(ctx, lease, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE projects SET distribution_repo_id = $2 WHERE id = $1`, lease.ProjectID, d.ID)
		return err
	})
	if constraint(err) != "" {
		return fault.Wrap(err, fault.Blocked, fault.ReasonDistributionNameTaken, "repository %q is another project's distribution", d.FullName)
	}
	return err
}

// RecordBuilt marks the distribution built and audits the creation, once
// (R-DIST-01).
func (l *Ledger) RecordBuilt(ctx context.Context, lease domain.Lease, fullName string, heads, sourceHeads domain.Heads, now time.Time) error {
	return l.fenced(ctx, lease, func(tx pgx.Tx) error {
		var name, uid, source string
		err := tx.QueryRow(ctx, `
			UPDATE projects SET distribution_full_name = $2, distribution_heads = $3, source_heads = $4, built_at = $5
			WHERE id = $1 AND built_at IS NULL RETURNING name, uid, coalesce(source_full_name, source)`,
			lease.ProjectID, fullName, heads, sourceHeads, now).Scan(&name, &uid, &source)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // built before
		}
		if err != nil {
			return err
		}
		return audit(ctx, tx, domain.AuditEntry{Actor: "system", Action: "project.create", ProjectID: lease.ProjectID, Subject: "project/" + uid, At: now,
			Payload: map[string]any{"name": name, "source": source, "distribution": fullName}})
	})
}

// RecordProblem writes what stands in the way of a project's work.
func (l *Ledger) RecordProblem(ctx context.Context, projectID int64, p domain.Problem) error {
	_, err := l.pool.Exec(ctx, `UPDATE projects SET problem_class = $2, problem_reason = $3, problem_message = $4, problem_at = $5, problem_retry_at = $6 WHERE id = $1`,
		projectID, p.Class, p.Reason, p.Message, p.At, orNull(p.RetryAt))
	return l.fault(err)
}

// ClearProblem removes it.
func (l *Ledger) ClearProblem(ctx context.Context, projectID int64) error {
	_, err := l.pool.Exec(ctx, `UPDATE projects SET problem_class = NULL, problem_reason = NULL, problem_message = NULL, problem_at = NULL, problem_retry_at = NULL
		WHERE id = $1 AND problem_reason IS NOT NULL`, projectID)
	return l.fault(err)
}

// MarkAhead marks the source ahead on a branch (R-AHEAD-01). Nothing is marked
// for a head that was handed out, an archived project, or a receipt older than
// the branch's mark (R-AHEAD-03). It reports whether the mark was written.
func (l *Ledger) MarkAhead(ctx context.Context, projectID int64, branch, sha string, pushedAt time.Time, commits *int) (bool, error) {
	tag, err := l.pool.Exec(ctx, `
		UPDATE projects SET
			source_ahead = source_ahead || jsonb_build_object($2::text, $3::jsonb),
			source_ahead_sha = CASE WHEN source_pushed_at IS NULL OR source_pushed_at <= $5 THEN $4 ELSE source_ahead_sha END,
			source_pushed_at = greatest(source_pushed_at, $5)
		WHERE id = $1 AND stage <> 'Archived' AND released_at IS NULL AND $2 = ANY (branches)
			AND coalesce(source_heads ->> $2::text, '') <> $4
			AND coalesce((source_ahead -> $2::text ->> 'pushedAt')::timestamptz, '-infinity') <= $5`,
		projectID, branch, domain.AheadBranch{SHA: sha, PushedAt: pushedAt, Commits: commits}, sha, pushedAt)
	return tag.RowsAffected() > 0, l.fault(err)
}
