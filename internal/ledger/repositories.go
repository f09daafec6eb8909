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

const repositoryColumns = `r.id, coalesce(r.project_id, 0), r.recipient, r.members, r.object_namespace, r.object_name, r.wanted_name, r.adopt, r.listed, r.excluded, r.test, r.suspended,
	coalesce(r.github_repo_id, 0), r.node_id, coalesce(r.full_name, ''), r.default_branch, r.provision_status,
	coalesce(r.provision_class, ''), coalesce(r.provision_reason, ''), coalesce(r.provision_message, ''), r.provision_failed_at, r.provision_retry_at, r.provision_claimed_at, r.adopted,
	r.deadline_at, r.deadline_applied_at, r.frozen_at, r.locked_at, r.archived_at, r.deleted_at, r.released_at,
	r.last_commit_sha, r.last_commit_at, coalesce(r.sync_outcome, ''), r.sync_reason, r.sync_message, r.sync_outcome_at`

func scanRepository(row pgx.Row) (domain.Repository, error) {
	var r domain.Repository
	var failedAt, retryAt *time.Time
	err := row.Scan(&r.ID, &r.ProjectID, &r.Recipient, &r.Members, &r.Object.Namespace, &r.Object.Name, &r.WantedName, &r.Adopt, &r.Listed, &r.Excluded, &r.Test, &r.Suspended,
		&r.Repo.ID, &r.NodeID, &r.Repo.FullName, &r.DefaultBranch, &r.Provision,
		&r.ProvisionProblem.Class, &r.ProvisionProblem.Reason, &r.ProvisionProblem.Message, &failedAt, &retryAt, &r.ClaimedAt, &r.Adopted,
		&r.DeadlineAt, &r.DeadlineAppliedAt, &r.FrozenAt, &r.LockedAt, &r.ArchivedAt, &r.DeletedAt, &r.ReleasedAt,
		&r.LastCommitSHA, &r.LastCommitAt, &r.Outcome, &r.Reason, &r.Message, &r.OutcomeAt)
	r.ProvisionProblem.At, r.ProvisionProblem.RetryAt = orZero(failedAt), orZero(retryAt)
	return r, err
}

func collectRepositories(rows pgx.Rows) ([]domain.Repository, error) {
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (domain.Repository, error) { return scanRepository(r) })
}

// SetRecipients brings a project's rows in step with its list: new entries get
// a row, known ones their wanted values, entries that left are no longer
// listed. Recorded facts stay as they are, and rows that did not change are
// not written. It returns all of the project's own rows, ordered by id.
func (l *Ledger) SetRecipients(ctx context.Context, projectID int64, list []domain.Recipient, now time.Time) ([]domain.Repository, error) {
	var all []domain.Repository
	err := l.tx(ctx, func(tx pgx.Tx) error {
		var app string
		if err := tx.QueryRow(ctx, `SELECT app FROM projects WHERE id = $1 FOR UPDATE`, projectID).Scan(&app); err != nil {
			return err
		}
		names := make([]string, 0, len(list))
		batch := &pgx.Batch{}
		for _, e := range list {
			names = append(names, e.Name)
			members := e.Members
			if members == nil {
				members = []string{}
			}
			batch.Queue(`
				INSERT INTO repositories AS r (project_id, recipient, members, app, wanted_name, adopt, excluded, test, deadline_at, created_at)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
				ON CONFLICT (project_id, recipient) WHERE object_uid IS NULL AND released_at IS NULL DO UPDATE SET
					members = excluded.members, wanted_name = excluded.wanted_name, adopt = excluded.adopt, excluded = excluded.excluded,
					test = excluded.test, deadline_at = excluded.deadline_at, listed = true
				WHERE (r.members, r.wanted_name, r.adopt, r.excluded, r.test, r.deadline_at, r.listed)
					IS DISTINCT FROM (excluded.members, excluded.wanted_name, excluded.adopt, excluded.excluded, excluded.test, excluded.deadline_at, true)`,
				projectID, e.Name, members, app, e.FullName, e.Adopt, e.Exclude, e.Test, e.DeadlineAt, now)
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE repositories SET listed = false WHERE project_id = $1 AND object_uid IS NULL AND listed AND recipient <> ALL ($2)`, projectID, names); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT `+repositoryColumns+` FROM repositories r WHERE r.project_id = $1 AND r.object_uid IS NULL AND r.released_at IS NULL ORDER BY r.id`, projectID)
		if err != nil {
			return err
		}
		all, err = collectRepositories(rows)
		return err
	})
	return all, err
}

