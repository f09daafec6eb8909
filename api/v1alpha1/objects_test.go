// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/testenv"
)

// transition is a change of an object that exists, and what the API server
// says: part of its message, or nothing when it takes the change.
type transition struct {
	name string
	// as is laid over the minimal manifest, and status over its status,
	// before the change.
	as, status, change, says string
}

const (
	claimed = `{status: {observedGeneration: 1, distribution: {repositoryID: 7}}}`
	wanted  = `{status: {observedGeneration: 1, distribution: {repositoryID: 0, repository: acme/lab1-squashed}}}`
)

func TestTransitionsOfGitHubApp(t *testing.T) {
	testTransitions(t, minimalApp, []transition{
		{"another App ID", `{}`, "", `{spec: {appID: 4712}}`, "appID is immutable"},
		{"another server", `{}`, "", `{spec: {baseURL: "https://github.example.com/api/v3"}}`, "baseURL is immutable"},
		{"the default server again after another", `{spec: {baseURL: "https://github.example.com/api/v3"}}`, "", `{spec: {baseURL: null}}`, "baseURL is immutable"},
		{"another controller", `{}`, "", `{spec: {controllerName: example.com/other}}`, "controllerName is immutable"},
		{"another key, other grants", `{}`, "", `{spec: {privateKeyRef: {name: new}, grants: [{name: a, namespaces: {from: All}, organizations: [acme]}], suspend: true}}`, ""},
	})
}

func TestTransitionsOfProjectSync(t *testing.T) {
	const published = `{spec: {stage: Published}}`
	testTransitions(t, minimalProject, []transition{
		{"Draft to Published", `{}`, "", published, ""},
		{"Draft to Archived", `{}`, "", `{spec: {stage: Archived}}`, ""},
		{"R-DIST-14 Archived to Published", `{spec: {stage: Archived}}`, "", published, ""},
		{"Published to Draft", published, "", `{spec: {stage: Draft}}`, "stage never goes back to Draft"},
		{"Published to the default, which is Draft", published, "", `{spec: {stage: null}}`, "stage never goes back to Draft"},
		{"Archived to Draft", `{spec: {stage: Archived}}`, "", `{spec: {stage: Draft}}`, "stage never goes back to Draft"},

		{"R-DIST-11 other branches before it is built", `{}`, "", `{spec: {source: {branches: [main, hints]}}}`, ""},
		{"R-DIST-11 other branches while a name is only wanted", `{}`, wanted, `{spec: {source: {branches: [main, hints]}}}`, ""},
		{"R-DIST-11 another branch once built", `{}`, claimed, `{spec: {source: {branches: [main, hints]}}}`, "spec.source.branches is immutable once the distribution is built"},
		{"R-DIST-11 another order of branches once built", `{spec: {source: {branches: [main, hints]}}}`, claimed, `{spec: {source: {branches: [hints, main]}}}`, "spec.source.branches is immutable once the distribution is built"},
		{"R-DIST-11 no branches once built, which is main", `{}`, claimed, `{spec: {source: {branches: null}}}`, ""},
		{"R-DIST-11 another history before it is built", `{}`, "", `{spec: {source: {history: Whole}}}`, ""},
		{"R-DIST-11 another history once built", `{}`, claimed, `{spec: {source: {history: Whole}}}`, "spec.source.history is immutable once the distribution is built"},
		{"another App before it is built", `{}`, "", `{spec: {appRef: {name: other}}}`, ""},
		{"another App once built", `{}`, claimed, `{spec: {appRef: {name: other}}}`, "spec.appRef is immutable once the distribution is built"},
		{"what stays free once built", `{}`, claimed, `{spec: {stage: Published, suspend: true, source: {repository: acme/renamed, overlayDirectory: handout}, pullRequest: {title: New}, sync: {request: now}}}`, ""},

		{"the owner renames itself", `{}`, claimed, `{spec: {source: {repository: acme2/lab1-source}}}`, ""},
		{"another organization", `{spec: {repositories: {organization: acme}}}`, "", `{spec: {repositories: {organization: other}}}`, "repositories.organization is immutable"},
		{"an organization where there was the default", `{}`, "", `{spec: {repositories: {organization: other}}}`, "repositories.organization is immutable"},
		{"the default organization written out", `{}`, "", `{spec: {repositories: {organization: Acme}}}`, ""},
		{"the default where there was an organization", `{spec: {repositories: {organization: other}}}`, "", `{spec: {repositories: null}}`, "repositories.organization is immutable"},
		{"the default where there was the same organization", `{spec: {repositories: {organization: acme}}}`, "", `{spec: {repositories: {organization: null}}}`, ""},

		{"another prefix", `{}`, "", `{spec: {pullRequest: {branchPrefix: bot/}}}`, "branchPrefix is immutable"},
		{"the default prefix where there was another", `{spec: {pullRequest: {branchPrefix: bot/}}}`, "", `{spec: {pullRequest: null}}`, "branchPrefix is immutable"},
		{"another title", `{spec: {pullRequest: {branchPrefix: bot/}}}`, "", `{spec: {pullRequest: {title: New}}}`, ""},
	})
}

