// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intake is the one update path (R-CORE-02): what webhooks and polls
// say about GitHub becomes recorded facts here, and the keys of the objects to
// look at again. It is the only writer of observed state. Guards against stale
// and repeated events sit in the ledger's WHERE clauses and UNIQUE constraints
// (R-HOOK-08), so that applying a change twice is applying it once.
package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
)

// Store is the ledger as the update path needs it. Times given to it are the
// change's receipt, so that a fact is the same whenever it is handled.
type Store interface {
	// ProjectsBySource returns the projects that hand a source out, by its
	// GitHub id, released ones left out.
	ProjectsBySource(ctx context.Context, githubID int64) ([]domain.Project, error)
	// RepositoryByGitHubID returns a downstream repository and its project (a
	// zero one for a hand-made repository without), or Options.NotFound.
	RepositoryByGitHubID(ctx context.Context, githubID int64) (domain.Repository, domain.Project, error)
	// ObjectsFor returns the objects of an App that a repository concerns.
	ObjectsFor(ctx context.Context, app string, githubID int64) ([]domain.ObjectRef, error)

	// MarkAhead marks a source ahead (R-AHEAD-01); an older receipt never
	// undoes a newer one.
	MarkAhead(ctx context.Context, projectID int64, branch, sha string, pushedAt time.Time, commits *int) (changed bool, err error)
	// RecordPush records a person's last commit; at is the commit's time.
	RecordPush(ctx context.Context, repositoryID int64, sha string, at, receivedAt time.Time) (changed bool, err error)
	// RecordGraderCommit records a workflow's own commit.
	RecordGraderCommit(ctx context.Context, repositoryID int64, sha string, now time.Time) error
	// ApplyPullRequest applies a fact about a sync's pull request (R-PR-07).
	ApplyPullRequest(ctx context.Context, pr domain.PullRequest) (changed bool, err error)
	// RecordRename follows a rename (R-EVT-07).
	RecordRename(ctx context.Context, githubID int64, oldName, newFullName string) ([]domain.ObjectRef, error)
	// MarkDeleted marks a downstream repository gone, once (R-EVT-08).
	MarkDeleted(ctx context.Context, githubID int64, via string, now time.Time) ([]domain.ObjectRef, error)
}

// AheadCounter asks GitHub how far a push is past what was handed out.
type AheadCounter interface {
	// AheadBy returns the "ahead by" of base...head in a source, in commits.
	AheadBy(ctx context.Context, app string, source domain.RepositoryRef, base, head string) (int, error)
}

// Bots knows who the Apps are on GitHub.
type Bots interface {
	// Bot returns an App as GitHub knows it, by the name of its GitHubApp, or
	// a fault when that is not known yet.
	Bot(app string) (domain.AppInfo, error)
}

// Options of an Intake. All of them are required but Logger.
type Options struct {
	Store Store
	// NotFound is the Store's error for a row that does not exist.
	NotFound error
	Ahead    AheadCounter
	Bots     Bots
	Clock    clock.Clock
	Logger   logr.Logger
	// Wake makes an object's controller look at it again; it never blocks.
	Wake func(domain.ObjectRef)
}

// Intake applies changes.
type Intake struct {
	store    Store
	notFound error
	ahead    AheadCounter
	bots     Bots
	clock    clock.Clock
	log      logr.Logger
	wake     func(domain.ObjectRef)

	// last remembers Apps that were known once: an App that is suspended or
	// not ready still has the same account, and no event waits for it.
	mu   sync.Mutex
	last map[string]BotIdentity
}

// New returns an Intake; an error names the option that is missing.
func New(o Options) (*Intake, error) {
	for name, missing := range map[string]bool{
		"Store": o.Store == nil, "NotFound": o.NotFound == nil, "Ahead": o.Ahead == nil, "Bots": o.Bots == nil, "Clock": o.Clock == nil, "Wake": o.Wake == nil,
	} {
		if missing {
			return nil, fmt.Errorf("intake: option %s is required", name)
		}
	}
	return &Intake{
		store: o.Store, notFound: o.NotFound, ahead: o.Ahead, bots: o.Bots, clock: o.Clock, log: o.Logger, wake: o.Wake,
		last: map[string]BotIdentity{},
	}, nil
}

// bot returns an App's account.
func (i *Intake) bot(app string) (BotIdentity, error) {
	info, err := i.bots.Bot(app)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err == nil {
		i.last[app] = BotIdentity{UserID: info.BotUserID, Slug: info.Slug}
	}
	if known, ok := i.last[app]; ok {
		return known, nil
	}
	return BotIdentity{}, err
}

