// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/fault"
)

func TestRedirects(t *testing.T) {
	moved := func(f *fake, status int, to string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", f.URL+to)
			reply(w, status, map[string]any{"message": "Moved Permanently", "url": f.URL + to})
		}
	}
	t.Run("a renamed repository is followed to its id", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		f.handle("GET /repos/acme/old", moved(f, http.StatusMovedPermanently, "/repositories/42"))
		f.handle("GET /repositories/42", always(http.StatusOK, repositoryJSON(42, "acme/new")))
		repo, err := f.client(t).RepositoryByName(background(t), "acme/old")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(repo.FullName).To(Equal("acme/new"))
		g.Expect(f.seen()[1].authorization).To(Equal("token " + token(1)))
	})
	t.Run("a 307 keeps the method and the body", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		f.handle("PATCH /repositories/42", moved(f, http.StatusTemporaryRedirect, "/repositories/43"))
		f.handle("PATCH /repositories/43", always(http.StatusOK, repositoryJSON(43, "acme/new")))
		g.Expect(f.client(t).SetDefaultBranch(background(t), 42, "trunk")).To(Succeed())
		g.Expect(f.seen()[1].String()).To(Equal("PATCH /repositories/43"))
		g.Expect(f.seen()[1].body).To(MatchJSON(`{"default_branch":"trunk"}`))
	})
	t.Run("a 301 never turns a write into a read", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		f.handle("POST /repositories/42/pulls", moved(f, http.StatusMovedPermanently, "/repositories/43/pulls"))
		f.handle("GET /repositories/43/pulls", always(http.StatusOK, []any{pullJSON(1, nil)}))
		_, err := f.client(t).CreatePullRequest(background(t), 42, newPull)
		expectFault(t, err, fault.Retryable, fault.ReasonGitHubRefused, "nothing was written")
		g.Expect(f.seen()).To(HaveLen(1))
	})
	t.Run("no token goes to another server", func(t *testing.T) {
		g := NewWithT(t)
		called := false
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
		t.Cleanup(other.Close)
		f := newFake(t)
		for _, path := range []string{"GET /repositories/42", "GET /app"} {
			f.handle(path, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, other.URL+"/steal", http.StatusFound)
			})
		}
		_, err := f.client(t).Repository(background(t), 42)
		expectFault(t, err, fault.Blocked, fault.ReasonGitHubRefused, "another server", "spec.baseURL")
		_, err = f.app(t).Self(background(t))
		expectFault(t, err, fault.Blocked, fault.ReasonGitHubRefused, "another server")
		g.Expect(called).To(BeFalse())
	})
	t.Run("a circle ends", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		f.handle("GET /repositories/42", moved(f, http.StatusMovedPermanently, "/repositories/42"))
		_, err := f.client(t).Repository(background(t), 42)
		expectFault(t, err, fault.Retryable, fault.ReasonGitHubRefused, "301")
		g.Expect(len(f.seen())).To(BeNumerically("<=", maxRedirects+1))
	})
}

func TestObserve_IsToldOfEveryRequest(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("GET /api/v3/repositories/42", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "4321")
		f.clock.Step(3 * time.Second)
		refuse(w, http.StatusTooManyRequests, "")
	})
	f.handle("GET /api/v3/orgs/acme/installation", always(http.StatusOK, installationJSON(testInstallation, testAccount, nil)))
	f.handle("POST /api/v3/app/installations/77/access_tokens", always(http.StatusCreated, map[string]any{"token": token(1)}))
	var mu sync.Mutex
	var got []Request
	a := f.app(t, func(c *Credentials, o *Options) {
		c.BaseURL += "/api/v3"
		o.Observe = func(r Request) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, r)
		}
	})
	c, err := a.ForAccount(background(t), "acme")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = c.Repository(background(t), 42)
	expectFault(t, err, fault.RateLimited, fault.ReasonRateLimited)
	f.Close()
	_, err = a.Installations(background(t))
	expectFault(t, err, fault.Retryable, fault.ReasonGitHubUnreachable)
	g.Expect(got).To(Equal([]Request{
		{Method: "GET", Route: "/orgs/{name}/installation", Status: 200, Remaining: -1},
		{Installation: 77, Method: "POST", Route: "/app/installations/{id}/access_tokens", Status: 201, Remaining: -1},
		{Installation: 77, Method: "GET", Route: "/repositories/{id}", Status: 429, Remaining: 4321, Duration: 3 * time.Second},
		{Method: "GET", Route: "/app/installations", Remaining: -1},
	}))
}

func TestRoute_IsABoundedLabel(t *testing.T) {
	for path, want := range map[string]string{
		"/app":                                   "/app",
		"/users/sluice[bot]":                     "/users/{name}",
		"/orgs/acme/repos":                       "/orgs/{name}/repos",
		"/repos/acme/lab-7":                      "/repos/{repo}",
		"/repositories/42/pulls/7":               "/repositories/{id}/pulls/{id}",
		"/repositories/42/issues/7/comments":     "/repositories/{id}/issues/{id}/comments",
		"/repositories/42/git/ref/heads/sync/v2": "/repositories/{id}/git/ref/{ref}",
		"/repositories/42/compare/a...b/c":       "/repositories/{id}/compare/{ref}",
	} {
		NewWithT(t).Expect(route(path)).To(Equal(want))
	}
}

func TestRequests_NameThemselves(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("GET /repositories/42", func(w http.ResponseWriter, r *http.Request) {
		g.Expect(r.UserAgent()).To(Equal("sluice/v9"))
		g.Expect(r.Header.Get("X-GitHub-Api-Version")).To(Equal("2022-11-28"))
		reply(w, http.StatusOK, repositoryJSON(42, "acme/lab"))
	})
	_, err := f.client(t, func(_ *Credentials, o *Options) { o.UserAgent = "sluice/v9" }).Repository(background(t), 42)
	g.Expect(err).NotTo(HaveOccurred())
}