func TestTransitionsOfRepoReconcile(t *testing.T) {
	const inProject = `{spec: {projectRef: {name: lab1}}}`
	testTransitions(t, minimalRepo, []transition{
		{"another App", `{}`, "", `{spec: {appRef: {name: other}}}`, "appRef is immutable"},
		{"another project", inProject, "", `{spec: {projectRef: {name: lab2}}}`, "projectRef is immutable"},
		{"a project where there was none", `{}`, "", inProject, "projectRef is immutable"},
		{"no project where there was one", inProject, "", `{spec: {projectRef: null}}`, "projectRef is immutable"},
		{"a renamed repository", `{}`, "", `{spec: {repository: {name: renamed}}}`, ""},
		{"by id where it was by name", `{}`, "", `{spec: {repository: {owner: null, name: null, id: 42}}}`, ""},
		{"another id", `{spec: {repository: {owner: null, name: null, id: 42}}}`, "", `{spec: {repository: {id: 43}}}`, "repository.id is immutable"},
	})
}

func testTransitions(t *testing.T, base string, transitions []transition) {
	t.Helper()
	c, namespace := newClient(t), testenv.Namespace(t)
	for _, tr := range transitions {
		t.Run(tr.name, func(t *testing.T) {
			g := NewWithT(t)
			o := manifest(t, namespace, base, tr.as)
			create(t, c, o)
			if tr.status != "" {
				g.Expect(c.Status().Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", toJSON(t, tr.status)))).To(Succeed())
			}
			err := c.Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", toJSON(t, tr.change)))
			if tr.says != "" {
				g.Expect(err).To(MatchError(ContainSubstring(tr.says)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

// create makes the object and takes it away when the test ends.
func create(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context is done by now.
		if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), o)); err != nil {
			t.Error(err)
		}
	})
}

func TestDefaults(t *testing.T) {
	c, namespace := newClient(t), testenv.Namespace(t)
	minutes := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Minute} }

	t.Run("GitHubApp", func(t *testing.T) {
		g := NewWithT(t)
		o := manifest(t, "", minimalApp, `{spec: {webhookSecretRefs: [{name: hook}], budget: {pushes: {}}, deliveries: {}}}`)
		var got v1alpha1.GitHubApp
		dryRun(t, c, o, &got)
		ten := int32(10)
		g.Expect(got.Spec).To(Equal(v1alpha1.GitHubAppSpec{
			AppID: 4711, BaseURL: v1alpha1.DefaultBaseURL, ControllerName: v1alpha1.DefaultControllerName,
			PrivateKeyRef:     v1alpha1.SecretKeyReference{Name: "key"},
			WebhookSecretRefs: []v1alpha1.WebhookSecretReference{{Name: "hook", Key: "webhookSecret"}},
			Budget: &v1alpha1.Budget{ContentPerMinute: 60, ContentPerHour: 450, ReservePercent: &ten,
				WriteSpacing: &metav1.Duration{Duration: time.Second}, Pushes: &v1alpha1.PushBudget{Start: 8, Max: 64}},
			Deliveries: &v1alpha1.Deliveries{Interval: minutes(24 * 60)},
		}))
		g.Expect(got.IgnoredFields()).To(BeEmpty(), "a default is not a field that somebody set")
	})

	t.Run("ProjectSync, minimal", func(t *testing.T) {
		g := NewWithT(t)
		var got v1alpha1.ProjectSync
		dryRun(t, c, manifest(t, namespace, minimalProject), &got)
		g.Expect(got.Spec).To(Equal(v1alpha1.ProjectSyncSpec{
			AppRef: v1alpha1.AppReference{Kind: "GitHubApp", Name: "sluice-demo"},
			Stage:  v1alpha1.StageDraft, DeletionPolicy: v1alpha1.DeletionRetain,
			Source: v1alpha1.Source{Repository: "acme/lab1-source", Branches: []v1alpha1.Branch{v1alpha1.DefaultBranch},
				History: "Squash", Interval: minutes(10)},
			PullRequest: &v1alpha1.PullRequest{BranchPrefix: v1alpha1.DefaultBranchPrefix, Announce: "Comment", WhenEmpty: "Close"},
		}))
		g.Expect(got.IgnoredFields()).To(BeEmpty())
	})

	t.Run("ProjectSync, every part begun", func(t *testing.T) {
		g := NewWithT(t)
		var got v1alpha1.ProjectSync
		dryRun(t, c, manifest(t, namespace, minimalProject, `
spec:
  repositories: {provision: {nameTemplate: "{{ .recipient }}"}, objects: {}, list: [{recipient: r01, deadline: {at: "2026-10-05T18:00:00Z"}}]}
  deadline: {at: "2026-10-05T18:00:00Z"}
  protection: {}
  runs: {}
  reconcile: {}
  sync: {trigger: {}}`), &got)
		s := got.Spec
		g.Expect(*s.Repositories.Objects.Limit).To(Equal(int32(v1alpha1.DefaultObjectLimit)))
		g.Expect(s.Repositories.Unrelated).To(Equal("Refuse"))
		g.Expect(s.Repositories.OnRemoval).To(Equal("Keep"))
		g.Expect(s.Repositories.Provision.Visibility).To(Equal("Private"))
		g.Expect(s.Repositories.Provision.Permission).To(Equal("Push"))
		g.Expect(s.Deadline.Grace).To(Equal(minutes(30)))
		g.Expect(s.Deadline.Strategy).To(Equal(v1alpha1.DeadlineNone))
		g.Expect(s.Repositories.List[0].Deadline).To(Equal(s.Deadline))
		g.Expect(s.Protection.Mode).To(Equal("None"))
		g.Expect(s.Runs.FinalReview).To(Equal("Disabled"))
		g.Expect(*s.Reconcile).To(Equal(v1alpha1.ReconcileSettings{Interval: minutes(24 * 60), RunsInterval: minutes(15), Quiet: minutes(30)}))
		g.Expect(s.Sync.Concurrency).To(Equal(int32(v1alpha1.DefaultConcurrency)))
		g.Expect(s.Sync.Trigger.Type).To(Equal("Manual"))
		g.Expect(got.IgnoredFields()).To(BeEmpty())
	})

	t.Run("RepoReconcile", func(t *testing.T) {
		g := NewWithT(t)
		var got v1alpha1.RepoReconcile
		dryRun(t, c, manifest(t, namespace, minimalRepo, `{spec: {reconcile: {}}}`), &got)
		g.Expect(got.Spec.AppRef.Kind).To(Equal("GitHubApp"))
		g.Expect(got.Spec.Suspend).To(BeFalse())
		g.Expect(got.IgnoredFields()).To(BeEmpty())
	})
}

// dryRun has the API server fill in the defaults and reads the result.
func dryRun(t *testing.T, c client.Client, o *unstructured.Unstructured, into any) {
	t.Helper()
	if err := c.Create(t.Context(), o, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		t.Fatal(err)
	}
}

// kstatus is what kubectl's appliers, Flux and Argo CD wait by. An object that
// nobody has looked at yet must never pass for done, not even when the receiver
// was there before the controller.
func TestKstatus(t *testing.T) {
	for kind, base := range map[string]string{"GitHubApp": minimalApp, "ProjectSync": minimalProject, "RepoReconcile": minimalRepo} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			c, namespace := newClient(t), testenv.Namespace(t)
			o := manifest(t, namespace, base)
			create(t, c, o)
			key := client.ObjectKeyFromObject(o)
			computed := func() kstatus.Status {
				g.Expect(c.Get(t.Context(), key, o)).To(Succeed())
				result, err := kstatus.Compute(o)
				g.Expect(err).NotTo(HaveOccurred())
				return result.Status
			}
			observed := func() int64 {
				n, found, err := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(found).To(BeTrue())
				return n
			}
			settle := func(conditions ...metav1.Condition) {
				for i := range conditions {
					conditions[i].Reason, conditions[i].LastTransitionTime = "Test", metav1.Now()
				}
				patch := map[string]any{"observedGeneration": o.GetGeneration(), "conditions": conditions}
				g.Expect(c.Status().Patch(t.Context(), o, mergePatch(t, map[string]any{"status": patch}))).To(Succeed())
			}

			g.Expect(computed()).To(Equal(kstatus.InProgressStatus))
			g.Expect(observed()).To(Equal(int64(-1)))

			event := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": o.GetAPIVersion(), "kind": kind,
				"metadata": map[string]any{"name": key.Name, "namespace": key.Namespace},
				"status": map[string]any{"lastEvent": map[string]any{
					"id": "72d3162e-cc78-11e3-81ab-4c9367dc0958", "event": "push", "receivedAt": "2026-10-05T18:00:00Z"}},
			}}
			g.Expect(c.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(event), client.FieldOwner("sluice-receiver"))).To(Succeed())
			g.Expect(computed()).To(Equal(kstatus.InProgressStatus))
			g.Expect(observed()).To(Equal(int64(-1)))

			settle(metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}, metav1.Condition{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue})
			g.Expect(computed()).To(Equal(kstatus.InProgressStatus))
			settle(metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue})
			g.Expect(computed()).To(Equal(kstatus.CurrentStatus))
			settle(metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue})
			g.Expect(computed()).To(Equal(kstatus.FailedStatus))

			// A new wish is new work.
			settle(metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue})
			g.Expect(c.Patch(t.Context(), o, mergePatch(t, map[string]any{"spec": map[string]any{"suspend": true}}))).To(Succeed())
			g.Expect(computed()).To(Equal(kstatus.InProgressStatus))
			_, found, err := unstructured.NestedMap(o.Object, "status", "lastEvent")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(BeTrue(), "the controller's patches leave the receiver's event alone")
		})
	}
}

