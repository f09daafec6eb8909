// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func TestRecordRequest(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	token := domain.Token{Source: domain.TokenSpec, Value: "week-1", RequestedBy: "ops"}
	first, created, err := w.RecordRequest(w.ctx, p.ID, token, domain.AnswerWaiting, "SyncInProgress", "a pass is under way", t0)
	w.ok(err)
	w.Expect(created).To(BeTrue())
	w.Expect(first.Token).To(Equal(token))
	w.Expect(first.Answer).To(Equal(domain.AnswerWaiting))
	w.Expect(first.Reason).To(Equal("SyncInProgress"))
	w.Expect(first.CreatedAt).To(Equal(t0))

	t.Run("the same value never runs twice", func(t *testing.T) {
		w := w.in(t)
		again, created, err := w.RecordRequest(w.ctx, p.ID, token, domain.AnswerAccepted, "", "", at(time.Hour))
		w.ok(err)
		w.Expect(created).To(BeFalse())
		w.Expect(again).To(Equal(first))
	})
	t.Run("the same value from another source is another token", func(t *testing.T) {
		w := w.in(t)
		_, created, err := w.RecordRequest(w.ctx, p.ID, domain.Token{Source: domain.TokenAnnotation, Value: "week-1"}, domain.AnswerRecovered, "", "", t0)
		w.ok(err)
		w.Expect(created).To(BeTrue())
		next, found, err := w.NextRequest(w.ctx, p.ID, t0)
		w.ok(err)
		w.Expect(found).To(BeTrue())
		w.Expect(next.ID).To(Equal(first.ID), "an answered one supersedes nothing")
	})
	t.Run("a new waiting one supersedes the older", func(t *testing.T) {
		w := w.in(t)
		second := w.request(p, "week-2")
		next, found, err := w.NextRequest(w.ctx, p.ID, t0)
		w.ok(err)
		w.Expect(found).To(BeTrue())
		w.Expect(next.ID).To(Equal(second.ID))
		old, created, err := w.RecordRequest(w.ctx, p.ID, token, domain.AnswerWaiting, "", "", t0)
		w.ok(err)
		w.Expect(created).To(BeFalse())
		w.Expect(old.Answer).To(Equal(domain.AnswerSuperseded))
	})
}

func TestConcurrentRequestsAreOneRow_R_CORE_03(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	created := w.together(6, func(int) (bool, error) {
		_, created, err := w.RecordRequest(w.ctx, p.ID, domain.Token{Source: domain.TokenSpec, Value: "x"}, domain.AnswerWaiting, "", "", t0)
		return created, err
	})
	w.Expect(created).To(Equal(1))
	w.together(6, func(i int) (bool, error) {
		_, created, err := w.RecordRequest(w.ctx, p.ID, domain.Token{Source: domain.TokenSpec, Value: fmt.Sprint(i)}, domain.AnswerWaiting, "", "", t0)
		return created, err
	})
	w.Expect(w.number(`SELECT count(*) FROM sync_requests WHERE answer = 'Waiting'`)).To(Equal(1), "one waiting token at most")
}

func TestANewRequestIsJudgedAtOnce_R_REQ_03(t *testing.T) {
	for class, expected := range map[fault.Class]time.Time{fault.Terminal: t0, fault.RateLimited: at(time.Hour)} {
		w := newWorld(t)
		p := w.built(spec("lab1"))
		w.ok(w.RecordProblem(w.ctx, p.ID, domain.Problem{Class: string(class), Reason: "X", At: t0, RetryAt: at(time.Hour)}))
		w.request(p, "one")
		w.Expect(w.reload(p).Problem.RetryAt).To(BeTemporally("==", expected), string(class))
	}
}

