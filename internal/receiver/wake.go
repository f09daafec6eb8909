// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

const (
	// wakeInterval is the least time between two wake-ups of one object; what
	// comes in between is one wake-up with the newest event.
	wakeInterval = time.Second
	// wakeTimeout bounds one wake-up, and one look at the object map.
	wakeTimeout = 2 * time.Second
	// wakesAtOnce is how many wake-ups are under way.
	wakesAtOnce = 4
	// maxOffered and maxWaiting bound what waits; more is dropped.
	maxOffered = 1024
	maxWaiting = 4096
	// drainTime is what a stopping process spends on what waits.
	drainTime = 3 * time.Second
)

// wake is a stored delivery whose objects are to be woken.
type wake struct {
	app          string
	repositoryID int64 // GitHub's; 0 when about none
	event        domain.Event
}

// wakeQueue wakes objects after deliveries were answered. It may drop anything:
// a wake-up is a hint, the leader looks for stored deliveries by itself.
type wakeQueue struct {
	store   Store
	waker   Waker
	clock   clock.Clock
	log     logr.Logger
	offered chan wake

	// All below belongs to the goroutine of run.
	waiting map[domain.ObjectRef]domain.Event
	last    map[domain.ObjectRef]time.Time // when last woken
	busy    map[domain.ObjectRef]bool
	done    chan domain.ObjectRef
}

func newWakeQueue(s Store, w Waker, c clock.Clock, log logr.Logger) *wakeQueue {
	return &wakeQueue{
		store: s, waker: w, clock: c, log: log,
		offered: make(chan wake, maxOffered),
		waiting: map[domain.ObjectRef]domain.Event{},
		last:    map[domain.ObjectRef]time.Time{},
		busy:    map[domain.ObjectRef]bool{},
		done:    make(chan domain.ObjectRef, wakesAtOnce),
	}
}

// offer never blocks.
func (q *wakeQueue) offer(w wake) {
	select {
	case q.offered <- w:
	default:
		wakeups.WithLabelValues("dropped").Inc()
	}
}

// run wakes objects until stop is closed, and then spends at most drainTime on
// what is left.
func (q *wakeQueue) run(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		due, stopTimer := q.startDue(ctx)
		select {
		case <-stop:
			stopTimer()
			q.drain()
			return
		case w := <-q.offered:
			q.resolve(ctx, w)
		case ref := <-q.done:
			delete(q.busy, ref)
		case <-due:
		}
		stopTimer()
	}
}

// startDue starts the wake-ups that are due and returns a channel that tells
// when the next one will be; nil when none waits for time alone.
func (q *wakeQueue) startDue(ctx context.Context) (due <-chan time.Time, stop func()) {
	now := q.clock.Now()
	for ref, at := range q.last {
		if now.Sub(at) >= wakeInterval {
			delete(q.last, ref)
		}
	}
	next := time.Duration(-1)
	for ref := range q.waiting {
		if q.busy[ref] || len(q.busy) >= wakesAtOnce {
			continue // looked at again when one is done
		}
		if at, woken := q.last[ref]; woken {
			if left := at.Add(wakeInterval).Sub(now); next < 0 || left < next {
				next = left
			}
			continue
		}
		q.start(ctx, ref, now)
	}
	if next < 0 {
		return nil, func() {}
	}
	timer := q.clock.NewTimer(next)
	return timer.C(), func() { timer.Stop() }
}

func (q *wakeQueue) start(ctx context.Context, ref domain.ObjectRef, now time.Time) {
	event := q.waiting[ref]
	delete(q.waiting, ref)
	q.busy[ref], q.last[ref] = true, now
	go func() {
		defer func() { q.done <- ref }()
		ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
		defer cancel()
		if err := q.waker.Wake(ctx, ref, event); err != nil {
			wakeups.WithLabelValues("failed").Inc()
			q.log.V(1).Info("Waking an object failed; the leader finds the delivery by itself",
				"kind", ref.Kind, "namespace", ref.Namespace, "name", ref.Name, "delivery", event.ID, "detail", fault.Of(err).Message)
			return
		}
		wakeups.WithLabelValues("done").Inc()
	}()
}

// resolve finds the objects that a delivery concerns: the App's own, and those
// of the repository.
func (q *wakeQueue) resolve(ctx context.Context, w wake) {
	refs := []domain.ObjectRef{{Kind: domain.KindGitHubApp, ObjectKey: domain.ObjectKey{Name: w.app}}}
	if w.repositoryID != 0 {
		ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
		defer cancel()
		found, err := q.store.ObjectsFor(ctx, w.app, w.repositoryID)
		if err != nil {
			q.log.V(1).Info("Finding the objects of a delivery failed; the leader finds the delivery by itself", "delivery", w.event.ID, "detail", fault.Of(err).Message)
		}
		refs = append(refs, found...)
	}
	for _, ref := range refs {
		q.wait(ref, w.event)
	}
}

// wait keeps the newest event of an object.
func (q *wakeQueue) wait(ref domain.ObjectRef, e domain.Event) {
	known, ok := q.waiting[ref]
	switch {
	case ok && known.ReceivedAt.After(e.ReceivedAt):
	case !ok && len(q.waiting) >= maxWaiting:
		wakeups.WithLabelValues("dropped").Inc()
	default:
		q.waiting[ref] = e
	}
}

// drain wakes what is left without the interval's wait.
func (q *wakeQueue) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	for left := true; left && ctx.Err() == nil; {
		select {
		case w := <-q.offered:
			q.resolve(ctx, w)
		default:
			left = false
		}
	}
	for ctx.Err() == nil && len(q.waiting)+len(q.busy) > 0 {
		clear(q.last)
		_, stop := q.startDue(ctx)
		stop()
		select {
		case ref := <-q.done:
			delete(q.busy, ref)
		case <-ctx.Done():
		}
	}
}
