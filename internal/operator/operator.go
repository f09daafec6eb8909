// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator builds the processes out of their parts: it is the only
// package that knows all of them.
package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/controllers"
	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/git"
	"github.com/sluice-dev/sluice/internal/github"
	"github.com/sluice-dev/sluice/internal/intake"
	"github.com/sluice-dev/sluice/internal/ledger"
	"github.com/sluice-dev/sluice/internal/pass"
	"github.com/sluice-dev/sluice/internal/provision"
)

// DefaultControllerName is the spec.controllerName that this installation
// works with unless told otherwise.
const DefaultControllerName = v1alpha1.DefaultControllerName

// leaderElectionID names the Lease of the controllers.
const leaderElectionID = "sluice-controller"

// Options of the controller process.
type Options struct {
	Logger      logr.Logger
	Clock       clock.Clock
	DatabaseURL string
	// ResourceNamespace holds the GitHubApps' Secrets.
	ResourceNamespace string
	ControllerName    string
	// WatchNamespaces bounds what is watched; none means all.
	WatchNamespaces []string
	// DataDir holds git mirrors; it may be emptied while nothing runs.
	DataDir                      string
	MetricsAddress, ProbeAddress string

	LeaderElection                            bool
	LeaderElectionNamespace                   string
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// MeasureClock corrects Clock by the database's. Off in tests that move
	// the clock.
	MeasureClock bool
	// SkipNameValidation lets several managers run in one process: tests.
	SkipNameValidation bool
}

// Scheme holds the kinds the product reads and writes.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // kinds are registered at build time
		}
	}
	return s
}

// New returns the controller process as a manager that is ready to start. It
// needs neither Postgres nor GitHub to be there yet.
func New(c *rest.Config, o Options) (manager.Manager, error) {
	ctrl.SetLogger(o.Logger)
	mgr, err := ctrl.NewManager(c, managerOptions(o))
	if err != nil {
		return nil, fmt.Errorf("setting up the manager: %w", err)
	}
	db, err := ledger.Open(context.Background(), o.DatabaseURL, ledger.Options{Logger: o.Logger.WithName("ledger")})
	if err != nil {
		return nil, err
	}
	clk := o.Clock
	if o.MeasureClock {
		measured := &databaseClock{db: db, log: o.Logger.WithName("clock")}
		clk = clock.Corrected{Clock: o.Clock, Offset: measured.offset}
		if err := mgr.Add(measured); err != nil {
			return nil, err
		}
	}
	if err := addWork(mgr, o, db, clk); err != nil {
		return nil, err
	}
	if err := mgr.Add(closeAtEnd{db}); err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("alive", func(*http.Request) error { return nil }); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("database", func(r *http.Request) error {
		if err := db.Ready(r.Context()); err != nil {
			return errors.New(fault.Of(err).Message)
		}
		return nil
	})
}

func managerOptions(o Options) ctrl.Options {
	byNamespace := map[string]cache.Config{}
	for _, n := range o.WatchNamespaces {
		byNamespace[n] = cache.Config{}
	}
	m := ctrl.Options{
		Scheme: Scheme(), Logger: o.Logger, Metrics: metricsserver.Options{BindAddress: o.MetricsAddress}, HealthProbeBindAddress: o.ProbeAddress,
		Cache: cache.Options{DefaultNamespaces: byNamespace},
		// A reconcile that follows its own write at once must see it: one that
		// decides on an older status would leave what it no longer wants.
		Client:         client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		LeaderElection: o.LeaderElection, LeaderElectionID: leaderElectionID, LeaderElectionNamespace: o.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{SkipNameValidation: &o.SkipNameValidation},
	}
	if o.LeaseDuration > 0 {
		m.LeaseDuration, m.RenewDeadline, m.RetryPeriod = &o.LeaseDuration, &o.RenewDeadline, &o.RetryPeriod
	}
	return m
}

