// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/fault"
)

const secondary = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."

// limiting answers with a limit's status, headers and text.
func limiting(status int, message string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		refuse(w, status, message)
	}
}

func epoch(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func TestLimits_R_CORE_14_SayWhenToGoOn(t *testing.T) {
	quota := fmt.Sprintf("API rate limit exceeded for installation ID %d.", testInstallation)
	inAnHour := epoch(testStart.Add(time.Hour))
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		wait   time.Duration
		words  string
	}{
		"secondary with Retry-After":           {limiting(403, secondary, "Retry-After", "90"), 90 * time.Second, "slow down"},
		"secondary without: a minute":          {limiting(403, secondary, "X-RateLimit-Remaining", "4000", "X-RateLimit-Reset", inAnHour), time.Minute, "slow down"},
		"secondary with no quota left":         {limiting(403, secondary, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", epoch(testStart.Add(5*time.Minute))), 5 * time.Minute, "slow down"},
		"secondary as 429 with Retry-After":    {limiting(429, secondary, "Retry-After", "30"), 30 * time.Second, "slow down"},
		"secondary as 429 without":             {limiting(429, secondary), time.Minute, "slow down"},
		"a 429 without a word":                 {limiting(429, ""), time.Minute, "slow down"},
		"Retry-After as a date":                {limiting(403, secondary, "Retry-After", testStart.Add(2*time.Minute).Format(http.TimeFormat)), 2 * time.Minute, "slow down"},
		"content made too fast":                {refusing(422, "Validation Failed", map[string]any{"resource": "PullRequest", "code": "custom", "message": "was submitted too quickly"}), time.Minute, "slow down"},
		"old words":                            {limiting(403, "You have triggered an abuse detection mechanism."), time.Minute, "slow down"},
		"quota, 403":                           {limiting(403, quota, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", epoch(testStart.Add(20*time.Minute))), 20 * time.Minute, "hourly quota"},
		"quota, 429":                           {limiting(429, quota, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", epoch(testStart.Add(20*time.Minute))), 20 * time.Minute, "hourly quota"},
		"quota, reset passed":                  {limiting(403, quota, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", epoch(testStart.Add(-time.Second))), time.Minute, "hourly quota"},
		"quota, reset unreadable":              {limiting(403, quota, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "soon"), time.Minute, "hourly quota"},
		"quota, reset further than a window":   {limiting(403, quota, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", epoch(testStart.Add(48*time.Hour))), time.Hour, "hourly quota"},
		"quota, by GitHub's clock (R-CORE-04)": {limiting(403, quota, "X-RateLimit-Remaining", "0", "Date", testStart.Add(-10*time.Minute).Format(http.TimeFormat), "X-RateLimit-Reset", epoch(testStart)), 10 * time.Minute, "hourly quota"},
		"quota without any header":             {limiting(403, quota), time.Minute, "slow down"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFake(t)
			f.handle("POST /repositories/42/pulls", inTurn(c.answer, always(http.StatusCreated, pullJSON(7, nil))))
			client := f.client(t)
			_, err := client.CreatePullRequest(background(t), 42, newPull)
			got := theFault(t, err, fault.RateLimited, fault.ReasonRateLimited, c.words, testAccount)
			g.Expect(got.RetryAt).To(Equal(testStart.Add(c.wait)))

			f.clock.Step(c.wait - time.Second)
			_, err = client.Repository(background(t), 42)
			again := theFault(t, err, fault.RateLimited, fault.ReasonRateLimited, c.words)
			g.Expect(again.RetryAt).To(Equal(got.RetryAt))
			g.Expect(f.seen()).To(HaveLen(1), "until then nobody asks")

			f.clock.Step(time.Second)
			pr, err := client.CreatePullRequest(background(t), 42, newPull)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pr.Number).To(Equal(7))
		})
	}
}

func TestLimits_DoNotHideOtherMeanings(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("POST /repositories/42/issues/1/comments", limiting(403, "Resource not accessible by integration",
		"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", epoch(testStart.Add(time.Hour)), "X-Accepted-GitHub-Permissions", "issues=write"))
	f.handle("GET /repositories/42", always(http.StatusOK, repositoryJSON(42, "acme/lab")))
	c := f.client(t)
	err := c.Comment(background(t), 42, 1, "Hello")
	expectFault(t, err, fault.Blocked, fault.ReasonPermissionMissing, "issues=write")
	_, err = c.Repository(background(t), 42)
	g.Expect(err).NotTo(HaveOccurred())
}

func TestLimits_OfOneInstallationLeaveOthersAlone(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("GET /orgs/beta/installation", f.signed(always(http.StatusOK, installationJSON(8, "beta", nil))))
	f.handle("GET /repositories/1", limiting(403, secondary))
	f.handle("GET /repositories/2", always(http.StatusOK, repositoryJSON(2, "beta/lab")))
	a := f.app(t)
	acme, err := a.ForAccount(background(t), "acme")
	g.Expect(err).NotTo(HaveOccurred())
	beta, err := a.ForAccount(background(t), "beta")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = acme.Repository(background(t), 1)
	expectFault(t, err, fault.RateLimited, fault.ReasonRateLimited)
	_, err = beta.Repository(background(t), 2)
	g.Expect(err).NotTo(HaveOccurred())
}

func TestGate_DoublesTheWaitOfRefusalsInARow(t *testing.T) {
	g := NewWithT(t)
	var gate gate
	now := testStart
	minute := limit{slowDown, time.Minute}
	for _, want := range []int{1, 2, 4, 8, 16, 16} {
		until := gate.refused(now, now, minute)
		g.Expect(until).To(Equal(now.Add(time.Duration(want) * time.Minute)))
		now = until
	}
	gate.passed(now)
	g.Expect(gate.refused(now, now, minute)).To(Equal(now.Add(time.Minute)))
}

func TestGate_CountsRefusalsSideBySideOnce(t *testing.T) {
	g := NewWithT(t)
	var gate gate
	minute := limit{slowDown, time.Minute}
	for range 4 {
		g.Expect(gate.refused(testStart, testStart, minute)).To(Equal(testStart.Add(time.Minute)))
	}
	gate.passed(testStart) // sent before the first refusal: proves nothing
	until, _, closed := gate.closed(testStart.Add(59 * time.Second))
	g.Expect(closed).To(BeTrue())
	g.Expect(gate.refused(until, until, minute)).To(Equal(until.Add(2 * time.Minute)))
}

func TestGate_NeverWaitsLessThanGitHubAskedFor(t *testing.T) {
	g := NewWithT(t)
	var gate gate
	now := testStart
	for range 3 {
		until := gate.refused(now, now, limit{slowDown, 2 * time.Hour})
		g.Expect(until).To(Equal(now.Add(2 * time.Hour)))
		now = until
	}
}
