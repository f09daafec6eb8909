// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simclient controls a simulator over HTTP: it acts as a person on
// GitHub, makes faults, and looks at what there is.
//
// Where a login is asked for, an unknown one becomes a user and an empty one
// is "somebody". Acts of this package need no permission and meet no ruleset,
// except for Merge: use a person's token with git or REST to be refused.
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
		return out, fmt.Errorf("simulator: %s: %w", verb, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/_sim/"+verb, bytes.NewReader(body))
	if err != nil {
		return out, fmt.Errorf("simulator: %s: %w", verb, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return out, fmt.Errorf("simulator: %s: %w", verb, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return out, fmt.Errorf("simulator: %s: %w", verb, err)
	}
	if resp.StatusCode != http.StatusOK {
		return out, fmt.Errorf("simulator: %s: %s", verb, strings.TrimSpace(string(answer)))
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return out, fmt.Errorf("simulator: %s: %w", verb, err)
	}
	return out, nil
}

func do(ctx context.Context, c *Client, verb string, in any) error {
	_, err := call[json.RawMessage](ctx, c, verb, in)
	return err
}

// Accounts and Apps

// Organization makes an organization; one that exists is left as it is.
func (c *Client) Organization(ctx context.Context, login string) error {
	return c.ConfigureOrganization(ctx, githubsim.AccountRequest{Login: login})
}

// ConfigureOrganization makes an organization, or changes one's plan and base
// permission.
func (c *Client) ConfigureOrganization(ctx context.Context, a githubsim.AccountRequest) error {
	return do(ctx, c, "organization", a)
}

// User makes a person, unless there is one, and returns a token for git and
// REST. What it may do follows from Member and Collaborator.
func (c *Client) User(ctx context.Context, login string) (token string, err error) {
	r, err := call[githubsim.AccountReply](ctx, c, "user", githubsim.AccountRequest{Login: login})
	return r.Token, err
}

// Member makes a person a "member" or "admin" of an organization; an empty
// role ends it.
func (c *Client) Member(ctx context.Context, organization, login, role string) error {
	return do(ctx, c, "member", githubsim.MemberRequest{Organization: organization, Login: login, Role: role})
}

// App makes a GitHub App.
func (c *Client) App(ctx context.Context, a githubsim.AppRequest) (githubsim.AppReply, error) {
	return call[githubsim.AppReply](ctx, c, "app", a)
}

// Hook sets where an App's webhooks go. An App that is made with a hook pings
// it; one whose hook is changed does not.
func (c *Client) Hook(ctx context.Context, app int64, url, secret string) error {
	return do(ctx, c, "hook", githubsim.HookRequest{App: app, URL: url, Secret: secret})
}

// Ping sends an App's hook the event that greets a new one.
func (c *Client) Ping(ctx context.Context, app int64) error {
	return do(ctx, c, "ping", githubsim.AppQuery{App: app})
}

// Install installs an App on an account, for all repositories.
func (c *Client) Install(ctx context.Context, app int64, account string) error {
	return do(ctx, c, "install", githubsim.InstallRequest{App: app, Account: account})
}

// InstallOn installs an App for some repositories of an account, by their
// names without the owner.
func (c *Client) InstallOn(ctx context.Context, app int64, account string, repositories ...string) error {
	return do(ctx, c, "install", githubsim.InstallRequest{App: app, Account: account, Repositories: append([]string{}, repositories...)})
}

// Select limits an installation to some repositories of its account.
func (c *Client) Select(ctx context.Context, app int64, account string, repositories ...string) error {
	return do(ctx, c, "select", githubsim.InstallRequest{App: app, Account: account, Repositories: append([]string{}, repositories...)})
}

// SelectAll lets an installation cover all repositories of its account.
func (c *Client) SelectAll(ctx context.Context, app int64, account string) error {
	return do(ctx, c, "select", githubsim.InstallRequest{App: app, Account: account})
}

// Suspend suspends or unsuspends an installation.
func (c *Client) Suspend(ctx context.Context, app int64, account string, suspended bool) error {
	return do(ctx, c, "suspend", githubsim.InstallRequest{App: app, Account: account, Suspended: suspended})
}

// Uninstall removes an installation. Its tokens end.
func (c *Client) Uninstall(ctx context.Context, app int64, account string) error {
	return do(ctx, c, "uninstall", githubsim.InstallRequest{App: app, Account: account})
}

// Quota sets how many requests of this hour an installation has left; a limit
// of 0 leaves the hour's limit as it is.
func (c *Client) Quota(ctx context.Context, app int64, account string, limit, remaining int) error {
	return do(ctx, c, "quota", githubsim.InstallRequest{App: app, Account: account, Limit: limit, Remaining: remaining})
}

// Repositories

// Repository makes an empty private repository.
func (c *Client) Repository(ctx context.Context, fullName string) (id int64, err error) {
	r, err := call[githubsim.RepositoryReply](ctx, c, "repository", githubsim.RepositoryRequest{Repository: fullName})
	return r.ID, err
}

// PublicRepository makes an empty public repository.
func (c *Client) PublicRepository(ctx context.Context, fullName string) (id int64, err error) {
	r, err := call[githubsim.RepositoryReply](ctx, c, "repository", githubsim.RepositoryRequest{Repository: fullName, Public: true})
	return r.ID, err
}

// Commit makes a commit on a branch as a person and returns its object id. An
// empty content removes a file. A missing branch starts from the default
// branch.
func (c *Client) Commit(ctx context.Context, repository, branch, login, message string, files map[string]string) (sha string, err error) {
	return c.MakeCommit(ctx, githubsim.CommitRequest{Repository: repository, Branch: branch, Login: login, Message: message, Files: files})
}

// MakeCommit is Commit with everything that can be said about one.
func (c *Client) MakeCommit(ctx context.Context, in githubsim.CommitRequest) (sha string, err error) {
	r, err := call[githubsim.CommitReply](ctx, c, "commit", in)
	return r.SHA, err
}

// MoveBranch puts a branch on a commit or on another branch, as a person's
// forced push would, and returns the commit. A missing branch is made.
func (c *Client) MoveBranch(ctx context.Context, repository, branch, to, login string) (sha string, err error) {
	r, err := call[githubsim.CommitReply](ctx, c, "branch", githubsim.CommitRequest{Repository: repository, Branch: branch, To: to, Login: login})
	return r.SHA, err
}

// DeleteBranch deletes a branch.
func (c *Client) DeleteBranch(ctx context.Context, repository, branch, login string) error {
	return do(ctx, c, "deletebranch", githubsim.CommitRequest{Repository: repository, Branch: branch, Login: login})
}

// Rename renames a repository within its owner.
func (c *Client) Rename(ctx context.Context, repository, newName string) error {
	return do(ctx, c, "rename", githubsim.RepositoryRequest{Repository: repository, NewName: newName})
}

// Transfer gives a repository another owner.
func (c *Client) Transfer(ctx context.Context, repository, newOwner string) error {
	return do(ctx, c, "transfer", githubsim.RepositoryRequest{Repository: repository, NewOwner: newOwner})
}

// Archive archives or unarchives a repository.
func (c *Client) Archive(ctx context.Context, repository string, archived bool) error {
	return do(ctx, c, "archive", githubsim.RepositoryRequest{Repository: repository, Archived: archived})
}

// SetPublic makes a repository public or private.
func (c *Client) SetPublic(ctx context.Context, repository string, public bool) error {
	return do(ctx, c, "visibility", githubsim.RepositoryRequest{Repository: repository, Public: public})
}

// Block lets GitHub close a repository (451), or open it again.
func (c *Client) Block(ctx context.Context, repository string, blocked bool) error {
	return do(ctx, c, "block", githubsim.RepositoryRequest{Repository: repository, Blocked: blocked})
}

// DeleteRepository deletes a repository.
func (c *Client) DeleteRepository(ctx context.Context, repository string) error {
	return do(ctx, c, "deleterepository", githubsim.RepositoryRequest{Repository: repository})
}

// Collaborator gives a person access (pull, triage, push, maintain, admin)
// without an invitation; an empty permission takes it away.
func (c *Client) Collaborator(ctx context.Context, repository, login, permission string) error {
	return do(ctx, c, "collaborator", githubsim.CollaboratorRequest{Repository: repository, Login: login, Permission: permission})
}

// AnswerInvitation lets an invited person accept or decline.
func (c *Client) AnswerInvitation(ctx context.Context, repository, login string, accept bool) error {
	return do(ctx, c, "invitation", githubsim.CollaboratorRequest{Repository: repository, Login: login, Accept: accept})
}

// Pull requests

// Merge merges a pull request by "merge", "squash" or "rebase", really making
// the commits, and returns the base's new head.
func (c *Client) Merge(ctx context.Context, repository string, number int, method, login string) (sha string, err error) {
	r, err := call[githubsim.CommitReply](ctx, c, "merge", githubsim.PullRequest{Repository: repository, Number: number, Method: method, Login: login})
	return r.SHA, err
}

// SetState closes ("closed") or reopens ("open") a pull request. The error of
// a refused reopening holds GitHub's message.
func (c *Client) SetState(ctx context.Context, repository string, number int, state, login string) error {
	return do(ctx, c, "state", githubsim.PullRequest{Repository: repository, Number: number, State: state, Login: login})
}

// Comment comments on a pull request.
func (c *Client) Comment(ctx context.Context, repository string, number int, body, login string) error {
	return do(ctx, c, "comment", githubsim.PullRequest{Repository: repository, Number: number, Body: body, Login: login})
}

// Lock locks or unlocks the conversation of a pull request.
func (c *Client) Lock(ctx context.Context, repository string, number int, locked bool) error {
	return do(ctx, c, "lock", githubsim.PullRequest{Repository: repository, Number: number, Locked: locked})
}

// Looking

// Look returns what a repository holds.
func (c *Client) Look(ctx context.Context, repository string) (githubsim.Look, error) {
	return call[githubsim.Look](ctx, c, "look", githubsim.RepositoryRequest{Repository: repository})
}

// Repositories returns the full names of an account's repositories, the oldest
// first; an empty owner means all.
func (c *Client) Repositories(ctx context.Context, owner string) ([]string, error) {
	r, err := call[githubsim.RepositoryList](ctx, c, "repositories", githubsim.AccountFilter{Owner: owner})
	return r.Repositories, err
}

// Requests returns the request log since it was last taken.
func (c *Client) Requests(ctx context.Context) ([]githubsim.Request, error) {
	return call[[]githubsim.Request](ctx, c, "requests", githubsim.RequestsQuery{Keep: true})
}

// TakeRequests returns the request log since the last call, and empties it.
func (c *Client) TakeRequests(ctx context.Context) ([]githubsim.Request, error) {
	return call[[]githubsim.Request](ctx, c, "requests", githubsim.RequestsQuery{})
}

// Webhooks

// Deliveries returns the webhooks sent to an App, the oldest first.
func (c *Client) Deliveries(ctx context.Context, app int64) ([]githubsim.Delivery, error) {
	return call[[]githubsim.Delivery](ctx, c, "deliveries", githubsim.AppQuery{App: app})
}

// HoldHooks keeps an App's webhooks back from now on.
func (c *Client) HoldHooks(ctx context.Context, app int64) error {
	return do(ctx, c, "holdhooks", githubsim.AppQuery{App: app, Hold: true})
}

// ReleaseHooks sends the webhooks kept back; with drop they are lost instead.
// It returns how many were lost.
func (c *Client) ReleaseHooks(ctx context.Context, app int64, drop bool) (lost int, err error) {
	r, err := call[githubsim.HoldReply](ctx, c, "holdhooks", githubsim.AppQuery{App: app, Drop: drop})
	return r.Dropped, err
}

// Flush waits until every webhook queued so far was answered.
func (c *Client) Flush(ctx context.Context) error { return do(ctx, c, "flush", githubsim.Empty{}) }

// Faults and time

// Fault makes matching requests fail.
func (c *Client) Fault(ctx context.Context, f githubsim.Fault) error { return do(ctx, c, "fault", f) }

// ClearFaults ends all faults.
func (c *Client) ClearFaults(ctx context.Context) error {
	return do(ctx, c, "clearfaults", githubsim.Empty{})
}

// TokenLag makes installation tokens minted from now on useless for a while,
// by the simulator's clock.
func (c *Client) TokenLag(ctx context.Context, lag time.Duration) error {
	return do(ctx, c, "tokenlag", githubsim.TokenLagRequest{Lag: lag})
}

// Advance moves the simulator's clock ahead.
func (c *Client) Advance(ctx context.Context, by time.Duration) error {
	return do(ctx, c, "advance", githubsim.AdvanceRequest{By: by})
}

// Now returns the simulator's time.
func (c *Client) Now(ctx context.Context) (time.Time, error) {
	r, err := call[githubsim.ClockReply](ctx, c, "advance", githubsim.AdvanceRequest{})
	return r.Now, err
}

// SetClock sets the simulator's clock, which then runs on.
func (c *Client) SetClock(ctx context.Context, now time.Time) error {
	return do(ctx, c, "setclock", githubsim.ClockRequest{Now: now})
}

// GitURL returns a repository's address with a person's token in it. It is for
// tests and demos only: the product never puts a token into an address.
func (c *Client) GitURL(repository, token string) string {
	scheme, rest, _ := strings.Cut(c.URL, "://")
	return scheme + "://x-access-token:" + token + "@" + rest + "/" + repository + ".git"
}
