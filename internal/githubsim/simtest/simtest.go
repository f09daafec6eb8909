// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simtest starts a simulator for a test. The test fails on any answer
// that GitHub's description does not allow, and on any request that was
// accepted although the description does not allow it.
package simtest

import (
	"context"
	"testing"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/githubsim"
	"github.com/sluice-dev/sluice/internal/githubsim/simclient"
)

// Start serves a simulator on a free port until the test ends and returns its
// control client. A nil clock is the machine's.
func Start(t testing.TB, clk clock.Clock) *simclient.Client {
	t.Helper()
	c, _ := StartServer(t, githubsim.Options{Clock: clk})
	return c
}

// StartServer is Start with options, and returns the server as well. The
// folder and the report of invalid answers are filled in when missing.
func StartServer(t testing.TB, o githubsim.Options) (*simclient.Client, *githubsim.Server) {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.OnInvalid == nil {
		o.OnInvalid = func(err error) { t.Errorf("simulator: %v", err) }
	}
	s, err := githubsim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	url, stop, err := s.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return simclient.New(url), s
}

// Fixture is an organization with an App installed on it.
type Fixture struct {
	*simclient.Client
	Org       string
	AppID     int64
	BotUserID int64
	Slug      string
	Key       []byte
}

// NewFixture makes an organization and an App installed on it.
func NewFixture(t testing.TB, c *simclient.Client, org, slug string) Fixture {
	t.Helper()
	ctx := context.Background()
	if err := c.Organization(ctx, org); err != nil {
		t.Fatal(err)
	}
	app, err := c.App(ctx, githubsim.AppRequest{Slug: slug, Owner: org})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Install(ctx, app.ID, org); err != nil {
		t.Fatal(err)
	}
	return Fixture{Client: c, Org: org, AppID: app.ID, BotUserID: app.BotUserID, Slug: slug, Key: []byte(app.PrivateKey)}
}
