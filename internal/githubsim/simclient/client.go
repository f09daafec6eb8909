// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simclient controls a simulator over HTTP: it acts as a person on
// GitHub, makes faults, and looks at what there is.
package simclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-dev/sluice/internal/githubsim"
)

// Client talks to the simulator at URL.
type Client struct {
	URL string
}

// New returns a client of the simulator at url.
func New(url string) *Client { return &Client{URL: strings.TrimSuffix(url, "/")} }

func call[Out any](ctx context.Context, c *Client, verb string, in any) (Out, error) {
	var out Out
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/_sim/"+verb, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return out, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return out, err
	}
	if resp.StatusCode != http.StatusOK {
		return out, fmt.Errorf("simulator: %s: %s", verb, strings.TrimSpace(string(answer)))
	}
	return out, json.Unmarshal(answer, &out)
}

func do(ctx context.Context, c *Client, verb string, in any) error {
	_, err := call[githubsim.Empty](ctx, c, verb, in)
	return err
}

// Organization makes an organization.
func (c *Client) Organization(ctx context.Context, login string) error {
	_, err := call[githubsim.AccountReply](ctx, c, "organization", githubsim.AccountRequest{Login: login})
	return err
}

// User makes a person and returns a token for git and REST.
func (c *Client) User(ctx context.Context, login string) (token string, err error) {
	r, err := call[githubsim.AccountReply](ctx, c, "user", githubsim.AccountRequest{Login: login})
	return r.Token, err
}

// App makes a GitHub App.
func (c *Client) App(ctx context.Context, a githubsim.AppRequest) (githubsim.AppReply, error) {
	return call[githubsim.AppReply](ctx, c, "app", a)
}

// Hook sets where an App's webhooks go.
func (c *Client) Hook(ctx context.Context, app int64, url, secret string) error {
	return do(ctx, c, "hook", githubsim.HookRequest{App: app, URL: url, Secret: secret})
}

// Install installs an App on an account.
func (c *Client) Install(ctx context.Context, app int64, account string) error {
	_, err := call[githubsim.InstallReply](ctx, c, "install", githubsim.InstallRequest{App: app, Account: account})
	return err
}

// Suspend suspends or unsuspends an installation.
func (c *Client) Suspend(ctx context.Context, app int64, account string, suspended bool) error {
	return do(ctx, c, "suspend", githubsim.InstallRequest{App: app, Account: account, Suspended: suspended})
}

// Uninstall removes an installation.
func (c *Client) Uninstall(ctx context.Context, app int64, account string) error {
	return do(ctx, c, "uninstall", githubsim.InstallRequest{App: app, Account: account})
}

// Repository makes an empty private repository.
func (c *Client) Repository(ctx context.Context, fullName string) (id int64, err error) {
	r, err := call[githubsim.RepositoryReply](ctx, c, "repository", githubsim.RepositoryRequest{Repository: fullName})
	return r.ID, err
}

// Commit makes a commit on a branch as a person and returns its object id. An
// empty content removes a file.
func (c *Client) Commit(ctx context.Context, repository, branch, login, message string, files map[string]string) (sha string, err error) {
	r, err := call[githubsim.CommitReply](ctx, c, "commit", githubsim.CommitRequest{Repository: repository, Branch: branch, Login: login, Message: message, Files: files})
	return r.SHA, err
}

// Merge merges a pull request by "merge" or "squash", really making the
// commit, and returns it.
func (c *Client) Merge(ctx context.Context, repository string, number int, method, login string) (sha string, err error) {
	r, err := call[githubsim.CommitReply](ctx, c, "merge", githubsim.PullRequest{Repository: repository, Number: number, Method: method, Login: login})
	return r.SHA, err
}

// SetState closes ("closed") or reopens ("open") a pull request.
func (c *Client) SetState(ctx context.Context, repository string, number int, state, login string) error {
	return do(ctx, c, "state", githubsim.PullRequest{Repository: repository, Number: number, State: state, Login: login})
}

// DeleteBranch deletes a branch.
func (c *Client) DeleteBranch(ctx context.Context, repository, branch, login string) error {
	return do(ctx, c, "deletebranch", githubsim.CommitRequest{Repository: repository, Branch: branch, Login: login})
}

// Rename renames a repository within its owner.
func (c *Client) Rename(ctx context.Context, repository, newName string) error {
	return do(ctx, c, "rename", githubsim.RepositoryRequest{Repository: repository, NewName: newName})
}

// Archive archives or unarchives a repository.
func (c *Client) Archive(ctx context.Context, repository string, archived bool) error {
	return do(ctx, c, "archive", githubsim.RepositoryRequest{Repository: repository, Archived: archived})
}

// DeleteRepository deletes a repository.
func (c *Client) DeleteRepository(ctx context.Context, repository string) error {
	return do(ctx, c, "deleterepository", githubsim.RepositoryRequest{Repository: repository})
}

// Look returns what a repository holds.
func (c *Client) Look(ctx context.Context, repository string) (githubsim.Look, error) {
	return call[githubsim.Look](ctx, c, "look", githubsim.RepositoryRequest{Repository: repository})
}

// TakeRequests returns the request log since the last call, and empties it.
func (c *Client) TakeRequests(ctx context.Context) ([]githubsim.Request, error) {
	return call[[]githubsim.Request](ctx, c, "requests", githubsim.Empty{})
}

// Fault makes matching requests fail.
func (c *Client) Fault(ctx context.Context, f githubsim.Fault) error { return do(ctx, c, "fault", f) }

// ClearFaults ends all faults.
func (c *Client) ClearFaults(ctx context.Context) error {
	return do(ctx, c, "clearfaults", githubsim.Empty{})
}

// Advance moves the simulator's clock ahead.
func (c *Client) Advance(ctx context.Context, by time.Duration) error {
	return do(ctx, c, "advance", githubsim.AdvanceRequest{By: by})
}

// Flush waits until every webhook queued so far was answered.
func (c *Client) Flush(ctx context.Context) error { return do(ctx, c, "flush", githubsim.Empty{}) }

// GitURL returns a repository's address with a person's token in it. It is for
// tests and demos only: the product never puts a token into an address.
func (c *Client) GitURL(repository, token string) string {
	scheme, rest, _ := strings.Cut(c.URL, "://")
	return scheme + "://x-access-token:" + token + "@" + rest + "/" + repository + ".git"
}
