// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func TestUpsertProjectKeepsTheWholeSpec(t *testing.T) {
	w := newWorld(t)
	s := spec("lab1")
	s.OverlayDirectory, s.IgnoreFile, s.DistributionFixed = "handout", ".handoutignore", true
	s.DeadlineAt = ptr(at(48 * time.Hour))
	s.PullRequest = domain.PullRequestSettings{BranchPrefix: "sync/", Title: "t", Body: "b", Labels: []string{"l"}, Draft: true, Announce: "None"}
	p := w.project(s)
	w.Expect(p.ProjectSpec).To(Equal(s))
	byUID, err := w.ProjectByUID(w.ctx, s.UID)
	w.ok(err)
	w.Expect(byUID).To(Equal(p))
	w.Expect(w.reload(p)).To(Equal(p))
}

func TestUpsertProjectWritesOnlyChanges_R_CORE_06(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	w.untouched("projects", func() {
		again := w.project(spec("lab1"))
		w.Expect(again).To(Equal(p))
	})
	s := spec("lab1")
	s.Stage, s.Suspended = domain.StageArchived, true
	changed := w.project(s)
	w.Expect(changed.ID).To(Equal(p.ID))
	w.Expect(changed.Stage).To(Equal(domain.StageArchived))
	w.Expect(changed.DistributionRepo).To(Equal(p.DistributionRepo), "facts stay")
	w.Expect(changed.SourceHeads).To(Equal(p.SourceHeads))
}

func TestConcurrentUpsertsMakeOneRow_R_CORE_03(t *testing.T) {
	w := newWorld(t)
	w.together(6, func(int) (bool, error) {
		_, err := w.UpsertProject(w.ctx, spec("lab1"), t0)
		return true, err
	})
	w.Expect(w.number(`SELECT count(*) FROM projects`)).To(Equal(1))
}

func TestAChangedSpecIsTriedAtOnce(t *testing.T) {
	for class, expected := range map[fault.Class]time.Time{fault.Blocked: t0, fault.RateLimited: at(time.Hour)} {
		t.Run(string(class), func(t *testing.T) {
			w := newWorld(t)
			p := w.project(spec("lab1"))
			w.ok(w.RecordProblem(w.ctx, p.ID, domain.Problem{Class: string(class), Reason: "X", Message: "m", At: t0, RetryAt: at(time.Hour)}))
			s := spec("lab1")
			s.Source = "acme/corrected"
			w.Expect(w.project(s).Problem.RetryAt).To(BeTemporally("==", expected))
		})
	}
	t.Run("no problem stays none", func(t *testing.T) {
		w := newWorld(t)
		w.project(spec("lab1"))
		s := spec("lab1")
		s.Source = "acme/corrected"
		w.Expect(w.project(s).Problem).To(BeZero())
	})
}

func TestUnknownProjectsAreNotFound(t *testing.T) {
	w := newWorld(t)
	_, err := w.Project(w.ctx, 42)
	w.Expect(err).To(MatchError(ErrNotFound))
	_, err = w.ProjectByUID(w.ctx, "nobody")
	w.Expect(err).To(MatchError(ErrNotFound))
	w.Expect(w.RecordSource(w.ctx, 42, domain.RepositoryRef{ID: 1, FullName: "a/b"})).To(MatchError(ErrNotFound))
	_, err = w.SetRecipients(w.ctx, 42, recipients(1), t0)
	w.Expect(err).To(MatchError(ErrNotFound))
	_, _, err = w.RecordRequest(w.ctx, 42, domain.Token{Source: domain.TokenSpec, Value: "x"}, domain.AnswerWaiting, "", "", t0)
	w.Expect(err).To(MatchError(ErrNotFound))
	l := domain.Lease{ProjectID: 42, Token: 1, Holder: "me"}
	w.Expect(w.ClaimDistribution(w.ctx, l, domain.RepositoryRef{ID: 1, FullName: "a/b"}, t0)).To(MatchError(ErrNotFound), "R-DIST-06")
}

