// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo plays the product's main job on real parts, each in a process of
// its own: a Kubernetes control plane, Postgres, a simulated GitHub, the
// controller and the webhook receiver. It tells what happens step by step,
// checks it, and stops all it started. With KEEP=1 in the environment it leaves
// everything running until Ctrl-C.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	keep := os.Getenv("KEEP")
	if err := demo(ctx, newTeller(os.Stdout), keep != "" && keep != "0"); err != nil {
		fmt.Fprintln(os.Stderr, "\nDEMO FAILED:", err)
		os.Exit(1) //nolint:gocritic // everything was stopped by demo
	}
}

// demo runs the story and returns what differed from it. Whatever it returns,
// all that it started has ended by then.
func demo(ctx context.Context, t *teller, keep bool) (err error) {
	dir, err := os.MkdirTemp("", "sluice-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary folder: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &parts{dir: dir, fail: cancel}
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
			err = cause // a process that ended by itself explains what came of it
		}
		if err != nil && ctx.Err() == nil {
			p.printTails(os.Stderr)
		}
		err = errors.Join(err, p.stop())
		if err == nil {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintln(os.Stderr, "\nlogs are kept in", filepath.Join(dir, "logs"))
		}
	}()
	if err := p.start(ctx, t); err != nil {
		return err
	}
	s := &story{teller: t, parts: p}
	if err := s.play(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return errors.New("interrupted")
		}
		return err
	}
	if keep {
		s.leaveRunning(ctx)
	}
	c := s.total
	t.line(fmt.Sprintf("DEMO OK opened=%d updated=%d upToDate=%d held=%d skipped=%d failed=%d", c.Opened, c.Updated, c.UpToDate, c.Held, c.Skipped, c.Failed))
	return nil
}
