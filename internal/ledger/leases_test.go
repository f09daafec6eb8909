// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func TestClaimLease_R_LEASE_02(t *testing.T) {
	w := newWorld(t)
	p := w.project(spec("lab1"))

	first, won, err := w.ClaimLease(w.ctx, p.ID, "one", t0)
	w.ok(err)
	w.Expect(won).To(BeTrue())
	w.Expect(first).To(Equal(domain.Lease{ProjectID: p.ID, Token: 1, Holder: "one", RenewedAt: t0}))
	w.Expect(w.reload(p).Lease).To(Equal(first))

	for _, c := range []struct {
		name string
		at   time.Time
		won  bool
	}{
		{"held", at(time.Second), false},
		{"ten minutes old to the instant", at(domain.LeaseDuration), false},
		{"strictly older", at(domain.LeaseDuration + time.Microsecond), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			second, won, err := w.ClaimLease(w.ctx, p.ID, "two", c.at)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(won).To(Equal(c.won))
			if won {
				g.Expect(second.Token).To(BeNumerically(">", first.Token))
			}
		})
	}
}

func TestClaimLeaseOfNothing(t *testing.T) {
	w := newWorld(t)
	_, won, err := w.ClaimLease(w.ctx, 42, "me", t0)
	w.ok(err)
	w.Expect(won).To(BeFalse())

	p := w.project(spec("lab1"))
	w.ok(w.ReleaseProject(w.ctx, p.UID, "ops", t0))
	_, won, err = w.ClaimLease(w.ctx, p.ID, "me", t0)
	w.ok(err)
	w.Expect(won).To(BeFalse(), "a released project has no work")
}

func TestTwoClaimersNeverBothWin_R_LEASE_02(t *testing.T) {
	w := newWorld(t)
	p := w.project(spec("lab1"))
	won := w.together(8, func(i int) (bool, error) {
		_, won, err := w.ClaimLease(w.ctx, p.ID, fmt.Sprint("holder-", i), t0)
		return won, err
	})
	w.Expect(won).To(Equal(1))
}

func TestRenewAndRelease_R_LEASE_05_06(t *testing.T) {
	w := newWorld(t)
	p := w.project(spec("lab1"))
	l := w.lease(p)

	renewed, err := w.RenewLease(w.ctx, l, at(time.Minute))
	w.ok(err)
	w.Expect(renewed.RenewedAt).To(Equal(at(time.Minute)))
	w.Expect(w.reload(p).Lease.RenewedAt).To(Equal(at(time.Minute)))
	_, err = w.RenewLease(w.ctx, l, at(time.Second))
	w.ok(err)
	w.Expect(w.reload(p).Lease.RenewedAt).To(Equal(at(time.Minute)), "a renewal never makes a lease older")

	w.ok(w.ReleaseLease(w.ctx, l))
	w.Expect(w.reload(p).Lease.RenewedAt).To(BeZero())
	w.reason(w.ReleaseLease(w.ctx, l), fault.Waiting, fault.ReasonLeaseLost)
	w.Expect(w.lease(p).Token).To(Equal(int64(2)), "the token grows with each claim, also after a release")
}

func TestLostLeaseIsNotGivenBack_R_LEASE_05(t *testing.T) {
	w := newWorld(t)
	p := w.project(spec("lab1"))
	old := w.lease(p)
	current, won, err := w.ClaimLease(w.ctx, p.ID, "other", at(time.Hour))
	w.ok(err)
	w.Expect(won).To(BeTrue())
	w.reason(w.ReleaseLease(w.ctx, old), fault.Waiting, fault.ReasonLeaseLost)
	w.Expect(w.reload(p).Lease).To(Equal(current))
}

func TestTakeOverLeases(t *testing.T) {
	w := newWorld(t)
	a, b, free := w.project(spec("a")), w.project(spec("b")), w.project(spec("c"))
	mine, _, err := w.ClaimLease(w.ctx, a.ID, "new-leader", t0)
	w.ok(err)
	theirs, _, err := w.ClaimLease(w.ctx, b.ID, "old-leader", t0)
	w.ok(err)

	freed, err := w.TakeOverLeases(w.ctx, "new-leader", t0)
	w.ok(err)
	w.Expect(freed).To(Equal(1))
	w.Expect(w.reload(a).Lease).To(Equal(mine))
	_, err = w.RenewLease(w.ctx, theirs, at(time.Second))
	w.reason(err, fault.Waiting, fault.ReasonLeaseLost)
	next, won, err := w.ClaimLease(w.ctx, b.ID, "new-leader", t0)
	w.ok(err)
	w.Expect(won).To(BeTrue(), "at once, not after ten minutes")
	w.Expect(next.Token).To(BeNumerically(">", theirs.Token))
	w.Expect(w.reload(free).Lease.RenewedAt).To(BeZero())
}