func TestClaimDistribution_R_DIST_06(t *testing.T) {
	d := domain.RepositoryRef{ID: 77, FullName: "acme/lab1-squashed"}
	t.Run("claims before it is built", func(t *testing.T) {
		w := newWorld(t)
		p := w.project(spec("lab1"))
		l := w.lease(p)
		w.ok(w.ClaimDistribution(w.ctx, l, d, t0))
		w.ok(w.ClaimDistribution(w.ctx, l, d, t0)) // a replay
		w.Expect(w.reload(p).DistributionRepo).To(Equal(domain.RepositoryRef{ID: 77}))
		w.Expect(w.reload(p).Built()).To(BeFalse(), "R-DIST-01: built only once its name is written")
		w.ok(w.ClaimDistribution(w.ctx, l, domain.RepositoryRef{ID: 78, FullName: "acme/lab1-squashed-2"}, t0))
		w.Expect(w.reload(p).DistributionRepo.ID).To(Equal(int64(78)), "the next suffix, while unbuilt")
	})
	t.Run("one project each", func(t *testing.T) {
		w := newWorld(t)
		a, b := w.project(spec("a")), w.project(spec("b"))
		w.ok(w.ClaimDistribution(w.ctx, w.lease(a), d, t0))
		w.reason(w.ClaimDistribution(w.ctx, w.lease(b), d, t0), fault.Blocked, fault.ReasonDistributionNameTaken)
		w.Expect(w.reload(b).DistributionRepo).To(BeZero())
	})
	t.Run("one of many at once", func(t *testing.T) {
		w := newWorld(t)
		leases := make([]domain.Lease, 5)
		for i := range leases {
			leases[i] = w.lease(w.project(spec(fmt.Sprint("p", i))))
		}
		won := w.together(len(leases), func(i int) (bool, error) {
			err := w.ClaimDistribution(w.ctx, leases[i], d, t0)
			if fault.Is(err, fault.ReasonDistributionNameTaken) {
				return false, nil
			}
			return err == nil, err
		})
		w.Expect(won).To(Equal(1))
	})
	t.Run("not once built", func(t *testing.T) {
		w := newWorld(t)
		p := w.built(spec("lab1"))
		w.reason(w.ClaimDistribution(w.ctx, w.lease(p), d, t0), fault.Blocked, fault.ReasonDistributionNameTaken)
		w.Expect(w.reload(p).DistributionRepo).To(Equal(p.DistributionRepo))
	})
	t.Run("not a source nor a downstream repository", func(t *testing.T) {
		w := newWorld(t)
		other := w.built(spec("other"))
		r := w.provisioned(other, 1)[0]
		l := w.lease(w.project(spec("lab1")))
		w.reason(w.ClaimDistribution(w.ctx, l, r.Repo, t0), fault.Blocked, fault.ReasonDistributionNameTaken)
		w.reason(w.ClaimDistribution(w.ctx, l, other.SourceRepo, t0), fault.Blocked, fault.ReasonDistributionNameTaken)
	})
	t.Run("of a released project is free", func(t *testing.T) {
		w := newWorld(t)
		old := w.built(spec("old"))
		w.ok(w.ReleaseProject(w.ctx, old.UID, "ops", t0))
		w.ok(w.ClaimDistribution(w.ctx, w.lease(w.project(spec("new"))), old.DistributionRepo, t0))
	})
}

func TestRecordBuilt_R_DIST_01(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	w.Expect(p.Built()).To(BeTrue())
	w.Expect(p.DistributionRepo.FullName).To(Equal("acme/lab1-squashed"))
	w.Expect(p.DistributionHeads).To(Equal(domain.Heads{"main": "d1", "hints": "e1"}))
	w.Expect(p.SourceHeads).To(Equal(domain.Heads{"main": "s1", "hints": "h1"}))
	w.Expect(*p.BuiltAt).To(BeTemporally("==", t0))

	w.ok(w.RecordBuilt(w.ctx, w.lease(p), "acme/other", domain.Heads{"main": "zz"}, nil, at(time.Hour)))
	again := w.reload(p)
	again.Lease = p.Lease
	w.Expect(again).To(Equal(p), "built once")
	entries, err := w.AuditEntries(w.ctx, p.ID)
	w.ok(err)
	w.Expect(entries).To(HaveLen(1))
	w.Expect(entries[0]).To(Equal(domain.AuditEntry{Actor: "system", Action: "project.create", ProjectID: p.ID, Subject: "project/uid-lab1", At: t0,
		Payload: map[string]any{"name": "lab1", "source": "acme/lab1-source", "distribution": "acme/lab1-squashed"}}))
}

func TestRecordSource_R_CORE_08(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	w.untouched("projects", func() { w.ok(w.RecordSource(w.ctx, p.ID, p.SourceRepo)) })
	renamed := domain.RepositoryRef{ID: p.SourceRepo.ID, FullName: "acme/renamed"}
	w.ok(w.RecordSource(w.ctx, p.ID, renamed))
	w.Expect(w.reload(p).SourceRepo).To(Equal(renamed))
	w.reason(w.RecordSource(w.ctx, p.ID, domain.RepositoryRef{ID: 5, FullName: "acme/renamed"}), fault.Terminal, fault.ReasonSourceChanged)
	w.Expect(w.reload(p).SourceRepo).To(Equal(renamed))

	unbuilt := w.project(spec("lab2"))
	for id := range int64(2) {
		w.ok(w.RecordSource(w.ctx, unbuilt.ID, domain.RepositoryRef{ID: 50 + id, FullName: "acme/x"}))
	}
	w.Expect(w.reload(unbuilt).SourceRepo.ID).To(Equal(int64(51)), "an unbuilt project may correct its source")
}

