// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

var moment = time.Date(2026, 10, 5, 12, 0, 0, 123456789, time.UTC)

func view() domain.ProjectView {
	commits := 2
	finished := moment.Add(time.Minute)
	return domain.ProjectView{
		Project: domain.Project{
			ProjectSpec: domain.ProjectSpec{Stage: domain.StagePublished, Branches: []string{"main", "hints"}, Distribution: "acme/lab1-squashed"},
			SourceRepo:  domain.RepositoryRef{ID: 1, FullName: "acme/secret"}, DistributionRepo: domain.RepositoryRef{ID: 2, FullName: "acme/lab1-squashed"},
			SourceHeads: domain.Heads{"main": "a", "hints": "b"}, DistributionHeads: domain.Heads{"main": "c", "hints": "d"},
			Ahead: map[string]domain.AheadBranch{"main": {SHA: "e", PushedAt: moment, Commits: &commits}},
		},
		LastRequest:  &domain.Request{Token: domain.Token{Source: domain.TokenSpec, Value: "one"}, Answer: domain.AnswerAccepted, AnsweredAt: moment},
		LastPass:     &domain.Pass{Token: domain.Token{Value: "one"}, FinishedAt: &finished, Counts: domain.Counts{Opened: 2, Failed: 1}},
		Repositories: domain.RepositoryCounts{Total: 3, Live: 3, Provisioned: 3},
		Outcomes:     domain.Counts{Opened: 2, Failed: 1},
		Failing:      []domain.Repository{{Repo: domain.RepositoryRef{FullName: "acme/r3"}, Outcome: domain.OutcomeFailed, Reason: "RepositoryArchived", OutcomeAt: &finished}},
	}
}

func project() *v1alpha1.ProjectSync {
	return &v1alpha1.ProjectSync{ObjectMeta: metav1.ObjectMeta{Generation: 3}, Spec: v1alpha1.ProjectSyncSpec{Stage: v1alpha1.StagePublished}}
}

// A status that was stored and read again is the one that the same rows make:
// nothing is written when nothing changed.
func TestProjectionOfTheSameRowsIsTheSameStatus(t *testing.T) {
	g := NewWithT(t)
	first := project()
	projectStatus(first, view())
	text, err := json.Marshal(first)
	g.Expect(err).NotTo(HaveOccurred())
	var stored v1alpha1.ProjectSync
	g.Expect(json.Unmarshal(text, &stored)).To(Succeed())
	again := stored.DeepCopy()
	projectStatus(again, view())
	g.Expect(equality.Semantic.DeepEqual(&stored, again)).To(BeTrue())
}

// Reconciling and Stalled are there only while True, and never both.
func TestProjectionOfProjectConditions(t *testing.T) {
	for name, c := range map[string]struct {
		edit                        func(*domain.ProjectView, *v1alpha1.ProjectSync)
		ready, reconciling, stalled string
		synced                      string
	}{
		"failures leave it ready": {func(*domain.ProjectView, *v1alpha1.ProjectSync) {},
			"True/SomeRepositoriesFailed", "", "", "False/SomeRepositoriesFailed"},
		"all well": {func(v *domain.ProjectView, _ *v1alpha1.ProjectSync) { v.Outcomes = domain.Counts{Opened: 3} },
			"True/Succeeded", "", "", "True/Succeeded"},
		"held": {func(v *domain.ProjectView, _ *v1alpha1.ProjectSync) { v.Outcomes = domain.Counts{Updated: 2, Held: 1} },
			"True/Succeeded", "", "", "False/Held"},
		"building": {func(v *domain.ProjectView, _ *v1alpha1.ProjectSync) { v.DistributionRepo.FullName = "" },
			"False/Building", "True/Building", "", "False/SomeRepositoriesFailed"},
		"a pass under way": {func(v *domain.ProjectView, _ *v1alpha1.ProjectSync) {
			v.ActivePass, v.Targets = &domain.Pass{Phase: domain.PhasePushing, StartedAt: moment}, 3
		}, "True/InProgress", "True/InProgress", "", "Unknown/InProgress"},
		"a request refused": {func(v *domain.ProjectView, _ *v1alpha1.ProjectSync) {
			v.LastRequest.Answer, v.LastRequest.Reason = domain.AnswerRefused, "SourceRewritten"
		}, "True/SomeRepositoriesFailed", "", "", "False/SourceRewritten"},
		"only a person mends it": {func(v *domain.ProjectView, _ *v1alpha1.ProjectSync) {
			v.Problem = domain.Problem{Class: string(fault.Terminal), Reason: "SourceChanged", Message: "m"}
		}, "False/SourceChanged", "", "True/SourceChanged", "False/SomeRepositoriesFailed"},
		"a wait is no work": {func(v *domain.ProjectView, _ *v1alpha1.ProjectSync) {
			v.Problem = domain.Problem{Class: string(fault.RateLimited), Reason: "RateLimited", Message: "m", RetryAt: moment}
		}, "False/RateLimited", "", "", "False/SomeRepositoriesFailed"},
		"suspended": {func(_ *domain.ProjectView, p *v1alpha1.ProjectSync) { p.Spec.Suspend = true },
			"True/Suspended", "", "", "False/SomeRepositoriesFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v, p := view(), project()
			c.edit(&v, p)
			projectStatus(p, v)
			got := map[string]string{}
			for _, cond := range p.Status.Conditions {
				got[cond.Type] = string(cond.Status) + "/" + cond.Reason
				g.Expect(cond.ObservedGeneration).To(BeEquivalentTo(3))
			}
			g.Expect(got[v1alpha1.ConditionReady]).To(Equal(c.ready))
			g.Expect(got[v1alpha1.ConditionReconciling]).To(Equal(c.reconciling))
			g.Expect(got[v1alpha1.ConditionStalled]).To(Equal(c.stalled))
			g.Expect(got[v1alpha1.ConditionSynced]).To(Equal(c.synced))
			g.Expect(p.Status.NextAction).NotTo(BeEmpty())
		})
	}
}

