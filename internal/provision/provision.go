// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provision makes one downstream repository, or adopts the one that is
// there. The step on a repository is a function of its row: who calls it (its
// object's reconcile, a poll, a pass) makes no difference.
package provision

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Store is the ledger as provisioning needs it.
type Store interface {
	Project(ctx context.Context, id int64) (domain.Project, error)
	Repository(ctx context.Context, id int64) (domain.Repository, error)
	// ClaimProvisioning is won by one caller at a time; a claim is stale
	// after five minutes (R-PROV-03).
	ClaimProvisioning(ctx context.Context, id int64, now time.Time) (bool, error)
	RecordRepositoryID(ctx context.Context, id int64, repo domain.RepositoryRef, nodeID string) error
	FinishProvisioning(ctx context.Context, id int64, defaultBranch string, adopted bool, now time.Time) error
	FailProvisioning(ctx context.Context, id int64, p domain.Problem) error
}

// GitHub gives access to GitHub as one App of the cluster.
type GitHub interface {
	Client(ctx context.Context, app, account string) (Client, error)
	Remote(app string, c Client, fullName string) (domain.Remote, error)
}

// Client is what provisioning asks of one installation.
type Client interface {
	Token(ctx context.Context) (string, error)
	Repository(ctx context.Context, id int64) (domain.GitHubRepository, error)
	RepositoryByName(ctx context.Context, fullName string) (domain.GitHubRepository, error)
	CreateRepository(ctx context.Context, org string, n domain.NewRepository) (domain.GitHubRepository, error)
	Ref(ctx context.Context, id int64, ref string) (sha string, found bool, err error)
	SetDefaultBranch(ctx context.Context, id int64, branch string) error
}

// Git reads distributions.
type Git interface {
	Snapshot(ctx context.Context, key string, distribution domain.Remote, branches []string) (Snapshot, error)
}

// Snapshot is a local copy of a distribution to push from.
type Snapshot interface {
	Heads() domain.Heads
	Push(ctx context.Context, to domain.Remote, updates []domain.RefUpdate) error
	Close() error
}

// Authorizer judges the grants of a GitHubApp at the time of use.
type Authorizer interface {
	Authorize(ctx context.Context, app, namespace string, use domain.Use, subject string) error
}

// Provisioner provisions and adopts downstream repositories.
type Provisioner struct {
	Store      Store
	GitHub     GitHub
	Git        Git
	Authorizer Authorizer
	Clock      clock.Clock
}

// Step brings one repository's provisioning to its end, or as far as it can
// be. It returns the fault that stands in the way, already recorded on the
// row; nil when the repository is provisioned or somebody else is at it.
func (v *Provisioner) Step(ctx context.Context, id int64) error {
	repo, err := v.Store.Repository(ctx, id)
	if err != nil {
		return err
	}
	if repo.Provision == domain.ProvisionOK || repo.Excluded || !repo.Listed || repo.ReleasedAt != nil || repo.ProjectID == 0 {
		return nil
	}
	project, err := v.Store.Project(ctx, repo.ProjectID)
	if err != nil {
		return err
	}
	if f := wait(project); f != nil {
		return f
	}
	won, err := v.Store.ClaimProvisioning(ctx, id, v.Clock.Now())
	if err != nil || !won {
		return err
	}
	err = v.provision(ctx, project, repo)
	if err == nil {
		return nil
	}
	f := fault.Of(err)
	if rerr := v.Store.FailProvisioning(context.WithoutCancel(ctx), id, domain.Problem{
		Class: string(f.Class), Reason: string(f.Reason), Message: f.Message, At: v.Clock.Now(), RetryAt: f.RetryAt,
	}); rerr != nil {
		return fmt.Errorf("recording %s: %w", f.Reason, rerr)
	}
	return err
}

// wait says what a repository's provisioning waits for; nil when for nothing.
func wait(p domain.Project) *fault.Error {
	switch {
	case p.Stage == domain.StageDraft:
		return fault.New(fault.Waiting, fault.ReasonNotProvisioned, "waiting for the project to be published: spec.stage is Draft")
	case p.Stage == domain.StageArchived:
		return fault.New(fault.Waiting, fault.ReasonProjectArchived, "the project is archived; nothing is provisioned")
	case p.Suspended:
		return fault.New(fault.Waiting, fault.ReasonSuspended, "waiting: spec.suspend is true on the ProjectSync")
	case !p.Built():
		return fault.New(fault.Waiting, fault.ReasonDistributionMissing, "waiting for the distribution to be built")
	}
	return nil
}

