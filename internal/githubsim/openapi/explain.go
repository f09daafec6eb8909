// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// formats are checked where GitHub states them. Others (e-mail addresses, which
// come from commits and may be anything) are not.
var formats = openapi3.WithStringFormatValidators(map[string]openapi3.StringFormatValidator{
	"date-time": openapi3.NewCallbackValidator(func(text string) error {
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return errors.New("expected a time like 2006-01-02T15:04:05Z")
		}
		return nil
	}),
	"uri": openapi3.NewCallbackValidator(func(text string) error {
		if u, err := url.Parse(text); err != nil || u.Scheme == "" {
			return errors.New("expected an absolute URI like https://host/path")
		}
		return nil
	}),
})

// judge returns how raw differs from the body that was expected. With strict
// set, keys that are not described are refused, except also at the top.
func (b body) judge(raw []byte, strict bool, also []string) []Problem {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return []Problem{problem("", "expected JSON: %v", err)}
	}
	if b.schema == nil {
		return nil
	}
	var list []Problem
	// The quick way first: explaining costs much more than judging.
	if b.schema.VisitJSON(value, openapi3.FailFast(), formats) != nil {
		if list = explain(b.schema, value, ""); len(list) == 0 {
			// A refusal must never be lost because it could not be worded.
			list = []Problem{problem("", "the body does not fit its schema")}
		}
	}
	if strict {
		b.shape.unknown(value, &pointer{}, also, func(p Problem) { list = append(list, p) })
	}
	return list
}

// explain returns all problems of a value that a schema refuses.
func explain(schema *openapi3.Schema, value any, at string) []Problem {
	return flatten(schema.VisitJSON(value, openapi3.MultiErrors(), formats), at)
}

func flatten(err error, at string) []Problem {
	switch err := err.(type) { //nolint:errorlint // the library returns these unwrapped, and their nesting matters
	case nil:
		return nil
	case openapi3.MultiError:
		var list []Problem
		for _, inner := range err {
			list = append(list, flatten(inner, at)...)
		}
		return list
	case *openapi3.SchemaError:
		for _, key := range err.JSONPointer() {
			at += token(key)
		}
		return describe(err, at)
	default:
		return []Problem{problem(at, "%v", err)}
	}
}

// describe words a violation in terms of what was found and what was expected.
func describe(err *openapi3.SchemaError, at string) []Problem {
	one := func(format string, arguments ...any) []Problem {
		return []Problem{{Pointer: at, Text: fmt.Sprintf(format, arguments...), rule: err.SchemaField}}
	}
	switch err.SchemaField {
	case "required":
		return one("missing required key %q", lastKey(err))
	case "type", "nullable":
		return one("found %s, expected %s", kind(err.Value), expected(err.Schema))
	case "properties": // a key that additionalProperties: false forbids
		return forbidden(err, at)
	case "discriminator":
		d := err.Schema.Discriminator
		return one("the key %q, which tells the alternatives apart, is missing or unknown: expected one of %s",
			d.PropertyName, strings.Join(slices.Sorted(maps.Keys(d.Mapping)), ", "))
	case "allOf":
		var list []Problem
		for _, branch := range err.Schema.AllOf {
			list = append(list, explain(branch.Value, err.Value, at)...)
		}
		return list
	case "oneOf", "anyOf":
		if errors.Is(err, openapi3.ErrOneOfConflict) {
			return one("%s", err.Reason)
		}
		return closest(err, at)
	default:
		return one("%s", err.Reason)
	}
}

func lastKey(err *openapi3.SchemaError) string {
	path := err.JSONPointer()
	return path[len(path)-1]
}

// forbidden words the keys that a closed object has too many.
func forbidden(err *openapi3.SchemaError, at string) []Problem {
	object, isObject := err.Value.(map[string]any)
	if !isObject {
		return []Problem{problem(at, "%s", err.Reason)}
	}
	var list []Problem
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if err.Schema.Properties[key] == nil {
			list = append(list, unknownKey(at+token(key), key, slices.Collect(maps.Keys(err.Schema.Properties))))
		}
	}
	return list
}

// closest explains why a value fits none of several alternatives by the one it
// comes closest to.
func closest(err *openapi3.SchemaError, at string) []Problem {
	branches := err.Schema.OneOf
	if err.SchemaField == "anyOf" {
		branches = err.Schema.AnyOf
	}
	branches = discriminated(err.Schema, err.Value, branches)
	var best []Problem
	var types []string
	for _, branch := range branches {
		types = append(types, expected(branch.Value))
		list := explain(branch.Value, err.Value, at)
		if wrongType := slices.ContainsFunc(list, func(p Problem) bool { return p.Pointer == at && p.rule == "type" }); wrongType {
			continue
		}
		if best == nil || distance(list) < distance(best) {
			best = list
		}
	}
	if best == nil {
		slices.Sort(types)
		return []Problem{problem(at, "found %s, expected %s", kind(err.Value), strings.Join(slices.Compact(types), " or "))}
	}
	return best
}

// distance grows with the problems of an alternative. A value outside an enum
// weighs most: GitHub tells alternatives apart by such keys (type: update).
func distance(list []Problem) int {
	const enumWeight = 1000
	sum := len(list)
	for _, p := range list {
		if p.rule == "enum" {
			sum += enumWeight
		}
	}
	return sum
}

// discriminated narrows alternatives to the one that a discriminator selects,
// and returns all when there is none.
func discriminated(schema *openapi3.Schema, value any, branches openapi3.SchemaRefs) openapi3.SchemaRefs {
	object, isObject := value.(map[string]any)
	if schema.Discriminator == nil || !isObject {
		return branches
	}
	chosen, isText := object[schema.Discriminator.PropertyName].(string)
	selected, isMapped := schema.Discriminator.Mapping[chosen]
	if !isText || !isMapped {
		return branches
	}
	return slices.DeleteFunc(slices.Clone(branches), func(b *openapi3.SchemaRef) bool { return b.Ref != selected.Ref })
}

// kind names the JSON type of a value.
func kind(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	default:
		return "an object"
	}
}

// expected names the types that a schema allows.
func expected(schema *openapi3.Schema) string {
	var names []string
	if schema.Type != nil {
		for _, name := range *schema.Type {
			article := "a "
			if strings.ContainsAny(name[:1], "aio") {
				article = "an "
			}
			names = append(names, article+name)
		}
	}
	for _, branch := range alternatives(schema) {
		names = append(names, expected(branch.Value))
	}
	if schema.Nullable {
		names = append(names, "null")
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " or ")
}
