// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/ledger"
	"github.com/sluice-dev/sluice/internal/testenv/pgtest"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Run(m, func(dsn string) error {
		_, _, err := ledger.Migrate(context.Background(), dsn, nil)
		return err
	}))
}

const (
	app      = "acme-app"
	botID    = 41
	sourceID = 1000
	distID   = 1001
	repoID   = 2001 // of recipient r01
	handMade = 2002 // a RepoReconcile without a project
	stranger = 9999
	zeroes   = "0000000000000000000000000000000000000000"
	guid     = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
)

var t0 = time.Date(2026, 10, 5, 9, 0, 0, 0, time.UTC)

var (
	projectRef  = domain.ObjectRef{Kind: domain.KindProjectSync, ObjectKey: domain.ObjectKey{Namespace: "teaching", Name: "lab1"}}
	repoRef     = domain.ObjectRef{Kind: domain.KindRepoReconcile, ObjectKey: domain.ObjectKey{Namespace: "teaching", Name: "lab1-r01"}}
	handMadeRef = domain.ObjectRef{Kind: domain.KindRepoReconcile, ObjectKey: domain.ObjectKey{Namespace: "teaching", Name: "by-hand"}}
)

// counter is an AheadCounter with one answer.
type counter struct {
	answer int
	err    error
	asked  []string
}

func (c *counter) AheadBy(_ context.Context, app string, source domain.RepositoryRef, base, head string) (int, error) {
	c.asked = append(c.asked, app+" "+source.FullName+" "+base+"..."+head)
	return c.answer, c.err
}

// bots knows the App's account, or says why not.
type bots struct{ err error }

func (b *bots) Bot(string) (domain.AppInfo, error) {
	if b.err != nil {
		return domain.AppInfo{}, b.err
	}
	return domain.AppInfo{ID: 7, Slug: "sluice", BotUserID: botID}, nil
}

// world is an Intake on a real database with a project of one repository, built
// and handed out at the shas s1 and h1, and a hand-made repository.
type world struct {
	*WithT
	t       *testing.T
	ctx     context.Context
	ledger  *ledger.Ledger
	clock   *testingclock.FakeClock
	count   *counter
	bots    *bots
	woken   []domain.ObjectRef
	intake  *Intake
	project domain.Project
	repo    domain.Repository
}

func newWorld(t *testing.T) *world { return worldWith(t, nil) }

// worldWith makes a world. wrap, if given, stands between the Intake and the
// ledger.
func worldWith(t *testing.T, wrap func(Store) Store) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, ctx: context.Background(), clock: testingclock.NewFakeClock(t0), count: &counter{answer: 3}, bots: &bots{}}
	var err error
	w.ledger, err = ledger.Open(w.ctx, pgtest.Database(t), ledger.Options{})
	w.ok(err)
	t.Cleanup(w.ledger.Close)
	var store Store = w.ledger
	if wrap != nil {
		store = wrap(store)
	}
	w.intake, err = New(Options{Store: store, NotFound: ledger.ErrNotFound, Ahead: w.count, Bots: w.bots, Clock: w.clock, Logger: logr.Discard(),
		Wake: func(ref domain.ObjectRef) { w.woken = append(w.woken, ref) }})
	w.ok(err)
	w.seed()
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	w.Expect(err).NotTo(HaveOccurred())
}

func spec(name, app string) domain.ProjectSpec {
	return domain.ProjectSpec{
		UID: "uid-" + name, Object: domain.ObjectKey{Namespace: "teaching", Name: name}, App: app, Stage: domain.StagePublished,
		Source: "acme/source", Branches: []string{"main", "hints"}, History: domain.HistorySquash, Distribution: "acme/" + name + "-squashed",
		Organization: "acme", PullRequest: domain.PullRequestSettings{BranchPrefix: "sync/"}, Concurrency: 4,
	}
}

// built records a project that was built.
func (w *world) built(s domain.ProjectSpec, distribution int64) domain.Project {
	w.t.Helper()
	p, err := w.ledger.UpsertProject(w.ctx, s, t0)
	w.ok(err)
	w.ok(w.ledger.RecordSource(w.ctx, p.ID, domain.RepositoryRef{ID: sourceID, FullName: "acme/source"}))
	l, _, err := w.ledger.ClaimLease(w.ctx, p.ID, "me", t0)
	w.ok(err)
	w.ok(w.ledger.ClaimDistribution(w.ctx, l, domain.RepositoryRef{ID: distribution, FullName: s.Distribution}, t0))
	w.ok(w.ledger.RecordBuilt(w.ctx, l, s.Distribution, domain.Heads{"main": "d1", "hints": "e1"}, domain.Heads{"main": "s1", "hints": "h1"}, t0))
	w.ok(w.ledger.ReleaseLease(w.ctx, l))
	return w.reload(p)
}