// fencedWrite is a write under a lease, to be tried with one that is lost.
type fencedWrite struct {
	name string
	do   func(l domain.Lease) error
}

func (w *world) fencedWrites(p domain.Project, r domain.Repository, request domain.Request, pass domain.Pass) []fencedWrite {
	heads := domain.Heads{"main": "x"}
	return []fencedWrite{
		{"ClaimDistribution", func(l domain.Lease) error {
			return w.ClaimDistribution(w.ctx, l, domain.RepositoryRef{ID: p.DistributionRepo.ID, FullName: "acme/x"}, t0)
		}},
		{"RecordBuilt", func(l domain.Lease) error { return w.RecordBuilt(w.ctx, l, "acme/x", heads, heads, t0) }},
		{"RenewLease", func(l domain.Lease) error { _, err := w.RenewLease(w.ctx, l, at(time.Hour)); return err }},
		{"ReleaseLease", func(l domain.Lease) error { return w.ReleaseLease(w.ctx, l) }},
		{"AnswerRequest", func(l domain.Lease) error {
			return w.AnswerRequest(w.ctx, l, request.ID, domain.AnswerRefused, "x", "x", time.Time{}, t0)
		}},
		{"StartPass", func(l domain.Lease) error {
			_, err := w.StartPass(w.ctx, l, domain.PassStart{RequestID: request.ID, Heads: heads, SourceHeads: heads}, t0)
			return err
		}},
		{"RecordBotCommit", func(l domain.Lease) error {
			return w.RecordBotCommit(w.ctx, l, r.ID, "x", domain.BotCommitSync, t0)
		}},
		{"RecordPullRequest", func(l domain.Lease) error {
			return w.RecordPullRequest(w.ctx, l, domain.PullRequest{RepositoryID: r.ID, Branch: "main", Number: 9, State: domain.PullRequestOpen, UpdatedAt: t0})
		}},
		{"Settle", func(l domain.Lease) error {
			return w.Settle(w.ctx, l, pass.ID, r.ID, domain.Settlement{Outcome: domain.OutcomeOpened}, t0)
		}},
		{"FinishPass", func(l domain.Lease) error { _, _, err := w.FinishPass(w.ctx, l, pass.ID, t0); return err }},
		{"AbandonPass", func(l domain.Lease) error { return w.AbandonPass(w.ctx, l, pass.ID, t0) }},
	}
}

func TestLostLeaseWritesNothing_R_LEASE_03(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	r := w.provisioned(p, 1)[0]
	pass := w.pass(w.lease(p), w.request(p, "one"))
	waiting := w.request(p, "two")
	current := w.reload(p).Lease
	tables := []string{"projects", "sync_requests", "passes", "pass_targets", "repositories", "bot_commits", "pull_requests", "audit_log"}

	for _, lost := range []struct {
		name  string
		lease domain.Lease
	}{
		{"older token", domain.Lease{ProjectID: p.ID, Token: current.Token - 1, Holder: current.Holder}},
		{"another holder", domain.Lease{ProjectID: p.ID, Token: current.Token, Holder: "other"}},
		{"no holder", domain.Lease{ProjectID: p.ID, Token: current.Token}},
	} {
		for _, f := range w.fencedWrites(p, r, waiting, pass) {
			t.Run(lost.name+" "+f.name, func(t *testing.T) {
				inner := w.in(t)
				before := inner.contents(tables)
				inner.reason(f.do(lost.lease), fault.Waiting, fault.ReasonLeaseLost)
				inner.Expect(inner.contents(tables)).To(Equal(before))
			})
		}
	}
	t.Run("released lease", func(t *testing.T) {
		inner := w.in(t)
		inner.ok(w.ReleaseLease(w.ctx, current))
		for _, f := range w.fencedWrites(p, r, waiting, pass) {
			inner.reason(f.do(current), fault.Waiting, fault.ReasonLeaseLost)
		}
	})
}

