// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package github is the only importer of go-github and ghinstallation: clients
// of a GitHub App and of its installations, and what GitHub's answers mean.
// Repositories are addressed by id (R-CORE-08).
package github

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"
	gh "github.com/google/go-github/v66/github"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Credentials of a GitHub App.
type Credentials struct {
	AppID int64
	// PrivateKey is PEM.
	PrivateKey []byte
	// BaseURL of the REST API: https://api.github.com or
	// https://HOST/api/v3.
	BaseURL string
}

// Observation is one request, as it ended.
type Observation struct {
	Method   string
	Route    string // the path with ids and names replaced
	Status   int    // 0: no answer
	Duration time.Duration
}

// Options of an App.
type Options struct {
	Clock clock.Clock
	// Transport under all clients; default http.DefaultTransport.
	Transport http.RoundTripper
	UserAgent string
	// Observe is told of every request; may be nil.
	Observe func(Observation)
}

// App acts as a GitHub App on one server.
type App struct {
	id        int64
	base      *url.URL
	client    *gh.Client
	transport http.RoundTripper
	apps      *ghinstallation.AppsTransport
	options   Options

	mu      sync.Mutex
	clients map[string]*Client // by lower-case account login
}

// requestTimeout bounds one request; GitHub itself gives up after 10 s.
const requestTimeout = 30 * time.Second

// New returns an App. A key that is no RSA private key in PEM is refused with
// reason InvalidPrivateKey; the key's text is in no message.
func New(c Credentials, o Options) (*App, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	if o.UserAgent == "" {
		o.UserAgent = "sluice"
	}
	key, err := jwt.ParseRSAPrivateKeyFromPEM(c.PrivateKey)
	if err != nil {
		return nil, fault.New(fault.Blocked, fault.ReasonInvalidPrivateKey,
			"the private key is not an RSA key in PEM: download a new one from the App's settings and store the file as it is")
	}
	base, err := url.Parse(strings.TrimSuffix(c.BaseURL, "/") + "/")
	if err != nil || base.Host == "" {
		return nil, fault.New(fault.Terminal, fault.ReasonGitHubRefused, "baseURL %q is no address: use https://api.github.com or https://HOST/api/v3", c.BaseURL)
	}
	a := &App{id: c.AppID, base: base, options: o, clients: map[string]*Client{}}
	a.transport = &transport{next: o.Transport, clock: o.Clock, observe: o.Observe}
	a.apps, err = ghinstallation.NewAppsTransportWithOptions(a.transport, c.AppID, ghinstallation.WithSigner(&signer{key: key, now: o.Clock.Now}))
	if err != nil {
		return nil, fmt.Errorf("setting up the App's transport: %w", err)
	}
	a.apps.BaseURL = strings.TrimSuffix(base.String(), "/")
	a.client = a.newClient(&http.Client{Transport: a.apps, Timeout: requestTimeout})
	return a, nil
}

// signer signs the App's JWT with our clock: 60 s in the past, at most 9
// minutes ahead, as GitHub advises.
type signer struct {
	key *rsa.PrivateKey
	now func() time.Time
}

func (s *signer) Sign(claims jwt.Claims) (string, error) {
	if registered, ok := claims.(*jwt.RegisteredClaims); ok {
		now := s.now()
		registered.IssuedAt = jwt.NewNumericDate(now.Add(-60 * time.Second))
		registered.ExpiresAt = jwt.NewNumericDate(now.Add(8 * time.Minute))
	}
	return jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(s.key)
}

func (a *App) newClient(c *http.Client) *gh.Client {
	client := gh.NewClient(c)
	client.BaseURL = a.base
	client.UserAgent = a.options.UserAgent
	return client
}

// Self returns the App as GitHub knows it, with its bot account.
func (a *App) Self(ctx context.Context) (domain.AppInfo, error) {
	app, _, err := a.client.Apps.Get(ctx, "")
	if err != nil {
		return domain.AppInfo{}, a.appFault(err)
	}
	info := domain.AppInfo{ID: app.GetID(), Slug: app.GetSlug(), Name: app.GetName(), Events: app.Events, Permissions: permissions(app.GetPermissions())}
	if host := a.webHost(); host != "github.com" {
		info.NoReplyHost = "users.noreply." + host
	}
	if info.ID != a.id {
		return info, fault.New(fault.Blocked, fault.ReasonCredentialsRefused,
			"the private key belongs to App %d, not to App %d: correct spec.appID, or store the key of App %d", info.ID, a.id, a.id)
	}
	bot, err := a.bot(ctx, info.Slug)
	if err != nil {
		return info, err
	}
	info.BotUserID = bot
	return info, nil
}

