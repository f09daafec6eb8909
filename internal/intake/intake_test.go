// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/ledger"
)

func ptr[T any](v T) *T { return &v }

// ahead is the mark of one branch.
func ahead(sha string, at time.Duration, commits *int) domain.AheadBranch {
	return domain.AheadBranch{SHA: sha, PushedAt: t0.Add(at), Commits: commits}
}

// cases say what is left in the database after events. Each is played twice,
// once as webhooks and once as polls (R-CORE-02).
var cases = map[string]struct {
	prepare func(*world)
	events  []event
	// want changes the facts from what they were before.
	want func(w *world, f *facts)
	// woken are the objects to look at again after the last event.
	woken []domain.ObjectRef
}{
	"R-AHEAD-01 a push to the source marks the branch, with a count": {
		events: []event{push(octocat, sourceID, "refs/heads/main", "s2", time.Minute)},
		want: func(_ *world, f *facts) {
			f.AheadSHA, f.PushedAt, f.Ahead = "s2", ptr(t0.Add(time.Minute)), map[string]domain.AheadBranch{"main": ahead("s2", time.Minute, ptr(3))}
		},
		woken: []domain.ObjectRef{projectRef},
	},
	"R-AHEAD-01 branches are merged, the App's own pushes count too": {
		events: []event{push(octocat, sourceID, "refs/heads/main", "s2", time.Minute), push(theApp, sourceID, "refs/heads/hints", "h2", time.Hour)},
		want: func(_ *world, f *facts) {
			f.AheadSHA, f.PushedAt = "h2", ptr(t0.Add(time.Hour))
			f.Ahead = map[string]domain.AheadBranch{"main": ahead("s2", time.Minute, ptr(3)), "hints": ahead("h2", time.Hour, ptr(3))}
		},
		woken: []domain.ObjectRef{projectRef},
	},
	"R-AHEAD-01 an older receipt undoes nothing": {
		events: []event{push(octocat, sourceID, "refs/heads/main", "s3", time.Hour), push(octocat, sourceID, "refs/heads/main", "s2", time.Minute)},
		want: func(_ *world, f *facts) {
			f.AheadSHA, f.PushedAt, f.Ahead = "s3", ptr(t0.Add(time.Hour)), map[string]domain.AheadBranch{"main": ahead("s3", time.Hour, ptr(3))}
		},
	},
	"R-AHEAD-02 the mark is written when GitHub cannot count": {
		prepare: func(w *world) { w.count.err = errGitHub },
		events:  []event{push(octocat, sourceID, "refs/heads/main", "s2", time.Minute)},
		want: func(_ *world, f *facts) {
			f.AheadSHA, f.PushedAt, f.Ahead = "s2", ptr(t0.Add(time.Minute)), map[string]domain.AheadBranch{"main": ahead("s2", time.Minute, nil)}
		},
		woken: []domain.ObjectRef{projectRef},
	},
	"R-AHEAD-03 a head that was handed out": {events: []event{push(octocat, sourceID, "refs/heads/main", "s1", time.Minute)}},
	"R-AHEAD-03 a branch not handed out":    {events: []event{push(octocat, sourceID, "refs/heads/draft", "s2", time.Minute)}},
	"R-AHEAD-03 a tag":                      {events: []event{push(octocat, sourceID, "refs/tags/main", "s2", time.Minute)}},
	"R-AHEAD-03 a deletion":                 {events: []event{push(octocat, sourceID, "refs/heads/main", zeroes, time.Minute)}},
	"R-AHEAD-03 an archived project": {
		prepare: func(w *world) {
			s := spec("lab1", app)
			s.Stage = domain.StageArchived
			_, err := w.ledger.UpsertProject(w.ctx, s, t0)
			w.ok(err)
		},
		events: []event{push(octocat, sourceID, "refs/heads/main", "s2", time.Minute)},
	},
	"R-HOOK-09 another App's word about the source": {
		events: []event{by("other-app", push(octocat, sourceID, "refs/heads/main", "s2", time.Minute))},
	},

	"R-EVT-01 a person's push is the last commit, with the commit's time": {
		events: []event{push(octocat, repoID, "refs/heads/feature", "c1", time.Minute)},
		want:   func(_ *world, f *facts) { f.LastSHA, f.LastAt = "c1", ptr(commitTime) },
		woken:  []domain.ObjectRef{repoRef},
	},
	"R-EVT-01 another bot is a person": {
		events: []event{push(otherBot, repoID, "refs/heads/main", "c1", time.Minute)},
		want:   func(_ *world, f *facts) { f.LastSHA, f.LastAt = "c1", ptr(commitTime) },
		woken:  []domain.ObjectRef{repoRef},
	},
	"R-EVT-01 the receipt stands in for a commit without a time": {
		events: []event{withoutCommitTime(push(octocat, repoID, "refs/heads/main", "c1", time.Minute))},
		want:   func(_ *world, f *facts) { f.LastSHA, f.LastAt = "c1", ptr(t0.Add(time.Minute)) },
		woken:  []domain.ObjectRef{repoRef},
	},
	"R-EVT-01 an older receipt undoes nothing": {
		events: []event{push(octocat, repoID, "refs/heads/main", "c2", time.Hour), push(octocat, repoID, "refs/heads/main", "c1", time.Minute)},
		want:   func(_ *world, f *facts) { f.LastSHA, f.LastAt = "c2", ptr(commitTime) },
	},
	"R-EVT-01 a workflow's push is a grader commit and no last commit": {
		events: []event{push(octocat, repoID, "refs/heads/main", "c0", 0), push(workflow, repoID, "refs/heads/main", "c1", time.Minute)},
		want:   func(_ *world, f *facts) { f.LastSHA, f.LastAt, f.Grader = "c0", ptr(commitTime), true },
	},
	"R-EVT-01 the App's push is nothing": {events: []event{push(theApp, repoID, "refs/heads/sync/main", "c1", time.Minute)}},
	"R-EVT-01 a deletion is nothing":     {events: []event{push(octocat, repoID, "refs/heads/main", zeroes, time.Minute)}},
	"R-EVT-01 a tag is nothing":          {events: []event{push(octocat, repoID, "refs/tags/v1", "c1", time.Minute)}},
	"R-EVT-01 a hand-made repository": {
		events: []event{push(octocat, handMade, "refs/heads/main", "c1", time.Minute)},
		want:   func(_ *world, f *facts) { f.ByHandLastSHA = "c1" },
		woken:  []domain.ObjectRef{handMadeRef},
	},
	"R-HOOK-09 another App's word about a repository":           {events: []event{by("other-app", push(octocat, repoID, "refs/heads/main", "c1", time.Minute))}},
	"R-HOOK-09 another App's word about a hand-made repository": {events: []event{by("other-app", push(octocat, handMade, "refs/heads/main", "c1", time.Minute))}},
	"R-HOOK-09 a push to a repository nobody knows":             {events: []event{push(octocat, stranger, "refs/heads/main", "c1", time.Minute)}},
	"R-EVT-13 a push to a repository marked deleted": {
		prepare: markDeleted,
		events:  []event{push(octocat, repoID, "refs/heads/main", "c1", time.Minute), push(workflow, repoID, "refs/heads/main", "c1", time.Minute)},
	},

	"R-PR-06 opened": {
		events: []event{syncPull(5, time.Minute)},
		want:   func(w *world, f *facts) { f.Main = w.pr("main", 5, domain.PullRequestOpen, time.Minute) },
		woken:  []domain.ObjectRef{repoRef},
	},
	"R-PR-06 merged": {
		events: []event{syncPull(5, time.Minute), syncPull(5, time.Hour, merged)},
		want:   func(w *world, f *facts) { f.Main = w.pr("main", 5, domain.PullRequestMerged, time.Hour) },
		woken:  []domain.ObjectRef{repoRef},
	},
	"R-PR-06 closed": {
		events: []event{syncPull(5, time.Minute), syncPull(5, time.Hour, closed)},
		want:   func(w *world, f *facts) { f.Main = w.pr("main", 5, domain.PullRequestClosed, time.Hour) },
		woken:  []domain.ObjectRef{repoRef},
	},
	"R-PR-06 one row for each branch": {
		events: []event{syncPull(5, time.Minute), syncPull(6, time.Hour, func(p *pull) { p.head, p.base = "sync/hints", "hints" })},
		want: func(w *world, f *facts) {
			f.Main, f.Hints = w.pr("main", 5, domain.PullRequestOpen, time.Minute), w.pr("hints", 6, domain.PullRequestOpen, time.Hour)
		},
		woken: []domain.ObjectRef{repoRef},
	},
	"R-PR-06 a person's pull request from the sync branch":   {events: []event{syncPull(5, 0, func(p *pull) { p.author = octocat })}},
	"R-PR-06 a bot of the App's name with another account":   {events: []event{syncPull(5, 0, func(p *pull) { p.author = person{77, "sluice[bot]", ""} })}},
	"R-PR-06 from another branch":                            {events: []event{syncPull(5, 0, func(p *pull) { p.head = "feature" })}},
	"R-PR-06 onto another branch than the sync branch's":     {events: []event{syncPull(5, 0, func(p *pull) { p.base = "hints" })}},
	"R-PR-06 onto a branch that is not handed out":           {events: []event{syncPull(5, 0, func(p *pull) { p.head, p.base = "sync/draft", "draft" })}},
	"R-PR-06 from a fork's branch of that name":              {events: []event{syncPull(5, 0, func(p *pull) { p.headRepo = stranger })}},
	"R-PR-06 from a fork that is gone":                       {events: []event{syncPull(5, 0, func(p *pull) { p.forkGone = true })}},
	"R-PR-06 a hand-made repository has no sync":             {events: []event{syncPull(5, 0, func(p *pull) { p.repo, p.headRepo = handMade, handMade })}},
	"R-HOOK-09 a pull request of a repository nobody knows":  {events: []event{syncPull(5, 0, func(p *pull) { p.repo, p.headRepo = stranger, stranger })}},
	"R-HOOK-09 another App's word about a pull request":      {events: []event{by("other-app", syncPull(5, 0))}},
	"R-EVT-13 a pull request of a repository marked deleted": {prepare: markDeleted, events: []event{syncPull(5, time.Minute)}},
	"R-PR-07 a lower number changes nothing": {
		events: []event{syncPull(5, time.Minute), syncPull(4, time.Hour, closed)},
		want:   func(w *world, f *facts) { f.Main = w.pr("main", 5, domain.PullRequestOpen, time.Minute) },
	},
	"R-PR-07 a higher number takes the row": {
		events: []event{syncPull(5, time.Minute, closed), syncPull(9, time.Hour)},
		want:   func(w *world, f *facts) { f.Main = w.pr("main", 9, domain.PullRequestOpen, time.Hour) },
		woken:  []domain.ObjectRef{repoRef},
	},
	"R-PR-07 for the same number an older receipt undoes nothing": {
		events: []event{syncPull(5, time.Hour, merged), syncPull(5, time.Minute)},
		want:   func(w *world, f *facts) { f.Main = w.pr("main", 5, domain.PullRequestMerged, time.Hour) },
	},

	"R-EVT-07 a downstream repository is renamed": {
		events: []event{renamed(repoID, "lab1-r01", "acme/lab1-mona", time.Minute)},
		want:   func(_ *world, f *facts) { f.Name = "acme/lab1-mona" },
		woken:  []domain.ObjectRef{repoRef, projectRef},
	},
	"R-EVT-07 a hand-made repository is renamed": {
		events: []event{renamed(handMade, "by-hand", "acme/by-foot", time.Minute)},
		want:   func(_ *world, f *facts) { f.ByHandName = "acme/by-foot" },
		woken:  []domain.ObjectRef{handMadeRef},
	},
	"R-EVT-07 the source is renamed": {
		events: []event{renamed(sourceID, "source", "acme/spring", time.Minute)},
		want:   func(_ *world, f *facts) { f.Source = "acme/spring" },
		woken:  []domain.ObjectRef{projectRef},
	},
	"R-EVT-07 the distribution is renamed": {
		events: []event{renamed(distID, "lab1-squashed", "acme/lab1-out", time.Minute)},
		want:   func(_ *world, f *facts) { f.Dist = "acme/lab1-out" },
		woken:  []domain.ObjectRef{projectRef},
	},
	"R-EVT-07 the name part decides, not the owner": {
		events: []event{renamed(repoID, "lab1-r01", "other-owner/lab1-mona", time.Minute)},
		want:   func(_ *world, f *facts) { f.Name = "other-owner/lab1-mona" },
		woken:  []domain.ObjectRef{repoRef, projectRef},
	},
	"R-EVT-07 without the old name nothing":               {events: []event{renamed(repoID, "", "acme/lab1-mona", time.Minute)}},
	"R-EVT-07 a replay under an old name changes nothing": {events: []event{renamed(repoID, "lab1-older", "acme/lab1-mona", time.Minute)}},
	"R-HOOK-09 another App's word about a rename":         {events: []event{by("other-app", renamed(repoID, "lab1-r01", "acme/lab1-mona", 0)), by("other-app", renamed(sourceID, "source", "acme/spring", 0))}},
	"R-HOOK-09 a rename of a repository nobody knows":     {events: []event{renamed(stranger, "lab1-r01", "acme/lab1-mona", time.Minute)}},

	"R-EVT-08 a downstream repository is deleted, once": {
		events: []event{repositoryEvent("deleted", repoID, time.Minute), repositoryEvent("deleted", repoID, time.Hour)},
		want: func(_ *world, f *facts) {
			f.DeletedAt, f.Audit = ptr(t0.Add(time.Minute)), append(f.Audit, "project_repo.deleted")
		},
	},
	"R-EVT-08 both objects are looked at again": {
		events: []event{repositoryEvent("deleted", repoID, time.Minute)},
		want: func(_ *world, f *facts) {
			f.DeletedAt, f.Audit = ptr(t0.Add(time.Minute)), append(f.Audit, "project_repo.deleted")
		},
		woken: []domain.ObjectRef{repoRef, projectRef},
	},
	"R-EVT-08 source and distribution are left to the staff": {events: []event{repositoryEvent("deleted", sourceID, 0), repositoryEvent("deleted", distID, 0)}},
	"R-HOOK-09 another App's word about a deletion":          {events: []event{by("other-app", repositoryEvent("deleted", repoID, 0))}},
	"R-HOOK-09 a deletion of a repository nobody knows":      {events: []event{repositoryEvent("deleted", stranger, 0)}},
	"R-EVT-09 other actions are ignored": {events: []event{
		repositoryEvent("transferred", repoID, 0), repositoryEvent("archived", repoID, 0), repositoryEvent("edited", repoID, 0)}},
}

