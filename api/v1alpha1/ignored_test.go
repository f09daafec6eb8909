// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-dev/sluice/api/v1alpha1"
)

type ignorer interface{ IgnoredFields() []string }

var emptyObjects = map[string]func() ignorer{
	"GitHubApp":     func() ignorer { return &v1alpha1.GitHubApp{} },
	"ProjectSync":   func() ignorer { return &v1alpha1.ProjectSync{} },
	"RepoReconcile": func() ignorer { return &v1alpha1.RepoReconcile{} },
}

var saysInert = regexp.MustCompile(`[Nn]o\s+effect\s+yet`)

// The descriptions and IgnoredFields tell the same: a field is named as soon as
// it is set to something else than its default exactly when it, or a field
// around it, says that it has no effect yet.
func TestIgnoredFieldsAreThoseThatSaySo(t *testing.T) {
	for kind, empty := range emptyObjects {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(empty().IgnoredFields()).To(BeEmpty())
			leaves, inertLeaves := 0, 0
			eachLeaf("spec", schemaOf(t, kind).Properties["spec"], false, func(path string, inert bool, leaf apiextensionsv1.JSONSchemaProps) {
				leaves++
				object := empty()
				document, err := json.Marshal(nest(strings.Split(path, "."), unlikeDefault(t, path, leaf)))
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(json.Unmarshal(document, object)).To(Succeed(), "%s: %s", path, document)
				if !inert {
					g.Expect(object.IgnoredFields()).To(BeEmpty(), "%s has an effect by its description", path)
					return
				}
				inertLeaves++
				g.Expect(object.IgnoredFields()).To(ConsistOf(Satisfy(func(p string) bool {
					return path == p || strings.HasPrefix(path, p+".") || strings.HasPrefix(path, p+"[].") || path == p+"[]"
				})), "%s has no effect yet by its description", path)
			})
			g.Expect(leaves).To(BeNumerically(">", inertLeaves))
			g.Expect(inertLeaves).To(BeNumerically(">", 5))
		})
	}
}

// eachLeaf calls visit for every field that holds a value, with whether it or a
// field around it says that it has no effect yet.
func eachLeaf(path string, p apiextensionsv1.JSONSchemaProps, inert bool, visit func(string, bool, apiextensionsv1.JSONSchemaProps)) {
	inert = inert || saysInert.MatchString(p.Description)
	switch {
	case p.Items != nil:
		eachLeaf(path+"[]", *p.Items.Schema, inert, visit)
	case len(p.Properties) > 0:
		for name, child := range p.Properties {
			eachLeaf(path+"."+name, child, inert, visit)
		}
	case p.AdditionalProperties != nil:
		visit(path+".key", inert, *p.AdditionalProperties.Schema)
	default:
		visit(path, inert, p)
	}
}

// nest returns the object in which the path leads to the value.
func nest(path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	name, entries := strings.CutSuffix(path[0], "[]")
	inner := nest(path[1:], value)
	if entries {
		inner = []any{inner}
	}
	return map[string]any{name: inner}
}

// unlikeDefault returns a value of the field's type that is not its default.
func unlikeDefault(t *testing.T, path string, p apiextensionsv1.JSONSchemaProps) any {
	t.Helper()
	switch {
	case len(p.Enum) == 1:
		return json.RawMessage(p.Enum[0].Raw)
	case len(p.Enum) > 0:
		for _, e := range p.Enum {
			if p.Default == nil || string(p.Default.Raw) != string(e.Raw) {
				return json.RawMessage(e.Raw)
			}
		}
	case p.XIntOrString:
		return 3
	case p.Type == "boolean":
		return true
	case p.Type == "integer":
		return 77
	case p.Format == "date-time":
		return "2026-10-05T18:00:00Z"
	case p.Type == "string" && strings.Contains(p.Description, "duration"):
		return "77m"
	case p.Type == "string":
		return "something"
	}
	t.Fatalf("no value for %s of type %q", path, p.Type)
	return nil
}

func TestIgnoredFieldsPassDefaultsOver(t *testing.T) {
	g := NewWithT(t)
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	ten := int32(10)

	app := &v1alpha1.GitHubApp{Spec: v1alpha1.GitHubAppSpec{
		Budget: &v1alpha1.Budget{ContentPerMinute: 60, ContentPerHour: 450, ReservePercent: &ten, WriteSpacing: duration(time.Second),
			Pushes: &v1alpha1.PushBudget{Start: 8, Max: 64}},
		Deliveries: &v1alpha1.Deliveries{Interval: duration(24 * time.Hour)},
	}}
	g.Expect(app.IgnoredFields()).To(BeEmpty())

	deadline := &v1alpha1.Deadline{At: &metav1.Time{Time: time.Now()}, Grace: duration(30 * time.Minute), Strategy: v1alpha1.DeadlineNone}
	project := &v1alpha1.ProjectSync{Spec: v1alpha1.ProjectSyncSpec{
		Source:   v1alpha1.Source{Interval: duration(10 * time.Minute)},
		Deadline: deadline,
		Repositories: &v1alpha1.Repositories{Unrelated: "Refuse", OnRemoval: "Keep",
			Provision: &v1alpha1.Provision{Permission: "Push"}, List: []v1alpha1.Recipient{{Recipient: "r01", Deadline: deadline}}},
		Protection:  &v1alpha1.Protection{Mode: "None"},
		Runs:        &v1alpha1.ProjectRuns{FinalReview: "Disabled"},
		Reconcile:   &v1alpha1.ReconcileSettings{Interval: duration(24 * time.Hour), RunsInterval: duration(15 * time.Minute), Quiet: duration(30 * time.Minute)},
		PullRequest: &v1alpha1.PullRequest{WhenEmpty: "Close"},
		Sync:        &v1alpha1.Sync{Trigger: &v1alpha1.Trigger{Type: "Manual"}},
	}}
	g.Expect(project.IgnoredFields()).To(BeEmpty())
}

func TestIgnoredFieldsNameThePathOnce(t *testing.T) {
	g := NewWithT(t)
	member := []v1alpha1.Member{{Login: "octocat"}}
	project := &v1alpha1.ProjectSync{Spec: v1alpha1.ProjectSyncSpec{
		Repositories: &v1alpha1.Repositories{List: []v1alpha1.Recipient{{Recipient: "r01", Members: member}, {Recipient: "r02", Members: member}}},
		Sync:         &v1alpha1.Sync{Trigger: &v1alpha1.Trigger{Type: "OnPush"}},
	}}
	project.Annotations = map[string]string{v1alpha1.SyncCancelledAtAnnotation: "now"}
	g.Expect(project.IgnoredFields()).To(Equal([]string{
		"spec.repositories.list[].members", "spec.sync.trigger", "metadata.annotations[sluice.dev/sync-cancelled-at]",
	}))
}
