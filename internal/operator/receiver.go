// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"net"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/ledger"
	"github.com/sluice-dev/sluice/internal/receiver"
)

// ReceiverOptions of the receiver process.
type ReceiverOptions struct {
	Logger            logr.Logger
	Clock             clock.Clock
	DatabaseURL       string
	Address           string
	MetricsAddress    string
	ResourceNamespace string
	ControllerName    string
	// Listening is told the address served, for port 0; may be nil.
	Listening func(net.Addr)
}

// receiverConns bounds the receiver's connections to Postgres.
const receiverConns = 4

// RunReceiver serves webhooks until ctx ends. It starts before Postgres is
// there and is ready when it is.
func RunReceiver(ctx context.Context, c *rest.Config, o ReceiverOptions) error {
	ctrl.SetLogger(o.Logger)
	db, err := ledger.Open(ctx, o.DatabaseURL, ledger.Options{Logger: o.Logger.WithName("ledger"), MaxConns: receiverConns})
	if err != nil {
		return err
	}
	defer db.Close()
	direct, err := client.New(c, client.Options{Scheme: Scheme()})
	if err != nil {
		return fmt.Errorf("setting up the client: %w", err)
	}
	kube, err := receiver.NewKube(direct, o.ResourceNamespace, receiver.KubeOptions{ControllerName: o.ControllerName, Clock: o.Clock, Logger: o.Logger.WithName("kube")})
	if err != nil {
		return err
	}
	r, err := receiver.New(receiver.Options{Store: db, Secrets: kube, Waker: kube, Clock: o.Clock, Logger: o.Logger.WithName("receiver")})
	if err != nil {
		return err
	}
	stopMetrics, err := serveMetrics(ctx, c, o)
	if err != nil {
		return err
	}
	defer stopMetrics()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", o.Address, err)
	}
	if o.Listening != nil {
		o.Listening(l.Addr())
	}
	return r.Serve(ctx, l)
}

// serveMetrics serves /metrics until the returned function is called.
func serveMetrics(ctx context.Context, c *rest.Config, o ReceiverOptions) (stop func(), err error) {
	if o.MetricsAddress == "" || o.MetricsAddress == "0" {
		return func() {}, nil
	}
	httpClient, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("setting up the metrics endpoint: %w", err)
	}
	server, err := metricsserver.NewServer(metricsserver.Options{BindAddress: o.MetricsAddress}, c, httpClient)
	if err != nil || server == nil {
		return func() {}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Start(ctx); err != nil && ctx.Err() == nil {
			o.Logger.Error(err, "Serving metrics failed")
		}
	}()
	return func() { cancel(); <-done }, nil
}
