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

// build makes the distribution in the order of R-DIST-01: checks, repository
// made or adopted, its id claimed, branches pushed, name and handed-out shas
// written. Each step looks at what is there, so it can be run again after a
// crash anywhere.
func (e *Engine) build(ctx context.Context, l domain.Lease, p domain.Project) error {
	source, client, err := e.checkSource(ctx, p)
	if err != nil {
		return err
	}
	if err := e.Store.RecordSource(ctx, p.ID, domain.RepositoryRef{ID: source.ID, FullName: source.FullName}); err != nil {
		return err
	}
	dist, err := e.claimDistribution(ctx, l, p)
	if err != nil {
		return err
	}
	result, err := e.distribute(ctx, p, client, source.FullName, dist.FullName)
	if err != nil {
		return err
	}
	return e.Store.RecordBuilt(ctx, l, dist.FullName, result.Heads, result.SourceHeads, e.Clock.Now())
}

// checkSource refuses, before anything is written or created, a source that
// cannot be handed out (R-DIST-02, R-DIST-03). It returns the source as GitHub
// knows it now and the client that reads it.
func (e *Engine) checkSource(ctx context.Context, p domain.Project) (domain.GitHubRepository, Client, error) {
	none := domain.GitHubRepository{}
	client, err := e.GitHub.Client(ctx, p.App, domain.Owner(p.Source))
	if err != nil {
		return none, nil, err
	}
	source, err := client.RepositoryByName(ctx, p.Source)
	if fault.Is(err, fault.ReasonNotFound) {
		return none, nil, fault.Wrap(err, fault.Blocked, fault.ReasonSourceNotFound,
			"source %q not found: check spec.source.repository, and that the App's installation on %q includes it", p.Source, domain.Owner(p.Source))
	}
	if err != nil {
		return none, nil, err
	}
	if !domain.SameName(source.OwnerLogin, domain.Owner(p.Source)) {
		return none, nil, fault.New(fault.Terminal, fault.ReasonSourceNotFound,
			"source %q now belongs to another account: name it as it is called today in spec.source.repository", p.Source)
	}
	if p.SourceRepo.ID != 0 && p.SourceRepo.ID != source.ID {
		return none, nil, fault.New(fault.Terminal, fault.ReasonSourceChanged,
			"source %q is another repository (id %d) than the one handed out so far (id %d): restore the name, or make a new project", p.Source, source.ID, p.SourceRepo.ID)
	}
	if err := e.Authorizer.Authorize(ctx, p.App, p.Object.Namespace, domain.UseSource, source.FullName); err != nil {
		return none, nil, err
	}
	isDistribution, err := e.Store.IsDistribution(ctx, source.ID)
	if err != nil {
		return none, nil, err
	}
	if isDistribution || domain.NamedLikeDistribution(source.FullName) {
		return none, nil, fault.New(fault.Terminal, fault.ReasonSourceIsDistribution,
			"source %q is a distribution, which is never a source: name the repository it was made from", p.Source)
	}
	return source, client, e.checkBranches(ctx, client, source, p.Branches)
}

func (e *Engine) checkBranches(ctx context.Context, c Client, source domain.GitHubRepository, branches []string) error {
	var missing []string
	for _, b := range branches {
		_, found, err := c.Ref(ctx, source.ID, "heads/"+b)
		if err != nil && !fault.Is(err, fault.ReasonRepositoryEmpty) {
			return err
		}
		if !found {
			missing = append(missing, fmt.Sprintf("%q", b))
		}
	}
	if len(missing) > 0 {
		return fault.New(fault.Blocked, fault.ReasonSourceBranchMissing,
			"source %q has no branch %s: push it, or correct spec.source.branches", source.FullName, strings.Join(missing, ", "))
	}
	return nil
}

