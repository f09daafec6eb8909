// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// shape says which keys a value may have, at every depth. It is the union of
// all schemas that apply to a place: a key is known when any branch of allOf,
// anyOf or oneOf knows it.
type shape struct {
	// closed is set where properties are listed and nothing allows others.
	closed     bool
	properties map[string]*shape
	rest       *shape // what other keys hold; nil: anything
	items      *shape
}

// shape returns the union of schemas that apply to the same place.
func (c *compiler) shape(schemas []*openapi3.Schema) *shape {
	all := spread(schemas)
	key := identity(all)
	if known, done := c.shapes[key]; done {
		return known
	}
	s := &shape{properties: map[string]*shape{}}
	c.shapes[key] = s // before going deeper, so that recursive schemas end

	byName := map[string][]*openapi3.Schema{}
	var rest, items []*openapi3.Schema
	stated, open := false, false
	for _, schema := range all {
		for name, property := range schema.Properties {
			byName[name] = append(byName[name], property.Value)
		}
		if schema.Items != nil {
			items = append(items, schema.Items.Value)
		}
		additional := schema.AdditionalProperties
		if additional.Schema != nil {
			rest = append(rest, additional.Schema.Value)
		}
		stated = stated || len(schema.Properties) > 0 || additional.Has != nil
		open = open || additional.Schema != nil || (additional.Has != nil && *additional.Has) || isFreeForm(schema)
	}
	s.closed = stated && !open
	for name, list := range byName {
		s.properties[name] = c.shape(list)
	}
	if len(rest) > 0 {
		s.rest = c.shape(rest)
	}
	if len(items) > 0 {
		s.items = c.shape(items)
	}
	return s
}

// identity is equal for equal lists of schemas.
func identity(schemas []*openapi3.Schema) string {
	var text strings.Builder
	for _, schema := range schemas {
		fmt.Fprintf(&text, "%p ", schema)
	}
	return text.String()
}

// spread returns the schemas and all branches of their allOf, anyOf and oneOf,
// each once.
func spread(schemas []*openapi3.Schema) []*openapi3.Schema {
	var all []*openapi3.Schema
	var add func(*openapi3.Schema)
	add = func(schema *openapi3.Schema) {
		if slices.Contains(all, schema) {
			return
		}
		all = append(all, schema)
		for _, branch := range alternatives(schema) {
			add(branch.Value)
		}
	}
	for _, schema := range schemas {
		add(schema)
	}
	return all
}

// isFreeForm says whether a schema by itself allows an object of any keys: it
// is empty, or an object about whose keys nothing is said.
func isFreeForm(schema *openapi3.Schema) bool {
	if schema.IsEmpty() {
		return true
	}
	silent := len(schema.Properties) == 0 && len(schema.Required) == 0 && len(alternatives(schema)) == 0 &&
		schema.AdditionalProperties.Has == nil && schema.AdditionalProperties.Schema == nil
	return silent && schema.Type.Includes(openapi3.TypeObject)
}

// unknown calls report for every key that the shape does not know. also are
// keys that are known besides, at the top only.
func (s *shape) unknown(value any, at *pointer, also []string, report func(Problem)) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if next := s.below(key); next != nil {
				next.unknown(inner, at.push(key), nil, report)
				at.pop()
			} else if s.closed && !slices.Contains(also, key) {
				report(unknownKey(at.with(key), key, slices.Collect(maps.Keys(s.properties))))
			}
		}
	case []any:
		if s.items == nil {
			return
		}
		for i, inner := range value {
			s.items.unknown(inner, at.pushIndex(i), nil, report)
			at.pop()
		}
	}
}

// below returns the shape of a key's value, nil when the key is not described.
func (s *shape) below(key string) *shape {
	if known := s.properties[key]; known != nil {
		return known
	}
	return s.rest
}

func unknownKey(at, key string, known []string) Problem {
	if len(known) == 0 {
		return problem(at, "unknown key %q: no key is documented here", key)
	}
	slices.Sort(known)
	return problem(at, "unknown key %q: documented here are %s", key, strings.Join(known, ", "))
}
