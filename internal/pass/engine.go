// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pass does a project's sync work: it builds the distribution, judges
// requests and takes every downstream repository through its turn. The work
// list is Postgres: what is to do follows from rows alone, so a process that
// was killed anywhere takes up where the rows say it was.
package pass

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

const (
	// idlePoll bounds how long work can lie unseen when a wake-up was lost.
	idlePoll = 30 * time.Second
	// renewEvery keeps a lease far from its end (R-LEASE-05).
	renewEvery = domain.LeaseDuration / 10
	// terminalRetry is how often a fault is looked at again that only a
	// change should end: it costs little and needs no special path.
	terminalRetry = 10 * time.Minute
	// statusEvery bounds how often a running pass asks for a status write.
	statusEvery = 2 * time.Second
)

// Options are what an Engine needs. All but Changed, Workers and Logger are
// required.
type Options struct {
	Store      Store
	GitHub     GitHub
	Git        Git
	Authorizer Authorizer
	Clock      clock.Clock
	Logger     logr.Logger
	// Holder names this process in leases; unique per process start.
	Holder string
	// Changed is told which objects to look at again.
	Changed func(domain.ObjectRef)
	// Workers is how many projects are worked on at once; default 4.
	Workers int
}

// Engine works on projects that have work. It is a manager Runnable that needs
// leader election.
type Engine struct {
	Options
	wake chan struct{}

	mu       sync.Mutex
	inFlight map[int64]bool
	attempts map[int64]int
	// unreleased are leases that could not be given back while the database
	// was away; kept, they would keep everybody from the project until they
	// expire.
	unreleased []domain.Lease
}

// New returns an Engine, or an error naming the option that is missing.
func New(o Options) (*Engine, error) {
	switch {
	case o.Store == nil:
		return nil, errors.New("pass: Options.Store is required")
	case o.GitHub == nil:
		return nil, errors.New("pass: Options.GitHub is required")
	case o.Git == nil:
		return nil, errors.New("pass: Options.Git is required")
	case o.Authorizer == nil:
		return nil, errors.New("pass: Options.Authorizer is required")
	case o.Clock == nil:
		return nil, errors.New("pass: Options.Clock is required")
	case o.Holder == "":
		return nil, errors.New("pass: Options.Holder is required")
	}
	if o.Changed == nil {
		o.Changed = func(domain.ObjectRef) {}
	}
	if o.Workers == 0 {
		o.Workers = 4
	}
	return &Engine{Options: o, wake: make(chan struct{}, 1), inFlight: map[int64]bool{}, attempts: map[int64]int{}}, nil
}

// Wake makes the engine look for work now. It never blocks.
func (e *Engine) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// NeedLeaderElection keeps the engine to the leader.
func (e *Engine) NeedLeaderElection() bool { return true }