func TestConditionAccessors(t *testing.T) {
	for _, o := range []interface {
		GetConditions() []metav1.Condition
		SetConditions([]metav1.Condition)
	}{&v1alpha1.GitHubApp{}, &v1alpha1.ProjectSync{}, &v1alpha1.RepoReconcile{}} {
		o.SetConditions([]metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}})
		NewWithT(t).Expect(meta.IsStatusConditionTrue(o.GetConditions(), v1alpha1.ConditionReady)).To(BeTrue())
	}
}

// A message of the longest kind is taken; the API server would refuse the whole
// status for a longer one.
func TestShortenMessage(t *testing.T) {
	g := NewWithT(t)
	g.Expect(v1alpha1.ShortenMessage("short")).To(Equal("short"))
	exact := strings.Repeat("é", v1alpha1.MaxMessageLength)
	g.Expect(v1alpha1.ShortenMessage(exact)).To(Equal(exact))
	cut := v1alpha1.ShortenMessage(exact + "é")
	g.Expect([]rune(cut)).To(HaveLen(v1alpha1.MaxMessageLength))
	g.Expect(cut).To(HaveSuffix("é..."))

	c, namespace := newClient(t), testenv.Namespace(t)
	o := manifest(t, namespace, minimalProject)
	create(t, c, o)
	status := func(message string) map[string]any {
		return map[string]any{"status": map[string]any{
			"nextAction": message,
			"failing":    []any{map[string]any{"repository": "acme/lab1-r01", "reason": "RateLimited", "message": message}},
			"sync": map[string]any{
				"lastRequest": map[string]any{"token": "a", "source": "spec", "answer": "Waiting", "message": message, "time": "2026-10-05T18:00:00Z"},
				"inProgress":  map[string]any{"phase": "Pushing", "settled": 0, "total": 1, "waitingFor": message},
			},
		}}
	}
	g.Expect(c.Status().Patch(t.Context(), o, mergePatch(t, status(exact+"é")))).To(MatchError(ContainSubstring("Too long")))
	g.Expect(c.Status().Patch(t.Context(), o, mergePatch(t, status(cut)))).To(Succeed())
}

