// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-dev/sluice/internal/domain"
)

// maxFailing bounds the sample of failed and held repositories in a status.
const maxFailing = 20

// ProjectView returns everything a ProjectSync's status is made from.
func (l *Ledger) ProjectView(ctx context.Context, uid string) (domain.ProjectView, error) {
	var v domain.ProjectView
	p, err := l.ProjectByUID(ctx, uid)
	if err != nil {
		return v, err
	}
	v.Project = p
	if v.LastRequest, err = optional(scanRequest(l.pool.QueryRow(ctx, `SELECT `+requestColumns+` FROM sync_requests r WHERE r.project_id = $1
		ORDER BY (r.answer = 'Waiting') DESC, r.created_at DESC, r.id DESC LIMIT 1`, p.ID))); err != nil {
		return v, l.fault(err)
	}
	if v.LastPass, err = optional(scanPass(l.pool.QueryRow(ctx, `SELECT `+passColumns+` FROM passes a JOIN sync_requests q ON q.id = a.request_id
		WHERE a.project_id = $1 AND a.finished_at IS NOT NULL ORDER BY a.id DESC LIMIT 1`, p.ID))); err != nil {
		return v, l.fault(err)
	}
	active, found, err := l.ActivePass(ctx, p.ID)
	if err != nil {
		return v, err
	}
	if found {
		v.ActivePass = &active
		if err := l.pool.QueryRow(ctx, `SELECT count(*) FILTER (WHERE settled_at IS NOT NULL), count(*) FROM pass_targets WHERE pass_id = $1`, active.ID).Scan(&v.Settled, &v.Targets); err != nil {
			return v, l.fault(err)
		}
	}
	if err := l.counts(ctx, &v); err != nil {
		return v, err
	}
	rows, err := l.pool.Query(ctx, `SELECT `+repositoryColumns+` FROM repositories r
		WHERE r.project_id = $1 AND r.listed AND NOT r.excluded AND r.released_at IS NULL AND r.full_name IS NOT NULL AND r.sync_outcome IN ('Failed', 'Held')
		ORDER BY r.full_name LIMIT $2`, p.ID, maxFailing)
	if err != nil {
		return v, l.fault(err)
	}
	v.Failing, err = collectRepositories(rows)
	return v, l.fault(err)
}

// optional turns a row that may not be there into a pointer.
func optional[T any](v T, err error) (*T, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &v, nil
}

func (l *Ledger) counts(ctx context.Context, v *domain.ProjectView) error {
	c, o := &v.Repositories, &v.Outcomes
	err := l.pool.QueryRow(ctx, `
		SELECT count(*),
			count(*) FILTER (WHERE provision_status = 'OK' AND deleted_at IS NULL),
			count(*) FILTER (WHERE locked_at IS NOT NULL),
			count(*) FILTER (WHERE deleted_at IS NOT NULL),
			count(*) FILTER (WHERE provision_status = 'OK'),
			count(*) FILTER (WHERE provision_status = 'Failed'),
			count(*) FILTER (WHERE sync_outcome = 'Opened'), count(*) FILTER (WHERE sync_outcome = 'Updated'), count(*) FILTER (WHERE sync_outcome = 'UpToDate'),
			count(*) FILTER (WHERE sync_outcome = 'Held'), count(*) FILTER (WHERE sync_outcome = 'Skipped'), count(*) FILTER (WHERE sync_outcome = 'Failed')
		FROM repositories WHERE project_id = $1 AND listed AND NOT excluded AND released_at IS NULL`, v.ID).
		Scan(&c.Total, &c.Live, &c.Locked, &c.Deleted, &c.Provisioned, &c.ProvisionFailed, &o.Opened, &o.Updated, &o.UpToDate, &o.Held, &o.Skipped, &o.Failed)
	return l.fault(err)
}

// RepositoryView returns everything a RepoReconcile's status is made from.
func (l *Ledger) RepositoryView(ctx context.Context, id int64) (domain.RepositoryView, error) {
	r, err := l.Repository(ctx, id)
	if err != nil {
		return domain.RepositoryView{}, err
	}
	rows, err := l.pool.Query(ctx, `SELECT repository_id, branch, number, state, url, updated_at FROM pull_requests WHERE repository_id = $1 ORDER BY branch`, id)
	if err != nil {
		return domain.RepositoryView{}, l.fault(err)
	}
	prs, err := pgx.CollectRows(rows, pgx.RowToStructByPos[domain.PullRequest])
	return domain.RepositoryView{Repository: r, PullRequests: prs}, l.fault(err)
}
