// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/sluice-dev/sluice/api/v1alpha1"
)

// With -update, as hack/generate.sh runs them, these tests write the tables.
var update = flag.Bool("update", false, "write the reference tables of docs/ instead of comparing them")

const (
	crdFolder = "../../config/crd/bases"
	docFolder = "../../docs"
)

var kindFiles = map[string]string{
	"GitHubApp":     "sluice.dev_githubapps.yaml",
	"ProjectSync":   "sluice.dev_projectsyncs.yaml",
	"RepoReconcile": "sluice.dev_reporeconciles.yaml",
}

func TestReferenceOfKinds(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(kindFiles)) {
		t.Run(kind, func(t *testing.T) {
			root := *schemaOf(t, kind)
			for _, part := range []string{"spec", "status"} {
				section(t, "kinds.md", strings.ToLower(kind)+"-"+part, fieldTable(root, part))
			}
			section(t, "kinds.md", strings.ToLower(kind)+"-refusals", refusals(root))
		})
	}
}

func TestReferenceOfConditions(t *testing.T) {
	section(t, "conditions.md", "types", conditionTable())
	section(t, "conditions.md", "reasons", reasonTables())
}

// Whatever a condition, an outcome or an answer can carry is a constant in one
// of the two packages; each has to be explained to the person who reads it.
func TestReferenceExplainsEveryReason(t *testing.T) {
	g := NewWithT(t)
	explained := map[string]v1alpha1.Reason{}
	for _, r := range v1alpha1.Reasons() {
		g.Expect(explained).NotTo(HaveKey(r.Name), "%s is explained twice", r.Name)
		g.Expect([]string{r.Name, r.Group, r.Means, r.Mend}).NotTo(ContainElement(BeEmpty()), "%s", r.Name)
		explained[r.Name] = r
	}
	doc := read(t, filepath.Join(docFolder, "conditions.md"))
	api := constants(t, ".", "Reason")
	for name, value := range constants(t, "../../internal/fault", "Reason") {
		g.Expect(explained).To(HaveKey(value), "internal/fault.%s is not explained: add it to Reasons() in reasons.go", name)
		g.Expect(slices.Collect(maps.Values(api))).To(ContainElement(value), "internal/fault.%s has no constant in api/v1alpha1", name)
	}
	for name, value := range api {
		g.Expect(explained).To(HaveKey(value), "%s is not explained: add it to Reasons() in reasons.go", name)
		g.Expect(doc).To(ContainSubstring("| `"+value+"` |"), "%s is not in docs/conditions.md: run hack/generate.sh", name)
	}
	g.Expect(explained).To(HaveLen(len(api)), "Reasons() explains a word that is no constant")
}

func TestReferenceExplainsEveryConditionType(t *testing.T) {
	g := NewWithT(t)
	var explained []string
	for _, c := range v1alpha1.ConditionTypes() {
		g.Expect(c.Kinds).NotTo(BeEmpty(), c.Name)
		g.Expect(c.Means).NotTo(BeEmpty(), c.Name)
		explained = append(explained, c.Name)
	}
	g.Expect(explained).To(ConsistOf(slices.Collect(maps.Values(constants(t, ".", "Condition")))))
}

// Every field is described, and every string and list is bounded.
func TestReferenceBoundsEveryField(t *testing.T) {
	for kind := range kindFiles {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			root := schemaOf(t, kind)
			for _, part := range []string{"spec", "status"} {
				walk(part, root.Properties[part], func(path string, p apiextensionsv1.JSONSchemaProps) {
					if !strings.HasSuffix(path, "[]") {
						g.Expect(p.Description).NotTo(BeEmpty(), "%s has no description", path)
					}
					if p.Default != nil && part == "spec" && p.Type != "object" {
						g.Expect(p.Description).To(Or(ContainSubstring("Default"), ContainSubstring("default")), "%s does not say its default", path)
					}
					switch {
					case p.Type == "array":
						g.Expect(p.MaxItems).NotTo(BeNil(), "%s has no maxItems", path)
						g.Expect(p.XListType).NotTo(BeNil(), "%s has no list type", path)
					case p.Type == "string" && p.Format != "date-time" && len(p.Enum) == 0:
						g.Expect(p.MaxLength).NotTo(BeNil(), "%s has no maxLength", path)
					case p.Type == "object" && p.AdditionalProperties != nil:
						g.Expect(p.MaxProperties).NotTo(BeNil(), "%s has no maxProperties", path)
					}
					for _, e := range p.Enum {
						g.Expect(string(e.Raw)).To(MatchRegexp(`^"[A-Z][A-Za-z]+"$`), "%s: enums are CamelCase", path)
					}
				})
			}
		})
	}
}

func TestReferenceCRDsAreAllInstalled(t *testing.T) {
	g := NewWithT(t)
	var k struct {
		Resources []string `json:"resources"`
	}
	g.Expect(yaml.Unmarshal([]byte(read(t, "../../config/crd/kustomization.yaml")), &k)).To(Succeed())
	files, err := filepath.Glob(filepath.Join(crdFolder, "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var want []string
	for _, f := range files {
		want = append(want, "bases/"+filepath.Base(f))
	}
	g.Expect(k.Resources).To(ConsistOf(want))
}

// constants returns the string constants of a package whose names have the
// prefix, by name.
func constants(t *testing.T, folder, prefix string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != len(spec.Names) {
				return true
			}
			for i, name := range spec.Names {
				literal, ok := spec.Values[i].(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING || !strings.HasPrefix(name.Name, prefix) {
					continue
				}
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[name.Name] = value
			}
			return true
		})
	}
	if len(found) == 0 {
		t.Fatalf("no constants %s* in %s", prefix, folder)
	}
	return found
}

