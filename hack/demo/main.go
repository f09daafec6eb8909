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
// all that it started has ended by then; the last line is printed after that.
func demo(signaled context.Context, t *teller, keep bool) error {
	dir, err := os.MkdirTemp("", "sluice-demo-")
	if err != nil {
		return fmt.Errorf("making a temporary folder: %w", err)
	}
	ctx, cancel := context.WithCancelCause(signaled)
	defer cancel(nil)
	p := &parts{dir: dir, fail: cancel}
	s := &story{teller: t, parts: p}
	err = s.run(ctx, keep)
	switch {
	case signaled.Err() != nil:
		if err != nil {
			err = errors.New("interrupted")
		}
	case ctx.Err() != nil:
		err = context.Cause(ctx) // a process that ended by itself explains what came of it
	}
	if err != nil && signaled.Err() == nil {
		p.printTails(os.Stderr)
	}
	if s.watch != nil {
		s.watch.stop() // before what it watches is gone
	}
	if err := errors.Join(err, p.stop()); err != nil {
		if signaled.Err() != nil {
			return errors.Join(err, os.RemoveAll(dir))
		}
		return fmt.Errorf("%w\nlogs are kept in %s", err, filepath.Join(dir, "logs"))
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	c := s.total
	t.line(fmt.Sprintf("DEMO OK opened=%d updated=%d upToDate=%d held=%d skipped=%d failed=%d", c.Opened, c.Updated, c.UpToDate, c.Held, c.Skipped, c.Failed))
	return nil
}

// run starts the parts, plays the story and, if asked to, waits for Ctrl-C.
func (s *story) run(ctx context.Context, keep bool) error {
	if err := s.start(ctx, s.teller); err != nil {
		return err
	}
	if err := s.play(ctx); err != nil {
		return err
	}
	if keep {
		s.leaveRunning(ctx)
	}
	return nil
}