// Repositories returns a project's rows, ordered by id.
func (l *Ledger) Repositories(ctx context.Context, projectID int64) ([]domain.Repository, error) {
	rows, err := l.pool.Query(ctx, `SELECT `+repositoryColumns+` FROM repositories r WHERE r.project_id = $1 ORDER BY r.id`, projectID)
	if err != nil {
		return nil, l.fault(err)
	}
	list, err := collectRepositories(rows)
	return list, l.fault(err)
}

// Repository returns a repository by its row's id.
func (l *Ledger) Repository(ctx context.Context, id int64) (domain.Repository, error) {
	r, err := scanRepository(l.pool.QueryRow(ctx, `SELECT `+repositoryColumns+` FROM repositories r WHERE r.id = $1`, id))
	return r, l.fault(err)
}

// RepositoryByObject returns the repository that a RepoReconcile shows.
func (l *Ledger) RepositoryByObject(ctx context.Context, key domain.ObjectKey) (domain.Repository, error) {
	r, err := scanRepository(l.pool.QueryRow(ctx, `SELECT `+repositoryColumns+` FROM repositories r
		WHERE r.object_namespace = $1 AND r.object_name = $2 AND r.released_at IS NULL ORDER BY r.id LIMIT 1`, key.Namespace, key.Name))
	return r, l.fault(err)
}

// RepositoryByGitHubID returns a downstream repository and its project by
// GitHub's id. A hand-made repository without a project has a zero one.
func (l *Ledger) RepositoryByGitHubID(ctx context.Context, githubID int64) (domain.Repository, domain.Project, error) {
	r, err := scanRepository(l.pool.QueryRow(ctx, `SELECT `+repositoryColumns+` FROM repositories r WHERE r.github_repo_id = $1 AND r.released_at IS NULL`, githubID))
	if err != nil || r.ProjectID == 0 {
		return r, domain.Project{}, l.fault(err)
	}
	p, err := l.Project(ctx, r.ProjectID)
	return r, p, err
}

// SetObject says which RepoReconcile shows a repository.
func (l *Ledger) SetObject(ctx context.Context, id int64, key domain.ObjectKey) error {
	_, err := l.pool.Exec(ctx, `UPDATE repositories SET object_namespace = $2, object_name = $3 WHERE id = $1 AND (object_namespace, object_name) <> ($2, $3)`, id, key.Namespace, key.Name)
	return l.fault(err)
}

// SetSuspended records a RepoReconcile's spec.suspend on its row.
func (l *Ledger) SetSuspended(ctx context.Context, id int64, suspended bool) error {
	_, err := l.pool.Exec(ctx, `UPDATE repositories SET suspended = $2 WHERE id = $1 AND suspended <> $2`, id, suspended)
	return l.fault(err)
}

// UpsertHandMade records a RepoReconcile that a person wrote, by its UID, and
// returns the row.
func (l *Ledger) UpsertHandMade(ctx context.Context, h domain.HandMade, now time.Time) (domain.Repository, error) {
	members := h.Members
	if members == nil {
		members = []string{}
	}
	_, err := l.pool.Exec(ctx, `
		INSERT INTO repositories AS r (project_id, recipient, members, object_namespace, object_name, object_uid, app, wanted_name, adopt, created_at)
		VALUES ((SELECT id FROM projects WHERE namespace = $1 AND name = $2 AND released_at IS NULL), $3, $4, $5, $6, $7, $8, $9, true, $10)
		ON CONFLICT (object_uid) DO UPDATE SET project_id = excluded.project_id, recipient = excluded.recipient, members = excluded.members,
			wanted_name = excluded.wanted_name, released_at = NULL
		WHERE (r.project_id, r.recipient, r.members, r.wanted_name, r.released_at) IS DISTINCT FROM (excluded.project_id, excluded.recipient, excluded.members, excluded.wanted_name, NULL::timestamptz)`,
		h.Project.Namespace, h.Project.Name, h.Recipient, members, h.Object.Namespace, h.Object.Name, h.ObjectUID, h.App, h.FullName, now)
	if err != nil {
		return domain.Repository{}, l.fault(err)
	}
	r, err := scanRepository(l.pool.QueryRow(ctx, `SELECT `+repositoryColumns+` FROM repositories r WHERE r.object_uid = $1`, h.ObjectUID))
	return r, l.fault(err)
}

