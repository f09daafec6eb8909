// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// A manager runs the Worker on the leader only.
var (
	_ manager.Runnable               = (*Worker)(nil)
	_ manager.LeaderElectionRunnable = (*Worker)(nil)
)

const patience = 20 * time.Second

// scripted is a Store whose answers to a person's push are scripted: one for
// each attempt, then the ledger's own.
type scripted struct {
	Store
	mu     sync.Mutex
	script []func() error
	shas   []string
}

func (s *scripted) RecordPush(ctx context.Context, id int64, sha string, at, receivedAt time.Time) (bool, error) {
	s.mu.Lock()
	s.shas = append(s.shas, sha)
	var step func() error
	if len(s.script) > 0 {
		step, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	if step != nil {
		if err := step(); err != nil {
			return false, err
		}
	}
	return s.Store.RecordPush(ctx, id, sha, at, receivedAt)
}

func (s *scripted) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.shas...)
}

// inbox is the ledger's inbox that remembers what was said about deliveries.
type inbox struct {
	Inbox
	mu    sync.Mutex
	said  []string
	hints chan struct{}
	down  bool
}

func (i *inbox) note(format string, args ...any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.said = append(i.said, fmt.Sprintf(format, args...))
}

func (i *inbox) notes() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return append([]string(nil), i.said...)
}

func (i *inbox) ClaimDeliveries(ctx context.Context, n int, now time.Time) ([]domain.Delivery, error) {
	if i.down {
		return nil, fault.New(fault.Retryable, fault.ReasonDatabaseUnavailable, "Postgres does not answer")
	}
	return i.Inbox.ClaimDeliveries(ctx, n, now)
}

func (i *inbox) DeliveryDone(ctx context.Context, app, guid string, now time.Time) error {
	i.note("done")
	return i.Inbox.DeliveryDone(ctx, app, guid, now)
}

func (i *inbox) DeliveryFailed(ctx context.Context, app, guid, message string, retryAt, now time.Time) (bool, error) {
	parked, err := i.Inbox.DeliveryFailed(ctx, app, guid, message, retryAt, now)
	i.note("failed, parked=%t, again after %s: %s", parked, retryAt.Sub(now), message)
	return parked, err
}

func (i *inbox) DeliveryDeferred(ctx context.Context, app, guid, message string, retryAt time.Time) error {
	i.note("deferred to %s: %s", retryAt.Sub(t0), message)
	return i.Inbox.DeliveryDeferred(ctx, app, guid, message, retryAt)
}

func (i *inbox) Wakeups(context.Context) <-chan struct{} { return i.hints }

// working is a world with a Worker and an inbox of real deliveries.
type working struct {
	*world
	store  *scripted
	inbox  *inbox
	worker *Worker
}

func newWorking(t *testing.T, script ...func() error) *working {
	t.Helper()
	s := &scripted{script: script}
	w := &working{store: s, world: worldWith(t, func(real Store) Store { s.Store = real; return s })}
	w.inbox = &inbox{Inbox: w.ledger, hints: make(chan struct{}, 1)}
	var err error
	w.worker, err = NewWorker(w.intake, w.inbox)
	w.ok(err)
	return w
}

// store keeps a delivery as the receiver does; n makes its id.
func (w *working) keep(n int, e event) {
	w.t.Helper()
	d := e.delivery()
	d.GUID = fmt.Sprintf("%08d%s", n, guid[8:])
	stored, err := w.ledger.StoreDelivery(w.ctx, d, nil)
	w.ok(err)
	w.Expect(stored).To(BeTrue())
}

func (w *working) sweep() { w.worker.sweep(w.ctx) }

// left returns how many deliveries are neither handled nor parked, whenever
// they are due.
func (w *working) left() int {
	w.t.Helper()
	list, err := w.ledger.ClaimDeliveries(w.ctx, 1000, t0.Add(1000*time.Hour))
	w.ok(err)
	return len(list)
}

func personPush(sha string, at time.Duration) event {
	return push(octocat, repoID, "refs/heads/main", sha, at)
}

func always(err error, n int) (script []func() error) {
	for range n {
		script = append(script, func() error { return err })
	}
	return script
}

func TestWorker_HandlesStoredDeliveriesAndWakesTheObjects(t *testing.T) {
	w := newWorking(t)
	w.keep(1, personPush("c1", 0))
	w.keep(2, push(octocat, sourceID, "refs/heads/main", "s2", 0))
	w.keep(3, about("star", "created", octocat, repoID, "acme/x", 0))
	w.keep(4, syncPull(5, 0))
	w.sweep()
	w.Expect(w.inbox.notes()).To(HaveExactElements("done", "done", "done", "done"))
	w.Expect(w.woken).To(ConsistOf(repoRef, projectRef), "each once")
	w.Expect(w.left()).To(BeZero())
	f := w.facts()
	w.Expect(f.LastSHA).To(Equal("c1"))
	w.Expect(f.AheadSHA).To(Equal("s2"))
	w.Expect(f.Main.Number).To(Equal(5))
}

