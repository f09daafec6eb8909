// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/githubsim"
)

var downstream = []string{"acme/lab1-r01", "acme/lab1-r02", "acme/lab1-r03"}

func (w *world) looks() map[string]githubsim.Look {
	w.t.Helper()
	all := map[string]githubsim.Look{}
	for _, name := range downstream {
		l, err := w.gh.Look(w.ctx, name)
		w.Expect(err).NotTo(HaveOccurred())
		all[name] = l
	}
	return all
}

// published brings a published project to where everybody has the first state.
func (w *world) published() *v1alpha1.ProjectSync {
	w.t.Helper()
	w.createApp()
	w.seedSource()
	p := w.project(v1alpha1.StagePublished)
	w.create(p)
	w.Eventually(func() string { return state(w.get(p).Status.Conditions, v1alpha1.ConditionReady) }).Should(Equal("True/Succeeded"))
	w.Eventually(func() int32 { return w.get(p).Status.Repositories.Live }).Should(BeEquivalentTo(3))
	return p
}

// The main job, from nothing to repositories in step, and again.
func TestStory_R_DIST_01_R_AHEAD_01_R_REQ_02_R_SYNC_04_R_PR_01(t *testing.T) {
	w := newWorld(t)
	p := w.published()

	t.Log("the distribution is private and one commit per branch, without history (R-DIST-07)")
	dist, err := w.gh.Look(w.ctx, "acme/lab1-squashed")
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(dist.Private).To(BeTrue())
	w.Expect(dist.Refs).To(HaveLen(2))
	for name, l := range w.looks() {
		w.Expect(l.Private).To(BeTrue(), name)
		w.Expect(l.DefaultBranch).To(Equal("main"), name)
		w.Expect(l.Refs).To(Equal(dist.Refs), "%s has the distribution's branches", name)
	}
	w.Expect(kstatusOf(w.get(p))).To(Equal(status.CurrentStatus))
	w.Expect(w.actions(p)).To(Equal([]string{"project.create"}))

	t.Log("a push to the source marks it ahead, with a count (R-AHEAD-01, R-AHEAD-02)")
	w.pushSource("main", "second", map[string]string{"src/a.txt": "a2\n"})
	w.pushSource("main", "third", map[string]string{"src/c.txt": "c\n"})
	w.Eventually(func() string { return w.get(p).Status.AheadBy }).Should(Equal("2 commits"))
	w.Expect(state(w.get(p).Status.Conditions, v1alpha1.ConditionSourceAhead)).To(Equal("True/Ahead"))
	w.Eventually(func() string { return w.get(p).Status.LastEvent.Event }).Should(Equal("push"))

	t.Log("a sync opens one pull request where a branch differs, and clears the mark (R-CLEAR-01)")
	w.Expect(w.request(p, "one")).To(Equal(v1alpha1.Outcomes{Opened: 3}))
	w.Expect(w.get(p).Status.AheadBy).To(BeEmpty())
	for name, l := range w.looks() {
		w.Expect(l.Pulls).To(HaveLen(1), name)
		pr := l.Pulls[0]
		w.Expect(pr.Head).To(Equal("sync/main"))
		w.Expect(pr.Author).To(Equal("sluice-demo[bot]"))
		w.Expect(pr.Body).To(ContainSubstring("src/a.txt"))
		w.Expect(pr.Title + pr.Body).NotTo(ContainSubstring("lab1-source"))
		w.Expect(pr.Comments).To(BeEmpty())
		w.Expect(l.Refs["refs/heads/main"]).To(Equal(dist.Refs["refs/heads/main"]), "a handed-out branch is never moved (R-SYNC-05)")
	}
	w.Expect(w.actions(p)).To(Equal([]string{"project.create", "project.sync_requested", "project.synced"}))

	t.Log("a second update reaches the same pull requests, with a comment (R-PR-02, R-PR-03)")
	w.pushSource("main", "fourth", map[string]string{"src/a.txt": "a4\n"})
	w.Eventually(func() string { return w.get(p).Status.AheadBy }).Should(Equal("1 commit"))
	w.Expect(w.request(p, "two")).To(Equal(v1alpha1.Outcomes{Updated: 3}))
	for name, l := range w.looks() {
		w.Expect(l.Pulls).To(HaveLen(1), name)
		w.Expect(l.Pulls[0].Comments).To(HaveLen(1), name)
	}

	t.Log("a third request with nothing new does nothing to any repository (R-SYNC-10)")
	before := w.looks()
	w.Expect(w.request(p, "three")).To(Equal(v1alpha1.Outcomes{Updated: 3}))
	w.Expect(w.looks()).To(Equal(before))

	t.Log("a merged repository is up to date; the same token never runs twice (R-PR-06, R-REQ-04)")
	_, err = w.gh.Merge(w.ctx, "acme/lab1-r01", 1, "merge", "r01")
	w.Expect(err).NotTo(HaveOccurred())
	w.Eventually(func() []v1alpha1.PullRequestStatus { return w.child(p, "r01").Status.PullRequests }).Should(HaveLen(1))
	w.Eventually(func() string { return w.child(p, "r01").Status.PullRequests[0].State }).Should(Equal("Merged"))
	w.Expect(w.request(p, "four")).To(Equal(v1alpha1.Outcomes{Updated: 2, UpToDate: 1}))
	w.Expect(kstatusOf(w.get(p))).To(Equal(status.CurrentStatus))
	w.Expect(state(w.get(p).Status.Conditions, v1alpha1.ConditionSynced)).To(Equal("True/Succeeded"))

	t.Log("deleting calls nothing on GitHub (R-CORE-07)")
	w.Expect(w.gh.Flush(w.ctx)).To(Succeed())
	_, err = w.gh.TakeRequests(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.k8s.Delete(w.ctx, p)).To(Succeed())
	w.Eventually(func() error { return w.k8s.Get(w.ctx, client.ObjectKeyFromObject(p), &v1alpha1.ProjectSync{}) }).ShouldNot(Succeed())
	requests, err := w.gh.TakeRequests(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(requests).To(BeEmpty())
}

// child returns the RepoReconcile of a recipient.
func (w *world) child(p *v1alpha1.ProjectSync, recipient string) *v1alpha1.RepoReconcile {
	var list v1alpha1.RepoReconcileList
	w.Expect(w.k8s.List(w.ctx, &list, client.InNamespace(p.Namespace))).To(Succeed())
	for i := range list.Items {
		if list.Items[i].Spec.Recipient == recipient {
			return &list.Items[i]
		}
	}
	return &v1alpha1.RepoReconcile{}
}
