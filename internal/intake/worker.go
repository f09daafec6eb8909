// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Inbox is the ledger's stored deliveries as the worker needs them.
type Inbox interface {
	// ClaimDeliveries claims up to n unhandled deliveries that are due, in
	// the order of their receipt. A claim expires.
	ClaimDeliveries(ctx context.Context, n int, now time.Time) ([]domain.Delivery, error)
	// DeliveryDone marks a delivery handled.
	DeliveryDone(ctx context.Context, app, guid string, now time.Time) error
	// DeliveryFailed spends a try; after the fifth the delivery is parked.
	DeliveryFailed(ctx context.Context, app, guid, message string, retryAt, now time.Time) (parked bool, err error)
	// DeliveryDeferred gives a claim back without spending a try.
	DeliveryDeferred(ctx context.Context, app, guid, message string, retryAt time.Time) error
	// Wakeups hints at new deliveries.
	Wakeups(ctx context.Context) <-chan struct{}
}

const (
	// sweepInterval is how often the worker looks by itself: hints get lost.
	sweepInterval = time.Second
	// batch is how many deliveries are claimed at once, few enough to be
	// handled well within a claim's life.
	batch = 32
	// reposAtOnce is how many repositories' deliveries are handled at once.
	reposAtOnce = 4
	// firstRetry doubles with each failed try: 30 s, 1, 2 and 4 min
	// (R-HOOK-06).
	firstRetry = 30 * time.Second
	// deferMin and deferMax bound the pause of a delivery that waits for
	// something: as long as it has waited already.
	deferMin = 30 * time.Second
	deferMax = 5 * time.Minute
	// resumeAfter is when an interrupted delivery is taken up again.
	resumeAfter = time.Second
	// settleTimeout bounds the last write about a delivery, which also a
	// stopping process makes.
	settleTimeout = 5 * time.Second
)

var (
	handled = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_inbox_deliveries_total",
		Help: "Stored webhook deliveries by what handling them came to: done, deferred (no try spent), failed (tried again) or parked (given up).",
	}, []string{"result"})
	handlingAge = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "sluice_inbox_delay_seconds",
		Help:    "Time from a delivery's receipt to its being handled.",
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
	})
)

func init() { metrics.Registry.MustRegister(handled, handlingAge) }

// Worker handles stored deliveries. It is a manager's Runnable that only the
// leader runs.
type Worker struct {
	intake *Intake
	inbox  Inbox
	clock  clock.Clock
	log    logr.Logger
	// down is true while the inbox cannot be read, so that this is said once.
	down bool
}

// NewWorker returns a Worker that applies an inbox's deliveries by an Intake.
func NewWorker(i *Intake, inbox Inbox) (*Worker, error) {
	if i == nil || inbox == nil {
		return nil, errors.New("intake: a worker needs an Intake and an Inbox")
	}
	return &Worker{intake: i, inbox: inbox, clock: i.clock, log: i.log.WithName("inbox")}, nil
}

// NeedLeaderElection returns true: one process handles deliveries.
func (w *Worker) NeedLeaderElection() bool { return true }

// Start handles deliveries until ctx ends. It always returns nil: a database
// that is away is waited for.
func (w *Worker) Start(ctx context.Context) error {
	hints := w.inbox.Wakeups(ctx)
	ticker := w.clock.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		w.sweep(ctx)
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-hints:
			if !open {
				hints = nil // the ticker goes on
			}
		case <-ticker.C():
		}
	}
}

// sweep handles all deliveries that are due.
func (w *Worker) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		claimed, err := w.inbox.ClaimDeliveries(ctx, batch, w.clock.Now())
		w.sayWhetherDown(ctx, err)
		if err != nil || len(claimed) == 0 {
			return
		}
		w.handleBatch(ctx, claimed)
	}
}

func (w *Worker) sayWhetherDown(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !w.down:
		w.down = true
		w.log.Info("Reading stored deliveries failed; it is tried every second", "reason", fault.Of(err).Reason, "detail", message(err))
	case err == nil && w.down:
		w.down = false
		w.log.Info("Stored deliveries can be read again")
	}
}

// job is a delivery with what it says; err is why that is not known.
type job struct {
	delivery domain.Delivery
	changes  []domain.Change
	err      error
}

// handleBatch handles deliveries, those of one repository one after the other
// in the order of their receipt, and wakes the objects concerned.
func (w *Worker) handleBatch(ctx context.Context, claimed []domain.Delivery) {
	var woken refSet
	queues := make(chan []job)
	var workers sync.WaitGroup
	for range reposAtOnce {
		workers.Go(func() {
			for jobs := range queues {
				for _, j := range jobs {
					woken.add(w.handle(ctx, j))
				}
			}
		})
	}
	for _, jobs := range w.byRepository(claimed) {
		queues <- jobs
	}
	close(queues)
	workers.Wait()
	for ref := range woken.refs {
		w.intake.wake(ref)
	}
}

