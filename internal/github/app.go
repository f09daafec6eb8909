// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package github is the only importer of go-github and ghinstallation: a
// GitHub App, the clients of its installations, and what GitHub's answers
// mean. Repositories are addressed by id (R-CORE-08). Every error is a
// *fault.Error whose text and cause hold no token and no key (R-CORE-10).
package github

import (
	"context"
	"crypto/rsa"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Credentials of a GitHub App.
type Credentials struct {
	AppID int64
	// PrivateKey is PEM, as GitHub hands it out.
	PrivateKey []byte
	// BaseURL of the REST API: https://api.github.com, or
	// https://HOST/api/v3 on GitHub Enterprise Server.
	BaseURL string
}

// Options of an App.
type Options struct {
	// Clock judges tokens, limits and waits; default the machine's.
	Clock clock.Clock
	// Transport under all clients; default http.DefaultTransport.
	Transport http.RoundTripper
	// UserAgent of all requests; default "sluice".
	UserAgent string
	// Observe is told of every request as it ended; may be nil. It is called
	// from many goroutines.
	Observe func(Request)
}

// App acts as a GitHub App on one server. It is safe for concurrent use.
type App struct {
	id        int64
	server    server
	options   Options
	signer    *signer
	transport *transport
	own       *http.Client // signs as the App
	plain     *http.Client // sends what it is given

	mu      sync.Mutex
	clients map[string]*Client // by lower-case account login
}

// New returns an App; it asks GitHub nothing. A key that is no RSA private key
// in PEM is Blocked with reason InvalidPrivateKey, a useless BaseURL Terminal
// with InvalidBaseURL.
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
		// The parser's words may quote the key, so they are not passed on.
		return nil, fault.New(fault.Blocked, fault.ReasonInvalidPrivateKey,
			"the private key is not an RSA key in PEM: generate one in the App's settings and store the file as it is")
	}
	server, err := parseServer(c.BaseURL)
	if err != nil {
		return nil, err
	}
	a := &App{id: c.AppID, server: server, options: o, signer: &signer{key: key, now: o.Clock.Now}, clients: map[string]*Client{}}
	a.transport = &transport{next: o.Transport, clock: o.Clock, observe: o.Observe, prefix: strings.TrimSuffix(server.api.Path, "/")}
	apps, err := a.jwtTransport()
	if err != nil {
		return nil, err
	}
	a.own = &http.Client{Transport: apps, Timeout: requestTimeout, CheckRedirect: a.checkRedirect}
	a.plain = &http.Client{Transport: a.transport, Timeout: requestTimeout, CheckRedirect: a.checkRedirect}
	return a, nil
}

// jwtTransport returns a transport that signs as the App.
func (a *App) jwtTransport() (*ghinstallation.AppsTransport, error) {
	t, err := ghinstallation.NewAppsTransportWithOptions(a.transport, a.id, ghinstallation.WithSigner(a.signer))
	if err != nil {
		return nil, fault.Wrap(err, fault.Retryable, fault.ReasonUnexpected, "setting up the App's transport failed")
	}
	t.BaseURL = a.server.root()
	return t, nil
}

// signer signs the App's JWT by our clock, which ghinstallation would not
// read: issued 60 s ago, for GitHub's may be behind, and ending well before the
// ten minutes that GitHub allows.
type signer struct {
	key *rsa.PrivateKey
	now func() time.Time
}

const (
	jwtBackdated = time.Minute
	jwtLifetime  = 8 * time.Minute
)

// Sign returns the signed token for the claims, with their times replaced.
func (s *signer) Sign(claims jwt.Claims) (string, error) {
	if registered, ok := claims.(*jwt.RegisteredClaims); ok {
		now := s.now().Truncate(time.Second)
		registered.IssuedAt = jwt.NewNumericDate(now.Add(-jwtBackdated))
		registered.ExpiresAt = jwt.NewNumericDate(now.Add(jwtLifetime))
	}
	return jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(s.key)
}

// noSuchApp says that nobody knows the App ID.
func (a *App) noSuchApp() string {
	return fmt.Sprintf("there is no App with ID %d on %s, or the private key is another App's: correct spec.appID or spec.baseURL", a.id, a.server.api.Host)
}

// Self returns the App as GitHub knows it, with its bot account. Credentials
// that GitHub does not take are Blocked with reason CredentialsRefused.
func (a *App) Self(ctx context.Context) (domain.AppInfo, error) {
	var app struct {
		ID          int64             `json:"id"`
		Slug        string            `json:"slug"`
		Name        string            `json:"name"`
		Permissions map[string]string `json:"permissions"`
		Events      []string          `json:"events"`
	}
	_, err := a.asApp(ctx, request{method: http.MethodGet, path: "app", out: &app, what: "the App"})
	if fault.Is(err, fault.ReasonNotFound) {
		return domain.AppInfo{}, fault.Wrap(err, fault.Blocked, fault.ReasonCredentialsRefused, "%s", a.noSuchApp())
	}
	if err != nil {
		return domain.AppInfo{}, err
	}
	switch app.ID {
	case a.id:
	case 0:
		return domain.AppInfo{}, a.classify(errNotGitHub, about{})
	default:
		return domain.AppInfo{}, fault.New(fault.Blocked, fault.ReasonCredentialsRefused,
			"the private key belongs to App %d, not to App %d: correct spec.appID, or store a key of App %d", app.ID, a.id, a.id)
	}
	info := domain.AppInfo{ID: app.ID, Slug: app.Slug, Name: app.Name, Permissions: app.Permissions, Events: app.Events,
		NoReplyHost: a.server.noReplyHost()}
	info.BotUserID, err = a.bot(ctx, info.Slug)
	if err != nil {
		return domain.AppInfo{}, err
	}
	return info, nil
}