func TestWorker_HandlesOneRepositorysDeliveriesInTheOrderOfTheirReceipt(t *testing.T) {
	w := newWorking(t)
	var want []any
	for n := range 2*batch + 3 {
		sha := fmt.Sprintf("c%03d", n)
		want = append(want, sha)
		w.keep(1000-n, personPush(sha, time.Duration(n)*time.Second)) // ids run against the receipts
	}
	w.clock.SetTime(t0.Add(time.Hour))
	w.sweep()
	w.Expect(w.store.seen()).To(HaveExactElements(want...))
	w.Expect(w.left()).To(BeZero())
}

func TestWorker_R_HOOK_06_FiveTriesThenParked(t *testing.T) {
	w := newWorking(t, always(errors.New("token ghs_abcdef was refused"), 9)...)
	w.keep(1, personPush("c1", 0))
	for _, pause := range []time.Duration{0, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute} {
		if pause > 0 {
			w.clock.Step(pause - time.Second)
			tried := len(w.store.seen())
			w.sweep()
			w.Expect(w.store.seen()).To(HaveLen(tried), "not before its time")
			w.clock.Step(time.Second)
		}
		w.sweep()
	}
	w.Expect(w.store.seen()).To(HaveLen(5))
	w.Expect(w.inbox.notes()).To(HaveExactElements(
		"failed, parked=false, again after 30s: token [redacted] was refused",
		"failed, parked=false, again after 1m0s: token [redacted] was refused",
		"failed, parked=false, again after 2m0s: token [redacted] was refused",
		"failed, parked=false, again after 4m0s: token [redacted] was refused",
		HavePrefix("failed, parked=true")))
	w.Expect(w.left()).To(BeZero())
}

func TestWorker_R_HOOK_06_AnUnreadablePayloadIsParkedToo(t *testing.T) {
	w := newWorking(t)
	e := personPush("c1", 0)
	e.payload["ref"] = 7
	w.keep(1, e)
	for range 6 {
		w.sweep()
		w.clock.Step(time.Hour)
	}
	w.Expect(w.inbox.notes()).To(HaveLen(5))
	w.Expect(w.inbox.notes()[4]).To(HavePrefix("failed, parked=true"))
}

func TestWorker_R_HOOK_06_ASuccessAfterAFailure(t *testing.T) {
	w := newWorking(t, always(errGitHub, 1)...)
	w.keep(1, personPush("c1", 0))
	w.sweep()
	w.clock.Step(30 * time.Second)
	w.sweep()
	w.Expect(w.inbox.notes()).To(HaveExactElements(HavePrefix("failed, parked=false"), "done"))
	w.Expect(w.facts().LastSHA).To(Equal("c1"))
}

func TestWorker_R_HOOK_07_WhatSaysNothingAboutTheDeliverySpendsNoTry(t *testing.T) {
	for name, test := range map[string]struct {
		err  *fault.Error
		want string
	}{
		"a rate limit waits for its reset": {fault.New(fault.RateLimited, fault.ReasonRateLimited, "slow down").At(t0.Add(17 * time.Minute)), "deferred to 17m0s: slow down"},
		"a rate limit without a reset":     {fault.New(fault.RateLimited, fault.ReasonRateLimited, "slow down"), "deferred to 30s: slow down"},
		"a database that is away":          {fault.New(fault.Retryable, fault.ReasonDatabaseUnavailable, "no Postgres"), "deferred to 30s: no Postgres"},
		"an App that is not ready":         {fault.New(fault.Waiting, fault.ReasonAppNotReady, "not ready"), "deferred to 30s: not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorking(t, always(test.err, 9)...)
			w.keep(1, personPush("c1", 0))
			w.sweep()
			w.Expect(w.inbox.notes()).To(HaveExactElements(test.want))
			w.sweep()
			w.Expect(w.store.seen()).To(HaveLen(1), "not before its time")
			for range 9 {
				w.clock.Step(time.Hour)
				w.sweep()
			}
			w.Expect(w.inbox.notes()).To(HaveLen(10))
			w.Expect(w.inbox.notes()[9]).To(Equal("done"), "nine failures and it is not parked")
			w.Expect(w.facts().LastSHA).To(Equal("c1"))
		})
	}
}

