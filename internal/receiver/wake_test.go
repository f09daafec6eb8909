// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/sluice-dev/sluice/internal/domain"
)

// objectMap is a Store whose objects are all of one project.
type objectMap struct {
	Store
	fail error
}

func (o objectMap) ObjectsFor(_ context.Context, _ string, id int64) ([]domain.ObjectRef, error) {
	return []domain.ObjectRef{{Kind: domain.KindProjectSync, ObjectKey: domain.ObjectKey{Namespace: "n", Name: "p"}}}, o.fail
}

func deliveryOf(event string, at time.Time) wake {
	return wake{app: app, repositoryID: 1, event: domain.Event{ID: guid, Event: event, ReceivedAt: at}}
}

func TestWakeQueue_OneObjectIsWokenOnceASecondWithTheNewestEvent(t *testing.T) {
	g := NewWithT(t)
	clock, w := testingclock.NewFakeClock(t0), &woken{}
	q := newWakeQueue(objectMap{}, w, clock, logr.Discard())
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		q.run(stop)
	}()

	q.offer(deliveryOf("first", t0))
	g.Eventually(w.seen, patience).Should(ConsistOf("GitHubApp /acme-app first", "ProjectSync n/p first"))
	q.offer(deliveryOf("second", t0.Add(1)))
	q.offer(deliveryOf("newest", t0.Add(3)))
	q.offer(deliveryOf("late", t0.Add(2)))
	g.Eventually(func() int { return len(q.offered) }, patience).Should(BeZero())
	g.Eventually(clock.HasWaiters, patience).Should(BeTrue())
	g.Expect(w.seen()).To(HaveLen(2))

	g.Eventually(func() []string {
		clock.Step(wakeInterval)
		return w.seen()
	}, patience).Should(HaveLen(4))
	g.Expect(w.seen()[2:]).To(ConsistOf("GitHubApp /acme-app newest", "ProjectSync n/p newest"))
	close(stop)
	g.Eventually(stopped, patience).Should(BeClosed())
	g.Expect(w.seen()).To(HaveLen(4))
}

func TestWakeQueue_DrainsWithoutWaitingForTheSecond(t *testing.T) {
	g := NewWithT(t)
	w := &woken{}
	q := newWakeQueue(objectMap{}, w, testingclock.NewFakeClock(t0), logr.Discard())
	q.last[domain.ObjectRef{Kind: domain.KindProjectSync, ObjectKey: domain.ObjectKey{Namespace: "n", Name: "p"}}] = t0
	q.offer(deliveryOf("push", t0))
	stop := make(chan struct{})
	close(stop)
	q.run(stop)
	g.Expect(w.seen()).To(ConsistOf("GitHubApp /acme-app push", "ProjectSync n/p push"))
}

func TestWakeQueue_IsBoundedAndNeverBlocks(t *testing.T) {
	g := NewWithT(t)
	q := newWakeQueue(objectMap{}, &woken{}, testingclock.NewFakeClock(t0), logr.Discard())
	for range 2 * maxOffered {
		q.offer(deliveryOf("push", t0))
	}
	g.Expect(q.offered).To(HaveLen(maxOffered))
	for n := range maxWaiting + 10 {
		q.wait(domain.ObjectRef{Kind: domain.KindRepoReconcile, ObjectKey: domain.ObjectKey{Name: time.Duration(n).String()}}, domain.Event{})
	}
	g.Expect(q.waiting).To(HaveLen(maxWaiting))
}

func TestWakeQueue_AFailureIsDropped(t *testing.T) {
	g := NewWithT(t)
	w := &woken{fail: errors.New("no API server")}
	q := newWakeQueue(objectMap{fail: errors.New("no Postgres")}, w, testingclock.NewFakeClock(t0), logr.Discard())
	q.offer(deliveryOf("push", t0))
	stop := make(chan struct{})
	close(stop)
	q.run(stop)
	g.Expect(w.seen()).To(ContainElement("GitHubApp /acme-app push"))
	g.Expect(q.waiting).To(BeEmpty())
	g.Expect(q.busy).To(BeEmpty())
}