// addWork adds everything the leader does to the manager.
func addWork(mgr manager.Manager, o Options, db *ledger.Ledger, clk clock.Clock) error {
	runner, err := git.New(context.Background(), git.Options{Dir: filepath.Join(o.DataDir, "mirrors"), Clock: clk, Logger: o.Logger.WithName("git")})
	if err != nil {
		return err
	}
	registry := github.NewRegistry()
	waker := controllers.NewWaker()
	grants := controllers.Grants{Reader: mgr.GetClient()}
	holder, err := holderName()
	if err != nil {
		return err
	}
	engine, err := pass.New(pass.Options{Store: db, GitHub: clients[pass.Client]{registry, passClient}, Git: passGit{runner}, Authorizer: grants,
		Clock: clk, Logger: o.Logger.WithName("pass"), Holder: holder, Changed: waker.Wake})
	if err != nil {
		return err
	}
	inbox, err := newInbox(o, db, registry, waker, clk)
	if err != nil {
		return err
	}
	for _, r := range []manager.Runnable{engine, inbox} {
		if err := mgr.Add(r); err != nil {
			return err
		}
	}
	return addControllers(mgr, o, db, clk, engine, registry, runner, grants, waker)
}

func newInbox(o Options, db *ledger.Ledger, registry *github.Registry, waker *controllers.Waker, clk clock.Clock) (*intake.Worker, error) {
	in, err := intake.New(intake.Options{Store: db, NotFound: domain.ErrNotFound, Ahead: aheadCounter{registry}, Bots: bots{registry}, Clock: clk,
		Logger: o.Logger.WithName("intake"), Wake: waker.Wake})
	if err != nil {
		return nil, err
	}
	return intake.NewWorker(in, db)
}

func addControllers(mgr manager.Manager, o Options, db *ledger.Ledger, clk clock.Clock, engine *pass.Engine, registry *github.Registry, runner *git.Git, grants controllers.Grants, waker *controllers.Waker) error {
	// Secrets are read from the API server itself: no cache holds their values.
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("setting up the uncached client: %w", err)
	}
	name := o.ControllerName
	if name == "" {
		name = DefaultControllerName
	}
	recorder := mgr.GetEventRecorder("sluice")
	app := &controllers.GitHubAppReconciler{Client: mgr.GetClient(), Secrets: direct, Apps: &apps{registry: registry, clock: clk, known: map[string]connected{}},
		Recorder: recorder, Clock: clk, ResourceNamespace: o.ResourceNamespace, ControllerName: name}
	if err := app.SetupWithManager(mgr, waker); err != nil {
		return err
	}
	project := &controllers.ProjectSyncReconciler{Client: mgr.GetClient(), Ledger: db, Engine: engine, Grants: grants, Recorder: recorder, Clock: clk}
	if err := project.SetupWithManager(mgr, waker); err != nil {
		return err
	}
	provisioner := &provision.Provisioner{Store: db, GitHub: clients[provision.Client]{registry, provisionClient}, Git: provisionGit{runner}, Authorizer: grants, Clock: clk}
	repository := &controllers.RepoReconcileReconciler{Client: mgr.GetClient(), Ledger: db, Provisioner: provisioner, Recorder: recorder, Clock: clk}
	return repository.SetupWithManager(mgr, waker)
}

// holderName is unique for each start of the process.
func holderName() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("reading the host's name: %w", err)
	}
	return host + "/" + uuid.NewString(), nil
}

// closeAtEnd closes the database when the manager stops.
type closeAtEnd struct{ db *ledger.Ledger }

// Start waits for the end.
func (c closeAtEnd) Start(ctx context.Context) error {
	<-ctx.Done()
	c.db.Close()
	return nil
}

// databaseClock measures how far the database's clock is from ours, at the
// start and every minute.
type databaseClock struct {
	db   *ledger.Ledger
	log  logr.Logger
	diff atomic.Int64
}

// measureEvery is how often the clocks are compared.
const measureEvery = time.Minute

func (d *databaseClock) offset() time.Duration { return time.Duration(d.diff.Load()) }

// NeedLeaderElection is false: every process needs the time.
func (d *databaseClock) NeedLeaderElection() bool { return false }

// Start measures until ctx ends.
func (d *databaseClock) Start(ctx context.Context) error {
	ticker := time.NewTicker(measureEvery)
	defer ticker.Stop()
	for {
		if offset, err := d.db.ClockOffset(ctx); err == nil {
			d.diff.Store(int64(offset))
		} else if ctx.Err() == nil {
			d.log.Info("Comparing clocks with the database failed; it is tried again", "reason", fault.Of(err).Reason)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