func TestLabelSelector(t *testing.T) {
	selection := func(s *v1alpha1.LabelSelector) v1alpha1.NamespaceSelection {
		return v1alpha1.NamespaceSelection{From: v1alpha1.NamespacesSelector, Selector: s}
	}
	byLabel := &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"team": "a"}}
	byExpression := &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{
		{Key: "team", Operator: metav1.LabelSelectorOpIn, Values: []v1alpha1.LabelValue{"a", "b"}},
		{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist},
	}}
	for _, tc := range []struct {
		name      string
		selection v1alpha1.NamespaceSelection
		labels    map[string]string
		covers    bool
	}{
		{"all", v1alpha1.NamespaceSelection{From: v1alpha1.NamespacesAll}, nil, true},
		{"a label that is there", selection(byLabel), map[string]string{"team": "a", "other": "x"}, true},
		{"another value", selection(byLabel), map[string]string{"team": "b"}, false},
		{"no labels", selection(byLabel), nil, false},
		{"expressions that hold", selection(byExpression), map[string]string{"team": "b"}, true},
		{"one expression that does not hold", selection(byExpression), map[string]string{"team": "b", "old": "yes"}, false},
		{"no selector covers nothing", selection(nil), map[string]string{"team": "a"}, false},
		{"an empty selector covers nothing", selection(&v1alpha1.LabelSelector{}), map[string]string{"team": "a"}, false},
		{"an unknown word covers nothing", v1alpha1.NamespaceSelection{From: "Some"}, map[string]string{"team": "a"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := NewWithT(t)
			covers, err := tc.selection.Covers(tc.labels)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(covers).To(Equal(tc.covers))
		})
	}
	t.Run("a selector that cannot be read covers nothing and says so", func(t *testing.T) {
		g := NewWithT(t)
		covers, err := selection(&v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "a", Operator: "Equals"}}}).Covers(nil)
		g.Expect(err).To(MatchError(ContainSubstring("the selector cannot be used")))
		g.Expect(covers).To(BeFalse())
	})
}

func mergePatch(t *testing.T, change any) client.Patch {
	t.Helper()
	return client.RawPatch("application/merge-patch+json", marshal(t, change))
}
