// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/githubsim"
	"github.com/sluice-dev/sluice/internal/testenv/pgtest"
)

// waiting returns what the pass under way waits for.
func (w *world) waiting(p *v1alpha1.ProjectSync) string {
	s := w.get(p).Status.Sync
	if s == nil || s.InProgress == nil {
		return ""
	}
	return s.InProgress.WaitingFor
}

// set asks for a sync without waiting for its end.
func (w *world) set(p *v1alpha1.ProjectSync, token string) {
	w.t.Helper()
	w.change(p, func(p *v1alpha1.ProjectSync) { p.Spec.Sync = &v1alpha1.Sync{Request: token} })
}

func (w *world) ended(p *v1alpha1.ProjectSync, token string) v1alpha1.Outcomes {
	w.t.Helper()
	w.Eventually(func() string {
		s := w.get(p).Status.Sync
		if s == nil || s.LastCompleted == nil {
			return ""
		}
		return s.LastCompleted.Token
	}).Should(Equal(token))
	return w.get(p).Status.Sync.LastCompleted.Counts
}

// A pass that meets GitHub's limit waits and goes on, also in another process:
// the rows say where it was (R-LEASE-02, R-LEASE-05).
func TestPassWaitsForTheRateLimitAndIsResumedByAnotherProcess_R_SYNC_02(t *testing.T) {
	w := newWorld(t)
	p := w.published()
	w.pushSource("main", "second", map[string]string{"src/a.txt": "a2\n"})
	w.Eventually(func() string { return w.get(p).Status.AheadBy }).Should(Equal("1 commit"))
	reset := time.Now().Add(5 * time.Second)
	w.Expect(w.gh.Fault(w.ctx, githubsim.Fault{Method: http.MethodPost, Path: `/pulls$`, Status: http.StatusForbidden,
		Body:   `{"message":"API rate limit exceeded for installation ID 1.","documentation_url":"https://docs.github.com/rest"}`,
		Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Limit": "5000", "X-RateLimit-Reset": strconv.FormatInt(reset.Unix(), 10)}})).To(Succeed())
	w.set(p, "one")
	w.Eventually(func() string { return w.waiting(p) }).Should(Equal("RateLimited"))
	w.Expect(state(w.get(p).Status.Conditions, v1alpha1.ConditionSynced)).To(Equal("Unknown/InProgress"))

	w.stopOperator()
	w.Expect(w.gh.ClearFaults(w.ctx)).To(Succeed())
	w.startOperator()
	w.Expect(w.ended(p, "one")).To(Equal(v1alpha1.Outcomes{Opened: 3}))
	for name, l := range w.looks() {
		w.Expect(l.Pulls).To(HaveLen(1), name)
	}
	w.Expect(w.actions(p)).To(Equal([]string{"project.create", "project.sync_requested", "project.synced"}), "one entry for the pass, whoever ended it")
}

// An answer that is lost after the effect took place leads to no second pull
// request (R-PR-01, R-PR-02).
func TestLostAnswerOpensNoSecondPullRequest_R_PR_02(t *testing.T) {
	w := newWorld(t)
	p := w.published()
	w.pushSource("main", "second", map[string]string{"src/a.txt": "a2\n"})
	w.Expect(w.gh.Fault(w.ctx, githubsim.Fault{Method: http.MethodPost, Path: `/pulls$`, Drop: true, After: true, Times: 1})).To(Succeed())
	first := w.request(p, "one")
	w.Expect(first.Opened + first.Failed + first.Updated).To(BeEquivalentTo(3))
	second := w.request(p, "two")
	w.Expect(second.Failed).To(BeZero())
	for name, l := range w.looks() {
		w.Expect(l.Pulls).To(HaveLen(1), name)
	}
}

// GitHub out of reach at the start is said and recovered from.
func TestGitHubUnreachableAtStartIsSaidAndRecovers(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.gh.Fault(w.ctx, githubsim.Fault{Path: `^/app`, Drop: true})).To(Succeed())
	w.createApp()
	w.Expect(w.appReady("False/GitHubUnreachable")).NotTo(BeEmpty())
	w.Expect(w.gh.ClearFaults(w.ctx)).To(Succeed())
	w.appReady("True/Succeeded")
}

// A token waits while the App cannot act, and is taken up when it can.
func TestSuspendedInstallationLetsARequestWait_R_REQ_01(t *testing.T) {
	w := newWorld(t)
	p := w.published()
	w.pushSource("main", "second", map[string]string{"src/a.txt": "a2\n"})
	w.Expect(w.gh.Suspend(w.ctx, w.gh.AppID, "acme", true)).To(Succeed())
	w.set(p, "one")
	w.Eventually(func() string {
		s := w.get(p).Status.Sync
		if s == nil || s.LastRequest == nil {
			return ""
		}
		return s.LastRequest.Answer + "/" + s.LastRequest.Reason
	}).Should(Or(Equal("Waiting/AppSuspended"), Equal("Waiting/AppNotInstalled")))
	w.Expect(w.gh.Suspend(w.ctx, w.gh.AppID, "acme", false)).To(Succeed())
	w.Expect(w.ended(p, "one")).To(Equal(v1alpha1.Outcomes{Opened: 3}))
}

// The annotation asks for a sync too, and the same value never runs twice.
func TestAnnotationAsksForASync_R_REQ_04(t *testing.T) {
	w := newWorld(t)
	p := w.published()
	w.pushSource("main", "second", map[string]string{"src/a.txt": "a2\n"})
	w.change(p, func(p *v1alpha1.ProjectSync) {
		p.Annotations = map[string]string{v1alpha1.SyncRequestedAtAnnotation: "2026-10-05T12:00:00Z"}
	})
	w.Expect(w.ended(p, "2026-10-05T12:00:00Z")).To(Equal(v1alpha1.Outcomes{Opened: 3}))
	before := w.get(p).Status.Sync.LastCompleted.Time
	w.change(p, func(p *v1alpha1.ProjectSync) { p.Annotations["note"] = "resync" })
	w.stopOperator()
	w.startOperator()
	w.projectReady(p, "True/Succeeded")
	w.Expect(w.get(p).Status.Sync.LastCompleted.Time).To(Equal(before), "a restart starts no sync")
	w.Expect(w.actions(p)).To(HaveLen(3))
}

// Postgres away in the middle of a pass costs seconds, not a lease's length.
func TestPostgresAwayInMidPassCostsSeconds_R_LEASE_08(t *testing.T) {
	server := pgtest.Dedicated(t)
	w := startWorld(t, dedicatedDatabase(t, server))
	p := w.published()
	w.pushSource("main", "second", map[string]string{"src/a.txt": "a2\n"})
	w.Expect(w.gh.Fault(w.ctx, githubsim.Fault{Method: http.MethodPost, Path: `/pulls$`, Delay: 3 * time.Second})).To(Succeed())
	w.set(p, "one")
	w.Eventually(func() bool { s := w.get(p).Status.Sync; return s != nil && s.InProgress != nil }).Should(BeTrue())
	server.Pause()
	w.change(p, func(p *v1alpha1.ProjectSync) { p.Spec.Sync.Concurrency = 3 })
	w.projectReady(p, "False/DatabaseUnavailable")
	w.Expect(w.gh.ClearFaults(w.ctx)).To(Succeed())
	w.Expect(server.Resume(w.ctx)).To(Succeed())
	counts := w.ended(p, "one")
	w.Expect(counts.Opened + counts.Updated).To(BeEquivalentTo(3))
	for name, l := range w.looks() {
		w.Expect(l.Pulls).To(HaveLen(1), name)
	}
}
