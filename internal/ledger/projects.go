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
	err = errors.Join(
		unmarshal(settings, &p.ProjectSpec), unmarshal(distHeads, &p.DistributionHeads),
		unmarshal(srcHeads, &p.SourceHeads), unmarshal(ahead, &p.Ahead))
	if err != nil {
		return p, fmt.Errorf("project %d: %w", p.ID, err)
	}
	return p, nil
}

// unmarshal reads a JSON column; null leaves its target as it is.
func unmarshal(column []byte, to any) error {
	if len(column) == 0 {
		return nil
	}
	return json.Unmarshal(column, to)
}

// UpsertProject records what a ProjectSync asks for, by its UID, and returns
// the row. Recorded facts stay as they are; nothing is written when nothing
// changed. What waits for a time to try again is tried at once after a change,
// except for GitHub's rate limit. A released project that comes back takes its
// repositories with it; when its distribution or one of its repositories has
// gone to another meanwhile, the fault is DistributionNameTaken or
// RepositoryClaimed and nothing is written.
func (l *Ledger) UpsertProject(ctx context.Context, s domain.ProjectSpec, now time.Time) (domain.Project, error) {
	settings, err := json.Marshal(s)
	if err != nil {
		return domain.Project{}, fmt.Errorf("writing the settings of a project: %w", err)
	}
	p, current, err := l.current(ctx, s.UID, settings)
	if err != nil || current {
		return p, err
	}
	err = l.tx(ctx, func(ctx context.Context, q db) error {
		var id int64
		var releasedAt *time.Time
		err := q.QueryRow(ctx, `SELECT id, released_at FROM projects WHERE uid = $1 FOR UPDATE`, s.UID).Scan(&id, &releasedAt)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if releasedAt != nil {
			if err := takeBack(ctx, q, id, *releasedAt); err != nil {
				return err
			}
		}
		p, err = scanProject(q.QueryRow(ctx, `
			INSERT INTO projects AS p (uid, namespace, name, app, stage, suspended, source, branches, history, deadline_at, settings, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
			ON CONFLICT (uid) DO UPDATE SET namespace = excluded.namespace, name = excluded.name, app = excluded.app, stage = excluded.stage,
				suspended = excluded.suspended, source = excluded.source, branches = excluded.branches, history = excluded.history,
				deadline_at = excluded.deadline_at, settings = excluded.settings,
				problem_retry_at = CASE WHEN p.problem_class <> $13 AND p.problem_retry_at > $12 THEN $12 ELSE p.problem_retry_at END
			RETURNING `+projectColumns,
			s.UID, s.Object.Namespace, s.Object.Name, s.App, string(s.Stage), s.Suspended, s.Source, list(s.Branches), string(s.History), s.DeadlineAt, settings, now,
			string(fault.RateLimited)))
		if err != nil {
			return err
		}
		_, err = write(ctx, q, `UPDATE sync_requests SET retry_at = $2 WHERE project_id = $1 AND answer = 'Waiting' AND retry_at > $2 AND reason <> $3`,
			p.ID, now, string(fault.ReasonRateLimited))
		return err
	})
	switch {
	case violates(err, "projects_distribution"):
		return domain.Project{}, fault.Wrap(err, fault.Blocked, fault.ReasonDistributionNameTaken, "the project's former distribution is another project's now: make a new project")
	case violates(err, "repositories_github"):
		return domain.Project{}, fault.Wrap(err, fault.Blocked, fault.ReasonRepositoryClaimed, "one of the project's former repositories belongs to another entry or project now: make a new project")
	}
	return p, err
}

// current returns the project's row and whether it holds just these settings
// already.
func (l *Ledger) current(ctx context.Context, uid string, settings []byte) (p domain.Project, is bool, err error) {
	return perhaps(ctx, l, scanProject, `SELECT `+projectColumns+` FROM projects p WHERE p.uid = $1 AND p.released_at IS NULL AND p.settings = $2::jsonb`, uid, settings)
}