func TestWhoIsWhat_R_DIST_03(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	for _, c := range []struct {
		id                   int64
		distribution, source bool
	}{{p.DistributionRepo.ID, true, false}, {p.SourceRepo.ID, false, true}, {1, false, false}} {
		is, err := w.IsDistribution(w.ctx, c.id)
		w.ok(err)
		w.Expect(is).To(Equal(c.distribution))
		is, err = w.IsSource(w.ctx, c.id)
		w.ok(err)
		w.Expect(is).To(Equal(c.source))
	}
	other := w.project(spec("lab2"))
	w.ok(w.RecordSource(w.ctx, other.ID, p.SourceRepo))
	list, err := w.ProjectsBySource(w.ctx, p.SourceRepo.ID)
	w.ok(err)
	w.Expect(list).To(HaveLen(2))
	w.Expect([]int64{list[0].ID, list[1].ID}).To(Equal([]int64{p.ID, other.ID}))
	w.ok(w.ReleaseProject(w.ctx, other.UID, "ops", t0))
	list, err = w.ProjectsBySource(w.ctx, p.SourceRepo.ID)
	w.ok(err)
	w.Expect(list).To(HaveLen(1))
	w.ok(w.ReleaseProject(w.ctx, p.UID, "ops", t0))
	is, err := w.IsDistribution(w.ctx, p.DistributionRepo.ID)
	w.ok(err)
	w.Expect(is).To(BeTrue(), "a released project's distribution is no source either")
}

func TestProblems(t *testing.T) {
	w := newWorld(t)
	p := w.project(spec("lab1"))
	problem := domain.Problem{Class: "Blocked", Reason: "AppNotInstalled", Message: "install \x00 the App \xff", At: t0, RetryAt: at(time.Minute)}
	w.ok(w.RecordProblem(w.ctx, p.ID, problem))
	problem.Message = "install \uFFFD the App \uFFFD"
	w.Expect(w.reload(p).Problem).To(Equal(problem))
	w.ok(w.RecordProblem(w.ctx, p.ID, domain.Problem{Class: "Terminal", Reason: "SourceChanged", At: t0}))
	w.Expect(w.reload(p).Problem).To(Equal(domain.Problem{Class: "Terminal", Reason: "SourceChanged", At: t0}))
	w.ok(w.ClearProblem(w.ctx, p.ID))
	w.Expect(w.reload(p).Problem).To(BeZero())
	w.untouched("projects", func() { w.ok(w.ClearProblem(w.ctx, p.ID)) })
}

func TestMarkAhead_R_AHEAD_01(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	mark := func(branch, sha string, d time.Duration, commits *int) bool {
		t.Helper()
		marked, err := w.MarkAhead(w.ctx, p.ID, branch, sha, at(d), commits)
		w.ok(err)
		return marked
	}
	w.Expect(mark("main", "s2", time.Second, ptr(2))).To(BeTrue())
	w.Expect(mark("hints", "h2", 3*time.Second, nil)).To(BeTrue())
	q := w.reload(p)
	w.Expect(q.AheadSHA).To(Equal("h2"))
	w.Expect(*q.PushedAt).To(BeTemporally("==", at(3*time.Second)))
	w.Expect(q.Ahead).To(Equal(map[string]domain.AheadBranch{
		"main":  {SHA: "s2", PushedAt: at(time.Second), Commits: ptr(2)},
		"hints": {SHA: "h2", PushedAt: at(3 * time.Second)},
	}), "R-AHEAD-02: an unknown count is null, and the mark is written all the same")

	w.Expect(mark("main", "s3", 2*time.Second, ptr(3))).To(BeTrue(), "newer for its branch, older than the other's")
	q = w.reload(p)
	w.Expect(q.Ahead["main"].SHA).To(Equal("s3"))
	w.Expect(q.AheadSHA).To(Equal("h2"), "the project's own mark is the newest receipt's")

	w.Expect(mark("main", "s2", time.Second, ptr(2))).To(BeFalse(), "an older receipt never overwrites a newer one")
	w.Expect(w.reload(p)).To(Equal(q))
	w.Expect(mark("main", "s3", 2*time.Second, ptr(3))).To(BeTrue(), "a replay writes what is there")
	w.Expect(w.reload(p)).To(Equal(q))
}

