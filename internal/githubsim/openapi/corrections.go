// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// correct mends where GitHub's description contradicts itself. The embedded
// file stays as it was published; whatever is read differently stands here.
func correct(doc *openapi3.T) error {
	for path, item := range doc.Paths.Map() {
		for _, o := range item.Operations() {
			allowInternal(o)
			if o.OperationID != "apps/list-installations" {
				continue
			}
			if err := correctInstallations(doc, o); err != nil {
				return fmt.Errorf("correcting GET %s: %w", path, err)
			}
		}
	}
	return nil
}

// correctInstallations lets the list hold what reading a single installation
// answers. The list's own schema wants an account to be a user and an
// enterprise at once (allOf), where the component says either (anyOf).
func correctInstallations(doc *openapi3.T, o *openapi3.Operation) error {
	if doc.Components == nil || doc.Components.Schemas["installation"] == nil {
		return fmt.Errorf("GitHub's OpenAPI description lacks the schema installation")
	}
	ok := o.Responses.Status(200)
	if ok == nil || ok.Value.Content.Get("application/json") == nil {
		return fmt.Errorf("the answer 200 is not described")
	}
	list := openapi3.NewArraySchema()
	list.Items = doc.Components.Schemas["installation"]
	ok.Value.Content.Get("application/json").Schema = list.NewRef()
	return nil
}

// allowInternal lets repositories be internal. GitHub's documentation has the
// value for organizations of an enterprise; this description leaves it out.
func allowInternal(o *openapi3.Operation) {
	if (o.OperationID != "repos/create-in-org" && o.OperationID != "repos/update") || o.RequestBody == nil {
		return
	}
	media := o.RequestBody.Value.Content.Get("application/json")
	if media == nil || media.Schema == nil || media.Schema.Value.Properties["visibility"] == nil {
		return
	}
	visibility := media.Schema.Value.Properties["visibility"].Value
	if !slices.Contains(visibility.Enum, any("internal")) {
		visibility.Enum = append(visibility.Enum, "internal")
	}
}

// mendNulls makes a oneOf nullable when several of its branches are.
// GitHub describes "a text, a number or a list, or null" as three nullable
// branches; read to the letter, null would match three where one must match.
func mendNulls(schema *openapi3.Schema, seen map[*openapi3.Schema]bool) {
	if schema == nil || seen[schema] {
		return
	}
	seen[schema] = true
	nullable := 0
	for _, branch := range schema.OneOf {
		if branch.Value.Nullable {
			nullable++
		}
	}
	if nullable > 1 {
		schema.Nullable = true
	}
	for _, inner := range parts(schema) {
		mendNulls(inner, seen)
	}
}

// parts returns the schemas directly inside a schema.
func parts(schema *openapi3.Schema) []*openapi3.Schema {
	var list []*openapi3.Schema
	for _, property := range schema.Properties {
		list = append(list, property.Value)
	}
	for _, branch := range alternatives(schema) {
		list = append(list, branch.Value)
	}
	for _, ref := range []*openapi3.SchemaRef{schema.Items, schema.Not, schema.AdditionalProperties.Schema} {
		if ref != nil {
			list = append(list, ref.Value)
		}
	}
	return list
}