// takeBack undoes a release: of the project and of what was released with it.
func takeBack(ctx context.Context, q db, id int64, releasedAt time.Time) error {
	if _, err := write(ctx, q, `UPDATE projects SET released_at = NULL WHERE id = $1`, id); err != nil {
		return err
	}
	_, err := write(ctx, q, `UPDATE repositories SET released_at = NULL WHERE project_id = $1 AND released_at = $2`, id, releasedAt)
	return err
}

// Project returns a project by its id.
func (l *Ledger) Project(ctx context.Context, id int64) (domain.Project, error) {
	return one(ctx, l, scanProject, `SELECT `+projectColumns+` FROM projects p WHERE p.id = $1`, id)
}

// ProjectByUID returns a project by its ProjectSync's UID.
func (l *Ledger) ProjectByUID(ctx context.Context, uid string) (domain.Project, error) {
	return one(ctx, l, scanProject, `SELECT `+projectColumns+` FROM projects p WHERE p.uid = $1`, uid)
}

// ProjectsBySource returns the projects that hand a source out, by its GitHub
// id, ordered by their own id. Released ones are left out.
func (l *Ledger) ProjectsBySource(ctx context.Context, githubID int64) ([]domain.Project, error) {
	return all(ctx, l, scanProject, `SELECT `+projectColumns+` FROM projects p WHERE p.source_repo_id = $1 AND p.released_at IS NULL ORDER BY p.id`, githubID)
}

// ReleaseProject marks the rows of a deleted project as released: they are
// kept, and nothing touches GitHub for them any more. Work under way ends at
// its next write, because the lease is gone. Hand-made repositories go on by
// themselves. A project that nobody knows, or that is released, is no error.
func (l *Ledger) ReleaseProject(ctx context.Context, uid, actor string, now time.Time) error {
	return l.tx(ctx, func(ctx context.Context, q db) error {
		id, err := optional(scalar[int64](q.QueryRow(ctx, `
			UPDATE projects SET released_at = $2, sync_lease_holder = NULL, sync_job_at = NULL
			WHERE uid = $1 AND released_at IS NULL RETURNING id`, uid, now)))
		if err != nil || id == nil {
			return err
		}
		if _, err := write(ctx, q, `UPDATE repositories SET released_at = $2 WHERE project_id = $1 AND object_uid IS NULL AND released_at IS NULL`, *id, now); err != nil {
			return err
		}
		return audit(ctx, q, domain.AuditEntry{Actor: actor, Action: "project.release", ProjectID: *id, Subject: projectSubject(uid), At: now})
	})
}

// purgeReceipts deletes the receipts of a project's downstream and
// distribution repositories, and those of its source when no other project
// hands it out; except for repositories that another row goes on tracking.
const purgeReceipts = `
	DELETE FROM push_receipts t WHERE t.github_repo_id IN (
		SELECT github_repo_id FROM repositories WHERE project_id = $1 AND object_uid IS NULL
		UNION SELECT distribution_repo_id FROM projects WHERE id = $1
		UNION SELECT source_repo_id FROM projects WHERE id = $1)
	AND NOT EXISTS (SELECT 1 FROM repositories r WHERE r.github_repo_id = t.github_repo_id AND (r.project_id IS DISTINCT FROM $1 OR r.object_uid IS NOT NULL))
	AND NOT EXISTS (SELECT 1 FROM projects o WHERE o.id <> $1 AND (o.distribution_repo_id = t.github_repo_id OR o.source_repo_id = t.github_repo_id))`