// ReleaseHandMade marks the row of a deleted hand-made RepoReconcile as
// released. One nobody knows is no error.
func (l *Ledger) ReleaseHandMade(ctx context.Context, objectUID string, now time.Time) error {
	_, err := l.pool.Exec(ctx, `UPDATE repositories SET released_at = $2 WHERE object_uid = $1 AND released_at IS NULL`, objectUID, now)
	return l.fault(err)
}

// claimStale is how old a provisioning claim is when it no longer counts.
const claimStale = 5 * time.Minute

// ClaimProvisioning claims a repository's provisioning: won by one caller when
// it failed, or is pending without a claim or with a stale one (R-PROV-03).
func (l *Ledger) ClaimProvisioning(ctx context.Context, id int64, now time.Time) (bool, error) {
	tag, err := l.pool.Exec(ctx, `
		UPDATE repositories SET provision_status = 'Pending', provision_claimed_at = $2
		WHERE id = $1 AND released_at IS NULL AND (provision_status = 'Failed'
			OR (provision_status = 'Pending' AND (provision_claimed_at IS NULL OR provision_claimed_at < $3)))`, id, now, now.Add(-claimStale))
	return tag.RowsAffected() > 0, l.fault(err)
}

// RecordRepositoryID writes a repository's identity before anything is pushed
// to it (R-PROV-04). A repository that another row claimed answers
// RepositoryClaimed; one that is a source or distribution likewise.
func (l *Ledger) RecordRepositoryID(ctx context.Context, id int64, repo domain.RepositoryRef, nodeID string) error {
	err := l.tx(ctx, func(tx pgx.Tx) error {
		var taken bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM projects WHERE released_at IS NULL AND (source_repo_id = $1 OR distribution_repo_id = $1))`, repo.ID).Scan(&taken); err != nil {
			return err
		}
		if taken {
			return fault.New(fault.Blocked, fault.ReasonRepositoryClaimed,
				"repository %q serves another purpose in a project and cannot receive one: correct the list", repo.FullName)
		}
		_, err := tx.Exec(ctx, `UPDATE repositories SET github_repo_id = $2, full_name = $3, node_id = $4 WHERE id = $1
			AND (github_repo_id, full_name, node_id) IS DISTINCT FROM ($2, $3, $4)`, id, repo.ID, repo.FullName, nodeID)
		return err
	})
	if constraint(err) == "repositories_github" {
		return fault.Wrap(err, fault.Blocked, fault.ReasonRepositoryClaimed,
			"repository %q already belongs to another entry or project: list it once only", repo.FullName)
	}
	return err
}

// FinishProvisioning marks a repository provisioned and audits it, once.
func (l *Ledger) FinishProvisioning(ctx context.Context, id int64, defaultBranch string, adopted bool, now time.Time) error {
	return l.tx(ctx, func(tx pgx.Tx) error {
		var project *int64
		var name string
		err := tx.QueryRow(ctx, `
			UPDATE repositories SET provision_status = 'OK', default_branch = $2, adopted = $3, accepted_at = $4, provision_claimed_at = NULL,
				provision_class = NULL, provision_reason = NULL, provision_message = NULL, provision_failed_at = NULL, provision_retry_at = NULL
			WHERE id = $1 AND provision_status <> 'OK' RETURNING project_id, full_name`, id, defaultBranch, adopted, now).Scan(&project, &name)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		e := domain.AuditEntry{Actor: "system", Action: "project.accept", Subject: repositorySubject(id), At: now,
			Payload: map[string]any{"repo": name, "adopted": adopted}}
		if project != nil {
			e.ProjectID = *project
		}
		return audit(ctx, tx, e)
	})
}

// maxError bounds a stored message (R-PROV-06).
const maxError = 500

// FailProvisioning records why a provisioning failed; never over one that
// succeeded (R-PROV-06).
func (l *Ledger) FailProvisioning(ctx context.Context, id int64, p domain.Problem) error {
	_, err := l.pool.Exec(ctx, `
		UPDATE repositories SET provision_status = 'Failed', provision_class = $2, provision_reason = $3, provision_message = left($4, $5), provision_failed_at = $6, provision_retry_at = $7, provision_claimed_at = NULL
		WHERE id = $1 AND provision_status <> 'OK'`, id, p.Class, p.Reason, p.Message, maxError, p.At, orNull(p.RetryAt))
	return l.fault(err)
}

// RecordRename follows a rename on GitHub (R-EVT-07): the stored full name of
// a source, distribution or downstream repository of that id is replaced where
// its name part still is the old one. It returns the objects concerned.
func (l *Ledger) RecordRename(ctx context.Context, githubID int64, oldName, newFullName string) ([]domain.ObjectRef, error) {
	var refs []domain.ObjectRef
	err := l.tx(ctx, func(tx pgx.Tx) error {
		for _, q := range []struct{ kind, sql string }{
			{"ProjectSync", `UPDATE projects SET source_full_name = $3 WHERE source_repo_id = $1 AND lower(split_part(source_full_name, '/', 2)) = lower($2) AND released_at IS NULL RETURNING namespace, name`},
			{"ProjectSync", `UPDATE projects SET distribution_full_name = $3 WHERE distribution_repo_id = $1 AND lower(split_part(distribution_full_name, '/', 2)) = lower($2) AND released_at IS NULL RETURNING namespace, name`},
			{"RepoReconcile", `UPDATE repositories SET full_name = $3 WHERE github_repo_id = $1 AND lower(split_part(full_name, '/', 2)) = lower($2) AND released_at IS NULL RETURNING object_namespace, object_name`},
		} {
			rows, err := tx.Query(ctx, q.sql, githubID, oldName, newFullName)
			if err != nil {
				return err
			}
			found, err := collectRefs(rows, domain.ObjectKind(q.kind))
			if err != nil {
				return err
			}
			refs = append(refs, found...)
		}
		return nil
	})
	return refs, err
}

// collectRefs reads (namespace, name) rows; those without a name have no
// object.
func collectRefs(rows pgx.Rows, kind domain.ObjectKind) ([]domain.ObjectRef, error) {
	var refs []domain.ObjectRef
	var key domain.ObjectKey
	_, err := pgx.ForEachRow(rows, []any{&key.Namespace, &key.Name}, func() error {
		if key.Name != "" {
			refs = append(refs, domain.ObjectRef{Kind: kind, ObjectKey: key})
		}
		return nil
	})
	return refs, err
}

// MarkDeleted marks a downstream repository gone from GitHub, once, with an
// audit entry that says how it was found out (R-EVT-08).
func (l *Ledger) MarkDeleted(ctx context.Context, githubID int64, via string, now time.Time) ([]domain.ObjectRef, error) {
	var refs []domain.ObjectRef
	err := l.tx(ctx, func(tx pgx.Tx) error {
		var id int64
		var project *int64
		var key domain.ObjectKey
		var name string
		err := tx.QueryRow(ctx, `UPDATE repositories SET deleted_at = $2 WHERE github_repo_id = $1 AND deleted_at IS NULL AND released_at IS NULL
			RETURNING id, project_id, object_namespace, object_name, coalesce(full_name, '')`, githubID, now).Scan(&id, &project, &key.Namespace, &key.Name, &name)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if key.Name != "" {
			refs = append(refs, domain.ObjectRef{Kind: domain.KindRepoReconcile, ObjectKey: key})
		}
		e := domain.AuditEntry{Actor: "system", Action: "project_repo.deleted", Subject: repositorySubject(id), At: now, Payload: map[string]any{"repo": name, "via": via}}
		if project != nil {
			e.ProjectID = *project
		}
		return audit(ctx, tx, e)
	})
	return refs, err
}