// by is the same event from another App's webhook.
func by(app string, e event) event {
	e.change.App = app
	return e
}

func withoutCommitTime(e event) event {
	e.payload["head_commit"] = nil
	push := *e.change.Push
	push.HeadCommitAt = time.Time{}
	e.change.Push = &push
	return e
}

func markDeleted(w *world) {
	_, err := w.ledger.MarkDeleted(w.ctx, repoID, "test", t0)
	w.ok(err)
}

func (w *world) pr(branch string, number int, state domain.PullRequestState, at time.Duration) domain.PullRequest {
	return domain.PullRequest{RepositoryID: w.repo.ID, Branch: branch, Number: number, State: state, URL: "https://github.example/pr", UpdatedAt: t0.Add(at)}
}

func TestApply_R_CORE_02_WebhooksAndPollsEndInTheSameRows(t *testing.T) {
	ways := map[string]func(*world, event) []domain.ObjectRef{
		"webhook": func(w *world, e event) []domain.ObjectRef { return w.byWebhook(e) },
		"poll":    func(w *world, e event) []domain.ObjectRef { return w.byPoll(e) },
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			left := map[string]facts{}
			for way, apply := range ways {
				w := newWorld(t)
				if c.prepare != nil {
					c.prepare(w)
				}
				want := w.facts()
				if c.want != nil {
					c.want(w, &want)
				}
				var woken []domain.ObjectRef
				for _, e := range c.events {
					woken = apply(w, e)
				}
				left[way] = w.facts()
				w.Expect(left[way]).To(Equal(want), way)
				w.Expect(woken).To(ConsistOf(asAny(c.woken)...), way)

				for _, e := range c.events { // R-CORE-03
					apply(w, e)
				}
				w.Expect(w.facts()).To(Equal(want), "%s: a replay changes nothing", way)
			}
			NewWithT(t).Expect(left["poll"]).To(Equal(left["webhook"]))
		})
	}
}

