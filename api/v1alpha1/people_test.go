// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/testenv"
)

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The columns answer what is out, who has it, who has not, and why.
func TestColumns(t *testing.T) {
	const at = "2026-10-05T18:00:00Z"
	condition := func(kind, status, reason, message string) string {
		return fmt.Sprintf(`{type: %s, status: %q, reason: %s, message: %s, lastTransitionTime: %q}`, kind, status, reason, message, at)
	}
	for _, tc := range []struct {
		kind, resource, base, status string
		narrow, wide                 []string // column=cell, in order; the age aside
	}{
		{
			"GitHubApp", "githubapp", minimalApp,
			`{status: {slug: sluice-demo, installations: {total: 3, suspended: 1}, lastEvent: {id: a, event: push, receivedAt: "` + at + `"},
			  conditions: [` + condition("Ready", "True", "Succeeded", "acts-as-sluice-demo") + `]}}`,
			[]string{"APP ID=4711", "SLUG=sluice-demo", "READY=True", "INSTALLATIONS=3", "LAST EVENT=*", "MESSAGE=acts-as-sluice-demo", "AGE=*"},
			nil,
		},
		{
			"ProjectSync", "psync", minimalProject,
			`{status: {aheadBy: "12", repositories: {total: 7, live: 6, locked: 0, deleted: 0, provisioned: 6},
			  outcomes: {opened: 1, updated: 2, upToDate: 3, held: 4, skipped: 5, failed: 6}, sync: {progress: 3/6}, nextAction: wait,
			  conditions: [` + condition("Ready", "True", "SomeRepositoriesFailed", "six-failed") + `, ` + condition("Synced", "False", "Held", "four-held") + `]}}`,
			[]string{"STAGE=Draft", "READY=True", "SYNCED=False", "AHEAD=12", "REPOS=6", "OPENED=1", "UPDATED=2", "UPTODATE=3", "HELD=4", "FAILED=6", "PROGRESS=3/6", "AGE=*"},
			[]string{"SKIPPED=5", "MESSAGE=six-failed", "NEXT=wait"},
		},
		{
			"RepoReconcile", "rrec", minimalRepo,
			`{status: {fullName: acme/lab1-r01, effectiveDeadline: "` + at + `", outcome: {value: Held, reason: HumanCommits},
			  pullRequests: [{branch: main, number: 17, state: Open}, {branch: hints, number: 18, state: Merged}],
			  conditions: [` + condition("Ready", "True", "Adopted", "is-there") + `]}}`,
			[]string{"RECIPIENT=", "REPOSITORY=acme/lab1-r01", "READY=True", "OUTCOME=Held", "PR=17", "STATE=Open", "REASON=HumanCommits", "AGE=*"},
			[]string{"DEADLINE=" + at, "MESSAGE=is-there"},
		},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			g := NewWithT(t)
			c, namespace := newClient(t), testenv.Namespace(t)
			o := manifest(t, namespace, tc.base, `{spec: {suspend: false}}`)
			create(t, c, o)
			g.Expect(c.Status().Patch(t.Context(), o, client.RawPatch("application/merge-patch+json", toJSON(t, tc.status)))).To(Succeed())

			g.Expect(row(t, tc.resource, o)).To(Equal(append([]string{"NAME=" + o.GetName()}, tc.narrow...)))
			g.Expect(row(t, tc.resource, o, "-o", "wide")).To(Equal(append(append([]string{"NAME=" + o.GetName()}, tc.narrow...), tc.wide...)))

			// The category finds all three.
			out, err := testenv.Cluster(t).Kubectl(t.Context(), "get", "sluice", "-A", "-o", "name")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out).To(ContainSubstring("/" + o.GetName() + "\n"))
		})
	}
}

