// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/operator"
)

func controllerCommand(c *common) *cobra.Command {
	o := operator.Options{}
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the controllers, the sync passes and the inbox",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Logger, err = c.logger(); err != nil {
				return err
			}
			if o.DatabaseURL, err = databaseURL(); err != nil {
				return err
			}
			if o.Clock, err = clock.Process(cmd.Context()); err != nil {
				return err
			}
			o.MeasureClock = true
			if o.ResourceNamespace == "" {
				return errors.New("--resource-namespace is not set: name the namespace that holds the GitHubApps' Secrets")
			}
			config, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			mgr, err := operator.New(config, o)
			if err != nil {
				return err
			}
			return mgr.Start(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.ResourceNamespace, "resource-namespace", "", "namespace that holds the GitHubApps' Secrets")
	f.StringVar(&o.ControllerName, "controller-name", operator.DefaultControllerName, "GitHubApps with this spec.controllerName are ours")
	f.StringSliceVar(&o.WatchNamespaces, "watch-namespace", nil, "namespaces to watch; none means all")
	f.StringVar(&o.DataDir, "data-dir", "/var/lib/sluice", "folder for git mirrors; may be emptied at any time")
	f.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address of the metrics endpoint; 0 switches it off")
	f.StringVar(&o.ProbeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	f.BoolVar(&o.LeaderElection, "leader-elect", true, "elect a leader among replicas; only the leader works")
	f.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "", "namespace of the Lease; default: the pod's own")
	f.DurationVar(&o.LeaseDuration, "leader-lease-duration", 15*time.Second, "how long a leader holds without renewal")
	f.DurationVar(&o.RenewDeadline, "leader-renew-deadline", 10*time.Second, "how long a leader tries to renew before it gives up")
	f.DurationVar(&o.RetryPeriod, "leader-retry-period", 2*time.Second, "how often a lease is tried")
	return cmd
}
