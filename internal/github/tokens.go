// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"

	"github.com/sluice-dev/sluice/internal/fault"
)

const (
	// tokenRenewal is when a token is replaced. GitHub's live an hour; the
	// ten minutes left are for the git command that was just given one. Our
	// clock alone counts, from the minting on: expires_at is by GitHub's
	// (R-CORE-04).
	tokenRenewal = 50 * time.Minute
	// tokenFresh is how long a token may be unknown to a part of GitHub.
	tokenFresh = time.Minute
)

// minted is an installation token and when it was got, by our clock.
type minted struct {
	text string
	at   time.Time
}

// tokens keeps one installation's token in memory. A token is minted once for
// all who wait, and a caller who gives up does not wait on.
type tokens struct {
	app          *App
	installation int64
	account      string

	current atomic.Pointer[minted]
	turn    chan struct{} // holds one value: the right to mint
}

func newTokens(a *App, installation int64, account string) *tokens {
	return &tokens{app: a, installation: installation, account: account, turn: make(chan struct{}, 1)}
}

// valid returns the token in memory, nil when there is none or it is old.
func (t *tokens) valid() *minted {
	if m := t.current.Load(); m != nil && t.app.now().Sub(m.at) < tokenRenewal {
		return m
	}
	return nil
}

// get returns a token that is valid for some minutes.
func (t *tokens) get(ctx context.Context) (*minted, error) {
	if m := t.valid(); m != nil {
		return m, nil
	}
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-t.turn }()
	if m := t.valid(); m != nil {
		return m, nil
	}
	m, err := t.mint(ctx)
	if err != nil {
		return nil, err
	}
	t.current.Store(m)
	return m, nil
}

// drop forgets a token that GitHub no longer takes, unless it was replaced
// already.
func (t *tokens) drop(m *minted) { t.current.CompareAndSwap(m, nil) }

// mint asks GitHub for a token, for the whole installation: one scoped to
// single repositories would have to be made more often, and each new one may
// be unknown to a part of GitHub for a while. ghinstallation's transport is
// used once only: it would judge the token's age by the machine's clock, and
// transports that share an App's write to it without a lock.
func (t *tokens) mint(ctx context.Context) (*minted, error) {
	ctx, cancel := context.WithTimeout(withInstallation(ctx, t.installation), requestTimeout)
	defer cancel()
	apps, err := t.app.jwtTransport()
	if err != nil {
		return nil, err
	}
	at := t.app.now()
	text, err := ghinstallation.NewFromAppsTransport(apps, t.installation).Token(ctx)
	switch {
	case err != nil:
		return nil, t.refused(err)
	case text == "":
		return nil, t.app.classify(errNotGitHub, about{})
	}
	return &minted{text: text, at: at}, nil
}

// refused says why no token was given. GitHub's reason is in the body that
// ghinstallation left unread.
func (t *tokens) refused(err error) error {
	what := about{what: fmt.Sprintf("a token for the App's installation on %q", t.account)}
	var r *ghinstallation.HTTPError
	if !errors.As(err, &r) || r.Response == nil {
		return t.app.classify(err, what)
	}
	defer func() { _ = r.Response.Body.Close() }()
	refusal := readAnswer(r.Response, t.app.now())
	switch {
	case refusal.says("suspended"):
		return suspended(t.account)
	case refusal.status == http.StatusNotFound && !refusal.says("Integration not found"):
		return notInstalled(t.account)
	case refusal.status == http.StatusNotFound:
		return fault.Wrap(refusal, fault.Blocked, fault.ReasonCredentialsRefused, "%s", t.app.noSuchApp())
	}
	return t.app.classify(refusal, what)
}