// byRepository sorts deliveries by the repository they are about, keeping
// their order. One about none, or unreadable, stands alone.
func (w *Worker) byRepository(claimed []domain.Delivery) [][]job {
	var queues [][]job
	place := map[int64]int{}
	for _, d := range claimed {
		j := w.read(d)
		if len(j.changes) == 0 {
			queues = append(queues, []job{j})
			continue
		}
		id := j.changes[0].Repository.ID
		n, known := place[id]
		if !known {
			n = len(queues)
			place[id] = n
			queues = append(queues, nil)
		}
		queues[n] = append(queues[n], j)
	}
	return queues
}

// read normalises a delivery.
func (w *Worker) read(d domain.Delivery) (j job) {
	j.delivery = d
	if j.err = w.guarded(d, func() error {
		bot, err := w.intake.bot(d.App)
		if err != nil {
			return err
		}
		j.changes, err = Normalise(d, bot)
		return err
	}); j.err != nil {
		j.changes = nil
	}
	return j
}

// handle applies a delivery's changes and settles it in the inbox.
func (w *Worker) handle(ctx context.Context, j job) (refs []domain.ObjectRef) {
	err := j.err
	for _, c := range j.changes {
		if err != nil || ctx.Err() != nil {
			break
		}
		err = w.guarded(j.delivery, func() error {
			found, err := w.intake.Apply(ctx, c)
			refs = append(refs, found...)
			return err
		})
	}
	if ctx.Err() != nil {
		err = ctx.Err() // whatever else it looks like
	}
	w.settle(ctx, j.delivery, err)
	return refs
}

// guarded makes a panic an error: one delivery must not stop the others, and
// what a panic says may quote its payload.
func (w *Worker) guarded(d domain.Delivery, f func() error) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		what := fmt.Sprintf("%T", v)
		if known, ok := v.(runtime.Error); ok {
			what = known.Error()
		}
		w.log.Error(nil, "Handling a delivery panicked", "app", d.App, "delivery", d.GUID, "event", d.Event, "panic", what, "stack", string(debug.Stack()))
		err = fault.New(fault.Retryable, fault.ReasonUnexpected, "the program failed at this %s event; the log has the details", d.Event)
	}()
	return f()
}

// settle says in the inbox how a delivery went. When even that fails the claim
// expires, and the delivery is handled again.
func (w *Worker) settle(ctx context.Context, d domain.Delivery, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	now := w.clock.Now()
	log := w.log.WithValues("app", d.App, "delivery", d.GUID, "event", d.Event)
	result := "done"
	var settleErr error
	switch retryAt, spends := retry(err, d, now); {
	case err == nil:
		settleErr = w.inbox.DeliveryDone(ctx, d.App, d.GUID, now)
		handlingAge.Observe(now.Sub(d.ReceivedAt).Seconds())
		log.V(1).Info("Handled delivery")
	case !spends:
		result = "deferred"
		settleErr = w.inbox.DeliveryDeferred(ctx, d.App, d.GUID, message(err), retryAt)
		log.V(1).Info("Put a delivery off", "reason", fault.Of(err).Reason, "detail", message(err), "retryAt", retryAt)
	default:
		result = "failed"
		var parked bool
		if parked, settleErr = w.inbox.DeliveryFailed(ctx, d.App, d.GUID, message(err), retryAt, now); parked {
			result = "parked"
			log.Error(nil, "Gave a delivery up after five tries: it is parked", "reason", fault.Of(err).Reason, "detail", message(err))
		} else {
			log.Info("Handling a delivery failed; it is tried again", "reason", fault.Of(err).Reason, "detail", message(err), "retryAt", retryAt)
		}
	}
	if settleErr != nil {
		log.Info("Settling a delivery failed; it is handled again when its claim expires", "reason", fault.Of(settleErr).Reason, "detail", message(settleErr))
		return
	}
	handled.WithLabelValues(result).Inc()
}

// retry returns when a delivery that failed is tried again, and whether that
// spends one of its tries. GitHub's limits (R-HOOK-07), a database that is
// away, an App that is not ready and a process that stops spend none: they say
// nothing about the delivery.
func retry(err error, d domain.Delivery, now time.Time) (at time.Time, spends bool) {
	if err == nil {
		return now, false
	}
	f := fault.Of(err)
	switch {
	case f.Reason == fault.ReasonInterrupted:
		return now.Add(resumeAfter), false
	case f.Class == fault.RateLimited, f.Class == fault.Waiting, f.Class == fault.Blocked, f.Reason == fault.ReasonDatabaseUnavailable:
		if f.RetryAt.After(now) {
			return f.RetryAt, false
		}
		return now.Add(min(max(now.Sub(d.ReceivedAt), deferMin), deferMax)), false
	}
	return now.Add(firstRetry << min(d.Attempts, 10)), true
}

// refSet gathers the objects of a batch.
type refSet struct {
	mu   sync.Mutex
	refs map[domain.ObjectRef]bool
}

func (s *refSet) add(refs []domain.ObjectRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range refs {
		if s.refs == nil {
			s.refs = map[domain.ObjectRef]bool{}
		}
		s.refs[ref] = true
	}
}