// claimDistribution returns the repository that is the project's distribution:
// the one claimed before, or one made or adopted now and claimed before any
// push (R-DIST-05, R-DIST-06).
func (e *Engine) claimDistribution(ctx context.Context, l domain.Lease, p domain.Project) (domain.GitHubRepository, error) {
	none := domain.GitHubRepository{}
	org := domain.Owner(p.Distribution)
	if err := e.Authorizer.Authorize(ctx, p.App, p.Object.Namespace, domain.UseOrganization, org); err != nil {
		return none, err
	}
	client, err := e.GitHub.Client(ctx, p.App, org)
	if err != nil {
		return none, err
	}
	if p.DistributionRepo.ID != 0 {
		repo, err := client.Repository(ctx, p.DistributionRepo.ID)
		if fault.Is(err, fault.ReasonNotFound) {
			return none, fault.Wrap(err, fault.Blocked, fault.ReasonDistributionMissing,
				"the distribution (repository id %d) is not to be found: restore it on GitHub, or give the App's installation on %q access to it", p.DistributionRepo.ID, org)
		}
		return repo, err
	}
	for _, name := range domain.DistributionCandidates(p.Distribution, p.DistributionFixed) {
		repo, free, err := e.makeOrAdopt(ctx, client, org, name)
		if err != nil {
			return none, err
		}
		if !free {
			continue
		}
		err = e.Store.ClaimDistribution(ctx, l, domain.RepositoryRef{ID: repo.ID, FullName: repo.FullName}, e.Clock.Now())
		if fault.Is(err, fault.ReasonDistributionNameTaken) {
			continue // claimed by another project between the look and the claim
		}
		return repo, err
	}
	return none, fault.New(fault.Blocked, fault.ReasonDistributionNameTaken,
		"distribution %q is taken by a repository that is not empty and private: set spec.distribution.repository to a free name", p.Distribution)
}

// makeOrAdopt creates the repository, or looks at the one that has the name:
// free only when it is empty and private (R-DIST-05).
func (e *Engine) makeOrAdopt(ctx context.Context, c Client, org, fullName string) (domain.GitHubRepository, bool, error) {
	repo, err := c.CreateRepository(ctx, org, domain.NewRepository{Name: domain.Name(fullName), Visibility: "private"})
	if err == nil {
		return repo, true, nil
	}
	if !fault.Is(err, fault.ReasonRepositoryNameTaken) {
		return repo, false, err
	}
	repo, err = c.RepositoryByName(ctx, fullName)
	if err != nil {
		if fault.Is(err, fault.ReasonNotFound) {
			return repo, false, nil // taken, but not ours to see
		}
		return repo, false, err
	}
	if !repo.Private || !domain.SameName(repo.FullName, fullName) {
		return repo, false, nil
	}
	empty, err := c.IsEmpty(ctx, repo.ID)
	return repo, empty, err
}

// distribute brings the distribution in step with the source (R-DIST-07,
// R-REQ-05, R-REQ-06).
func (e *Engine) distribute(ctx context.Context, p domain.Project, source Client, sourceName, distName string) (domain.DistributeResult, error) {
	bot, err := e.GitHub.Bot(p.App)
	if err != nil {
		return domain.DistributeResult{}, err
	}
	from, err := e.GitHub.Remote(p.App, source, sourceName)
	if err != nil {
		return domain.DistributeResult{}, err
	}
	distClient, err := e.GitHub.Client(ctx, p.App, domain.Owner(distName))
	if err != nil {
		return domain.DistributeResult{}, err
	}
	to, err := e.GitHub.Remote(p.App, distClient, distName)
	if err != nil {
		return domain.DistributeResult{}, err
	}
	return e.Git.Distribute(ctx, domain.DistributeRequest{
		Key: p.UID, Source: from, Distribution: to, Branches: p.Branches, History: p.History,
		HandOut: domain.HandOut{OverlayDirectory: p.OverlayDirectory, IgnoreFile: p.IgnoreFile},
		Author:  domain.BotSignature(bot), Message: domain.CommitMessage,
	})
}