// PurgeProject deletes a project's rows and, in the same transaction, the
// receipts of its repositories (R-DIST-13), and audits it with their number,
// which it returns. Hand-made repositories keep their row, without a project.
// A project that nobody knows is no error.
func (l *Ledger) PurgeProject(ctx context.Context, uid, actor string, now time.Time) (receipts int, err error) {
	err = l.tx(ctx, func(ctx context.Context, q db) error {
		id, err := optional(scalar[int64](q.QueryRow(ctx, `SELECT id FROM projects WHERE uid = $1 FOR UPDATE`, uid)))
		if err != nil || id == nil {
			return err
		}
		if receipts, err = write(ctx, q, purgeReceipts, *id); err != nil {
			return err
		}
		for _, sql := range []string{
			`DELETE FROM passes WHERE project_id = $1`, // before the requests they answer
			`UPDATE repositories SET project_id = NULL WHERE project_id = $1 AND object_uid IS NOT NULL`,
			`DELETE FROM projects WHERE id = $1`, // the rest goes with it
		} {
			if _, err := write(ctx, q, sql, *id); err != nil {
				return err
			}
		}
		return audit(ctx, q, domain.AuditEntry{Actor: actor, Action: "project.delete", ProjectID: *id, Subject: projectSubject(uid), At: now,
			Payload: map[string]any{"receipts": receipts}})
	})
	if err != nil {
		return 0, err
	}
	return receipts, nil
}

// RecordSource writes the source's identity and its name as learnt. Once the
// project is built another id is refused (fault SourceChanged).
func (l *Ledger) RecordSource(ctx context.Context, projectID int64, source domain.RepositoryRef) error {
	return l.tx(ctx, func(ctx context.Context, q db) error {
		var id int64
		var name string
		var built bool
		if err := q.QueryRow(ctx, `SELECT coalesce(source_repo_id, 0), coalesce(source_full_name, ''), built_at IS NOT NULL FROM projects WHERE id = $1`, projectID).
			Scan(&id, &name, &built); err != nil {
			return err
		}
		if id == source.ID && name == source.FullName {
			return nil
		}
		written, err := write(ctx, q, `UPDATE projects SET source_repo_id = $2, source_full_name = $3
			WHERE id = $1 AND (built_at IS NULL OR source_repo_id IS NULL OR source_repo_id = $2)`, projectID, source.ID, source.FullName)
		if err == nil && written == 0 {
			return fault.New(fault.Terminal, fault.ReasonSourceChanged,
				"source %q is another repository (id %d) than the one handed out so far (id %d): restore the name, or make a new project", source.FullName, source.ID, id)
		}
		return err
	})
}

// IsDistribution reports whether a repository is any project's distribution,
// released projects included (R-DIST-03).
func (l *Ledger) IsDistribution(ctx context.Context, githubID int64) (bool, error) {
	return one(ctx, l, scalar[bool], `SELECT EXISTS (SELECT 1 FROM projects WHERE distribution_repo_id = $1)`, githubID)
}

// IsSource reports whether a repository is the source of a project that is not
// released.
func (l *Ledger) IsSource(ctx context.Context, githubID int64) (bool, error) {
	return one(ctx, l, scalar[bool], `SELECT EXISTS (SELECT 1 FROM projects WHERE source_repo_id = $1 AND released_at IS NULL)`, githubID)
}

