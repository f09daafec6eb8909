// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Command githubsim runs the GitHub simulator alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/githubsim"
)

// config is what the command line says.
type config struct{ listen, url, data, seed string }

func main() {
	var c config
	flag.StringVar(&c.listen, "listen", "127.0.0.1:8010", "address to serve GitHub's API, git and the control interface on")
	flag.StringVar(&c.url, "url", "", "address that answers and webhooks name; default: the one it listens on")
	flag.StringVar(&c.data, "data", "", "folder for the repositories, without any yet; default: a temporary one, removed at the end")
	flag.StringVar(&c.seed, "seed", "", "YAML file of organizations, users, repositories, Apps and faults to start with")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, c, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "githubsim:", err)
		os.Exit(1)
	}
}

// run serves until the context ends. On out it tells what the seed made, then
// "ready" and the address; on problems, every answer GitHub would not give.
func run(ctx context.Context, c config, out, problems io.Writer) error {
	clk, err := clock.Process(ctx)
	if err != nil {
		return err
	}
	if c.data == "" {
		dir, err := os.MkdirTemp("", "githubsim-")
		if err != nil {
			return fmt.Errorf("making a temporary folder: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		c.data = dir
	}
	s, err := githubsim.New(githubsim.Options{Dir: c.data, Clock: clk, BaseURL: c.url, OnInvalid: func(err error) {
		_, _ = fmt.Fprintln(problems, "githubsim: an answer GitHub would not give:", err)
	}})
	if err != nil {
		return err
	}
	url, stop, err := s.Listen(ctx, c.listen)
	if err != nil {
		return err
	}
	defer stop()
	if err := seed(s, c.seed, out); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, "ready", url)
	<-ctx.Done()
	return nil
}

// seed plays a scenario and tells what it made.
func seed(s *githubsim.Server, file string, out io.Writer) error {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the seed: %w", err)
	}
	scenario, err := githubsim.ReadScenario(text)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	made, err := s.Play(scenario)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for _, login := range slices.Sorted(maps.Keys(made.Tokens)) {
		_, _ = fmt.Fprintf(out, "user %s has the token %s\n", login, made.Tokens[login])
	}
	for _, slug := range slices.Sorted(maps.Keys(made.Apps)) {
		app := made.Apps[slug]
		_, _ = fmt.Fprintf(out, "app %s has the id %d, its bot the user id %d\n%s", slug, app.ID, app.BotUserID, app.PrivateKey)
	}
	return nil
}