// contents returns all rows of tables as text.
func (w *world) contents(tables []string) map[string]string {
	w.t.Helper()
	rows := map[string]string{}
	for _, table := range tables {
		text, err := scalar[string](w.pool.QueryRow(w.ctx, `SELECT coalesce(string_agg(x::text, E'\n' ORDER BY x::text), '') FROM `+table+` x`))
		w.ok(err)
		rows[table] = text
	}
	return rows
}

func TestDeletingInMidPassEndsItAtTheNextWrite_R_DIST_13(t *testing.T) {
	for _, c := range []struct {
		name   string
		delete func(w *world, p domain.Project) error
		gone   bool
	}{
		{"released", func(w *world, p domain.Project) error { return w.ReleaseProject(w.ctx, p.UID, "ops", t0) }, false},
		{"purged", func(w *world, p domain.Project) error {
			_, err := w.PurgeProject(w.ctx, p.UID, "ops", t0)
			return err
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p := w.built(spec("lab1"))
			r := w.provisioned(p, 1)[0]
			l := w.lease(p)
			pass := w.pass(l, w.request(p, "one"))
			w.ok(c.delete(w, p))
			for _, f := range w.fencedWrites(p, r, domain.Request{}, pass) {
				err := f.do(l)
				w.reason(err, fault.Waiting, fault.ReasonLeaseLost)
				w.Expect(errors.Is(err, ErrNotFound)).To(Equal(c.gone), f.name)
			}
		})
	}
}

func TestALeaseWritesItsOwnProjectOnly(t *testing.T) {
	w := newWorld(t)
	p, other := w.built(spec("a")), w.built(spec("b"))
	r := w.provisioned(other, 1)[0]
	request := w.request(other, "theirs")
	pass := w.pass(w.lease(other), request)
	waiting := w.request(other, "theirs-2")
	l := w.lease(p)

	w.Expect(w.RecordBotCommit(w.ctx, l, r.ID, "x", domain.BotCommitSync, t0)).To(MatchError(ErrNotFound))
	w.Expect(w.RecordPullRequest(w.ctx, l, domain.PullRequest{RepositoryID: r.ID, Branch: "main", Number: 1, State: domain.PullRequestOpen, UpdatedAt: t0})).To(MatchError(ErrNotFound))
	w.Expect(w.Settle(w.ctx, l, pass.ID, r.ID, domain.Settlement{Outcome: domain.OutcomeOpened}, t0)).To(MatchError(ErrNotFound))
	_, _, err := w.FinishPass(w.ctx, l, pass.ID, t0)
	w.Expect(err).To(MatchError(ErrNotFound))
	w.Expect(w.AbandonPass(w.ctx, l, pass.ID, t0)).To(MatchError(ErrNotFound))
	_, err = w.StartPass(w.ctx, l, domain.PassStart{RequestID: waiting.ID}, t0)
	w.Expect(err).To(MatchError(ErrNotFound))
	w.ok(w.AnswerRequest(w.ctx, l, waiting.ID, domain.AnswerRefused, "x", "x", time.Time{}, t0))
	_, found, err := w.NextRequest(w.ctx, other.ID, t0)
	w.ok(err)
	w.Expect(found).To(BeTrue())
	active, found, err := w.ActivePass(w.ctx, other.ID)
	w.ok(err)
	w.Expect(found).To(BeTrue())
	w.Expect(active.ID).To(Equal(pass.ID))
}

