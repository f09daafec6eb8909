// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	. "github.com/onsi/gomega"
)

// sample returns a value that fits a schema, with every documented key down to
// depth and only the required ones below.
func sample(schema *openapi3.Schema, depth int) any {
	switch {
	case len(schema.Enum) > 0:
		return schema.Enum[0]
	case len(schema.OneOf) > 0:
		return sampleBranch(schema, schema.OneOf[0], depth)
	case len(schema.AnyOf) > 0:
		return sampleBranch(schema, schema.AnyOf[0], depth)
	case schema.Type.Is(openapi3.TypeArray):
		return []any{sample(schema.Items.Value, depth-1)}
	case schema.Type.Is(openapi3.TypeString):
		switch schema.Format {
		case "date-time":
			return "2026-01-02T03:04:05Z"
		case "uri":
			return "https://github.example/some/path"
		}
		return strings.Repeat("x", max(1, int(schema.MinLength)))
	case schema.Type.Is(openapi3.TypeInteger), schema.Type.Is(openapi3.TypeNumber):
		if schema.Min != nil {
			return *schema.Min
		}
		return 7
	case schema.Type.Is(openapi3.TypeBoolean):
		return true
	}
	return sampleObject(schema, depth)
}

func sampleBranch(schema *openapi3.Schema, branch *openapi3.SchemaRef, depth int) any {
	value := sample(branch.Value, depth)
	if schema.Discriminator == nil {
		return value
	}
	for name, ref := range schema.Discriminator.Mapping {
		if ref.Ref == branch.Ref {
			value.(map[string]any)[schema.Discriminator.PropertyName] = name
		}
	}
	return value
}

func sampleObject(schema *openapi3.Schema, depth int) any {
	object := map[string]any{}
	for _, part := range schema.AllOf {
		maps.Copy(object, sample(part.Value, depth).(map[string]any))
	}
	for name, property := range schema.Properties {
		if depth > 0 || slices.Contains(schema.Required, name) {
			object[name] = sample(property.Value, depth-1)
		}
	}
	return object
}

// documentedAnswer is one answer that an operation documents.
type documentedAnswer struct {
	operation, mediaType string
	status               int
	body                 body
}

func (a documentedAnswer) String() string {
	return fmt.Sprintf("%s %d %s", a.operation, a.status, a.mediaType)
}

func (a documentedAnswer) header() http.Header {
	return http.Header{"Content-Type": {a.mediaType}, "Location": {"https://github.example/elsewhere"}}
}

// documentedAnswers lists all answers with a JSON body, sorted.
func documentedAnswers(v *Validator) []documentedAnswer {
	var list []documentedAnswer
	for _, id := range v.Operations() {
		o := v.operations[id]
		for _, status := range slices.Sorted(maps.Keys(o.answers)) {
			for _, mediaType := range slices.Sorted(maps.Keys(o.answers[status])) {
				if isJSON(mediaType) {
					list = append(list, documentedAnswer{id, mediaType, status, o.answers[status][mediaType]})
				}
			}
		}
	}
	return list
}

func loaded(t testing.TB) *Validator {
	t.Helper()
	v, err := Load()
	if err != nil {
		t.Fatalf("loading the description: %v", err)
	}
	return v
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("encoding a sample: %v", err)
	}
	return raw
}

func TestEveryDocumentedAnswerFitsItself(t *testing.T) {
	v := loaded(t)
	answers := documentedAnswers(v)
	NewWithT(t).Expect(len(answers)).To(BeNumerically(">", 150), "the description documents that many answers")
	for _, a := range answers {
		for _, depth := range []int{0, 3, 8} {
			t.Run(fmt.Sprintf("%s depth %d", a, depth), func(t *testing.T) {
				raw := encode(t, sample(a.body.schema, depth))
				NewWithT(t).Expect(v.Validate(a.operation, a.status, a.header(), raw)).To(Succeed(), "%s", raw)
			})
		}
	}
}

// openPlaces are all places of the answers where GitHub documents that any key
// may stand, or says nothing about the keys. "*" stands for an index.
var openPlaces = []string{
	"actions/get-workflow-run 200 /head_repository/custom_properties",
	"actions/get-workflow-run 200 /repository/custom_properties",
	"actions/list-workflow-runs-for-repo 200 /workflow_runs/*/head_repository/custom_properties",
	"actions/list-workflow-runs-for-repo 200 /workflow_runs/*/repository/custom_properties",
	"apps/get-webhook-delivery 200 /request/headers",
	"apps/get-webhook-delivery 200 /request/payload",
	"apps/get-webhook-delivery 200 /response/headers",
	"apps/list-repos-accessible-to-installation 200 /repositories/*/custom_properties",
	"apps/redeliver-webhook-delivery 202 ",
	"repos/add-collaborator 201 /repository/custom_properties",
	"repos/create-in-org 201 /custom_properties",
	"repos/get 200 /custom_properties",
	"repos/list-for-org 200 /*/custom_properties",
	"repos/list-invitations 200 /*/repository/custom_properties",
	"repos/update 200 /custom_properties",
	"repos/update-invitation 200 /repository/custom_properties",
}

// TestUnknownKeysAreRefusedAtEveryDepth puts an unknown key into each object of
// each documented answer, one at a time.
func TestUnknownKeysAreRefusedAtEveryDepth(t *testing.T) {
	const unknownName = "key_that_github_never_documented"
	v := loaded(t)
	open := map[string]bool{}
	refused := 0
	for _, a := range documentedAnswers(v) {
		value := sample(a.body.schema, 8)
		eachObject(value, "", func(at string, object map[string]any) {
			object[unknownName] = true
			err := v.Validate(a.operation, a.status, a.header(), encode(t, value))
			delete(object, unknownName)
			switch {
			case err == nil:
				open[strings.ReplaceAll(fmt.Sprintf("%s %d %s", a.operation, a.status, at), "/0", "/*")] = true
			case strings.Contains(err.Error(), at+"/"+unknownName):
				refused++
			default:
				t.Errorf("%s: an unknown key at %q is refused without its pointer: %v", a, at, err)
			}
		})
	}
	g := NewWithT(t)
	g.Expect(slices.Sorted(maps.Keys(open))).To(Equal(openPlaces))
	g.Expect(refused).To(BeNumerically(">", 900), "objects tried")
}

// eachObject visits all objects in a value with their JSON pointers.
func eachObject(value any, at string, visit func(string, map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(at, value)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			eachObject(value[key], at+token(key), visit)
		}
	case []any:
		for i, inner := range value {
			eachObject(inner, fmt.Sprintf("%s/%d", at, i), visit)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	v := loaded(b)
	cases := []struct {
		operation string
		status    int
		items     int
	}{
		{"apps/create-installation-access-token", 201, 1},
		{"repos/get", 200, 1},
		{"pulls/get", 200, 1},
		{"pulls/list", 200, 30},
		{"repos/compare-commits", 200, 1},
	}
	for _, c := range cases {
		value := sample(v.operations[c.operation].answers[c.status]["application/json"].schema, 3)
		if list, isList := value.([]any); isList {
			value = slices.Repeat(list, c.items)
		}
		raw := encode(b, value)
		header := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
		b.Run(fmt.Sprintf("%s %d bytes", c.operation, len(raw)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := v.Validate(c.operation, c.status, header, raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := parse(description); err != nil {
			b.Fatal(err)
		}
	}
}