func TestAnswerRequest(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	l := w.lease(p)
	r := w.request(p, "one")

	w.ok(w.AnswerRequest(w.ctx, l, r.ID, domain.AnswerWaiting, "AppNotInstalled", "install it", at(time.Minute), at(time.Second)))
	_, found, err := w.NextRequest(w.ctx, p.ID, at(time.Second))
	w.ok(err)
	w.Expect(found).To(BeFalse(), "not due yet")
	next, found, err := w.NextRequest(w.ctx, p.ID, at(time.Minute))
	w.ok(err)
	w.Expect(found).To(BeTrue())
	w.Expect(next.Attempts).To(Equal(1))
	w.Expect(next.Reason).To(Equal("AppNotInstalled"))
	w.Expect(next.RetryAt).To(Equal(at(time.Minute)))

	w.ok(w.AnswerRequest(w.ctx, l, r.ID, domain.AnswerRefused, "Expired", "", at(time.Hour), at(time.Hour)))
	w.ok(w.AnswerRequest(w.ctx, l, r.ID, domain.AnswerAccepted, "", "", time.Time{}, at(2*time.Hour)))
	v, err := w.ProjectView(w.ctx, p.UID)
	w.ok(err)
	w.Expect(v.LastRequest.Answer).To(Equal(domain.AnswerRefused), "the last word stands")
	w.Expect(v.LastRequest.RetryAt).To(BeZero())
	w.Expect(v.LastRequest.AnsweredAt).To(Equal(at(time.Hour)))
}

func TestStartPass_R_REQ_02(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	rows := w.provisioned(p, 4)
	list := recipients(3) // the fourth leaves
	list[2].Exclude = true
	_, err := w.SetRecipients(w.ctx, p.ID, list, t0)
	w.ok(err)
	w.ok(w.ReleaseRepository(w.ctx, rows[1].ID, t0))
	l := w.lease(p)
	r := w.request(p, "one")
	pass := w.pass(l, r)

	w.Expect(pass).To(Equal(domain.Pass{
		ID: pass.ID, ProjectID: p.ID, RequestID: r.ID, Token: domain.Token{Source: domain.TokenSpec, Value: "one", RequestedBy: "ops"},
		Heads: domain.Heads{"main": "d2", "hints": "e1"}, SourceHeads: domain.Heads{"main": "s2", "hints": "h1"},
		Changed: []string{"main"}, Phase: domain.PhasePushing, StartedAt: t0,
	}))
	active, found, err := w.ActivePass(w.ctx, p.ID)
	w.ok(err)
	w.Expect(found).To(BeTrue())
	w.Expect(active).To(Equal(pass))
	targets, err := w.PendingTargets(w.ctx, pass.ID)
	w.ok(err)
	w.Expect(targets).To(Equal([]int64{rows[0].ID}), "not what was released, excluded or left the list")
	q := w.reload(p)
	w.Expect(q.SourceHeads).To(Equal(pass.SourceHeads))
	w.Expect(q.DistributionHeads).To(Equal(pass.Heads))
	v, err := w.ProjectView(w.ctx, p.UID)
	w.ok(err)
	w.Expect(v.LastRequest.Answer).To(Equal(domain.AnswerAccepted))

	entries, err := w.AuditEntries(w.ctx, p.ID)
	w.ok(err)
	last := entries[len(entries)-1]
	w.Expect(last.Action).To(Equal("project.sync_requested"))
	w.Expect(last.Actor).To(Equal("unverified:ops"))
	w.Expect(last.Payload).To(Equal(map[string]any{"token": "one", "changed": []any{"main"}, "sourceHeads": map[string]any{"main": "s2", "hints": "h1"}}))

	t.Run("again answers ErrNotFound and writes nothing", func(t *testing.T) {
		w := w.in(t)
		_, err := w.StartPass(w.ctx, l, domain.PassStart{RequestID: r.ID, SourceHeads: domain.Heads{"main": "zz"}}, t0)
		w.Expect(err).To(MatchError(ErrNotFound))
		w.Expect(w.reload(p)).To(Equal(q))
	})
	t.Run("a second one at a time is refused", func(t *testing.T) {
		w := w.in(t)
		second := w.request(p, "two")
		_, err := w.StartPass(w.ctx, l, domain.PassStart{RequestID: second.ID, SourceHeads: domain.Heads{"main": "zz"}}, t0)
		w.reason(err, fault.Waiting, fault.ReasonSyncInProgress)
		w.Expect(w.reload(p).SourceHeads).To(Equal(q.SourceHeads))
		next, found, err := w.NextRequest(w.ctx, p.ID, t0)
		w.ok(err)
		w.Expect(found).To(BeTrue())
		w.Expect(next.ID).To(Equal(second.ID), "it goes on waiting")
	})
}

