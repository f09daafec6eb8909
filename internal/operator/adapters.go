// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/git"
	"github.com/sluice-dev/sluice/internal/github"
	"github.com/sluice-dev/sluice/internal/pass"
	"github.com/sluice-dev/sluice/internal/provision"
)

// tokener is what every consumer's client interface has in common.
type tokener interface {
	Token(ctx context.Context) (string, error)
}

// clients hands the registry's clients out under a consumer's own interface.
type clients[C tokener] struct {
	registry *github.Registry
	as       func(*github.Client) C
}

// Client returns the client of the App's installation on an account.
func (c clients[C]) Client(ctx context.Context, app, account string) (C, error) {
	var none C
	a, _, err := c.registry.Get(app)
	if err != nil {
		return none, err
	}
	client, err := a.ForAccount(ctx, account)
	if err != nil {
		return none, err
	}
	return c.as(client), nil
}

// Bot returns who the App's commits and pull requests come from.
func (c clients[C]) Bot(app string) (domain.AppInfo, error) {
	_, info, err := c.registry.Get(app)
	return info, err
}

// Remote returns a repository's git address with the installation's token.
func (c clients[C]) Remote(app string, client C, fullName string) (domain.Remote, error) {
	a, _, err := c.registry.Get(app)
	if err != nil {
		return domain.Remote{}, err
	}
	return domain.Remote{URL: a.GitURL(fullName), Token: client.Token}, nil
}

func passClient(c *github.Client) pass.Client           { return c }
func provisionClient(c *github.Client) provision.Client { return c }

// passGit and provisionGit narrow a snapshot to what its consumer uses.
type passGit struct{ *git.Git }

// Snapshot returns the distribution's branches as they are now.
func (g passGit) Snapshot(ctx context.Context, key string, d domain.Remote, branches []string) (pass.Snapshot, error) {
	return g.Git.Snapshot(ctx, key, d, branches)
}

type provisionGit struct{ *git.Git }

// Snapshot returns the distribution's branches as they are now.
func (g provisionGit) Snapshot(ctx context.Context, key string, d domain.Remote, branches []string) (provision.Snapshot, error) {
	return g.Git.Snapshot(ctx, key, d, branches)
}

// aheadCounter answers how many commits a push holds past what was handed out
// (R-AHEAD-02).
type aheadCounter struct{ registry *github.Registry }

// AheadBy returns GitHub's count for base...head of a source.
func (a aheadCounter) AheadBy(ctx context.Context, app string, source domain.RepositoryRef, base, head string) (int, error) {
	g, _, err := a.registry.Get(app)
	if err != nil {
		return 0, err
	}
	client, err := g.ForAccount(ctx, domain.Owner(source.FullName))
	if err != nil {
		return 0, err
	}
	cmp, err := client.Compare(ctx, source.ID, base, head)
	if err != nil {
		return 0, err
	}
	return cmp.AheadBy, nil
}
