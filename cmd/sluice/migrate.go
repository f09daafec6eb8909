// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/ledger"
)

func migrateCommand(c *common) *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema to this release's version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := c.logger()
			if err != nil {
				return err
			}
			url, err := databaseURL()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), wait)
			defer cancel()
			return migrate(ctx, url, log)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 5*time.Minute, "how long to wait for Postgres to answer")
	return cmd
}

// migrate waits for Postgres with backoff, so that a Job started with the
// database does not fail for being early.
func migrate(ctx context.Context, url string, log logr.Logger) error {
	clk := clock.Real()
	for attempt := 1; ; attempt++ {
		from, to, err := ledger.Migrate(ctx, url, func(line string) { log.Info(line) })
		if err == nil {
			log.Info("The schema is current", "from", from, "to", to)
			return nil
		}
		if !fault.Is(err, fault.ReasonDatabaseUnavailable) {
			return err
		}
		log.Info("Waiting for Postgres", "attempt", attempt, "message", fault.Of(err).Message)
		timer := clk.NewTimer(min(domain.RetryDelay(attempt)/15, 10*time.Second))
		select {
		case <-ctx.Done():
			timer.Stop()
			return err
		case <-timer.C():
		}
	}
}