// bot returns the account id of the App's bot. The App's own credentials may
// not read accounts, so an installation's are used; without any installation
// it is read by nobody in particular, which a private server refuses.
func (a *App) bot(ctx context.Context, slug string) (int64, error) {
	installations, err := a.Installations(ctx)
	if err != nil {
		return 0, err
	}
	var user struct {
		ID int64 `json:"id"`
	}
	r := request{method: http.MethodGet, path: "users/" + url.PathEscape(slug+"[bot]"), out: &user, what: fmt.Sprintf("the account %s[bot]", slug)}
	installed := false
	for _, i := range installations {
		if i.Suspended || i.Account == "" {
			continue
		}
		installed = true
		if _, err = a.client(i).do(ctx, r); err == nil || ctx.Err() != nil {
			break
		}
	}
	if !installed {
		_, err = a.send(ctx, a.plain, "", r)
		if refused(err) {
			return 0, fault.Wrap(err, fault.Blocked, fault.ReasonAppNotInstalled,
				"the App is not installed anywhere, and only an installation may read its bot account: install it on an account")
		}
		err = a.classify(err, r.about(""))
	}
	if err == nil && user.ID == 0 {
		err = a.classify(errNotGitHub, about{})
	}
	return user.ID, err
}

// refused reports whether GitHub answered that an anonymous reader may not:
// not allowed, or out of the quota of the address.
func refused(err error) bool {
	return isStatus(err, http.StatusUnauthorized) || isStatus(err, http.StatusForbidden) || isStatus(err, http.StatusNotFound)
}

// installationAnswer is an installation as GitHub describes it.
type installationAnswer struct {
	ID      int64 `json:"id"`
	Account struct {
		ID    int64  `json:"id"`
		Login string `json:"login"` // an enterprise has none
	} `json:"account"`
	SuspendedAt *time.Time        `json:"suspended_at"`
	Permissions map[string]string `json:"permissions"`
}

func (i installationAnswer) domain() domain.Installation {
	return domain.Installation{ID: i.ID, Account: i.Account.Login, AccountID: i.Account.ID, Suspended: i.SuspendedAt != nil, Permissions: i.Permissions}
}

// Installations returns all of the App's installations, suspended ones too, in
// GitHub's order. An enterprise's has an empty Account.
func (a *App) Installations(ctx context.Context) ([]domain.Installation, error) {
	var all []domain.Installation
	for page := 1; page != 0; {
		var list []installationAnswer
		resp, err := a.asApp(ctx, request{method: http.MethodGet, path: fmt.Sprintf("app/installations?per_page=100&page=%d", page), out: &list,
			what: "the App's installations"})
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			all = append(all, i.domain())
		}
		page = resp.NextPage
	}
	return all, nil
}

// ForAccount returns the client of the App's installation on an organization
// or user. A missing installation is Blocked with reason AppNotInstalled, a
// suspended one with AppSuspended.
func (a *App) ForAccount(ctx context.Context, login string) (*Client, error) {
	a.mu.Lock()
	c := a.clients[strings.ToLower(login)]
	a.mu.Unlock()
	if c != nil {
		return c, nil
	}
	found, err := a.find(ctx, login)
	if err != nil {
		return nil, err
	}
	if found.Suspended {
		return nil, suspended(login)
	}
	found.Account = login
	return a.client(found), nil
}

// find looks an installation up by its account's login.
func (a *App) find(ctx context.Context, login string) (domain.Installation, error) {
	for _, kind := range []string{"orgs", "users"} {
		var found installationAnswer
		_, err := a.asApp(ctx, request{method: http.MethodGet, path: kind + "/" + url.PathEscape(login) + "/installation", out: &found,
			what: fmt.Sprintf("the App's installation on %q", login)})
		switch {
		case err == nil && found.ID == 0:
			return domain.Installation{}, a.classify(errNotGitHub, about{})
		case err == nil:
			return found.domain(), nil
		case !fault.Is(err, fault.ReasonNotFound):
			return domain.Installation{}, err
		}
	}
	return domain.Installation{}, notInstalled(login)
}

// client returns the one client of an installation: its token and its limits
// are shared by all who use it.
func (a *App) client(i domain.Installation) *Client {
	key := strings.ToLower(i.Account)
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.clients[key]; c != nil && c.tokens.installation == i.ID {
		return c
	}
	c := &Client{app: a, account: i.Account, tokens: newTokens(a, i.ID, i.Account)}
	a.clients[key] = c
	return c
}

// Forget drops the client of an account, so that its installation is looked up
// anew: after it was removed, suspended or moved.
func (a *App) Forget(login string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.clients, strings.ToLower(login))
}

// leaves reports whether an error says that the installation no longer serves.
func leaves(err error) bool {
	return fault.Is(err, fault.ReasonAppNotInstalled) || fault.Is(err, fault.ReasonAppSuspended)
}

// GitURL returns the address git uses for a repository, e.g.
// https://github.com/owner/name.git.
func (a *App) GitURL(fullName string) string { return a.server.gitURL(fullName) }

// GraphQLURL returns the address of the server's GraphQL API.
func (a *App) GraphQLURL() string { return a.server.graphQLURL() }

func (a *App) now() time.Time { return a.options.Clock.Now() }
