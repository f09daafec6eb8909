// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func TestRefusals_AreClassified(t *testing.T) {
	block := map[string]any{"message": "Repository access blocked", "block": map[string]any{"reason": "dmca"}}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		class  fault.Class
		reason fault.Reason
		words  []string
	}{
		"gone, or no access": {refusing(404, "Not Found"), fault.Blocked, fault.ReasonNotFound, []string{"repository 42", "no access", `"Acme"`}},
		"archived":           {refusing(403, "Repository was archived so is read-only."), fault.Blocked, fault.ReasonRepositoryArchived, []string{"unarchive"}},
		"blocked, 451":       {always(451, block), fault.Blocked, fault.ReasonRepositoryBlocked, []string{"blocked"}},
		"blocked, 403":       {always(403, block), fault.Blocked, fault.ReasonRepositoryBlocked, []string{"blocked"}},
		"permission": {limiting(403, "Resource not accessible by integration", "X-Accepted-GitHub-Permissions", "contents=write"),
			fault.Blocked, fault.ReasonPermissionMissing, []string{"contents=write", `accept it on "Acme"`}},
		"permission unnamed": {refusing(403, "Resource not accessible by integration"), fault.Blocked, fault.ReasonPermissionMissing,
			[]string{"GET /repositories/{id}"}},
		"suspended":        {refusing(403, "This installation has been suspended"), fault.Blocked, fault.ReasonAppSuspended, []string{"suspended"}},
		"IP allow list":    {refusing(403, "the `acme` organization has an IP allow list enabled"), fault.Blocked, fault.ReasonGitHubRefused, []string{"IP allow list"}},
		"plan":             {refusing(403, "Upgrade to GitHub Pro or make this repository public to enable this feature."), fault.Blocked, fault.ReasonGitHubRefused, []string{"Upgrade to GitHub Pro"}},
		"empty":            {refusing(409, "Git Repository is empty."), fault.Blocked, fault.ReasonRepositoryEmpty, []string{"first commit"}},
		"another conflict": {refusing(409, "Conflict"), fault.Retryable, fault.ReasonGitHubRefused, []string{"409"}},
		"server error":     {refusing(500, "Server Error"), fault.Retryable, fault.ReasonGitHubUnreachable, []string{"500"}},
		"bad gateway, HTML": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte("<html>"))
		}, fault.Retryable, fault.ReasonGitHubUnreachable, []string{"502"}},
		"plain errors":    {refusing(422, "Validation Failed", "Invalid target patterns: ''"), fault.Blocked, fault.ReasonGitHubRefused, []string{"Invalid target patterns"}},
		"errors by code":  {refusing(422, "Validation Failed", map[string]any{"resource": "X", "field": "name", "code": "missing"}), fault.Blocked, fault.ReasonGitHubRefused, []string{"name missing"}},
		"odd errors":      {refusing(422, "Validation Failed", 17), fault.Blocked, fault.ReasonGitHubRefused, []string{"Validation Failed"}},
		"unknown version": {refusing(400, "Bad version"), fault.Blocked, fault.ReasonGitHubRefused, []string{"400: Bad version"}},
		"not GitHub's":    {always(200, map[string]any{"id": 0}), fault.Retryable, fault.ReasonGitHubUnreachable, []string{"not GitHub's API"}},
		"cut off":         {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"id":`)) }, fault.Retryable, fault.ReasonGitHubUnreachable, []string{"does not answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.handle("GET /repositories/42", c.answer)
			_, err := f.client(t).Repository(background(t), 42)
			expectFault(t, err, c.class, c.reason, c.words...)
		})
	}
}

func TestRefusals_AreQuotedShort(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("GET /repositories/42", refusing(400, strings.Repeat("ö\n", 5000)))
	_, err := f.client(t).Repository(background(t), 42)
	got := theFault(t, err, fault.Blocked, fault.ReasonGitHubRefused)
	g.Expect(len([]rune(got.Message))).To(BeNumerically("<", 400))
	g.Expect(got.Message).NotTo(ContainSubstring("\n"))
}

// echoing answers with everything that the request said of itself, as a broken
// proxy would.
func echoing(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		secret := r.Header.Get("Authorization")
		w.Header().Set("X-Accepted-GitHub-Permissions", secret)
		refuse(w, status, "Refused "+secret+" Resource not accessible", "Also "+secret, map[string]any{"field": "x", "code": "custom", "message": strings.Fields(secret + " ")[0] + " " + secret})
	}
}

func TestErrors_R_CORE_10_HoldNoSecret(t *testing.T) {
	calls := map[string]func(*Client) error{
		"Repository":       func(c *Client) error { _, err := c.Repository(t.Context(), 42); return err },
		"RepositoryByName": func(c *Client) error { _, err := c.RepositoryByName(t.Context(), "acme/lab"); return err },
		"CreateRepository": func(c *Client) error {
			_, err := c.CreateRepository(t.Context(), "acme", domain.NewRepository{Name: "lab"})
			return err
		},
		"SetDefaultBranch":  func(c *Client) error { return c.SetDefaultBranch(t.Context(), 42, "main") },
		"IsEmpty":           func(c *Client) error { _, err := c.IsEmpty(t.Context(), 42); return err },
		"Ref":               func(c *Client) error { _, _, err := c.Ref(t.Context(), 42, "heads/main"); return err },
		"Compare":           func(c *Client) error { _, err := c.Compare(t.Context(), 42, "main", "sync/main"); return err },
		"PullRequest":       func(c *Client) error { _, err := c.PullRequest(t.Context(), 42, 1); return err },
		"CreatePullRequest": func(c *Client) error { _, err := c.CreatePullRequest(t.Context(), 42, newPull); return err },
		"Comment":           func(c *Client) error { return c.Comment(t.Context(), 42, 1, "Hello") },
		"AddLabels":         func(c *Client) error { return c.AddLabels(t.Context(), 42, 1, []string{"a"}) },
		"FindOpenPullRequest": func(c *Client) error {
			_, _, err := c.FindOpenPullRequest(t.Context(), domain.GitHubRepository{ID: 42, OwnerLogin: "acme"}, "sync/main", "main")
			return err
		},
	}
	for name, do := range calls {
		for _, status := range []int{302, 400, 403, 410, 422, 429, 451, 500, 503} {
			f := newFake(t)
			f.handle("/", echoing(status))
			err := do(f.client(t))
			NewWithT(t).Expect(err).To(HaveOccurred(), "%s with %d", name, status)
			expectNoSecret(t, err)
		}
	}
	t.Run("nor those of the App's own requests", func(t *testing.T) {
		for _, status := range []int{400, 401, 403, 404, 422, 429, 500} {
			f := newFake(t)
			f.handle("GET /app", echoing(status))
			f.setMint(echoing(status))
			a := f.app(t)
			_, err := a.Self(background(t))
			NewWithT(t).Expect(err).To(HaveOccurred(), "%d", status)
			expectNoSecret(t, err)
			c, err := a.ForAccount(background(t), testAccount)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			_, err = c.Token(background(t))
			NewWithT(t).Expect(err).To(HaveOccurred(), "%d", status)
			expectNoSecret(t, err)
		}
	})
}

func TestScrub(t *testing.T) {
	for _, text := range []string{"ghs_4711_" + testSecret, "github_pat_" + testSecret, "Authorization: Basic " + testSecret, "token " + testSecret,
		"-----BEGIN RSA PRIVATE KEY-----\n" + testSecret + "\n-----END", "Bearer eyJhbGciOiJSUzI1NiJ9." + testSecret + ".x"} {
		NewWithT(t).Expect(scrub("a " + text + " b")).NotTo(ContainSubstring(testSecret))
	}
	const plain = "A pull request already exists for acme:sync/main. The token is fine."
	NewWithT(t).Expect(scrub(plain)).To(Equal(plain))
}
