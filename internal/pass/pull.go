// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"context"
	"fmt"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// pullRequest makes sure that a branch that differs has exactly one open pull
// request from its sync branch (R-PR-01). Up to date is "the compare lists no
// file", never "ahead by zero" (R-SYNC-06).
func (r *runner) pullRequest(ctx context.Context, p domain.Project, repo domain.Repository, gh domain.GitHubRepository, c Client, branch string, moved bool) (branchResult, error) {
	sync := p.PullRequest.SyncBranch(branch)
	cmp, err := c.Compare(ctx, gh.ID, branch, sync)
	if err != nil {
		return branchResult{}, err
	}
	if len(cmp.Files) == 0 {
		return branchResult{outcome: domain.OutcomeUpToDate}, nil
	}
	head := r.pass.Heads[branch]
	pr, found, err := r.openPullRequest(ctx, repo, gh, c, branch, sync)
	if err != nil {
		return branchResult{}, err
	}
	if found {
		if err := r.record(ctx, repo, branch, pr); err != nil {
			return branchResult{}, err
		}
		if moved && p.PullRequest.Announce != "None" {
			// An open pull request is commented on only when this pass moved
			// its head (R-PR-03).
			if err := c.Comment(ctx, gh.ID, pr.Number, domain.DescribeUpdate(branch, head, cmp.Files)); err != nil {
				return branchResult{}, err
			}
		}
		return branchResult{outcome: domain.OutcomeUpdated, message: fmt.Sprintf("#%d onto %s is open", pr.Number, branch)}, nil
	}
	text := domain.DescribePullRequest(p.PullRequest, p.Object.Name, branch, head, cmp.Files)
	pr, err = c.CreatePullRequest(ctx, gh.ID, domain.NewPullRequest{
		Title: text.Title, Body: text.Body, Head: sync, Base: branch, Draft: p.PullRequest.Draft,
	})
	if fault.Is(err, fault.ReasonNoCommits) {
		return branchResult{outcome: domain.OutcomeUpToDate}, nil
	}
	if err != nil {
		return branchResult{}, err
	}
	if err := r.record(ctx, repo, branch, pr); err != nil {
		return branchResult{}, err
	}
	if len(p.PullRequest.Labels) > 0 {
		if err := c.AddLabels(ctx, gh.ID, pr.Number, p.PullRequest.Labels); err != nil {
			return branchResult{}, err
		}
	}
	return branchResult{outcome: domain.OutcomeOpened, message: fmt.Sprintf("opened #%d onto %s", pr.Number, branch)}, nil
}

// openPullRequest returns the branch's open pull request: the stored number if
// GitHub says it is open, else the open one found by head and base (R-PR-02).
// A merged or closed one is never reopened (R-PR-05).
func (r *runner) openPullRequest(ctx context.Context, repo domain.Repository, gh domain.GitHubRepository, c Client, branch, sync string) (domain.GitHubPullRequest, bool, error) {
	stored, found, err := r.Store.PullRequest(ctx, repo.ID, branch)
	if err != nil {
		return domain.GitHubPullRequest{}, false, err
	}
	if found {
		pr, err := c.PullRequest(ctx, gh.ID, stored.Number)
		switch {
		case err == nil && pr.State == domain.PullRequestOpen && pr.HeadRef == sync && pr.BaseRef == branch:
			return pr, true, nil
		case err != nil && !fault.Is(err, fault.ReasonNotFound):
			return domain.GitHubPullRequest{}, false, err
		}
	}
	return c.FindOpenPullRequest(ctx, gh, sync, branch)
}

func (r *runner) record(ctx context.Context, repo domain.Repository, branch string, pr domain.GitHubPullRequest) error {
	return r.Store.RecordPullRequest(ctx, r.lease, domain.PullRequest{
		RepositoryID: repo.ID, Branch: branch, Number: pr.Number, State: pr.State, URL: pr.URL, UpdatedAt: r.Clock.Now(),
	})
}
