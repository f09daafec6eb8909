// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Command githubsim runs the GitHub simulator alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sluice-dev/sluice/internal/githubsim"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8010", "address to serve GitHub's API, git and the control interface on")
	data := flag.String("data", "", "folder for the repositories; default: a temporary one, removed at the end")
	flag.Parse()
	if err := run(*listen, *data); err != nil {
		fmt.Fprintln(os.Stderr, "githubsim:", err)
		os.Exit(1)
	}
}

func run(listen, data string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if data == "" {
		dir, err := os.MkdirTemp("", "githubsim-")
		if err != nil {
			return fmt.Errorf("making a temporary folder: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		data = dir
	}
	s, err := githubsim.New(githubsim.Options{Dir: data, OnInvalid: func(err error) {
		fmt.Fprintln(os.Stderr, "githubsim: an answer GitHub would not give:", err)
	}})
	if err != nil {
		return err
	}
	url, stop, err := s.Listen(ctx, listen)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Println("ready", url)
	<-ctx.Done()
	return nil
}
