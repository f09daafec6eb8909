// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/fault"
)

func TestToken_IsMintedOnceAndRenewedInTime(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	c := f.client(t)
	for _, want := range []struct {
		after time.Duration
		token string
	}{{0, token(1)}, {49 * time.Minute, token(1)}, {time.Minute, token(2)}, {30 * time.Minute, token(2)}} {
		f.clock.Step(want.after)
		got, err := c.Token(background(t))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal(want.token))
	}
}

func TestToken_R_CORE_09_SaysWhyNoneIsGiven(t *testing.T) {
	for name, c := range map[string]struct {
		mint   http.HandlerFunc
		class  fault.Class
		reason fault.Reason
		words  string
	}{
		"suspended":         {refusing(403, "This installation has been suspended"), fault.Blocked, fault.ReasonAppSuspended, `"Acme" is suspended`},
		"removed":           {refusing(404, "Not Found"), fault.Blocked, fault.ReasonAppNotInstalled, `not installed on "Acme"`},
		"App deleted":       {refusing(404, "Integration not found"), fault.Blocked, fault.ReasonCredentialsRefused, "no App with ID 4711"},
		"wrong key":         {refusing(401, "A JSON web token could not be decoded"), fault.Blocked, fault.ReasonCredentialsRefused, "do not belong together"},
		"clock":             {refusing(401, "'Expiration time' claim ('exp') is too far in the future"), fault.Blocked, fault.ReasonCredentialsRefused, "clock right"},
		"server error":      {refusing(502, "Server Error"), fault.Retryable, fault.ReasonGitHubUnreachable, "502"},
		"limited":           {refusing(403, "You have exceeded a secondary rate limit. Please wait."), fault.RateLimited, fault.ReasonRateLimited, "slow down"},
		"too many":          {refusing(429, "Too many"), fault.RateLimited, fault.ReasonRateLimited, "slow down"},
		"something else":    {refusing(422, "The permissions requested are not granted to this installation."), fault.Blocked, fault.ReasonGitHubRefused, "422"},
		"without a token":   {always(201, map[string]any{}), fault.Retryable, fault.ReasonGitHubUnreachable, "not GitHub's API"},
		"not an API at all": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, fault.Retryable, fault.ReasonGitHubUnreachable, "not GitHub's API"},
		"hung up":           {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, fault.Retryable, fault.ReasonGitHubUnreachable, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.setMint(c.mint)
			client := f.client(t)
			_, err := client.Token(background(t))
			expectFault(t, err, c.class, c.reason, c.words)
			_, err = client.Repository(background(t), 1)
			expectFault(t, err, c.class, c.reason, c.words)
		})
	}
}

func TestToken_DropsTheClientOfARemovedInstallation(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.setMint(refusing(404, "Not Found"))
	a := f.app(t)
	before, err := a.ForAccount(background(t), testAccount)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = before.Token(background(t))
	expectFault(t, err, fault.Blocked, fault.ReasonAppNotInstalled)
	after, err := a.ForAccount(background(t), testAccount)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after).NotTo(BeIdenticalTo(before))
}

func TestToken_WhoGivesUpDoesNotWaitForAnother(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	f.setMint(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		reply(w, http.StatusCreated, map[string]any{"token": token(1), "expires_at": testStart.Add(time.Hour).Format(time.RFC3339)})
	})
	c := f.client(t)
	ctx := background(t)
	var got string
	var slow error
	done := run(func() { got, slow = c.Token(ctx) })
	<-asked
	impatient, cancel := context.WithCancel(ctx)
	cancel()
	_, err := c.Token(impatient)
	expectFault(t, err, fault.Waiting, fault.ReasonInterrupted)
	g.Expect(err).To(MatchError(context.Canceled))
	close(answer)
	g.Eventually(done).Should(BeClosed())
	g.Expect(slow).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(token(1)))
}

func TestFreshToken_IsTriedAgainWhileGitHubDoesNotKnowIt(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	lag := refusing(http.StatusUnauthorized, "Bad credentials")
	f.handle("PATCH /repositories/42", inTurn(lag, lag, lag, always(http.StatusOK, repositoryJSON(42, "acme/lab"))))
	c := f.client(t)
	ctx := background(t)
	var err error
	done := run(func() { err = c.SetDefaultBranch(ctx, 42, "main") })
	f.step(t, done, time.Second, 2*time.Second, 4*time.Second)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.minted()).To(Equal(1))
	for _, seen := range f.seen() {
		g.Expect(seen.authorization).To(Equal("token " + token(1)))
		g.Expect(seen.body).To(MatchJSON(`{"default_branch":"main"}`), "the body is sent anew each time")
	}
	g.Expect(f.seen()).To(HaveLen(4))
}

func TestFreshToken_StopsWaitingWithItsCaller(t *testing.T) {
	f := newFake(t)
	f.handle("GET /repositories/42", refusing(http.StatusUnauthorized, "Bad credentials"))
	c := f.client(t)
	ctx, cancel := context.WithCancel(background(t))
	var err error
	done := run(func() { _, err = c.Repository(ctx, 42) })
	g := NewWithT(t)
	g.Eventually(f.clock.HasWaiters).Should(BeTrue())
	cancel()
	g.Eventually(done).Should(BeClosed())
	expectFault(t, err, fault.Waiting, fault.ReasonInterrupted)
}

func TestFreshToken_ThatStaysUnknownIsReplacedOnceThenGivenUp(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("GET /repositories/42", refusing(http.StatusUnauthorized, "Bad credentials"))
	c := f.client(t)
	ctx := background(t)
	var err error
	done := run(func() { _, err = c.Repository(ctx, 42) })
	f.step(t, done, lagDelays...)
	expectFault(t, err, fault.Retryable, fault.ReasonCredentialsRefused, `"Acme"`)
	g.Expect(f.minted()).To(Equal(2))
	g.Expect(f.seen()).To(HaveLen(5))
}

func TestOldToken_ThatIsRefusedIsReplacedWithoutWaiting(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("GET /repositories/42", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("Authorization"), token(1)) {
			refuse(w, http.StatusUnauthorized, "Bad credentials")
			return
		}
		reply(w, http.StatusOK, repositoryJSON(42, "acme/lab"))
	})
	c := f.client(t)
	_, err := c.Token(background(t))
	g.Expect(err).NotTo(HaveOccurred())
	f.clock.Step(tokenFresh)
	repo, err := c.Repository(background(t), 42)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(repo.FullName).To(Equal("acme/lab"))
	g.Expect(f.minted()).To(Equal(2))
}

func TestOldToken_OfASuspendedInstallationSaysSo(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("GET /repositories/42", refusing(http.StatusUnauthorized, "Bad credentials"))
	c := f.client(t)
	_, err := c.Token(background(t))
	g.Expect(err).NotTo(HaveOccurred())
	f.clock.Step(10 * time.Minute)
	f.setMint(refusing(403, "This installation has been suspended"))
	_, err = c.Repository(background(t), 42)
	expectFault(t, err, fault.Blocked, fault.ReasonAppSuspended)
}