// row returns what kubectl prints for an object as column=cell. Cells that tell
// a time as an age are *.
func row(t *testing.T, resource string, o client.Object, args ...string) []string {
	t.Helper()
	args = append([]string{"get", resource, o.GetName()}, args...)
	if o.GetNamespace() != "" {
		args = append(args, "-n", o.GetNamespace())
	}
	out, err := testenv.Cluster(t).Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	head, line, _ := strings.Cut(strings.TrimRight(out, "\n"), "\n")
	var cells []string
	for start := 0; start < len(head); {
		end := start + len(head[start:])
		if i := strings.Index(head[start:], "   "); i >= 0 {
			end = start + i
			for end < len(head) && head[end] == ' ' {
				end++
			}
		}
		name := strings.TrimSpace(head[start:end])
		cell := ""
		if start < len(line) {
			cell = line[start:]
			if end < min(len(head), len(line)) {
				cell = line[start:end]
			}
			cell = strings.TrimSpace(cell)
		}
		if name == "AGE" || name == "LAST EVENT" {
			cell = "*"
		}
		cells = append(cells, name+"="+cell)
		start = end
	}
	return cells
}

const samples = "../../config/samples"

// The samples are taken by the API server, and set nothing that has no effect.
func TestSamples(t *testing.T) {
	g := NewWithT(t)
	cluster := testenv.Cluster(t)
	// A dry run needs the namespaces that the samples are in.
	for _, namespace := range []string{"labs", "sluice-system"} {
		_, err := cluster.Kubectl(t.Context(), "create", "namespace", namespace)
		g.Expect(err).NotTo(HaveOccurred())
	}

	out, err := cluster.Kubectl(t.Context(), "apply", "-k", samples, "--dry-run=server")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("githubapp.sluice.dev/sluice-demo created"))
	g.Expect(out).To(ContainSubstring("projectsync.sluice.dev/lab1 created"))
	out, err = cluster.Kubectl(t.Context(), "apply", "-f", filepath.Join(samples, "secrets.example.yaml"), "--dry-run=server")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("secret/sluice-demo-key created"))

	c := newClient(t)
	var app v1alpha1.GitHubApp
	dryRun(t, c, manifest(t, "", sample(t, "githubapp.yaml")), &app)
	var project v1alpha1.ProjectSync
	dryRun(t, c, manifest(t, "labs", sample(t, "projectsync.yaml")), &project)

	g.Expect(app.IgnoredFields()).To(BeEmpty())
	g.Expect(project.IgnoredFields()).To(BeEmpty())
	g.Expect(project.Spec.AppRef.Name).To(Equal(app.Name))
	covers, err := app.Spec.Grants[0].Namespaces.Covers(map[string]string{corev1.LabelMetadataName: project.Namespace})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(covers).To(BeTrue(), "the sample's grant is for the sample's project")
	g.Expect(project.Spec.Stage).To(Equal(v1alpha1.StagePublished))
	made, adopted := 0, 0
	for _, r := range project.Spec.Repositories.List {
		if r.Repository == "" {
			made++
		} else {
			adopted++
		}
	}
	g.Expect([]int{made, adopted}).To(Equal([]int{4, 2}))
}

// Secrets belong to nobody who applies the samples as a whole.
func TestSamplesLeaveSecretsAlone(t *testing.T) {
	NewWithT(t).Expect(sample(t, "kustomization.yaml")).NotTo(ContainSubstring("secret"))
}

func sample(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(samples, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What kubectl explain prints is the same text as docs/kinds.md.
func TestExplain(t *testing.T) {
	g := NewWithT(t)
	out, err := testenv.Cluster(t).Kubectl(t.Context(), "explain", "psync.spec.sync.request")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Join(strings.Fields(out), " ")).To(ContainSubstring("the same value never runs twice"))
}

// The scheme knows the lists as well: informers ask for them.
func TestScheme(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	for _, kind := range []string{"GitHubApp", "ProjectSync", "RepoReconcile"} {
		g.Expect(scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind))).To(BeTrue())
		g.Expect(scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind + "List"))).To(BeTrue())
	}
}