func TestMarkAheadMarksNothingFor_R_AHEAD_03(t *testing.T) {
	for _, c := range []struct {
		name        string
		branch, sha string
		before      func(w *world, p domain.Project)
		marked      bool
	}{
		{"the handed-out head", "main", "s1", nil, false},
		{"another branch's handed-out head", "hints", "s1", nil, true},
		{"a branch not handed out", "other", "s2", nil, false},
		{"an archived project", "main", "s2", func(w *world, p domain.Project) {
			s := p.ProjectSpec
			s.Stage = domain.StageArchived
			w.project(s)
		}, false},
		{"a released project", "main", "s2", func(w *world, p domain.Project) { w.ok(w.ReleaseProject(w.ctx, p.UID, "ops", t0)) }, false},
		{"a draft is marked", "main", "s2", func(w *world, p domain.Project) {
			s := p.ProjectSpec
			s.Stage = domain.StageDraft
			w.project(s)
		}, true},
		{"an imported project without handed-out shas is marked", "main", "s1", func(w *world, p domain.Project) {
			w.sql(`UPDATE projects SET source_heads = NULL WHERE id = $1`, p.ID)
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p := w.built(spec("lab1"))
			if c.before != nil {
				c.before(w, p)
			}
			marked, err := w.MarkAhead(w.ctx, p.ID, c.branch, c.sha, t0, nil)
			w.ok(err)
			w.Expect(marked).To(Equal(c.marked))
			w.Expect(w.reload(p).AheadSHA != "").To(Equal(c.marked))
		})
	}
}

func TestReleaseProjectAndTakeBack(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	rows := w.provisioned(p, 2)
	w.ok(w.ReleaseRepository(w.ctx, rows[0].ID, at(-time.Hour)))
	hand, err := w.UpsertHandMade(w.ctx, handMade(p.Object), t0)
	w.ok(err)
	w.lease(p)

	w.ok(w.ReleaseProject(w.ctx, p.UID, "ops", t0))
	w.ok(w.ReleaseProject(w.ctx, p.UID, "ops", at(time.Hour)))
	w.ok(w.ReleaseProject(w.ctx, "nobody", "ops", t0))
	w.Expect(w.actions(p.ID)).To(HaveExactElements("project.create", "project.accept", "project.accept", "project.release"))
	w.Expect(w.reload(p).Lease.RenewedAt).To(BeZero())
	r, err := w.Repository(w.ctx, rows[1].ID)
	w.ok(err)
	w.Expect(*r.ReleasedAt).To(BeTemporally("==", t0))
	hand, err = w.Repository(w.ctx, hand.ID)
	w.ok(err)
	w.Expect(hand.ReleasedAt).To(BeNil(), "a hand-made repository has its own object")

	back := w.project(spec("lab1"))
	w.Expect(back.ID).To(Equal(p.ID))
	w.Expect(back.DistributionRepo).To(Equal(p.DistributionRepo))
	r, err = w.Repository(w.ctx, rows[1].ID)
	w.ok(err)
	w.Expect(r.ReleasedAt).To(BeNil())
	r, err = w.Repository(w.ctx, rows[0].ID)
	w.ok(err)
	w.Expect(r.ReleasedAt).NotTo(BeNil(), "what was released before stays so")
}

func TestTakeBackIsRefusedWhenOthersTookOver(t *testing.T) {
	t.Run("distribution", func(t *testing.T) {
		w := newWorld(t)
		p := w.built(spec("lab1"))
		w.ok(w.ReleaseProject(w.ctx, p.UID, "ops", t0))
		w.ok(w.ClaimDistribution(w.ctx, w.lease(w.project(spec("lab2"))), p.DistributionRepo, t0))
		_, err := w.UpsertProject(w.ctx, spec("lab1"), t0)
		w.reason(err, fault.Blocked, fault.ReasonDistributionNameTaken)
	})
	t.Run("repository", func(t *testing.T) {
		w := newWorld(t)
		p := w.built(spec("lab1"))
		r := w.provisioned(p, 1)[0]
		w.ok(w.ReleaseProject(w.ctx, p.UID, "ops", t0))
		rows, err := w.SetRecipients(w.ctx, w.built(spec("lab2")).ID, recipients(1), t0)
		w.ok(err)
		w.ok(w.RecordRepositoryID(w.ctx, rows[0].ID, r.Repo, ""))
		_, err = w.UpsertProject(w.ctx, spec("lab1"), t0)
		w.reason(err, fault.Blocked, fault.ReasonRepositoryClaimed)
	})
}