func TestADraftsPassMeetsNoRepository_R_REQ_07(t *testing.T) {
	w := newWorld(t)
	s := spec("lab1")
	p := w.built(s)
	w.provisioned(p, 1)
	s.Stage = domain.StageDraft
	w.project(s)
	_, err := w.MarkAhead(w.ctx, p.ID, "main", "s2", t0, ptr(1))
	w.ok(err)
	l := w.lease(p)
	pass := w.pass(l, w.request(p, "one"))
	targets, err := w.PendingTargets(w.ctx, pass.ID)
	w.ok(err)
	w.Expect(targets).To(BeEmpty())
	done, cleared, err := w.FinishPass(w.ctx, l, pass.ID, at(time.Minute))
	w.ok(err)
	w.Expect(cleared).To(BeTrue())
	w.Expect(done.Counts).To(BeZero())
	w.Expect(*w.reload(p).SyncedAt).To(Equal(at(time.Minute)))
	w.Expect(w.actions(p.ID)).To(ContainElement("project.synced"))
}

func TestPendingTargetsFollowAHash(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	w.provisioned(p, 20)
	l := w.lease(p)
	first := w.pass(l, w.request(p, "one"))
	order, err := w.PendingTargets(w.ctx, first.ID)
	w.ok(err)
	w.Expect(order).To(HaveLen(20))
	w.Expect(slices.IsSorted(order)).To(BeFalse())
	_, _, err = w.FinishPass(w.ctx, l, first.ID, t0)
	w.ok(err)
	second := w.pass(w.lease(p), w.request(p, "two"))
	again, err := w.PendingTargets(w.ctx, second.ID)
	w.ok(err)
	w.Expect(again).To(Equal(order), "the same in every pass")
}

func TestSettle_R_LEASE_05(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	rows := w.provisioned(p, 2)
	l := w.lease(p)
	pass := w.pass(l, w.request(p, "one"))

	w.ok(w.Settle(w.ctx, l, pass.ID, rows[0].ID, domain.Settlement{Outcome: domain.OutcomeHeld, Reason: "HumanCommits", Message: "a person's"}, at(time.Minute)))
	r, err := w.Repository(w.ctx, rows[0].ID)
	w.ok(err)
	w.Expect([]any{r.Outcome, r.Reason, r.Message, *r.OutcomeAt}).To(Equal([]any{domain.OutcomeHeld, "HumanCommits", "a person's", at(time.Minute)}))
	w.Expect(w.reload(p).Lease.RenewedAt).To(Equal(at(time.Minute)), "settling renews the lease")
	pending, err := w.PendingTargets(w.ctx, pass.ID)
	w.ok(err)
	w.Expect(pending).To(Equal([]int64{rows[1].ID}))

	w.ok(w.Settle(w.ctx, l, pass.ID, rows[0].ID, domain.Settlement{Outcome: domain.OutcomeOpened}, at(2*time.Minute)))
	r, err = w.Repository(w.ctx, rows[0].ID)
	w.ok(err)
	w.Expect(r.Outcome).To(Equal(domain.OutcomeHeld), "a settlement stands")
	w.Expect(w.Settle(w.ctx, l, pass.ID, 4242, domain.Settlement{Outcome: domain.OutcomeOpened}, t0)).To(MatchError(ErrNotFound))
}

