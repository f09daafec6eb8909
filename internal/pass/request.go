// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"context"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// nextPass judges the project's waiting request, if one is due, brings the
// distribution in step and starts the pass (R-REQ-01, R-REQ-02). A source that
// is not ahead is no ground for refusal (R-REQ-04).
func (e *Engine) nextPass(ctx context.Context, l domain.Lease, p domain.Project) (domain.Pass, bool, error) {
	none := domain.Pass{}
	r, found, err := e.Store.NextRequest(ctx, p.ID, e.Clock.Now())
	if err != nil || !found {
		return none, false, err
	}
	result, err := e.update(ctx, p)
	if err != nil {
		return none, false, e.refuseOrWait(ctx, l, p, r, err)
	}
	started, err := e.Store.StartPass(ctx, l, domain.PassStart{
		RequestID: r.ID, Heads: result.Heads, SourceHeads: result.SourceHeads, Changed: result.Changed,
		Actor: actor(r),
	}, e.Clock.Now())
	if err != nil {
		return none, false, err
	}
	e.Logger.Info("Starting a pass", "project", p.ID, "object", p.Object, "pass", started.ID, "token", r.Value, "changed", result.Changed)
	return started, true, nil
}

// update brings the distribution of a built project in step with its source.
func (e *Engine) update(ctx context.Context, p domain.Project) (domain.DistributeResult, error) {
	source, client, err := e.checkSource(ctx, p)
	if err != nil {
		return domain.DistributeResult{}, err
	}
	dist, err := e.distribution(ctx, p)
	if err != nil {
		return domain.DistributeResult{}, err
	}
	return e.distribute(ctx, p, client, source.FullName, dist.FullName)
}

// distribution returns the built distribution as GitHub knows it now. That it
// cannot be found blocks the request; it never counts as deleted.
func (e *Engine) distribution(ctx context.Context, p domain.Project) (domain.GitHubRepository, error) {
	client, err := e.GitHub.Client(ctx, p.App, domain.Owner(p.DistributionRepo.FullName))
	if err != nil {
		return domain.GitHubRepository{}, err
	}
	dist, err := client.Repository(ctx, p.DistributionRepo.ID)
	if fault.Is(err, fault.ReasonNotFound) {
		return dist, fault.Wrap(err, fault.Blocked, fault.ReasonDistributionMissing,
			"distribution %q is not to be found: restore it on GitHub, or give the App's installation access to it", p.DistributionRepo.FullName)
	}
	return dist, err
}

// refuseOrWait answers a request that could not be carried out. What only a
// change of the project ends is refused; a passing fault leaves the request
// waiting with backoff, for a day at most, so that a token set by a commit
// does not die of it (R-REQ-03).
func (e *Engine) refuseOrWait(ctx context.Context, l domain.Lease, p domain.Project, r domain.Request, err error) error {
	if ctx.Err() != nil || fault.Is(err, fault.ReasonLeaseLost) || fault.Is(err, fault.ReasonDatabaseUnavailable) {
		return err // nothing was judged; the request waits as it is
	}
	f := fault.Of(err)
	now := e.Clock.Now()
	switch {
	case f.Class == fault.Terminal:
		return e.refuse(ctx, l, p, r, f)
	case now.Sub(r.CreatedAt) >= domain.RequestLifetime:
		return e.refuse(ctx, l, p, r, fault.Wrap(err, fault.Terminal, fault.ReasonExpired, "waited a day for: %s", f.Message))
	}
	if r.Reason != string(f.Reason) {
		if aerr := e.auditFailed(ctx, p, r, f); aerr != nil {
			return aerr
		}
	}
	retry := f.RetryAt
	if retry.IsZero() {
		retry = now.Add(domain.RetryDelay(r.Attempts + 1))
	}
	return e.Store.AnswerRequest(ctx, l, r.ID, domain.AnswerWaiting, string(f.Reason), f.Message, retry, now)
}

// refuse gives a request its last word, audited once.
func (e *Engine) refuse(ctx context.Context, l domain.Lease, p domain.Project, r domain.Request, f *fault.Error) error {
	if err := e.auditFailed(ctx, p, r, f); err != nil {
		return err
	}
	e.Logger.Info("Refusing a sync request", "project", p.ID, "token", r.Value, "reason", f.Reason)
	return e.Store.AnswerRequest(ctx, l, r.ID, domain.AnswerRefused, string(f.Reason), f.Message, e.Clock.Now(), e.Clock.Now())
}

func (e *Engine) auditFailed(ctx context.Context, p domain.Project, r domain.Request, f *fault.Error) error {
	return e.Store.Audit(ctx, domain.AuditEntry{
		Actor: actor(r), Action: "project.sync_failed", ProjectID: p.ID, Subject: subject(p), At: e.Clock.Now(),
		Payload: map[string]any{"token": r.Value, "reason": string(f.Reason)},
	})
}

// actor is who asked, as far as anybody said.
func actor(r domain.Request) string {
	if r.RequestedBy == "" {
		return "unverified"
	}
	return "unverified:" + r.RequestedBy
}

func subject(p domain.Project) string { return "project/" + p.UID }