func schemaOf(t *testing.T, kind string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(crdFolder, kindFiles[kind]))), &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// walk calls visit for a field and all below it, in order of their names. The
// entries of a list have the list's path and [].
func walk(path string, p apiextensionsv1.JSONSchemaProps, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	visit(path, p)
	if p.Items != nil && p.Items.Schema != nil {
		walk(path+"[]", *p.Items.Schema, visit)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		walk(path+"."+name, p.Properties[name], visit)
	}
}

func fieldTable(root apiextensionsv1.JSONSchemaProps, part string) string {
	var b strings.Builder
	b.WriteString("| Field | Type | What it does |\n| --- | --- | --- |\n")
	required := requiredFields(part, root.Properties[part])
	walk(part, root.Properties[part], func(path string, p apiextensionsv1.JSONSchemaProps) {
		// A list of plain values is described at the list itself, and every
		// condition has the same fields.
		if path == part || strings.HasSuffix(path, "[]") || strings.Contains(path, ".conditions[]") {
			return
		}
		kind := typeOf(p)
		if required[path] {
			kind += ", required"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.TrimPrefix(path, part+"."), cell(kind), cell(p.Description))
	})
	return b.String()
}

func requiredFields(path string, p apiextensionsv1.JSONSchemaProps) map[string]bool {
	found := map[string]bool{}
	walk(path, p, func(path string, p apiextensionsv1.JSONSchemaProps) {
		for _, name := range p.Required {
			found[path+"."+name] = true
		}
	})
	return found
}

func typeOf(p apiextensionsv1.JSONSchemaProps) string {
	switch {
	case p.XIntOrString:
		return "number or percentage"
	case len(p.Enum) > 0:
		var words []string
		for _, e := range p.Enum {
			words = append(words, strings.Trim(string(e.Raw), `"`))
		}
		return strings.Join(words, ", ")
	case p.Type == "array":
		return fmt.Sprintf("list of %s, at most %d", typeOf(*p.Items.Schema), *p.MaxItems)
	case p.Format == "date-time":
		return "time"
	case p.Type == "string" && strings.Contains(p.Description, "duration"):
		return "duration"
	}
	return p.Type
}

// refusals lists what the API server answers to manifests that cannot be
// meant: the messages of the CEL rules, each once.
func refusals(root apiextensionsv1.JSONSchemaProps) string {
	var b strings.Builder
	seen := map[string]bool{}
	add := func(path string, rules apiextensionsv1.ValidationRules) {
		for _, r := range rules {
			line := fmt.Sprintf("| `%s` | %s |\n", path, cell(r.Message))
			if !seen[line] {
				seen[line] = true
				b.WriteString(line)
			}
		}
	}
	b.WriteString("| Where | Message |\n| --- | --- |\n")
	add("(object)", root.XValidations)
	walk("spec", root.Properties["spec"], func(path string, p apiextensionsv1.JSONSchemaProps) { add(path, p.XValidations) })
	return b.String()
}

func conditionTable() string {
	var b strings.Builder
	b.WriteString("| Type | Kinds | There | What it tells |\n| --- | --- | --- | --- |\n")
	for _, c := range v1alpha1.ConditionTypes() {
		there := "always"
		if c.OnlyWhileTrue {
			there = "only while True"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", c.Name, strings.Join(c.Kinds, ", "), there, cell(c.Means))
	}
	return b.String()
}

func reasonTables() string {
	var b strings.Builder
	group := ""
	for _, r := range v1alpha1.Reasons() {
		if r.Group != group {
			group = r.Group
			fmt.Fprintf(&b, "\n### %s\n\n| Reason | When | What to do |\n| --- | --- | --- |\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Name, cell(r.Means), cell(r.Mend))
	}
	return strings.TrimPrefix(b.String(), "\n")
}

// cell makes a text fit a Markdown table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`).Replace(strings.Join(strings.Fields(text), " "))
}

// section compares the generated part of a document between its markers with
// what it should be, or writes it under -update.
func section(t *testing.T, doc, name, want string) {
	t.Helper()
	path := filepath.Join(docFolder, doc)
	text := read(t, path)
	begin := fmt.Sprintf("<!-- begin %s: written by hack/generate.sh -->\n", name)
	end := fmt.Sprintf("<!-- end %s -->\n", name)
	before, rest, ok := strings.Cut(text, begin)
	got, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks the markers of %s", path, name)
	}
	want = "\n" + want + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	NewWithT(t).Expect(got).To(Equal(want), "%s is out of date: run hack/generate.sh", path)
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// YAML reads some plain words as true or false, also where a field's name
// stands: a field called on could be written in quotes only.
func TestReferenceFieldsCanBeWritten(t *testing.T) {
	for kind := range kindFiles {
		walk("spec", schemaOf(t, kind).Properties["spec"], func(path string, p apiextensionsv1.JSONSchemaProps) {
			for name := range p.Properties {
				var read map[string]any
				NewWithT(t).Expect(yaml.Unmarshal([]byte(name+": 1"), &read)).To(Succeed())
				NewWithT(t).Expect(read).To(HaveKey(name), "%s: YAML does not read the field's name as it is written", path)
			}
		})
	}
}