func TestFinishPass_R_SYNC_09(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	rows := w.provisioned(p, 7)
	l := w.lease(p)
	pass := w.pass(l, w.request(p, "one"))
	for i, o := range []domain.Outcome{domain.OutcomeOpened, domain.OutcomeUpdated, domain.OutcomeUpToDate, domain.OutcomeHeld, domain.OutcomeSkipped, domain.OutcomeFailed, domain.OutcomeFailed} {
		w.ok(w.Settle(w.ctx, l, pass.ID, rows[i].ID, domain.Settlement{Outcome: o}, t0))
	}
	done, cleared, err := w.FinishPass(w.ctx, l, pass.ID, at(time.Hour))
	w.ok(err)
	w.Expect(cleared).To(BeFalse())
	w.Expect(done.Phase).To(Equal(domain.PhaseDone))
	w.Expect(*done.FinishedAt).To(Equal(at(time.Hour)))
	w.Expect(done.Counts).To(Equal(domain.Counts{Opened: 1, Updated: 1, UpToDate: 1, Held: 1, Skipped: 1, Failed: 2}))
	q := w.reload(p)
	w.Expect(*q.SyncedAt).To(Equal(at(time.Hour)), "failures or not")
	w.Expect(q.Lease.RenewedAt).To(BeZero(), "the lease is given back")
	entries, err := w.AuditEntries(w.ctx, p.ID)
	w.ok(err)
	last := entries[len(entries)-1]
	w.Expect(last.Action).To(Equal("project.synced"))
	w.Expect(last.Actor).To(Equal("system"))
	w.Expect(last.Payload).To(Equal(map[string]any{"token": "one", "opened": 1.0, "updated": 1.0, "upToDate": 1.0, "held": 1.0, "skipped": 1.0, "failed": 2.0,
		"failedRepos": []any{"acme/lab1-r06", "acme/lab1-r07"}}))

	t.Run("once", func(t *testing.T) {
		w := w.in(t)
		again, cleared, err := w.FinishPass(w.ctx, w.lease(p), pass.ID, at(2*time.Hour))
		w.ok(err)
		w.Expect(again).To(Equal(done))
		w.Expect(cleared).To(BeFalse())
		w.Expect(w.actions(p.ID)).To(HaveLen(len(entries)))
		w.Expect(*w.reload(p).SyncedAt).To(Equal(at(time.Hour)))
	})
	t.Run("nothing settles afterwards", func(t *testing.T) {
		w := w.in(t)
		err := w.Settle(w.ctx, w.reload(p).Lease, pass.ID, rows[0].ID, domain.Settlement{Outcome: domain.OutcomeFailed}, t0)
		w.Expect(err).To(MatchError(ErrNotFound))
	})
}

func TestAbandonPass_R_SYNC_01(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	w.provisioned(p, 2)
	_, err := w.MarkAhead(w.ctx, p.ID, "main", "s2", t0, nil)
	w.ok(err)
	l := w.lease(p)
	pass := w.pass(l, w.request(p, "one"))
	before := w.actions(p.ID)
	w.ok(w.AbandonPass(w.ctx, l, pass.ID, at(time.Minute)))
	_, found, err := w.ActivePass(w.ctx, p.ID)
	w.ok(err)
	w.Expect(found).To(BeFalse())
	q := w.reload(p)
	w.Expect(q.SyncedAt).To(BeNil())
	w.Expect(q.AheadSHA).To(Equal("s2"), "nothing is cleared")
	w.Expect(q.Lease.RenewedAt).To(BeZero(), "the lease is given back")
	w.Expect(w.actions(p.ID)).To(Equal(before), "no audit entry")
}