// Apply records what a change says and returns the objects to look at again,
// also those of facts recorded before an error. A change about a repository
// that nobody knows, or that another App's project holds, changes nothing
// (R-HOOK-09). Applying it again changes nothing either.
func (i *Intake) Apply(ctx context.Context, c domain.Change) ([]domain.ObjectRef, error) {
	switch {
	case c.Push != nil:
		return i.applyPush(ctx, c)
	case c.PullRequest != nil:
		return i.applyPullRequest(ctx, c)
	case c.Repo != nil:
		return i.applyRepository(ctx, c)
	}
	return nil, nil
}

// downstream returns a downstream repository that the App's own objects hold.
func (i *Intake) downstream(ctx context.Context, app string, githubID int64) (r domain.Repository, p domain.Project, found bool, err error) {
	r, p, err = i.store.RepositoryByGitHubID(ctx, githubID)
	switch {
	case errors.Is(err, i.notFound):
		return r, p, false, nil
	case err != nil:
		return r, p, false, err
	case p.ID != 0:
		return r, p, p.App == app, nil
	}
	refs, err := i.store.ObjectsFor(ctx, app, githubID)
	held := slices.ContainsFunc(refs, func(ref domain.ObjectRef) bool { return ref.Kind == domain.KindRepoReconcile })
	return r, p, held, err
}

// objects returns the RepoReconcile that shows a repository, if one does.
func objects(r domain.Repository) []domain.ObjectRef {
	if r.Object.Name == "" {
		return nil
	}
	return []domain.ObjectRef{{Kind: domain.KindRepoReconcile, ObjectKey: r.Object}}
}

func projectObject(p domain.Project) domain.ObjectRef {
	return domain.ObjectRef{Kind: domain.KindProjectSync, ObjectKey: p.Object}
}

// applyPush records a push for each part that the repository plays.
func (i *Intake) applyPush(ctx context.Context, c domain.Change) ([]domain.ObjectRef, error) {
	if c.Push.Branch == "" || c.Push.Deleted || domain.ZeroSHA(c.Push.After) {
		return nil, nil
	}
	refs, err := i.applySourcePush(ctx, c)
	if err != nil {
		return refs, err
	}
	more, err := i.applyDownstreamPush(ctx, c)
	return append(refs, more...), err
}

// applySourcePush marks the source's projects ahead (R-EVT-02).
func (i *Intake) applySourcePush(ctx context.Context, c domain.Change) ([]domain.ObjectRef, error) {
	projects, err := i.store.ProjectsBySource(ctx, c.Repository.ID)
	if err != nil {
		return nil, err
	}
	var refs []domain.ObjectRef
	counting, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	count := i.counter(counting, c)
	for _, p := range projects {
		if p.App != c.App || !domain.LeavesAhead(p, *c.Push) {
			continue
		}
		changed, err := i.store.MarkAhead(ctx, p.ID, c.Push.Branch, c.Push.After, c.ReceivedAt, count(p))
		if err != nil {
			return refs, err
		}
		if changed {
			refs = append(refs, projectObject(p))
		}
	}
	return refs, nil
}

// countTimeout bounds all counts for one push: the mark matters more.
const countTimeout = 10 * time.Second

// counter returns a function that counts the commits of a push past what a
// project handed out: one call for each handed-out sha, no retry, nil when it
// cannot be told (R-AHEAD-02).
func (i *Intake) counter(ctx context.Context, c domain.Change) func(domain.Project) *int {
	known := map[string]*int{}
	return func(p domain.Project) *int {
		base := p.SourceHeads[c.Push.Branch]
		if base == "" {
			return nil
		}
		if n, ok := known[base]; ok {
			return n
		}
		known[base] = nil
		n, err := i.ahead.AheadBy(ctx, c.App, p.SourceRepo, base, c.Push.After)
		if err != nil {
			i.log.Info("Counting the commits of a source push failed; the project is marked ahead without a number",
				"delivery", c.DeliveryID, "namespace", p.Object.Namespace, "project", p.Object.Name, "detail", message(err))
			return nil
		}
		known[base] = &n
		return &n
	}
}

