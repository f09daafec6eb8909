// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	_ "embed"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/githubsim/operations"
)

//go:embed LICENSE.octokit-openapi
var licence string

// Load relies on this: the library's behaviour on an invalid document is
// undefined.
func TestDescriptionIsValidOpenAPI(t *testing.T) {
	g := NewWithT(t)
	doc, err := openapi3.NewLoader().LoadFromData(description)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(doc.Validate(t.Context())).To(Succeed())
}

func TestDescriptionIsSmallVersionedAndLicensed(t *testing.T) {
	g := NewWithT(t)
	doc, err := openapi3.NewLoader().LoadFromData(description)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(description)).To(BeNumerically("<", 1_500_000))
	g.Expect(doc.Info.License.Name).To(Equal("MIT"))
	g.Expect(licence).To(HavePrefix("MIT License"))
	g.Expect(loaded(t).Version()).To(Equal(doc.Info.Version))
}

func TestServedOperationsAreDescribed(t *testing.T) {
	NewWithT(t).Expect(loaded(t).Operations()).To(ContainElements(operations.IDs), "run hack/openapi/update.sh")
}

func TestLoadAnswersTheSameValidator(t *testing.T) {
	NewWithT(t).Expect(loaded(t)).To(BeIdenticalTo(loaded(t)))
}

func TestParseRefusesADamagedDescription(t *testing.T) {
	const head = `{"openapi":"3.0.3","info":{"title":"t","version":"1"},`
	for _, c := range []struct{ name, text, want string }{
		{"no JSON", `{`, "reading GitHub's OpenAPI description"},
		{"a dangling reference", head + `"paths":{"/a":{"get":{"operationId":"a","responses":{"200":{"$ref":"#/components/responses/gone"}}}}}}`, "gone"},
		{"a status that is no number", head + `"paths":{"/a":{"get":{"operationId":"a","responses":{"4XX":{"description":""}}}}}}`, `the status "4XX" is not a number`},
		{"no schema of errors", head + `"paths":{}}`, "lacks the schema basic-error"},
		{"nothing to correct the list of installations by", head + `"paths":{"/a":{"get":{"operationId":"apps/list-installations","responses":{}}}}}`, "lacks the schema installation"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse([]byte(c.text))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}
