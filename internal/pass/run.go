// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// runner carries what every turn of one pass shares.
type runner struct {
	*Engine
	lease domain.Lease
	pass  domain.Pass
	snap  Snapshot
	// answered is set once GitHub answered for some repository of this pass:
	// only then can a 404 for another one mean that it is gone.
	answered atomic.Bool

	mu       sync.Mutex
	notified time.Time
}

// run takes every pending target through its turn, the project's concurrency
// at a time (R-SYNC-02), and ends the pass. What stops the pass as a whole (a
// rate limit, the database, the App gone) leaves the rest pending: they are
// taken up when it is tried again. One failing repository never stops the
// others (R-CORE-15).
func (e *Engine) run(ctx context.Context, l domain.Lease, p domain.Pass) error {
	project, err := e.Store.Project(ctx, p.ProjectID)
	if err != nil {
		return err
	}
	targets, err := e.Store.PendingTargets(ctx, p.ID)
	if err != nil {
		return err
	}
	if len(targets) > 0 {
		if err := e.runTargets(ctx, l, project, p, targets); err != nil {
			return err
		}
		if again, err := e.Store.Project(ctx, p.ProjectID); err != nil {
			return err
		} else if halted(again) {
			return nil // suspended or archived meanwhile; looked at anew
		}
	}
	finished, cleared, err := e.Store.FinishPass(ctx, l, p.ID, e.Clock.Now())
	if err != nil {
		return err
	}
	e.Logger.Info("Finished a pass", "project", p.ProjectID, "pass", p.ID, "counts", finished.Counts, "sourceCaughtUp", cleared)
	return nil
}

func halted(p domain.Project) bool { return p.Suspended || p.Stage == domain.StageArchived }

func (e *Engine) runTargets(ctx context.Context, l domain.Lease, project domain.Project, p domain.Pass, targets []int64) (err error) {
	dist, err := e.distribution(ctx, project)
	if err != nil {
		return err
	}
	client, err := e.GitHub.Client(ctx, project.App, domain.Owner(dist.FullName))
	if err != nil {
		return err
	}
	remote, err := e.GitHub.Remote(project.App, client, dist.FullName)
	if err != nil {
		return err
	}
	snap, err := e.Git.Snapshot(ctx, project.UID, remote, project.Branches)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()

	r := &runner{Engine: e, lease: l, pass: p, snap: snap}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(max(project.Concurrency, 1))
	for _, id := range targets {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error { return r.target(groupCtx, id) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	// The group's own context is done by now; the pass's says whether it was
	// stopped.
	return context.Cause(ctx)
}

// target takes one repository through its turn and records what came of it.
// It returns an error only for what stops the whole pass.
func (r *runner) target(ctx context.Context, id int64) error {
	// Both rows are read just before the repository is touched (R-SYNC-03).
	project, err := r.Store.Project(ctx, r.pass.ProjectID)
	if err != nil {
		return err
	}
	if halted(project) {
		return nil // stays pending
	}
	repo, err := r.Store.Repository(ctx, id)
	if err != nil {
		return err
	}
	settlement, err := r.turn(ctx, project, repo)
	if err != nil {
		if stopsPass(ctx, err) {
			return err
		}
		settlement, err = r.failure(ctx, project, repo, fault.Of(err))
		if err != nil {
			return err
		}
	}
	if err := r.Store.Settle(ctx, r.lease, r.pass.ID, id, settlement, r.Clock.Now()); err != nil {
		return err
	}
	r.Logger.V(1).Info("Settled a repository", "project", project.ID, "repository", repo.Repo.FullName, "outcome", settlement.Outcome, "reason", settlement.Reason)
	if repo.Object.Name != "" {
		r.Changed(domain.ObjectRef{Kind: domain.KindRepoReconcile, ObjectKey: repo.Object})
	}
	r.progressed(project)
	return nil
}

// progressed asks for a status write now and then while a pass runs.
func (r *runner) progressed(p domain.Project) {
	now := r.Clock.Now()
	r.mu.Lock()
	due := now.Sub(r.notified) >= statusEvery
	if due {
		r.notified = now
	}
	r.mu.Unlock()
	if due {
		r.changed(p)
	}
}

// stopsPass reports whether a fault is about the pass rather than about one
// repository.
func stopsPass(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	f := fault.Of(err)
	switch f.Class {
	case fault.RateLimited, fault.Waiting:
		return true
	}
	switch f.Reason {
	case fault.ReasonDatabaseUnavailable, fault.ReasonDatabaseSchemaOld, fault.ReasonDatabaseSchemaNew,
		fault.ReasonAppNotInstalled, fault.ReasonAppSuspended, fault.ReasonCredentialsRefused, fault.ReasonAppNotFound:
		return true
	}
	return false
}

// failure settles a repository whose turn failed (R-SYNC-08). GitHub is asked
// for it by id; a 404 there counts as gone only the second time and only with
// a token that answered for another repository: the first is NotFoundOnce.
func (r *runner) failure(ctx context.Context, p domain.Project, repo domain.Repository, f *fault.Error) (domain.Settlement, error) {
	failed := domain.Settlement{Outcome: domain.OutcomeFailed, Reason: string(f.Reason), Message: f.Message}
	if f.Reason == fault.ReasonNotGranted {
		return failed, nil
	}
	client, err := r.GitHub.Client(ctx, p.App, domain.Owner(repo.Repo.FullName))
	if err != nil {
		return failed, stopOnly(ctx, err)
	}
	_, err = client.Repository(ctx, repo.Repo.ID)
	if !fault.Is(err, fault.ReasonNotFound) {
		return failed, stopOnly(ctx, err)
	}
	if repo.Outcome != domain.OutcomeFailed || repo.Reason != string(fault.ReasonNotFoundOnce) || !r.answered.Load() {
		return domain.Settlement{Outcome: domain.OutcomeFailed, Reason: string(fault.ReasonNotFoundOnce),
			Message: "GitHub does not know the repository, or no longer lets the App see it; a second look at the next sync decides"}, nil
	}
	if _, err := r.Store.MarkDeleted(ctx, repo.Repo.ID, "sync", r.Clock.Now()); err != nil {
		return failed, err
	}
	return domain.Settlement{Outcome: domain.OutcomeSkipped, Reason: string(fault.ReasonGone), Message: "the repository is gone from GitHub"}, nil
}

// stopOnly keeps the faults that stop a pass and drops the others.
func stopOnly(ctx context.Context, err error) error {
	if err != nil && stopsPass(ctx, err) {
		return err
	}
	return nil
}