func TestPurgeProject_R_DIST_13(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	r := w.provisioned(p, 2)
	h := handMade(p.Object)
	h.RepoID, h.FullName = 900, "acme/svc"
	hand, err := w.UpsertHandMade(w.ctx, h, t0)
	w.ok(err)
	l := w.lease(p)
	pass := w.pass(l, w.request(p, "one"))
	w.ok(w.Settle(w.ctx, l, pass.ID, r[0].ID, domain.Settlement{Outcome: domain.OutcomeOpened}, t0))
	w.ok(w.RecordBotCommit(w.ctx, l, r[0].ID, "d2", domain.BotCommitSync, t0))
	w.ok(w.RecordPullRequest(w.ctx, l, domain.PullRequest{RepositoryID: r[0].ID, Branch: "main", Number: 1, State: domain.PullRequestOpen, UpdatedAt: t0}))
	// Another project hands the same source out; a third, released, had one of
	// the downstream repositories before.
	w.ok(w.RecordSource(w.ctx, w.project(spec("same-source")).ID, p.SourceRepo))
	for i, id := range []int64{r[0].Repo.ID, r[0].Repo.ID, r[1].Repo.ID, p.DistributionRepo.ID, hand.Repo.ID} {
		w.receipt(id, fmt.Sprint("sha", i))
	}
	w.sql(`INSERT INTO push_receipts VALUES ($1, 'from before it was a source', 'main', $2, false, false, 1)`, p.SourceRepo.ID, t0)
	former := w.built(spec("former"))
	w.sql(`INSERT INTO repositories (project_id, recipient, app, wanted_name, github_repo_id, created_at, released_at) VALUES ($1, 'r', 'app', 'acme/r', $2, $3, $3)`, former.ID, r[1].Repo.ID, t0)

	n, err := w.PurgeProject(w.ctx, p.UID, "ops", t0)
	w.ok(err)
	w.Expect(n).To(Equal(3), "of r01 (2) and of the distribution; not of what others track or hand out")
	w.Expect(w.number(`SELECT count(*) FROM push_receipts`)).To(Equal(3))
	_, err = w.Project(w.ctx, p.ID)
	w.Expect(err).To(MatchError(ErrNotFound))
	for _, table := range []string{"passes", "pass_targets", "sync_requests", "bot_commits", "pull_requests"} {
		w.Expect(w.number(`SELECT count(*) FROM `+table)).To(BeZero(), table)
	}
	kept, err := w.Repository(w.ctx, hand.ID)
	w.ok(err)
	w.Expect(kept.ProjectID).To(BeZero(), "a hand-made repository goes on without a project")

	entries, err := w.AuditEntries(w.ctx, p.ID)
	w.ok(err)
	last := entries[len(entries)-1]
	w.Expect(last.Action).To(Equal("project.delete"))
	w.Expect(last.Actor).To(Equal("ops"))
	w.Expect(last.Payload).To(Equal(map[string]any{"receipts": 3.0}))

	n, err = w.PurgeProject(w.ctx, p.UID, "ops", t0)
	w.ok(err)
	w.Expect(n).To(BeZero())
	w.Expect(w.actions(p.ID)).To(HaveLen(len(entries)), "audited once")

	_, err = w.PurgeProject(w.ctx, "uid-same-source", "ops", t0)
	w.ok(err)
	w.Expect(w.number(`SELECT count(*) FROM push_receipts WHERE github_repo_id = $1`, p.SourceRepo.ID)).To(BeZero(), "the source's go with the last project that hands it out")
}

// receipt stores a delivery of a person's push with its receipt.
func (w *world) receipt(githubID int64, sha string) {
	w.t.Helper()
	n := w.number(`SELECT count(*) FROM webhook_deliveries`)
	_, err := w.StoreDelivery(w.ctx, domain.Delivery{App: "app", GUID: guid(n), Event: "push", Payload: []byte("{}"), ReceivedAt: t0},
		&domain.Receipt{RepositoryID: githubID, Branch: "main", HeadSHA: sha, ReceivedAt: t0, Commits: 1})
	w.ok(err)
}

func guid(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

func handMade(project domain.ObjectKey) domain.HandMade {
	return domain.HandMade{
		Object: domain.ObjectKey{Namespace: "platform", Name: "svc"}, ObjectUID: "uid-svc", App: "app", Project: project,
		Recipient: "team", FullName: "acme/svc", Members: []string{"octocat"},
	}
}
