// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sluice is the operator: the controller, the webhook receiver and the
// schema migration in one binary.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// databaseURLVariable is where the database's address comes from: a flag would
// show its password in the process list.
const databaseURLVariable = "SLUICE_DATABASE_URL"

// common are the flags every subcommand has.
type common struct {
	logFormat string
	logLevel  string
}

func main() {
	if err := root().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "sluice:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	var c common
	cmd := &cobra.Command{
		Use:           "sluice",
		Short:         "Hand one source repository out to many, and keep them in step",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&c.logFormat, "log-format", "json", "how logs are written: json or text")
	cmd.PersistentFlags().StringVar(&c.logLevel, "log-level", "info", "the least level logged: debug, info or error")
	cmd.AddCommand(controllerCommand(&c), receiverCommand(&c), migrateCommand(&c))
	return cmd
}

// logger returns the process's logger and makes it the one of the libraries.
func (c *common) logger() (logr.Logger, error) {
	var config zap.Config
	switch c.logFormat {
	case "json":
		config = zap.NewProductionConfig()
	case "text":
		config = zap.NewDevelopmentConfig()
	default:
		return logr.Logger{}, fmt.Errorf("--log-format %q is not known: use json or text", c.logFormat)
	}
	level, err := zapcore.ParseLevel(c.logLevel)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("--log-level %q is not known: use debug, info or error", c.logLevel)
	}
	config.Level = zap.NewAtomicLevelAt(level)
	config.EncoderConfig.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	config.DisableStacktrace = true
	z, err := config.Build()
	if err != nil {
		return logr.Logger{}, fmt.Errorf("setting up the log: %w", err)
	}
	log := zapr.NewLogger(z)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return log, nil
}

// databaseURL returns the database's address from the environment.
func databaseURL() (string, error) {
	if url := os.Getenv(databaseURLVariable); url != "" {
		return url, nil
	}
	return "", errors.New(databaseURLVariable + " is not set: set it to a Postgres URL, e.g. postgres://sluice@postgres:5432/sluice")
}
