// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	gh "github.com/google/go-github/v66/github"

	"github.com/sluice-dev/sluice/internal/fault"
)

const (
	// requestTimeout bounds one request; GitHub itself gives up after 10 s.
	requestTimeout = 30 * time.Second
	maxRedirects   = 5
)

// lagDelays are the waits before a token just minted is tried again.
var lagDelays = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// request is one call of the REST API.
type request struct {
	method, path string
	body         any // nil: none
	out          any // nil: the answer's body is not read
	// what the request is about, in words: repository 42.
	what string
}

func (r request) about(account string) about {
	path, _, _ := strings.Cut(r.path, "?")
	return about{what: r.what, account: account, route: r.method + " " + route("/"+path)}
}

// send does one request through a go-github client of its own: the library
// would else close a shared one, by the machine's clock, for up to an hour
// after a limit. A refusal comes back as *answer; the returned response holds
// the numbers of further pages only.
func (a *App) send(ctx context.Context, via *http.Client, authorization string, r request) (*gh.Response, error) {
	client := gh.NewClient(via)
	client.BaseURL = a.server.api
	client.UserAgent = a.options.UserAgent
	req, err := client.NewRequest(r.method, r.path, r.body)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := client.Do(ctx, req, r.out)
	if err != nil && resp != nil && resp.Response != nil && resp.StatusCode >= 300 {
		return resp, readAnswer(resp.Response, a.now())
	}
	return resp, err
}

// asApp does a request with the App's own credentials.
func (a *App) asApp(ctx context.Context, r request) (*gh.Response, error) {
	resp, err := a.send(ctx, a.own, "", r)
	return resp, a.classify(err, r.about(""))
}

// do does a request with the installation's token. A fresh token that GitHub
// does not know yet is tried again; an older one that it no longer takes is
// replaced, once.
func (c *Client) do(ctx context.Context, r request) (*gh.Response, error) {
	what := r.about(c.account)
	if until, l, closed := c.gate.closed(c.app.now()); closed {
		return nil, c.app.limited(nil, l, until, what)
	}
	ctx = withInstallation(ctx, c.tokens.installation)
	for lagged, renewed := 0, false; ; {
		token, err := c.tokens.get(ctx)
		if err != nil {
			return nil, c.fault(err, what)
		}
		sent := c.app.now()
		resp, err := c.app.send(ctx, c.app.plain, "token "+token.text, r)
		if !isStatus(err, http.StatusUnauthorized) {
			return resp, c.settle(err, sent, what)
		}
		switch {
		case c.lags(token, err) && lagged < len(lagDelays):
			if err := c.app.sleep(ctx, lagDelays[lagged]); err != nil {
				return nil, c.fault(err, what)
			}
			lagged++
		case !renewed:
			c.tokens.drop(token)
			renewed = true
		default:
			c.tokens.drop(token)
			return nil, c.fault(err, what)
		}
	}
}

// lags reports whether a 401 may be GitHub not knowing a new token everywhere
// yet.
func (c *Client) lags(token *minted, err error) bool {
	var a *answer
	return c.app.now().Sub(token.at) < tokenFresh && errors.As(err, &a) && a.says("Bad credentials")
}

// settle keeps the installation's gate and classifies.
func (c *Client) settle(err error, sent time.Time, what about) error {
	var a *answer
	if errors.As(err, &a) && a.limit.kind != unlimited {
		if c.app.refusal(a, what).Reason == fault.ReasonRateLimited { // else its text has another meaning
			return c.app.limited(a, a.limit, c.gate.refused(sent, c.app.now(), a.limit), what)
		}
	}
	if a != nil || err == nil {
		c.gate.passed(sent)
	}
	return c.fault(err, what)
}

// fault classifies an error. What says that the installation is gone or
// suspended drops the client, so that the next caller looks it up anew.
func (c *Client) fault(err error, what about) error {
	err = c.app.classify(err, what)
	if leaves(err) {
		c.app.Forget(c.account)
	}
	return err
}

// sleep waits by the App's clock.
func (a *App) sleep(ctx context.Context, d time.Duration) error {
	timer := a.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// redirectError is a redirect that is not followed.
type redirectError struct{ host string }

func (e *redirectError) Error() string { return "redirected to another server: " + e.host }

// checkRedirect follows redirects within the server only, for the request
// carries a token, and never one that would turn a write into a read: Go
// follows a 301 of a POST with a GET, which GitHub would answer with a list.
func (a *App) checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case !a.server.serves(req.URL):
		return &redirectError{host: req.URL.Host}
	case len(via) > maxRedirects, via[0].Method != req.Method:
		return http.ErrUseLastResponse
	}
	return nil
}