// lockRepository makes transactions that give a repository a part (as a
// distribution, as a downstream repository) take turns: no UNIQUE constraint
// spans both tables.
func lockRepository(ctx context.Context, q db, githubID int64) error {
	_, err := q.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('repository/' || $1::bigint, 0))`, githubID)
	return err
}

// ClaimDistribution writes the distribution's id to the project's row before
// anything is pushed (R-DIST-06). A repository that plays another part, here or
// in another project, answers DistributionNameTaken; so does any other one once
// the project is built. A project that is gone answers LeaseLost, which is
// ErrNotFound too.
func (l *Ledger) ClaimDistribution(ctx context.Context, lease domain.Lease, d domain.RepositoryRef, _ time.Time) error {
	err := l.fenced(ctx, lease, func(ctx context.Context, q db) error {
		if err := lockRepository(ctx, q, d.ID); err != nil {
			return err
		}
		taken, err := scalar[bool](q.QueryRow(ctx, `SELECT
			EXISTS (SELECT 1 FROM repositories WHERE github_repo_id = $1 AND released_at IS NULL)
			OR EXISTS (SELECT 1 FROM projects WHERE source_repo_id = $1 AND released_at IS NULL)`, d.ID))
		if err != nil {
			return err
		}
		if taken {
			return fault.New(fault.Blocked, fault.ReasonDistributionNameTaken, "repository %q is a source or a downstream repository already and cannot be a distribution", d.FullName)
		}
		written, err := write(ctx, q, `UPDATE projects SET distribution_repo_id = $2 WHERE id = $1 AND (built_at IS NULL OR distribution_repo_id = $2)`, lease.ProjectID, d.ID)
		if err == nil && written == 0 {
			return fault.New(fault.Blocked, fault.ReasonDistributionNameTaken, "the project has its distribution already: %q cannot take its place", d.FullName)
		}
		return err
	})
	if violates(err, "projects_distribution") {
		return fault.Wrap(err, fault.Blocked, fault.ReasonDistributionNameTaken, "repository %q is another project's distribution", d.FullName)
	}
	return err
}

// RecordBuilt marks the distribution built and audits the creation, once
// (R-DIST-01). A project built before keeps what it has.
func (l *Ledger) RecordBuilt(ctx context.Context, lease domain.Lease, fullName string, heads, sourceHeads domain.Heads, now time.Time) error {
	return l.fenced(ctx, lease, func(ctx context.Context, q db) error {
		var name, uid, source string
		err := q.QueryRow(ctx, `
			UPDATE projects SET distribution_full_name = $2, distribution_heads = $3, source_heads = $4, built_at = $5
			WHERE id = $1 AND built_at IS NULL RETURNING name, uid, coalesce(source_full_name, source)`,
			lease.ProjectID, fullName, heads, sourceHeads, now).Scan(&name, &uid, &source)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return audit(ctx, q, domain.AuditEntry{Actor: system, Action: "project.create", ProjectID: lease.ProjectID, Subject: projectSubject(uid), At: now,
			Payload: map[string]any{"name": name, "source": source, "distribution": fullName}})
	})
}

// RecordProblem writes what stands in the way of a project's work, and when it
// is tried again.
func (l *Ledger) RecordProblem(ctx context.Context, projectID int64, p domain.Problem) error {
	_, err := l.exec(ctx, `UPDATE projects SET problem_class = $2, problem_reason = $3, problem_message = $4, problem_at = $5, problem_retry_at = $6 WHERE id = $1`,
		projectID, p.Class, p.Reason, clean(p.Message), p.At, orNull(p.RetryAt))
	return err
}

// ClearProblem removes it.
func (l *Ledger) ClearProblem(ctx context.Context, projectID int64) error {
	_, err := l.exec(ctx, `UPDATE projects SET problem_class = NULL, problem_reason = NULL, problem_message = NULL, problem_at = NULL, problem_retry_at = NULL
		WHERE id = $1 AND problem_reason IS NOT NULL`, projectID)
	return err
}

// MarkAhead marks the source ahead on a branch (R-AHEAD-01) and reports whether
// it did. Nothing is marked for a branch that is not handed out, a head that
// was handed out already, an archived or released project (R-AHEAD-03), or a
// receipt older than the branch's mark. The project's own sha and time are
// those of the newest receipt of all branches. commits is nil when unknown.
func (l *Ledger) MarkAhead(ctx context.Context, projectID int64, branch, sha string, pushedAt time.Time, commits *int) (bool, error) {
	pushedAt = pushedAt.UTC().Truncate(time.Microsecond) // as precise as Postgres, in JSON too
	written, err := l.exec(ctx, `
		UPDATE projects SET
			source_ahead = source_ahead || jsonb_build_object($2::text, $3::jsonb),
			source_ahead_sha = CASE WHEN source_pushed_at > $5 THEN source_ahead_sha ELSE $4 END,
			source_pushed_at = greatest(source_pushed_at, $5)
		WHERE id = $1 AND stage <> 'Archived' AND released_at IS NULL AND $2 = ANY (branches)
			AND coalesce(source_heads ->> $2::text, '') <> $4
			AND coalesce((source_ahead -> $2::text ->> 'pushedAt')::timestamptz, '-infinity') <= $5`,
		projectID, branch, domain.AheadBranch{SHA: sha, PushedAt: pushedAt, Commits: commits}, sha, pushedAt)
	return written > 0, err
}
