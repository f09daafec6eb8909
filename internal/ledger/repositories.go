// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/domain"
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

// ownRows are a project's rows that its list makes.
const ownRows = `SELECT ` + repositoryColumns + ` FROM repositories r WHERE r.project_id = $1 AND r.object_uid IS NULL AND r.released_at IS NULL ORDER BY r.id`

// SetRecipients brings a project's rows in step with its list: new entries get
// a row, known ones their wanted values, entries that left are no longer
// listed. Recorded facts stay as they are; rows that did not change are not
// written, and nothing at all when none did. It returns all of the project's
// own rows, ordered by id. Names in the list are unique.
func (l *Ledger) SetRecipients(ctx context.Context, projectID int64, wanted []domain.Recipient, now time.Time) ([]domain.Repository, error) {
	rows, err := all(ctx, l, scanRepository, ownRows, projectID)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 && compare(rows, wanted).empty() {
		return rows, nil
	}
	err = l.tx(ctx, func(ctx context.Context, q db) error {
		// The project's row makes concurrent callers take turns.
		app, err := scalar[string](q.QueryRow(ctx, `SELECT app FROM projects WHERE id = $1 FOR NO KEY UPDATE`, projectID))
		if err != nil {
			return err
		}
		if rows, err = collect(ctx, q, scanRepository, ownRows, projectID); err != nil {
			return err
		}
		d := compare(rows, wanted)
		if d.empty() {
			return nil
		}
		if err := q.SendBatch(ctx, d.batch(projectID, app, now)).Close(); err != nil {
			return err
		}
		rows, err = collect(ctx, q, scanRepository, ownRows, projectID)
		return err
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// difference is what brings a project's rows in step with its list.
type difference struct {
	added   []domain.Recipient
	changed []domain.Recipient
	left    []int64 // ids of rows
}

func (d difference) empty() bool { return len(d.added)+len(d.changed)+len(d.left) == 0 }

// compare returns the difference between a project's rows and its list.
func compare(rows []domain.Repository, wanted []domain.Recipient) difference {
	var d difference
	byName := make(map[string]domain.Repository, len(rows))
	for _, r := range rows {
		byName[r.Recipient] = r
	}
	listed := make(map[string]bool, len(wanted))
	for _, w := range wanted {
		listed[w.Name] = true
		switch row, known := byName[w.Name]; {
		case !known:
			d.added = append(d.added, w)
		case !holds(row, w):
			d.changed = append(d.changed, w)
		}
	}
	for _, r := range rows {
		if r.Listed && !listed[r.Recipient] {
			d.left = append(d.left, r.ID)
		}
	}
	return d
}

// holds reports whether a row holds just what its entry asks for.
func holds(r domain.Repository, w domain.Recipient) bool {
	return r.Listed && slices.Equal(r.Members, w.Members) && r.WantedName == w.FullName && r.Adopt == w.Adopt &&
		r.Excluded == w.Exclude && r.Test == w.Test && sameTime(r.DeadlineAt, w.DeadlineAt)
}

// sameTime compares as precisely as Postgres stores.
func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

func (d difference) batch(projectID int64, app string, now time.Time) *pgx.Batch {
	b := &pgx.Batch{}
	for _, w := range d.added {
		b.Queue(`INSERT INTO repositories (project_id, recipient, members, app, wanted_name, adopt, excluded, test, deadline_at, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			projectID, w.Name, list(w.Members), app, w.FullName, w.Adopt, w.Exclude, w.Test, w.DeadlineAt, now)
	}
	for _, w := range d.changed {
		b.Queue(`UPDATE repositories SET members = $3, app = $4, wanted_name = $5, adopt = $6, excluded = $7, test = $8, deadline_at = $9, listed = true
			WHERE project_id = $1 AND recipient = $2 AND object_uid IS NULL AND released_at IS NULL`,
			projectID, w.Name, list(w.Members), app, w.FullName, w.Adopt, w.Exclude, w.Test, w.DeadlineAt)
	}
	if len(d.left) > 0 {
		b.Queue(`UPDATE repositories SET listed = false WHERE id = ANY ($1)`, d.left)
	}
	return b
}

// Repositories returns a project's rows, hand-made and released ones included,
// ordered by id.
func (l *Ledger) Repositories(ctx context.Context, projectID int64) ([]domain.Repository, error) {
	return all(ctx, l, scanRepository, `SELECT `+repositoryColumns+` FROM repositories r WHERE r.project_id = $1 ORDER BY r.id`, projectID)
}

// Repository returns a repository by its row's id.
func (l *Ledger) Repository(ctx context.Context, id int64) (domain.Repository, error) {
	return one(ctx, l, scanRepository, `SELECT `+repositoryColumns+` FROM repositories r WHERE r.id = $1`, id)
}

// RepositoryByObject returns the repository that a RepoReconcile shows.
func (l *Ledger) RepositoryByObject(ctx context.Context, key domain.ObjectKey) (domain.Repository, error) {
	return one(ctx, l, scanRepository, `SELECT `+repositoryColumns+` FROM repositories r
		WHERE r.object_namespace = $1 AND r.object_name = $2 AND r.object_name <> '' AND r.released_at IS NULL`, key.Namespace, key.Name)
}

// RepositoryByGitHubID returns a downstream repository and its project by
// GitHub's id. A hand-made repository without a project has a zero one.
func (l *Ledger) RepositoryByGitHubID(ctx context.Context, githubID int64) (r domain.Repository, p domain.Project, err error) {
	err = l.snapshot(ctx, func(ctx context.Context, q db) error {
		if r, err = scanRepository(q.QueryRow(ctx, `SELECT `+repositoryColumns+` FROM repositories r WHERE r.github_repo_id = $1 AND r.released_at IS NULL`, githubID)); err != nil || r.ProjectID == 0 {
			return err
		}
		p, err = scanProject(q.QueryRow(ctx, `SELECT `+projectColumns+` FROM projects p WHERE p.id = $1`, r.ProjectID))
		return err
	})
	if err != nil {
		return domain.Repository{}, domain.Project{}, err
	}
	return r, p, nil
}

// SetObject says which RepoReconcile shows a repository; a zero key says none.
// A row that it showed before no longer has an object.
func (l *Ledger) SetObject(ctx context.Context, id int64, key domain.ObjectKey) error {
	r, err := l.Repository(ctx, id)
	if err != nil || r.Object == key {
		return err
	}
	return l.tx(ctx, func(ctx context.Context, q db) error {
		if err := vacate(ctx, q, key, id); err != nil {
			return err
		}
		_, err := write(ctx, q, `UPDATE repositories SET object_namespace = $2, object_name = $3 WHERE id = $1`, id, key.Namespace, key.Name)
		return err
	})
}

// vacate takes an object from every row but one.
func vacate(ctx context.Context, q db, key domain.ObjectKey, except int64) error {
	_, err := write(ctx, q, `UPDATE repositories SET object_namespace = '', object_name = ''
		WHERE object_namespace = $1 AND object_name = $2 AND object_name <> '' AND id <> $3 AND released_at IS NULL`, key.Namespace, key.Name, except)
	return err
}

// SetSuspended records a RepoReconcile's spec.suspend on its row.
func (l *Ledger) SetSuspended(ctx context.Context, id int64, suspended bool) error {
	_, err := l.exec(ctx, `UPDATE repositories SET suspended = $2 WHERE id = $1 AND suspended <> $2`, id, suspended)
	return err
}

// UpsertHandMade records a RepoReconcile that a person wrote, by its UID, and
// returns the row; it belongs to the project it names while that one is there.
// An id in the object claims the repository at once, like RecordRepositoryID.
// Nothing is written when nothing changed.
func (l *Ledger) UpsertHandMade(ctx context.Context, h domain.HandMade, now time.Time) (r domain.Repository, err error) {
	err = l.tx(ctx, func(ctx context.Context, q db) error {
		projectID, err := optional(scalar[int64](q.QueryRow(ctx, `SELECT id FROM projects WHERE namespace = $1 AND name = $2 AND released_at IS NULL ORDER BY id DESC LIMIT 1`,
			h.Project.Namespace, h.Project.Name)))
		if err != nil {
			return err
		}
		byUID := `SELECT ` + repositoryColumns + ` FROM repositories r WHERE r.object_uid = $1`
		known, err := optional(scanRepository(q.QueryRow(ctx, byUID, h.ObjectUID)))
		if err != nil {
			return err
		}
		if known == nil || known.ReleasedAt != nil || !shows(*known, projectID, h) {
			if err := writeHandMade(ctx, q, known, projectID, h, now); err != nil {
				return err
			}
		}
		if r, err = scanRepository(q.QueryRow(ctx, byUID, h.ObjectUID)); err != nil {
			return err
		}
		if h.RepoID == 0 || r.Repo.ID != 0 {
			return nil
		}
		if err := claimRepository(ctx, q, r, domain.RepositoryRef{ID: h.RepoID, FullName: h.FullName}, r.NodeID); err != nil {
			return err
		}
		r, err = scanRepository(q.QueryRow(ctx, byUID, h.ObjectUID))
		return err
	})
	if err != nil {
		return domain.Repository{}, claimedElsewhere(err, domain.RepositoryRef{ID: h.RepoID, FullName: h.FullName})
	}
	return r, nil
}

// shows reports whether a row holds just what its hand-made object asks for.
func shows(r domain.Repository, projectID *int64, h domain.HandMade) bool {
	var project int64
	if projectID != nil {
		project = *projectID
	}
	return r.ProjectID == project && r.Object == h.Object && r.Recipient == h.Recipient && r.WantedName == h.FullName && slices.Equal(r.Members, h.Members)
}

// writeHandMade writes the row of a hand-made object. The row of an object that
// had the same name before no longer has one: that object is gone.
func writeHandMade(ctx context.Context, q db, known *domain.Repository, projectID *int64, h domain.HandMade, now time.Time) error {
	var id int64
	if known != nil {
		id = known.ID
	}
	if err := vacate(ctx, q, h.Object, id); err != nil {
		return err
	}
	_, err := write(ctx, q, `
		INSERT INTO repositories (project_id, recipient, members, object_namespace, object_name, object_uid, app, wanted_name, adopt, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, true, $9)
		ON CONFLICT (object_uid) DO UPDATE SET project_id = excluded.project_id, recipient = excluded.recipient, members = excluded.members,
			object_namespace = excluded.object_namespace, object_name = excluded.object_name, app = excluded.app, wanted_name = excluded.wanted_name, released_at = NULL`,
		projectID, h.Recipient, list(h.Members), h.Object.Namespace, h.Object.Name, h.ObjectUID, h.App, h.FullName, now)
	return err
}

// ReleaseHandMade marks the row of a deleted hand-made RepoReconcile as
// released. One that nobody knows is no error.
func (l *Ledger) ReleaseHandMade(ctx context.Context, objectUID string, now time.Time) error {
	_, err := l.exec(ctx, `UPDATE repositories SET released_at = $2 WHERE object_uid = $1 AND released_at IS NULL`, objectUID, now)
	return err
}

// ReleaseRepository marks one row as released: it is kept, and nothing touches
// GitHub for it any more. One that nobody knows is no error.
func (l *Ledger) ReleaseRepository(ctx context.Context, id int64, now time.Time) error {
	_, err := l.exec(ctx, `UPDATE repositories SET released_at = $2 WHERE id = $1 AND released_at IS NULL`, id, now)
	return err
}

// RecordRename follows a rename on GitHub (R-EVT-07): the stored full name of
// a source, distribution or downstream repository of that id is replaced where
// its name part still is the old one. It returns the objects concerned; a
// replay changes nothing and returns none.
func (l *Ledger) RecordRename(ctx context.Context, githubID int64, oldName, newFullName string) (refs []domain.ObjectRef, err error) {
	err = l.tx(ctx, func(ctx context.Context, q db) error {
		for _, s := range []struct {
			kind domain.ObjectKind
			sql  string
		}{
			{domain.KindProjectSync, `UPDATE projects SET source_full_name = $3
				WHERE source_repo_id = $1 AND lower(split_part(source_full_name, '/', 2)) = lower($2) AND source_full_name <> $3 AND released_at IS NULL RETURNING namespace, name`},
			{domain.KindProjectSync, `UPDATE projects SET distribution_full_name = $3
				WHERE distribution_repo_id = $1 AND lower(split_part(distribution_full_name, '/', 2)) = lower($2) AND distribution_full_name <> $3 AND released_at IS NULL RETURNING namespace, name`},
			{domain.KindRepoReconcile, `UPDATE repositories SET full_name = $3
				WHERE github_repo_id = $1 AND lower(split_part(full_name, '/', 2)) = lower($2) AND full_name <> $3 AND released_at IS NULL RETURNING object_namespace, object_name`},
		} {
			found, err := collectRefs(ctx, q, s.kind, s.sql, githubID, oldName, newFullName)
			if err != nil {
				return err
			}
			refs = append(refs, found...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return refs, nil
}

// collectRefs reads rows of (namespace, name); those without a name have no
// object and are left out.
func collectRefs(ctx context.Context, q db, kind domain.ObjectKind, sql string, args ...any) ([]domain.ObjectRef, error) {
	refs, err := collect(ctx, q, func(row pgx.Row) (domain.ObjectRef, error) {
		ref := domain.ObjectRef{Kind: kind}
		err := row.Scan(&ref.Namespace, &ref.Name)
		return ref, err
	}, sql, args...)
	return slices.DeleteFunc(refs, func(r domain.ObjectRef) bool { return r.Name == "" }), err
}

// MarkDeleted marks a downstream repository gone from GitHub, once, with an
// audit entry that says how it was found out (R-EVT-08). It returns the object
// concerned, none when nothing changed.
func (l *Ledger) MarkDeleted(ctx context.Context, githubID int64, via string, now time.Time) (refs []domain.ObjectRef, err error) {
	err = l.tx(ctx, func(ctx context.Context, q db) error {
		var id, project int64
		var key domain.ObjectKey
		var name string
		err := q.QueryRow(ctx, `UPDATE repositories SET deleted_at = $2 WHERE github_repo_id = $1 AND deleted_at IS NULL AND released_at IS NULL
			RETURNING id, coalesce(project_id, 0), object_namespace, object_name, coalesce(full_name, wanted_name)`, githubID, now).
			Scan(&id, &project, &key.Namespace, &key.Name, &name)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if key.Name != "" {
			refs = append(refs, domain.ObjectRef{Kind: domain.KindRepoReconcile, ObjectKey: key})
		}
		return audit(ctx, q, domain.AuditEntry{Actor: system, Action: "project_repo.deleted", ProjectID: project, Subject: repositorySubject(id), At: now,
			Payload: map[string]any{"repo": name, "via": via}})
	})
	if err != nil {
		return nil, err
	}
	return refs, nil
}

// RecordPush records a person's push as the repository's last commit, and
// reports whether it did (R-EVT-01). at is the commit's time, for display; the
// receipt decides: a push received before the one recorded changes nothing
// (R-CORE-04). Neither does one to a deleted repository (R-EVT-13).
func (l *Ledger) RecordPush(ctx context.Context, repositoryID int64, sha string, at, receivedAt time.Time) (changed bool, err error) {
	written, err := l.exec(ctx, `UPDATE repositories SET last_commit_sha = $2, last_commit_at = $3, last_push_at = $4
		WHERE id = $1 AND deleted_at IS NULL AND (last_push_at IS NULL OR last_push_at <= $4)
			AND (last_commit_sha, last_commit_at, last_push_at) IS DISTINCT FROM ($2, $3, $4)`, repositoryID, sha, at, receivedAt)
	return written > 0, err
}