// What people of a downstream repository may read names nothing of the source
// (R-PRIV-01).
func TestRepositoryStatusNamesNothingOfTheSource_R_PRIV_01(t *testing.T) {
	g := NewWithT(t)
	o := &v1alpha1.RepoReconcile{}
	v := domain.RepositoryView{Repository: domain.Repository{Provision: domain.ProvisionOK, Repo: domain.RepositoryRef{ID: 9, FullName: "acme/r1"}, Outcome: domain.OutcomeOpened, Message: "opened #1 onto main", OutcomeAt: &moment},
		PullRequests: []domain.PullRequest{{Branch: "hints", Number: 2, State: domain.PullRequestOpen}, {Branch: "main", Number: 1, State: domain.PullRequestOpen}}}
	repositoryStatus(o, v, view().Project, nil)
	text, err := json.Marshal(o)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).NotTo(Or(ContainSubstring("secret"), ContainSubstring("squashed")))
	g.Expect(o.Status.PullRequests[0].Branch).To(Equal("main"), "the default branch's row comes first (R-PR-08)")
}

func TestFirstAnswer(t *testing.T) {
	token := domain.Token{Source: domain.TokenSpec, Value: "one"}
	for name, c := range map[string]struct {
		edit func(*domain.ProjectView, *v1alpha1.ProjectSync)
		want domain.Answer
		why  string
	}{
		"runs":                {func(*domain.ProjectView, *v1alpha1.ProjectSync) {}, domain.AnswerWaiting, ""},
		"archived (R-REQ-01)": {func(v *domain.ProjectView, _ *v1alpha1.ProjectSync) { v.Stage = domain.StageArchived }, domain.AnswerRefused, "ProjectArchived"},
		"came with the object": {func(v *domain.ProjectView, p *v1alpha1.ProjectSync) {
			v.DistributionRepo.FullName = ""
			p.Generation = 1
		}, domain.AnswerBuilt, ""},
		"unbuilt (R-REQ-01)":           {func(v *domain.ProjectView, _ *v1alpha1.ProjectSync) { v.DistributionRepo.FullName = "" }, domain.AnswerWaiting, "DistributionMissing"},
		"another sync runs (R-REQ-01)": {func(v *domain.ProjectView, _ *v1alpha1.ProjectSync) { v.ActivePass = &domain.Pass{} }, domain.AnswerWaiting, "SyncInProgress"},
		"suspended":                    {func(v *domain.ProjectView, _ *v1alpha1.ProjectSync) { v.Suspended = true }, domain.AnswerWaiting, "Suspended"},
		"answered before, unknown to the database": {func(_ *domain.ProjectView, p *v1alpha1.ProjectSync) {
			p.Status.Sync = &v1alpha1.SyncStatus{LastRequest: &v1alpha1.RequestStatus{Token: "one", Source: "spec"}}
		}, domain.AnswerRecovered, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v, p := view(), project()
			c.edit(&v, p)
			answer, reason, _ := firstAnswer(p, v, token)
			NewWithT(t).Expect([]string{string(answer), reason}).To(Equal([]string{string(c.want), c.why}))
		})
	}
}

func TestChildNamesAreLegalAndTheirOwn(t *testing.T) {
	g := NewWithT(t)
	long := "a-project-with-quite-a-long-name-that-goes-on-and-on-and-on-to-the-end"
	a, b := childName(long, "R_01.x"), childName(long, "R_01.y")
	g.Expect(len(a)).To(BeNumerically("<=", maxChildName))
	g.Expect(a).NotTo(Equal(b))
	g.Expect(childName("lab1", "R_01")).To(HavePrefix("lab1-r-01-"))
	g.Expect(childName("lab1", "R_01")).To(Equal(childName("lab1", "R_01")))
}