func TestRetry_ADeliveryThatWaitedLongIsLookedAtLessOften(t *testing.T) {
	g := NewWithT(t)
	waiting := fault.New(fault.Waiting, fault.ReasonAppNotReady, "not ready")
	for age, pause := range map[time.Duration]time.Duration{0: 30 * time.Second, 2 * time.Minute: 2 * time.Minute, time.Hour: 5 * time.Minute} {
		at, spends := retry(waiting, domain.Delivery{ReceivedAt: t0.Add(-age)}, t0)
		g.Expect(spends).To(BeFalse())
		g.Expect(at.Sub(t0)).To(Equal(pause))
	}
}

func TestWorker_AnAppThatIsNotReadyLosesNoEvent(t *testing.T) {
	w := newWorking(t)
	w.bots.err = fault.New(fault.Waiting, fault.ReasonAppNotReady, "GitHubApp %q is not ready", app)
	w.keep(1, personPush("c1", 0))
	w.sweep()
	w.Expect(w.inbox.notes()).To(HaveExactElements(`deferred to 30s: GitHubApp "acme-app" is not ready`))

	w.bots.err = nil
	w.clock.Step(time.Minute)
	w.sweep()
	w.Expect(w.facts().LastSHA).To(Equal("c1"))

	w.bots.err = fault.New(fault.Waiting, fault.ReasonAppNotReady, "suspended")
	w.keep(2, personPush("c2", time.Minute))
	w.sweep()
	w.Expect(w.facts().LastSHA).To(Equal("c2"), "its account is known from before")
}

func TestWorker_APanicStopsNobodyElse(t *testing.T) {
	w := newWorking(t, func() error { panic("private-words") })
	var log strings.Builder
	w.worker.log = funcr.New(func(prefix, args string) { log.WriteString(prefix + args + "\n") }, funcr.Options{})
	w.keep(1, personPush("c1", 0))
	w.keep(2, syncPull(5, time.Second))
	w.sweep()
	w.Expect(w.inbox.notes()).To(HaveExactElements("failed, parked=false, again after 30s: the program failed at this push event; the log has the details", "done"))
	w.Expect(w.facts().Main.Number).To(Equal(5))
	w.Expect(log.String()).To(And(ContainSubstring("worker_test.go"), ContainSubstring("panicked"), Not(ContainSubstring("private-words"))))
	w.clock.Step(30 * time.Second)
	w.sweep()
	w.Expect(w.facts().LastSHA).To(Equal("c1"))
}

func TestWorker_StartSweepsByHintAndByTheClock(t *testing.T) {
	w := newWorking(t)
	ctx, stop := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.worker.Start(ctx) }()
	w.Eventually(w.clock.HasWaiters, patience).Should(BeTrue())

	w.keep(1, personPush("c1", 0))
	w.inbox.hints <- struct{}{}
	w.Eventually(w.store.seen, patience).Should(HaveExactElements("c1"))

	close(w.inbox.hints) // no more hints: the clock is the guarantee
	w.keep(2, personPush("c2", 1))
	w.Eventually(func() []string {
		w.clock.Step(sweepInterval)
		return w.store.seen()
	}, patience).Should(HaveExactElements("c1", "c2"))

	stop()
	w.Eventually(ended, patience).Should(Receive(BeNil()))
	w.Expect(w.worker.NeedLeaderElection()).To(BeTrue())
}

func TestWorker_StoppingGivesClaimsBackUnspent(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	w := newWorking(t, func() error { stop(); return ctx.Err() })
	w.keep(1, personPush("c1", 0))
	w.keep(2, personPush("c2", 1))
	w.worker.sweep(ctx)
	w.Expect(w.inbox.notes()).To(HaveExactElements(HavePrefix("deferred to 1s"), HavePrefix("deferred to 1s")))
	w.Expect(w.store.seen()).To(HaveLen(1), "the second one is not begun")

	w.clock.Step(resumeAfter)
	w.sweep() // the next leader's
	w.Expect(w.facts().LastSHA).To(Equal("c2"))
	w.Expect(w.left()).To(BeZero())
}

func TestWorker_SaysOnceThatTheDatabaseIsAway(t *testing.T) {
	w := newWorking(t)
	var log strings.Builder
	w.worker.log = funcr.New(func(prefix, args string) { log.WriteString(prefix + args + "\n") }, funcr.Options{})
	w.inbox.down = true
	for range 5 {
		w.sweep()
	}
	w.Expect(strings.Count(log.String(), "DatabaseUnavailable")).To(Equal(1))
	w.inbox.down = false
	w.keep(1, personPush("c1", 0))
	w.sweep()
	w.Expect(w.facts().LastSHA).To(Equal("c1"))
	w.Expect(log.String()).To(ContainSubstring("can be read again"))
}
