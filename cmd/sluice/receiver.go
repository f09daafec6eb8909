// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/operator"
)

func receiverCommand(c *common) *cobra.Command {
	o := operator.ReceiverOptions{}
	cmd := &cobra.Command{
		Use:   "receiver",
		Short: "Run the webhook endpoint",
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
			if o.ResourceNamespace == "" {
				return errors.New("--resource-namespace is not set: name the namespace that holds the GitHubApps' Secrets")
			}
			config, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			return operator.RunReceiver(cmd.Context(), config, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Address, "bind-address", ":8443", "address of the webhook endpoint, /healthz and /readyz")
	f.StringVar(&o.ControllerName, "controller-name", operator.DefaultControllerName, "GitHubApps with this spec.controllerName are ours")
	f.StringVar(&o.MetricsAddress, "metrics-bind-address", ":8080", "address of the metrics endpoint; 0 switches it off")
	f.StringVar(&o.ResourceNamespace, "resource-namespace", "", "namespace that holds the GitHubApps' Secrets")
	return cmd
}