func (w *world) reload(p domain.Project) domain.Project {
	w.t.Helper()
	p, err := w.ledger.Project(w.ctx, p.ID)
	w.ok(err)
	return p
}

func (w *world) seed() {
	w.t.Helper()
	w.project = w.built(spec("lab1", app), distID)
	list, err := w.ledger.SetRecipients(w.ctx, w.project.ID, []domain.Recipient{{Name: "r01", FullName: "acme/lab1-r01"}}, t0)
	w.ok(err)
	w.repo = list[0]
	w.adopt(w.repo.ID, repoID, "acme/lab1-r01")
	w.ok(w.ledger.SetObject(w.ctx, w.repo.ID, repoRef.ObjectKey))
	mine, err := w.ledger.UpsertHandMade(w.ctx, domain.HandMade{Object: handMadeRef.ObjectKey, ObjectUID: "uid-hand", App: app, Recipient: "x", FullName: "acme/by-hand"}, t0)
	w.ok(err)
	w.adopt(mine.ID, handMade, "acme/by-hand")
}

func (w *world) adopt(id, githubID int64, name string) {
	w.t.Helper()
	w.ok(w.ledger.RecordRepositoryID(w.ctx, id, domain.RepositoryRef{ID: githubID, FullName: name}, "R"))
	w.ok(w.ledger.FinishProvisioning(w.ctx, id, "main", true, t0))
}

// event is one outside change, as a webhook's payload and as a poll would build
// it.
type event struct {
	name    string
	at      time.Duration
	payload map[string]any
	change  domain.Change
}

type person struct {
	id    int64
	login string
	is    domain.Sender
}

var (
	octocat  = person{1, "octocat", domain.SenderPerson}
	theApp   = person{botID, "sluice[bot]", domain.SenderApp}
	workflow = person{41898282, "github-actions[bot]", domain.SenderWorkflow}
	otherBot = person{99, "dependabot[bot]", domain.SenderPerson}
)

func (p person) json() map[string]any { return map[string]any{"id": p.id, "login": p.login} }

// about returns what is the same for all events.
func about(name, action string, by person, repo int64, fullName string, at time.Duration) event {
	return event{
		name: name, at: at,
		payload: map[string]any{"action": action, "sender": by.json(), "repository": map[string]any{"id": repo, "full_name": fullName}},
		change: domain.Change{App: app, Event: name, Action: action, ReceivedAt: t0.Add(at), Repository: domain.RepositoryRef{ID: repo, FullName: fullName},
			Sender: by.is, SenderLogin: by.login},
	}
}

// commitTime is what commits in these tests claim: it decides nothing.
var commitTime = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

func push(by person, repo int64, ref, after string, at time.Duration) event {
	e := about("push", "", by, repo, "acme/x", at)
	delete(e.payload, "action")
	deleted := after == zeroes
	change := &domain.PushChange{Ref: ref, Before: "b0", After: after, Deleted: deleted, Forced: true, Commits: 2}
	e.payload["ref"], e.payload["before"], e.payload["after"] = ref, "b0", after
	e.payload["created"], e.payload["deleted"], e.payload["forced"] = false, deleted, true
	e.payload["commits"], e.payload["head_commit"] = []any{map[string]any{"id": "1"}, map[string]any{"id": "2"}}, nil
	if !deleted {
		e.payload["head_commit"] = map[string]any{"timestamp": "2001-01-01T02:00:00+02:00"}
		change.HeadCommitAt = commitTime
	}
	if len(ref) > len(branchPrefix) && ref[:len(branchPrefix)] == branchPrefix {
		change.Branch = ref[len(branchPrefix):]
	}
	e.change.Push = change
	return e
}

// pull is a pull request; edit changes both forms.
type pull struct {
	number     int
	state      string
	merged     bool
	head, base string
	headRepo   int64
	author     person
	repo       int64
	at         time.Duration
	want       domain.PullRequestState
	forkGone   bool
}

func syncPull(number int, at time.Duration, edit ...func(*pull)) event {
	p := pull{number: number, state: "open", head: "sync/main", base: "main", headRepo: repoID, author: theApp, repo: repoID, at: at, want: domain.PullRequestOpen}
	for _, f := range edit {
		f(&p)
	}
	return p.event()
}

func closed(p *pull) { p.state, p.want = "closed", domain.PullRequestClosed }
func merged(p *pull) { p.state, p.merged, p.want = "closed", true, domain.PullRequestMerged }