// bot returns the account id of the App's bot. The App's own token may not
// read accounts everywhere, so an installation's is used when there is one.
func (a *App) bot(ctx context.Context, slug string) (int64, error) {
	login := slug + "[bot]"
	reader := a.newClient(&http.Client{Transport: a.transport, Timeout: requestTimeout})
	installations, err := a.Installations(ctx)
	if err != nil {
		return 0, err
	}
	for _, i := range installations {
		if i.Suspended {
			continue
		}
		c, err := a.ForAccount(ctx, i.Account)
		if err == nil {
			reader = c.rest
			break
		}
	}
	// A login in a path is escaped: the brackets are part of it.
	user, _, err := reader.Users.Get(ctx, url.PathEscape(login))
	if err != nil {
		return 0, a.appFault(err)
	}
	return user.GetID(), nil
}

// Installations returns all of the App's installations.
func (a *App) Installations(ctx context.Context) ([]domain.Installation, error) {
	var all []domain.Installation
	opts := &gh.ListOptions{PerPage: 100}
	for {
		page, resp, err := a.client.Apps.ListInstallations(ctx, opts)
		if err != nil {
			return nil, a.appFault(err)
		}
		for _, i := range page {
			all = append(all, installation(i))
		}
		if resp.NextPage == 0 {
			return all, nil
		}
		opts.Page = resp.NextPage
	}
}

func installation(i *gh.Installation) domain.Installation {
	return domain.Installation{ID: i.GetID(), Account: i.GetAccount().GetLogin(), AccountID: i.GetAccount().GetID(),
		Suspended: i.SuspendedAt != nil, Permissions: permissions(i.GetPermissions())}
}

// ForAccount returns the client of the App's installation on an account.
// A missing installation is Blocked with reason AppNotInstalled, a suspended
// one with AppSuspended.
func (a *App) ForAccount(ctx context.Context, login string) (*Client, error) {
	key := strings.ToLower(login)
	a.mu.Lock()
	c := a.clients[key]
	a.mu.Unlock()
	if c != nil {
		return c, nil
	}
	found, _, err := a.client.Apps.FindOrganizationInstallation(ctx, login)
	if isStatus(err, http.StatusNotFound) {
		found, _, err = a.client.Apps.FindUserInstallation(ctx, login)
	}
	if isStatus(err, http.StatusNotFound) {
		return nil, fault.Wrap(err, fault.Blocked, fault.ReasonAppNotInstalled,
			"the App is not installed on %q: install it there, on its settings page", login)
	}
	if err != nil {
		return nil, a.appFault(err)
	}
	if found.SuspendedAt != nil {
		return nil, suspended(login)
	}
	c = a.newInstallationClient(found.GetID(), login)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clients[key] = c
	return c, nil
}

func suspended(login string) *fault.Error {
	return fault.New(fault.Blocked, fault.ReasonAppSuspended, "the App's installation on %q is suspended: an owner of %q can unsuspend it", login, login)
}

// Forget drops the client of an account, so that its installation is looked up
// anew: after it was removed, suspended or moved.
func (a *App) Forget(login string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.clients, strings.ToLower(login))
}

func (a *App) newInstallationClient(id int64, login string) *Client {
	tokens := ghinstallation.NewFromAppsTransport(a.apps, id)
	tokens.BaseURL = a.apps.BaseURL
	c := &Client{app: a, login: login, tokens: tokens}
	c.rest = a.newClient(&http.Client{Transport: &freshToken{next: tokens, clock: a.options.Clock}, Timeout: requestTimeout, CheckRedirect: keepMethod})
	return c
}

// keepMethod refuses redirects that would turn a write into a read: Go follows
// a 301 of a POST with a GET, which GitHub would answer with a list.
func keepMethod(req *http.Request, via []*http.Request) error {
	if len(via) >= 5 {
		return errors.New("too many redirects")
	}
	if via[0].Method != req.Method {
		return http.ErrUseLastResponse
	}
	return nil
}

// webHost is the host people and git use.
func (a *App) webHost() string {
	if a.base.Host == "api.github.com" {
		return "github.com"
	}
	return a.base.Host
}

// GitURL returns the address git uses for a repository.
func (a *App) GitURL(fullName string) string {
	return a.base.Scheme + "://" + a.webHost() + "/" + fullName + ".git"
}

func (a *App) now() time.Time { return a.options.Clock.Now() }

// permissions turns go-github's struct into words.
func permissions(p *gh.InstallationPermissions) map[string]string {
	m := map[string]string{}
	if p == nil {
		return m
	}
	for name, value := range map[string]*string{
		"actions": p.Actions, "administration": p.Administration, "checks": p.Checks, "contents": p.Contents, "issues": p.Issues,
		"members": p.Members, "metadata": p.Metadata, "pull_requests": p.PullRequests, "workflows": p.Workflows,
		"organization_administration": p.OrganizationAdministration,
	} {
		if value != nil {
			m[name] = *value
		}
	}
	return m
}
