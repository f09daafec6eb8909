// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// branchResult is what one branch of a repository came to.
type branchResult struct {
	outcome domain.Outcome
	reason  fault.Reason
	message string
}

// turn does a repository's turn: the sync branches are pushed where they are
// not yet at the pass's heads, then each branch gets its pull request if it
// differs (R-SYNC-04). The handed-out branches are never moved (R-SYNC-05).
func (r *runner) turn(ctx context.Context, p domain.Project, repo domain.Repository) (domain.Settlement, error) {
	if reason, message, skip := domain.Skip(repo, p, r.Clock.Now()); skip {
		return domain.Settlement{Outcome: domain.OutcomeSkipped, Reason: reason, Message: message}, nil
	}
	client, err := r.GitHub.Client(ctx, p.App, domain.Owner(repo.Repo.FullName))
	if err != nil {
		return domain.Settlement{}, err
	}
	gh, err := r.identify(ctx, p, repo, client)
	if err != nil {
		return domain.Settlement{}, err
	}
	moved, held, err := r.push(ctx, p, repo, gh, client)
	if err != nil {
		return domain.Settlement{}, err
	}
	results := make([]branchResult, 0, len(p.Branches))
	for _, branch := range p.Branches {
		if h, isHeld := held[branch]; isHeld {
			results = append(results, h)
			continue
		}
		res, err := r.pullRequest(ctx, p, repo, gh, client, branch, moved[branch])
		if err != nil {
			return domain.Settlement{}, err
		}
		results = append(results, res)
	}
	return settlement(results), nil
}

// identify reads the repository by its id and judges the grants on the name it
// has today.
func (r *runner) identify(ctx context.Context, p domain.Project, repo domain.Repository, c Client) (domain.GitHubRepository, error) {
	gh, err := c.Repository(ctx, repo.Repo.ID)
	if err != nil {
		return gh, err
	}
	r.answered.Store(true)
	if gh.Archived {
		return gh, fault.New(fault.Blocked, fault.ReasonRepositoryArchived,
			"the repository is archived on GitHub: unarchive it, or exclude it from the project")
	}
	return gh, r.Authorizer.Authorize(ctx, p.App, p.Object.Namespace, domain.UseDownstream, gh.FullName)
}

// push brings the sync branches to the pass's heads in one push and returns
// which it moved. The head is in the bot ledger before the ref moves
// (R-CORE-01, R-SYNC-04). A sync branch is forced only when its present value
// is known to be the App's own; anything else is somebody's work and held.
func (r *runner) push(ctx context.Context, p domain.Project, repo domain.Repository, gh domain.GitHubRepository, c Client) (moved map[string]bool, held map[string]branchResult, err error) {
	moved, held = map[string]bool{}, map[string]branchResult{}
	var updates []domain.RefUpdate
	for _, branch := range p.Branches {
		head := r.pass.Heads[branch]
		if err := r.Store.RecordBotCommit(ctx, r.lease, repo.ID, head, domain.BotCommitSync, r.Clock.Now()); err != nil {
			return nil, nil, err
		}
		sync := p.PullRequest.SyncBranch(branch)
		old, found, err := c.Ref(ctx, gh.ID, "heads/"+sync)
		if err != nil {
			return nil, nil, err
		}
		if found && old == head {
			continue
		}
		if found {
			ours, err := r.Store.IsBotCommit(ctx, gh.ID, old)
			if err != nil {
				return nil, nil, err
			}
			if !ours {
				held[branch] = branchResult{domain.OutcomeHeld, fault.ReasonHumanCommits,
					fmt.Sprintf("%s holds commits that are not the App's (at %s); nothing was overwritten: merge or delete that branch", sync, domain.ShortSHA(old))}
				continue
			}
		}
		updates = append(updates, domain.RefUpdate{Ref: "refs/heads/" + sync, New: head, Old: old, Force: true})
		moved[branch] = true
	}
	if len(updates) == 0 {
		return moved, held, nil
	}
	to, err := r.GitHub.Remote(p.App, c, gh.FullName)
	if err != nil {
		return nil, nil, err
	}
	return moved, held, r.snap.Push(ctx, to, updates)
}

// settlement sums a repository's branches up: the strongest outcome, and why.
func settlement(results []branchResult) domain.Settlement {
	outcomes := make([]domain.Outcome, 0, len(results))
	for _, b := range results {
		outcomes = append(outcomes, b.outcome)
	}
	s := domain.Settlement{Outcome: domain.Strongest(outcomes...)}
	var messages []string
	for _, b := range results {
		if b.message != "" {
			messages = append(messages, b.message)
		}
		if b.outcome == s.Outcome && s.Reason == "" {
			s.Reason = string(b.reason)
		}
	}
	s.Message = strings.Join(messages, "; ")
	return s
}
