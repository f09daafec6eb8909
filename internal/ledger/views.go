// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"

	"github.com/sluice-dev/sluice/internal/domain"
)

// maxFailing bounds the sample of failed and held repositories in a status.
const maxFailing = 20

// shown are the rows that a project's status counts.
const shown = `r.project_id = $1 AND r.listed AND NOT r.excluded AND r.released_at IS NULL`

// ProjectView returns everything a ProjectSync's status is made from, as of one
// moment.
func (l *Ledger) ProjectView(ctx context.Context, uid string) (v domain.ProjectView, err error) {
	err = l.snapshot(ctx, func(ctx context.Context, q db) error {
		if v.Project, err = scanProject(q.QueryRow(ctx, `SELECT `+projectColumns+` FROM projects p WHERE p.uid = $1`, uid)); err != nil {
			return err
		}
		if v.LastRequest, err = optional(scanRequest(q.QueryRow(ctx, lastRequest, v.ID))); err != nil {
			return err
		}
		if err := passes(ctx, q, &v); err != nil {
			return err
		}
		if err := counts(ctx, q, &v); err != nil {
			return err
		}
		v.Failing, err = collect(ctx, q, scanRepository, `SELECT `+repositoryColumns+` FROM repositories r
			WHERE `+shown+` AND r.sync_outcome IN ('Failed', 'Held') ORDER BY coalesce(r.full_name, r.wanted_name), r.id LIMIT $2`, v.ID, maxFailing)
		return err
	})
	if err != nil {
		return domain.ProjectView{}, err
	}
	return v, nil
}

// lastRequest is the waiting request, else the newest that was judged; one that
// lost to another is shown only when there is no other.
const lastRequest = `SELECT ` + requestColumns + ` FROM sync_requests r WHERE r.project_id = $1
	ORDER BY r.answer = 'Waiting' DESC, r.answer = 'Superseded', r.created_at DESC, r.id DESC LIMIT 1`

// passes fills in the pass under way and the last one finished.
func passes(ctx context.Context, q db, v *domain.ProjectView) (err error) {
	if v.LastPass, err = optional(scanPass(q.QueryRow(ctx, `SELECT `+passColumns+fromPasses+`
		WHERE a.project_id = $1 AND a.finished_at IS NOT NULL ORDER BY a.id DESC LIMIT 1`, v.ID))); err != nil {
		return err
	}
	if v.ActivePass, err = optional(scanPass(q.QueryRow(ctx, `SELECT `+passColumns+fromPasses+`
		WHERE a.project_id = $1 AND a.finished_at IS NULL`, v.ID))); err != nil || v.ActivePass == nil {
		return err
	}
	return q.QueryRow(ctx, `SELECT count(settled_at), count(*) FROM pass_targets WHERE pass_id = $1`, v.ActivePass.ID).Scan(&v.Settled, &v.Targets)
}

// counts fills in the numbers of repositories and of their last outcomes
// (R-SYNC-11).
func counts(ctx context.Context, q db, v *domain.ProjectView) error {
	c, o := &v.Repositories, &v.Outcomes
	return q.QueryRow(ctx, `
		SELECT count(*),
			count(*) FILTER (WHERE provision_status = 'OK' AND deleted_at IS NULL),
			count(*) FILTER (WHERE locked_at IS NOT NULL),
			count(*) FILTER (WHERE deleted_at IS NOT NULL),
			count(*) FILTER (WHERE provision_status = 'OK'),
			count(*) FILTER (WHERE provision_status = 'Failed'),
			count(*) FILTER (WHERE sync_outcome = 'Opened'), count(*) FILTER (WHERE sync_outcome = 'Updated'), count(*) FILTER (WHERE sync_outcome = 'UpToDate'),
			count(*) FILTER (WHERE sync_outcome = 'Held'), count(*) FILTER (WHERE sync_outcome = 'Skipped'), count(*) FILTER (WHERE sync_outcome = 'Failed')
		FROM repositories r WHERE `+shown, v.ID).
		Scan(&c.Total, &c.Live, &c.Locked, &c.Deleted, &c.Provisioned, &c.ProvisionFailed, &o.Opened, &o.Updated, &o.UpToDate, &o.Held, &o.Skipped, &o.Failed)
}

// RepositoryView returns everything a RepoReconcile's status is made from.
func (l *Ledger) RepositoryView(ctx context.Context, id int64) (v domain.RepositoryView, err error) {
	err = l.snapshot(ctx, func(ctx context.Context, q db) error {
		if v.Repository, err = scanRepository(q.QueryRow(ctx, `SELECT `+repositoryColumns+` FROM repositories r WHERE r.id = $1`, id)); err != nil {
			return err
		}
		v.PullRequests, err = collect(ctx, q, scanPullRequest, `SELECT `+pullRequestColumns+` FROM pull_requests WHERE repository_id = $1 ORDER BY branch`, id)
		return err
	})
	if err != nil {
		return domain.RepositoryView{}, err
	}
	return v, nil
}