func (p pull) event() event {
	e := about("pull_request", "edited", octocat, p.repo, "acme/lab1-r01", p.at)
	head := map[string]any{"ref": p.head, "sha": "d2", "repo": map[string]any{"id": p.headRepo}}
	change := &domain.PullRequestChange{Number: p.number, State: p.want, HeadRef: p.head, HeadSHA: "d2", BaseRef: p.base, HeadRepositoryID: p.headRepo,
		AuthorID: p.author.id, AuthorLogin: p.author.login, URL: "https://github.example/pr"}
	if p.forkGone {
		head["repo"], change.HeadRepositoryID = nil, 0
	}
	e.payload["pull_request"] = map[string]any{"number": p.number, "state": p.state, "merged": p.merged, "html_url": "https://github.example/pr",
		"user": p.author.json(), "head": head, "base": map[string]any{"ref": p.base}}
	e.change.PullRequest = change
	return e
}

func renamed(repo int64, old, now string, at time.Duration) event {
	e := about("repository", "renamed", octocat, repo, now, at)
	if old != "" {
		e.payload["changes"] = map[string]any{"repository": map[string]any{"name": map[string]any{"from": old}}}
	}
	e.change.Repo = &domain.RepositoryChange{Action: "renamed", OldName: old, NewFullName: now}
	return e
}

func repositoryEvent(action string, repo int64, at time.Duration) event {
	e := about("repository", action, octocat, repo, "acme/moved", at)
	e.change.Repo = &domain.RepositoryChange{Action: action, NewFullName: "acme/moved"}
	return e
}

// delivery is the event as the receiver stores it.
func (e event) delivery() domain.Delivery {
	body, err := json.Marshal(e.payload)
	if err != nil {
		panic(err) // plain values
	}
	action, _ := e.payload["action"].(string)
	return domain.Delivery{App: e.change.App, GUID: guid, Event: e.name, Action: action, Payload: body, ReceivedAt: t0.Add(e.at)}
}

// byWebhook and byPoll are the two ways in.
func (w *world) byWebhook(e event) []domain.ObjectRef {
	w.t.Helper()
	changes, err := Normalise(e.delivery(), BotIdentity{UserID: botID, Slug: "sluice"})
	w.ok(err)
	w.Expect(changes).To(HaveLen(1))
	want := e.change
	want.Source, want.DeliveryID = domain.FromWebhook, guid
	w.Expect(changes[0]).To(Equal(want), "a webhook and a poll say the same")
	refs, err := w.intake.Apply(w.ctx, changes[0])
	w.ok(err)
	return refs
}

func (w *world) byPoll(e event) []domain.ObjectRef {
	w.t.Helper()
	c := e.change
	c.Source = domain.FromPoll
	refs, err := w.intake.Apply(w.ctx, c)
	w.ok(err)
	return refs
}

// facts is all that the update path writes, but for receipts.
type facts struct {
	Ahead             map[string]domain.AheadBranch
	AheadSHA          string
	PushedAt          *time.Time
	Source, Dist      string
	Name, ByHandName  string
	LastSHA           string
	LastAt, DeletedAt *time.Time
	ByHandLastSHA     string
	Main, Hints       domain.PullRequest
	Grader            bool // of the commit c1
	Audit             []string
}

func (w *world) facts() facts {
	w.t.Helper()
	p := w.reload(w.project)
	r, err := w.ledger.Repository(w.ctx, w.repo.ID)
	w.ok(err)
	h, err := w.ledger.RepositoryByObject(w.ctx, handMadeRef.ObjectKey)
	w.ok(err)
	f := facts{Ahead: p.Ahead, AheadSHA: p.AheadSHA, PushedAt: p.PushedAt, Source: p.SourceRepo.FullName, Dist: p.DistributionRepo.FullName,
		Name: r.Repo.FullName, ByHandName: h.Repo.FullName, LastSHA: r.LastCommitSHA, LastAt: r.LastCommitAt, DeletedAt: r.DeletedAt, ByHandLastSHA: h.LastCommitSHA}
	f.Main, _, err = w.ledger.PullRequest(w.ctx, r.ID, "main")
	w.ok(err)
	f.Hints, _, err = w.ledger.PullRequest(w.ctx, r.ID, "hints")
	w.ok(err)
	f.Grader, err = w.ledger.IsBotCommit(w.ctx, repoID, "c1")
	w.ok(err)
	entries, err := w.ledger.AuditEntries(w.ctx, p.ID)
	w.ok(err)
	for _, e := range entries {
		f.Audit = append(f.Audit, e.Action)
	}
	return f
}

var errGitHub = errors.New("GitHub is away")