// applyDownstreamPush records a person's last commit or a workflow's own one
// (R-EVT-01). The App's own pushes were recorded before they were made.
func (i *Intake) applyDownstreamPush(ctx context.Context, c domain.Change) ([]domain.ObjectRef, error) {
	r, _, found, err := i.downstream(ctx, c.App, c.Repository.ID)
	if err != nil || !found || r.DeletedAt != nil {
		return nil, err
	}
	switch c.Sender {
	case domain.SenderWorkflow:
		return nil, i.store.RecordGraderCommit(ctx, r.ID, c.Push.After, c.ReceivedAt)
	case domain.SenderPerson:
		at := c.Push.HeadCommitAt
		if at.IsZero() {
			at = c.ReceivedAt
		}
		changed, err := i.store.RecordPush(ctx, r.ID, c.Push.After, at, c.ReceivedAt)
		if err != nil || !changed {
			return nil, err
		}
		return objects(r), nil
	}
	return nil, nil
}

// applyPullRequest records the state of a sync's pull request (R-PR-06): one of
// a repository that is known, from the sync branch of a handed-out branch onto
// that branch, by the App.
func (i *Intake) applyPullRequest(ctx context.Context, c domain.Change) ([]domain.ObjectRef, error) {
	r, p, found, err := i.downstream(ctx, c.App, c.Repository.ID)
	if err != nil || !found || r.DeletedAt != nil {
		return nil, err
	}
	bot, err := i.bot(c.App)
	if err != nil {
		return nil, err
	}
	pr := *c.PullRequest
	if !ofSync(pr, p, r.Repo.ID) || bot.UserID == 0 || pr.AuthorID != bot.UserID {
		return nil, nil
	}
	changed, err := i.store.ApplyPullRequest(ctx, domain.PullRequest{
		RepositoryID: r.ID, Branch: pr.BaseRef, Number: pr.Number, State: pr.State, URL: pr.URL, UpdatedAt: c.ReceivedAt,
	})
	if err != nil || !changed {
		return nil, err
	}
	return objects(r), nil
}

// ofSync reports whether a pull request goes from a project's sync branch onto
// its branch, within the repository itself: a fork may name a branch likewise.
func ofSync(pr domain.PullRequestChange, p domain.Project, githubID int64) bool {
	return p.ID != 0 && p.HandsOut(pr.BaseRef) && pr.HeadRef == p.PullRequest.SyncBranch(pr.BaseRef) && pr.HeadRepositoryID == githubID
}

// Ways a deletion was found out, as the audit log says them.
const (
	viaWebhook   = "webhook"
	viaReconcile = "reconcile"
)

func via(s domain.EventSource) string {
	if s == domain.FromPoll {
		return viaReconcile
	}
	return viaWebhook
}

// applyRepository follows a rename (R-EVT-07) and marks a downstream repository
// deleted (R-EVT-08). Other actions show up by id in a poll (R-EVT-09).
func (i *Intake) applyRepository(ctx context.Context, c domain.Change) ([]domain.ObjectRef, error) {
	switch c.Repo.Action {
	case "renamed":
		if c.Repo.OldName == "" || c.Repo.NewFullName == "" {
			return nil, nil
		}
		return i.applyRename(ctx, c)
	case "deleted":
		return i.applyDeletion(ctx, c)
	}
	return nil, nil
}

func (i *Intake) applyRename(ctx context.Context, c domain.Change) ([]domain.ObjectRef, error) {
	_, p, found, err := i.downstream(ctx, c.App, c.Repository.ID)
	if err != nil {
		return nil, err
	}
	if !found {
		held, err := i.store.ObjectsFor(ctx, c.App, c.Repository.ID)
		if err != nil || len(held) == 0 {
			return nil, err
		}
	}
	refs, err := i.store.RecordRename(ctx, c.Repository.ID, c.Repo.OldName, c.Repo.NewFullName)
	if len(refs) > 0 && p.ID != 0 {
		refs = append(refs, projectObject(p)) // it may show the name
	}
	return refs, err
}

func (i *Intake) applyDeletion(ctx context.Context, c domain.Change) ([]domain.ObjectRef, error) {
	r, p, found, err := i.downstream(ctx, c.App, c.Repository.ID)
	if err != nil || !found || r.DeletedAt != nil {
		return nil, err
	}
	refs, err := i.store.MarkDeleted(ctx, c.Repository.ID, via(c.Source), c.ReceivedAt)
	if err == nil && p.ID != 0 {
		refs = append(refs, projectObject(p)) // it counts its repositories
	}
	return refs, err
}