// Start works until ctx ends and returns when all work in flight has stopped.
func (e *Engine) Start(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, e.Workers)
	takenOver := false
	for {
		if !takenOver {
			takenOver = e.takeOver(ctx)
		}
		e.releaseAgain(ctx)
		for _, id := range e.due(ctx) {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			running.Add(1)
			go func() {
				defer running.Done()
				defer func() { <-slots; e.finished(id) }()
				e.work(ctx, id)
			}()
		}
		timer := e.Clock.NewTimer(e.untilNext(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-e.wake:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// takeOver frees the leases of processes that no longer lead; the fencing
// token keeps what they may still do from being recorded (R-LEASE-05).
func (e *Engine) takeOver(ctx context.Context) bool {
	n, err := e.Store.TakeOverLeases(ctx, e.Holder, e.Clock.Now())
	if err != nil {
		e.Logger.Info("Waiting for the database before taking over leases", "reason", fault.Of(err).Reason)
		return false
	}
	if n > 0 {
		e.Logger.Info("Took over leases of a former leader", "leases", n)
	}
	return true
}

// releaseAgain gives back the leases that a lost database kept from it.
func (e *Engine) releaseAgain(ctx context.Context) {
	e.mu.Lock()
	leases := e.unreleased
	e.unreleased = nil
	e.mu.Unlock()
	for i, l := range leases {
		err := e.Store.ReleaseLease(ctx, l)
		if err == nil || fault.Is(err, fault.ReasonLeaseLost) {
			continue
		}
		e.mu.Lock()
		e.unreleased = append(e.unreleased, leases[i:]...)
		e.mu.Unlock()
		return
	}
}

// due returns the projects with work that are not in flight, and marks them.
func (e *Engine) due(ctx context.Context) []int64 {
	ids, err := e.Store.ProjectsWithWork(ctx, e.Clock.Now())
	if err != nil {
		if ctx.Err() == nil {
			e.Logger.Info("Looking for work failed; it is tried again", "reason", fault.Of(err).Reason)
		}
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	free := ids[:0]
	for _, id := range ids {
		if !e.inFlight[id] {
			e.inFlight[id] = true
			free = append(free, id)
		}
	}
	return free
}

func (e *Engine) finished(id int64) {
	e.mu.Lock()
	delete(e.inFlight, id)
	e.mu.Unlock()
	e.Wake()
}

func (e *Engine) untilNext(ctx context.Context) time.Duration {
	at, ok, err := e.Store.NextWorkAt(ctx)
	if err != nil {
		return firstPoll
	}
	if !ok {
		return idlePoll
	}
	return min(max(at.Sub(e.Clock.Now()), 100*time.Millisecond), idlePoll)
}

// firstPoll is how soon a database that does not answer is asked again.
const firstPoll = 2 * time.Second

// work holds the project's lease and does what its rows ask for.
func (e *Engine) work(ctx context.Context, id int64) {
	log := e.Logger.WithValues("project", id)
	lease, ok, err := e.Store.ClaimLease(ctx, id, e.Holder, e.Clock.Now())
	if err != nil {
		log.Info("Claiming the lease failed; it is tried again", "reason", fault.Of(err).Reason)
		e.pause(ctx)
		return
	}
	if !ok {
		// Another holder works on it; nothing to do until the lease is free.
		e.pause(ctx)
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	renewed := e.keepRenewing(ctx, cancel, lease)
	err = e.step(ctx, lease)
	cancel(nil)
	<-renewed
	e.settleError(context.WithoutCancel(ctx), lease, err)
}

// pause keeps a project that cannot be claimed from being tried in a tight
// loop.
func (e *Engine) pause(ctx context.Context) {
	t := e.Clock.NewTimer(firstPoll)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C():
	}
}

// keepRenewing renews the lease until ctx ends, and cancels the work when the
// lease is lost (R-LEASE-05). The channel closes when it has stopped.
func (e *Engine) keepRenewing(ctx context.Context, cancel context.CancelCauseFunc, l domain.Lease) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := e.Clock.NewTicker(renewEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
				_, err := e.Store.RenewLease(ctx, l, e.Clock.Now())
				if fault.Is(err, fault.ReasonLeaseLost) {
					cancel(err)
					return
				}
			}
		}
	}()
	return done
}

// settleError records what stopped the work, if anything did, and gives the
// lease back. It runs after ctx ended too, within a bound of its own.
func (e *Engine) settleError(ctx context.Context, l domain.Lease, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	log := e.Logger.WithValues("project", l.ProjectID)
	f := fault.Of(err)
	switch {
	case err == nil:
		e.resetAttempts(l.ProjectID)
		if cerr := e.Store.ClearProblem(ctx, l.ProjectID); cerr != nil {
			log.Info("Clearing the problem failed", "reason", fault.Of(cerr).Reason)
		}
	case f.Reason == fault.ReasonLeaseLost || f.Reason == fault.ReasonInterrupted:
		log.Info("Stopping work on the project", "reason", f.Reason)
	default:
		p := e.problem(l.ProjectID, f)
		log.Info("Work on the project has to wait", "reason", f.Reason, "message", f.Message, "retryAt", p.RetryAt)
		if rerr := e.Store.RecordProblem(ctx, l.ProjectID, p); rerr != nil {
			log.Info("Recording the problem failed", "reason", fault.Of(rerr).Reason)
		}
	}
	if rerr := e.Store.ReleaseLease(ctx, l); rerr != nil && !fault.Is(rerr, fault.ReasonLeaseLost) {
		log.Info("Giving the lease back failed; it is tried again", "reason", fault.Of(rerr).Reason)
		e.mu.Lock()
		e.unreleased = append(e.unreleased, l)
		e.mu.Unlock()
	}
	if p, perr := e.Store.Project(ctx, l.ProjectID); perr == nil {
		e.changed(p)
	}
}

// problem turns a fault into a row: what is shown, and when it is tried again.
func (e *Engine) problem(id int64, f *fault.Error) domain.Problem {
	now := e.Clock.Now()
	e.mu.Lock()
	e.attempts[id]++
	n := e.attempts[id]
	e.mu.Unlock()
	retry := f.RetryAt
	if retry.IsZero() {
		retry = now.Add(domain.RetryDelay(n))
		if f.Class == fault.Terminal {
			retry = now.Add(terminalRetry)
		}
	}
	return domain.Problem{Class: string(f.Class), Reason: string(f.Reason), Message: f.Message, At: now, RetryAt: retry}
}

func (e *Engine) resetAttempts(id int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.attempts, id)
}

func (e *Engine) changed(p domain.Project) {
	e.Changed(domain.ObjectRef{Kind: domain.KindProjectSync, ObjectKey: p.Object})
}

// step does one thing that the project's rows ask for: a build, a pass to
// resume, or a request to judge and carry out. It returns nil when there was
// nothing to do.
func (e *Engine) step(ctx context.Context, l domain.Lease) error {
	p, err := e.Store.Project(ctx, l.ProjectID)
	if err != nil {
		return err
	}
	if p.Stage == domain.StageArchived {
		return e.endArchived(ctx, l, p)
	}
	if p.Suspended {
		return nil
	}
	if !p.Built() {
		if err := e.build(ctx, l, p); err != nil {
			return cause(ctx, err)
		}
		e.changed(p)
		return nil
	}
	active, found, err := e.Store.ActivePass(ctx, p.ID)
	if err != nil {
		return err
	}
	if !found {
		active, found, err = e.nextPass(ctx, l, p)
		if err != nil || !found {
			return cause(ctx, err)
		}
	}
	e.changed(p)
	return cause(ctx, e.run(ctx, l, active))
}

// endArchived stops what an archived project still had under way, quietly
// (R-SYNC-01), and refuses its waiting requests.
func (e *Engine) endArchived(ctx context.Context, l domain.Lease, p domain.Project) error {
	now := e.Clock.Now()
	if active, found, err := e.Store.ActivePass(ctx, p.ID); err != nil {
		return err
	} else if found {
		return e.Store.AbandonPass(ctx, l, active.ID, now)
	}
	r, found, err := e.Store.NextRequest(ctx, p.ID, now)
	if err != nil || !found {
		return err
	}
	return e.refuse(ctx, l, p, r, fault.New(fault.Terminal, fault.ReasonProjectArchived,
		"the project is archived: set spec.stage to Published to sync it again"))
}

// cause returns the reason a context was cancelled for, when that is what made
// err: a lost lease reads better than "context canceled".
func cause(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if c := context.Cause(ctx); c != nil && fault.Is(c, fault.ReasonLeaseLost) {
		return c
	}
	return fault.Wrap(err, fault.Waiting, fault.ReasonInterrupted, "interrupted; it is taken up again")
}