// The pass of these tests hands out main at s2 and hints at h1.
func TestClearingRule(t *testing.T) {
	type push struct {
		branch, sha string
		after       time.Duration
	}
	settled := func(outcomes ...domain.Settlement) []domain.Settlement { return outcomes }
	good := settled(domain.Settlement{Outcome: domain.OutcomeOpened}, domain.Settlement{Outcome: domain.OutcomeUpToDate})
	for _, c := range []struct {
		name         string
		before, amid []push // pushes before the request and during the pass
		outcomes     []domain.Settlement
		cleared      bool
		left         map[string]string // branch: sha still ahead
		aheadSHA     string
	}{
		{name: "R-CLEAR-01 everybody has it", before: []push{{"main", "s2", 0}}, outcomes: good, cleared: true},
		{name: "R-CLEAR-01 not ahead", outcomes: good},
		{name: "R-CLEAR-01 one failed", before: []push{{"main", "s2", 0}}, outcomes: settled(good[0], domain.Settlement{Outcome: domain.OutcomeFailed}),
			left: map[string]string{"main": "s2"}, aheadSHA: "s2"},
		{name: "R-CLEAR-01 one held", before: []push{{"main", "s2", 0}}, outcomes: settled(good[0], domain.Settlement{Outcome: domain.OutcomeHeld}),
			left: map[string]string{"main": "s2"}, aheadSHA: "s2"},
		{name: "R-CLEAR-01 one pending", before: []push{{"main", "s2", 0}}, outcomes: good[:1],
			left: map[string]string{"main": "s2"}, aheadSHA: "s2"},
		{name: "R-CLEAR-01 one not attempted", before: []push{{"main", "s2", 0}},
			outcomes: settled(good[0], domain.Settlement{Outcome: domain.OutcomeSkipped, Reason: string(fault.ReasonNotAttempted)}),
			left:     map[string]string{"main": "s2"}, aheadSHA: "s2"},
		{name: "R-CLEAR-02 skipped ones do not keep it", before: []push{{"main", "s2", 0}},
			outcomes: settled(good[0], domain.Settlement{Outcome: domain.OutcomeSkipped, Reason: "Locked"}), cleared: true},
		{name: "R-CLEAR-02 a push during the pass", before: []push{{"main", "s2", 0}}, amid: []push{{"main", "s3", time.Minute}}, outcomes: good,
			left: map[string]string{"main": "s3"}, aheadSHA: "s3"},
		{name: "R-CLEAR-02 a push to another branch during the pass", before: []push{{"main", "s2", 0}}, amid: []push{{"hints", "h2", time.Minute}}, outcomes: good,
			left: map[string]string{"hints": "h2"}, aheadSHA: "h2"},
		{name: "R-CLEAR-02 a push handled late, older than one that was synced", before: []push{{"main", "s2", time.Minute}, {"hints", "h0", 0}}, outcomes: good,
			left: map[string]string{"hints": "h0"}, aheadSHA: "h0"},
		{name: "R-CLEAR-02 another branch's synced sha", before: []push{{"hints", "s2", 0}}, outcomes: good,
			left: map[string]string{"hints": "s2"}, aheadSHA: "s2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p := w.built(spec("lab1"))
			rows := w.provisioned(p, 2)
			apply := func(pushes []push) {
				for _, x := range pushes {
					marked, err := w.MarkAhead(w.ctx, p.ID, x.branch, x.sha, at(x.after), ptr(1))
					w.ok(err)
					w.Expect(marked).To(BeTrue())
				}
			}
			apply(c.before)
			l := w.lease(p)
			pass := w.pass(l, w.request(p, "one"))
			apply(c.amid)
			for i, s := range c.outcomes {
				w.ok(w.Settle(w.ctx, l, pass.ID, rows[i].ID, s, t0))
			}
			_, cleared, err := w.FinishPass(w.ctx, l, pass.ID, at(time.Hour))
			w.ok(err)
			w.Expect(cleared).To(Equal(c.cleared))
			q := w.reload(p)
			left := map[string]string{}
			for branch, mark := range q.Ahead {
				left[branch] = mark.SHA
				if mark.SHA == q.AheadSHA {
					w.Expect(*q.PushedAt).To(Equal(mark.PushedAt))
				}
			}
			if c.left == nil {
				c.left = map[string]string{}
			}
			w.Expect(left).To(Equal(c.left))
			w.Expect(q.AheadSHA).To(Equal(c.aheadSHA))
			w.Expect(q.PushedAt == nil).To(Equal(c.aheadSHA == ""))
		})
	}
	t.Run("R-CLEAR-03 no handed-out shas", func(t *testing.T) {
		w := newWorld(t)
		p := w.built(spec("lab1"))
		_, err := w.MarkAhead(w.ctx, p.ID, "main", "s2", t0, nil)
		w.ok(err)
		l := w.lease(p)
		pass, err := w.StartPass(w.ctx, l, domain.PassStart{RequestID: w.request(p, "one").ID}, t0)
		w.ok(err)
		_, cleared, err := w.FinishPass(w.ctx, l, pass.ID, t0)
		w.ok(err)
		w.Expect(cleared).To(BeFalse())
		w.Expect(w.reload(p).AheadSHA).To(Equal("s2"))
	})
	t.Run("R-CLEAR-01 an imported mark without branches", func(t *testing.T) {
		w := newWorld(t)
		p := w.built(spec("lab1"))
		w.sql(`UPDATE projects SET source_ahead_sha = 's2', source_pushed_at = $2 WHERE id = $1`, p.ID, t0)
		l := w.lease(p)
		_, cleared, err := w.FinishPass(w.ctx, l, w.pass(l, w.request(p, "one")).ID, t0)
		w.ok(err)
		w.Expect(cleared).To(BeTrue())
	})
}
