// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package receiver is the HTTP edge of `sluice receiver`: it verifies a webhook
// delivery, stores it, answers, and only then pokes the objects concerned. It
// makes no call to GitHub and decides nothing about a delivery's meaning; the
// leader reads what is stored (internal/intake).
package receiver

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Store is the ledger as the receiver needs it.
type Store interface {
	// StoreDelivery stores a delivery and its receipt in one transaction and
	// reports whether it was new.
	StoreDelivery(ctx context.Context, d domain.Delivery, receipt *domain.Receipt) (stored bool, err error)
	// ObjectsFor returns the objects of an App that a repository concerns, by
	// GitHub's id; none for a repository nobody knows.
	ObjectsFor(ctx context.Context, app string, githubID int64) ([]domain.ObjectRef, error)
	// Ready returns nil when deliveries can be stored.
	Ready(ctx context.Context) error
}

// Secrets knows the webhook secrets of an App.
type Secrets interface {
	// WebhookSecrets returns all secrets that a delivery to the GitHubApp of
	// that name may be signed with, none of them empty, and known=false when
	// there is no such GitHubApp. An error means that it cannot be told now.
	WebhookSecrets(ctx context.Context, app string) (secrets [][]byte, known bool, err error)
}

// Waker makes an object's controller look at it again.
type Waker interface {
	// Wake writes the event to the object's status. A missing object is no
	// error.
	Wake(ctx context.Context, ref domain.ObjectRef, e domain.Event) error
}

// DefaultMaxBody is the largest payload that GitHub sends, in bytes.
const DefaultMaxBody = 25 << 20

// Options of a Receiver. Store, Secrets, Waker and Clock are required.
type Options struct {
	Store   Store
	Secrets Secrets
	Waker   Waker
	// Clock stamps receipts: the only time that decides "before the deadline"
	// (R-CORE-04).
	Clock  clock.Clock
	Logger logr.Logger
	// MaxBody is the largest body taken, in bytes; default DefaultMaxBody.
	MaxBody int64
}

// Receiver takes deliveries in.
type Receiver struct {
	store   Store
	secrets Secrets
	clock   clock.Clock
	log     logr.Logger
	refused *sometimes
	maxBody int64
	memory  *budget
	wakes   *wakeQueue

	stopping atomic.Bool
	ready    struct {
		sync.Mutex
		until time.Time
		err   error
	}
}

// New returns a Receiver. It needs neither Postgres nor the API server to be
// there yet; an error names the option that is missing.
func New(o Options) (*Receiver, error) {
	for name, missing := range map[string]bool{
		"Store": o.Store == nil, "Secrets": o.Secrets == nil, "Waker": o.Waker == nil, "Clock": o.Clock == nil,
	} {
		if missing {
			return nil, fmt.Errorf("receiver: option %s is required", name)
		}
	}
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	return &Receiver{
		store: o.Store, secrets: o.Secrets, clock: o.Clock, log: o.Logger,
		refused: newSometimes(o.Clock),
		maxBody: o.MaxBody,
		memory:  newBudget(bodiesInMemory * o.MaxBody),
		wakes:   newWakeQueue(o.Store, o.Waker, o.Clock, o.Logger),
	}, nil
}

// Handler returns the endpoint: POST /webhooks/<GitHubApp name>, and GET
// /healthz and /readyz for the kubelet.
func (r *Receiver) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /webhooks/{app}", r.deliver)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answerText(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", r.readyz)
	return mux
}

// readyFor is how long an answer of Ready stands, so that an open endpoint
// cannot be used to busy the database.
const (
	readyFor     = time.Second
	readyTimeout = 2 * time.Second
)

// readyz answers 200 when a delivery could be stored now. Anybody may ask, so
// it tells a reason's word and no address.
func (r *Receiver) readyz(w http.ResponseWriter, req *http.Request) {
	if r.stopping.Load() {
		answerText(w, http.StatusServiceUnavailable, "stopping")
		return
	}
	if err := r.askReady(req.Context()); err != nil {
		answerText(w, http.StatusServiceUnavailable, string(fault.Of(err).Reason))
		return
	}
	answerText(w, http.StatusOK, "ok")
}

func (r *Receiver) askReady(ctx context.Context) error {
	r.ready.Lock()
	defer r.ready.Unlock()
	now := r.clock.Now()
	if now.Before(r.ready.until) {
		return r.ready.err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	before := r.ready.err
	r.ready.err = r.store.Ready(ctx)
	r.ready.until = now.Add(readyFor)
	if f := fault.Of(r.ready.err); f != nil && before == nil {
		r.log.Info("Not ready: deliveries cannot be stored", "reason", f.Reason, "detail", f.Message)
	}
	return r.ready.err
}

// Time limits of the server. GitHub gives an answer ten seconds.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 20 * time.Second
	writeTimeout      = 40 * time.Second
	idleTimeout       = 2 * time.Minute
	shutdownTimeout   = 15 * time.Second
	maxHeaderBytes    = 16 << 10
)

// Serve answers on the listener until ctx ends, then finishes what it has
// accepted and briefly sends the wake-ups that are left. It returns nil after
// an orderly end. Call it once.
func (r *Receiver) Serve(ctx context.Context, l net.Listener) error {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		r.wakes.run(stop)
	}()
	defer func() {
		close(stop)
		<-stopped
	}()

	server := &http.Server{
		Handler:           r.Handler(),
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(serverLog{r.log}, "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	r.log.Info("Receiving webhooks", "address", l.Addr().String())
	select {
	case err := <-ended:
		return fmt.Errorf("receiving webhooks on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	return r.shutdown(ctx, server)
}

func (r *Receiver) shutdown(ctx context.Context, server *http.Server) error {
	r.stopping.Store(true)
	r.log.Info("Stopping: finishing the deliveries under way")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("deliveries were still under way after %s and are cut off; GitHub lists them as failed: %w", shutdownTimeout, err), server.Close())
	}
	return nil
}

// serverLog passes net/http's own lines on: broken connections and panics.
type serverLog struct{ log logr.Logger }

func (s serverLog) Write(line []byte) (int, error) {
	s.log.V(1).Info("HTTP server", "detail", strings.TrimSpace(string(line)))
	return len(line), nil
}