func TestProjectsWithWork(t *testing.T) {
	later := at(time.Hour)
	for _, c := range []struct {
		name string
		set  func(w *world) domain.Project
		// due is when there is work: nil is never, the zero time at once.
		due *time.Time
	}{
		{"unbuilt", func(w *world) domain.Project { return w.project(spec("p")) }, &time.Time{}},
		{"built without a request", func(w *world) domain.Project { return w.built(spec("p")) }, nil},
		{"with a request", func(w *world) domain.Project { p := w.built(spec("p")); w.request(p, "one"); return p }, &time.Time{}},
		{"with a request that waits", func(w *world) domain.Project {
			p := w.built(spec("p"))
			l := w.lease(p)
			w.ok(w.AnswerRequest(w.ctx, l, w.request(p, "one").ID, domain.AnswerWaiting, "AppNotInstalled", "", later, t0))
			w.ok(w.ReleaseLease(w.ctx, l))
			return p
		}, &later},
		{"with an answered request", func(w *world) domain.Project {
			p := w.built(spec("p"))
			l := w.lease(p)
			w.ok(w.AnswerRequest(w.ctx, l, w.request(p, "one").ID, domain.AnswerRefused, "Expired", "", later, t0))
			w.ok(w.ReleaseLease(w.ctx, l))
			return p
		}, nil},
		{"with a pass", func(w *world) domain.Project {
			p := w.built(spec("p"))
			l := w.lease(p)
			w.pass(l, w.request(p, "one"))
			w.ok(w.ReleaseLease(w.ctx, l))
			return p
		}, &time.Time{}},
		{"with a pass whose lease is held", func(w *world) domain.Project {
			p := w.built(spec("p"))
			w.pass(w.lease(p), w.request(p, "one"))
			return p
		}, ptr(at(domain.LeaseDuration))},
		{"with a problem that waits", func(w *world) domain.Project {
			p := w.project(spec("p"))
			w.ok(w.RecordProblem(w.ctx, p.ID, domain.Problem{Class: "Blocked", Reason: "AppNotInstalled", At: t0, RetryAt: later}))
			return p
		}, &later},
		{"with a problem that waits, and no work", func(w *world) domain.Project {
			p := w.built(spec("p"))
			w.ok(w.RecordProblem(w.ctx, p.ID, domain.Problem{Class: "Blocked", Reason: "AppNotInstalled", At: t0, RetryAt: later}))
			return p
		}, nil},
		{"suspended", func(w *world) domain.Project { s := spec("p"); s.Suspended = true; return w.project(s) }, nil},
		{"archived and unbuilt", func(w *world) domain.Project {
			s := spec("p")
			s.Stage = domain.StageArchived
			return w.project(s)
		}, nil},
		{"archived with a pass", func(w *world) domain.Project {
			p := w.built(spec("p"))
			l := w.lease(p)
			w.pass(l, w.request(p, "one"))
			w.ok(w.ReleaseLease(w.ctx, l))
			s := p.ProjectSpec
			s.Stage = domain.StageArchived
			return w.project(s)
		}, &time.Time{}},
		{"released", func(w *world) domain.Project {
			p := w.project(spec("p"))
			w.ok(w.ReleaseProject(w.ctx, p.UID, "ops", t0))
			return p
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			p := c.set(w)
			work := func(now time.Time) bool {
				ids, err := w.ProjectsWithWork(w.ctx, now)
				w.ok(err)
				w.Expect(len(ids)).To(BeNumerically("<=", 1))
				return len(ids) == 1 && ids[0] == p.ID
			}
			next, waits, err := w.NextWorkAt(w.ctx)
			w.ok(err)
			switch {
			case c.due == nil:
				w.Expect(work(at(24 * time.Hour))).To(BeFalse())
				w.Expect(waits).To(BeFalse(), "nothing waits for a time")
			case c.due.IsZero():
				w.Expect(work(t0)).To(BeTrue())
				w.Expect(waits).To(BeTrue())
				w.Expect(next).To(BeTemporally("<=", t0))
			default:
				w.Expect(work(t0)).To(BeFalse())
				w.Expect(work(c.due.Add(time.Second))).To(BeTrue())
				w.Expect(waits).To(BeTrue())
				w.Expect(next).To(BeTemporally("==", *c.due))
			}
		})
	}
}

func TestNextWorkAtIsTheEarliest(t *testing.T) {
	w := newWorld(t)
	for name, retry := range map[string]time.Duration{"a": 2 * time.Hour, "b": time.Hour, "c": 3 * time.Hour} {
		p := w.project(spec(name))
		w.ok(w.RecordProblem(w.ctx, p.ID, domain.Problem{Class: "Blocked", Reason: "X", At: t0, RetryAt: at(retry)}))
	}
	next, ok, err := w.NextWorkAt(w.ctx)
	w.ok(err)
	w.Expect(ok).To(BeTrue())
	w.Expect(next).To(BeTemporally("==", at(time.Hour)))
}