func asAny[T any](list []T) []any {
	var all []any
	for _, one := range list {
		all = append(all, one)
	}
	return all
}

func TestApply_R_EVT_08_TheAuditSaysHowItWasFoundOut(t *testing.T) {
	for way, via := range map[string]string{"webhook": "webhook", "poll": "reconcile"} {
		w := newWorld(t)
		if way == "poll" {
			w.byPoll(repositoryEvent("deleted", repoID, 0))
		} else {
			w.byWebhook(repositoryEvent("deleted", repoID, 0))
		}
		entries, err := w.ledger.AuditEntries(w.ctx, w.project.ID)
		w.ok(err)
		w.Expect(entries[len(entries)-1].Payload).To(HaveKeyWithValue("via", via))
	}
}

func TestApply_R_AHEAD_02_OneCallForEachHandedOutSha(t *testing.T) {
	w := newWorld(t)
	w.built(spec("lab2", app), 3001)
	w.built(spec("lab3", "other-app"), 3002)
	draft := spec("lab4", app)
	draft.Stage = domain.StageDraft
	p, err := w.ledger.UpsertProject(w.ctx, draft, t0)
	w.ok(err)
	w.ok(w.ledger.RecordSource(w.ctx, p.ID, domain.RepositoryRef{ID: sourceID, FullName: "acme/source"}))

	refs := w.byWebhook(push(octocat, sourceID, "refs/heads/main", "s2", time.Minute))

	w.Expect(w.count.asked).To(Equal([]string{"acme-app acme/source s1...s2"}))
	w.Expect(refs).To(HaveLen(3), "lab1, lab2 and the draft lab4; lab3 waits for its own App's word")
	p = w.reload(p)
	w.Expect(p.Ahead).To(Equal(map[string]domain.AheadBranch{"main": ahead("s2", time.Minute, nil)}), "no handed-out sha, no number")
}