func (v *Provisioner) provision(ctx context.Context, p domain.Project, repo domain.Repository) error {
	client, err := v.GitHub.Client(ctx, p.App, domain.Owner(repo.WantedName))
	if err != nil {
		return err
	}
	gh, err := v.identify(ctx, p, repo, client)
	if err != nil {
		return err
	}
	if err := v.Authorizer.Authorize(ctx, p.App, p.Object.Namespace, domain.UseDownstream, gh.FullName); err != nil {
		return err
	}
	// The id is on the row before anything is pushed (R-PROV-04).
	if err := v.Store.RecordRepositoryID(ctx, repo.ID, domain.RepositoryRef{ID: gh.ID, FullName: gh.FullName}, gh.NodeID); err != nil {
		return err
	}
	branch := p.Branches[0]
	if repo.Adopt {
		return v.Store.FinishProvisioning(ctx, repo.ID, gh.DefaultBranch, true, v.Clock.Now())
	}
	if err := v.fill(ctx, p, gh, client); err != nil {
		return err
	}
	if gh.DefaultBranch != branch {
		// Best effort (R-PROV-04): the repository works without.
		if err := client.SetDefaultBranch(ctx, gh.ID, branch); err == nil {
			gh.DefaultBranch = branch
		}
	}
	return v.Store.FinishProvisioning(ctx, repo.ID, gh.DefaultBranch, false, v.Clock.Now())
}

// identify returns the repository: the one recorded before, the one the list
// names, or one made now. A name already taken is adopted only if its id is
// the one this row recorded (R-PROV-05).
func (v *Provisioner) identify(ctx context.Context, p domain.Project, repo domain.Repository, c Client) (domain.GitHubRepository, error) {
	if repo.Repo.ID != 0 {
		return c.Repository(ctx, repo.Repo.ID)
	}
	if repo.Adopt {
		gh, err := c.RepositoryByName(ctx, repo.WantedName)
		if fault.Is(err, fault.ReasonNotFound) {
			return gh, fault.Wrap(err, fault.Blocked, fault.ReasonRepositoryNotFound,
				"repository %q not found: create it, correct its name in the list, or give the App's installation access to it", repo.WantedName)
		}
		if err == nil && gh.Archived {
			return gh, fault.New(fault.Blocked, fault.ReasonRepositoryArchived,
				"repository %q is archived: unarchive it, or exclude it from the project", gh.FullName)
		}
		return gh, err
	}
	if err := v.mayCreate(ctx, p, repo.WantedName); err != nil {
		return domain.GitHubRepository{}, err
	}
	gh, err := c.CreateRepository(ctx, domain.Owner(repo.WantedName), domain.NewRepository{
		Name: domain.Name(repo.WantedName), Visibility: visibility(p.Provision),
	})
	if fault.Is(err, fault.ReasonRepositoryNameTaken) {
		return gh, fault.Wrap(err, fault.Blocked, fault.ReasonRepositoryNameTaken,
			"repository %q already exists and was not made by this project, so it is left alone: to adopt it, name it in the list as repository; else rename or remove it", repo.WantedName)
	}
	return gh, err
}

// mayCreate judges the grants before a repository is made: the organization
// and the name it is going to have.
func (v *Provisioner) mayCreate(ctx context.Context, p domain.Project, fullName string) error {
	if p.Provision == nil {
		return fault.New(fault.Blocked, fault.ReasonNotProvisioned,
			"nothing says how to make the repository: set spec.repositories.provision, or name an existing repository in the list")
	}
	if err := v.Authorizer.Authorize(ctx, p.App, p.Object.Namespace, domain.UseOrganization, domain.Owner(fullName)); err != nil {
		return err
	}
	return v.Authorizer.Authorize(ctx, p.App, p.Object.Namespace, domain.UseDownstream, fullName)
}

func visibility(p *domain.Provision) string {
	if p.Visibility == "Internal" {
		return "internal"
	}
	return "private"
}

// fill pushes the distribution's branches to a repository of ours that lacks
// them. A branch that is there stays as it is: a replay pushes nothing twice,
// and nobody's work is overwritten.
func (v *Provisioner) fill(ctx context.Context, p domain.Project, gh domain.GitHubRepository, c Client) (err error) {
	var missing []string
	for _, b := range p.Branches {
		_, found, err := c.Ref(ctx, gh.ID, "heads/"+b)
		if err != nil && !fault.Is(err, fault.ReasonRepositoryEmpty) {
			return err
		}
		if !found {
			missing = append(missing, b)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	distClient, err := v.GitHub.Client(ctx, p.App, domain.Owner(p.DistributionRepo.FullName))
	if err != nil {
		return err
	}
	from, err := v.GitHub.Remote(p.App, distClient, p.DistributionRepo.FullName)
	if err != nil {
		return err
	}
	snap, err := v.Git.Snapshot(ctx, p.UID, from, p.Branches)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := snap.Close(); err == nil {
			err = cerr
		}
	}()
	updates := make([]domain.RefUpdate, 0, len(missing))
	for _, b := range missing {
		updates = append(updates, domain.RefUpdate{Ref: "refs/heads/" + b, New: snap.Heads()[b]})
	}
	to, err := v.GitHub.Remote(p.App, c, gh.FullName)
	if err != nil {
		return err
	}
	return snap.Push(ctx, to, updates)
}