func TestApply_R_AHEAD_02_AFailedCountIsNotTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.count.err = fault.New(fault.RateLimited, fault.ReasonRateLimited, "wait").At(t0.Add(time.Hour))
	w.built(spec("lab2", app), 3001)
	refs := w.byWebhook(push(octocat, sourceID, "refs/heads/main", "s2", time.Minute))
	w.Expect(w.count.asked).To(HaveLen(1))
	w.Expect(refs).To(HaveLen(2))
}

// failing is a Store whose downstream look-up fails.
type failing struct{ Store }

func (failing) RepositoryByGitHubID(context.Context, int64) (domain.Repository, domain.Project, error) {
	return domain.Repository{}, domain.Project{}, errGitHub
}

func TestApply_WhatWasRecordedBeforeAnErrorIsStillLookedAt(t *testing.T) {
	w := worldWith(t, func(s Store) Store { return failing{s} })
	c := push(octocat, sourceID, "refs/heads/main", "s2", time.Minute).change
	refs, err := w.intake.Apply(w.ctx, c)
	w.Expect(err).To(MatchError(errGitHub))
	w.Expect(refs).To(ConsistOf(projectRef))
}

func TestApply_AnEmptyChangeIsNothing(t *testing.T) {
	w := newWorld(t)
	refs, err := w.intake.Apply(w.ctx, domain.Change{App: app, Repository: domain.RepositoryRef{ID: repoID}})
	w.ok(err)
	w.Expect(refs).To(BeEmpty())
}

func TestNewNamesTheMissingOption(t *testing.T) {
	g := NewWithT(t)
	_, err := New(Options{Store: &ledger.Ledger{}, Ahead: &counter{}, Bots: &bots{}, Clock: newWorld(t).clock, Wake: func(domain.ObjectRef) {}})
	g.Expect(err).To(MatchError(ContainSubstring("NotFound")))
	_, err = NewWorker(nil, nil)
	g.Expect(err).To(HaveOccurred())
}
