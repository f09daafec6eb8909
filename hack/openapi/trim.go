// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

type object = map[string]any

// errorSchemas are kept whatever operations are wanted: statuses that GitHub
// answers without documenting them are validated by these.
var errorSchemas = []string{"basic-error", "validation-error", "validation-error-simple"}

// Keywords of a schema, by what trimming does with them. One that is in no list
// stops the program: dropping it unread would quietly loosen the validation.
var (
	copiedKeywords = []string{
		"type", "nullable", "required", "enum", "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "readOnly", "writeOnly",
	}
	nestedKeywords  = []string{"items", "not"}
	listKeywords    = []string{"allOf", "anyOf", "oneOf"}
	droppedKeywords = []string{"title", "description", "example", "examples", "default", "deprecated", "externalDocs", "xml"}
)

// trimmer copies parts of a description, and the components that they refer to.
type trimmer struct {
	doc        object
	components object
	problems   []error
}

// trim returns the part of doc that the operations ids need. It names every
// operation that doc lacks and every keyword it does not understand.
func trim(doc object, ids []string) (object, error) {
	t := &trimmer{doc: doc, components: object{}}
	missing := slices.Clone(ids)
	paths := object{}
	for _, path := range sortedKeys(asObject(doc["paths"])) {
		kept := object{}
		item := asObject(asObject(doc["paths"])[path])
		for _, method := range sortedKeys(item) {
			operation := asObject(item[method])
			id := asString(operation["operationId"])
			if !slices.Contains(ids, id) {
				continue
			}
			missing = slices.DeleteFunc(missing, func(m string) bool { return m == id })
			kept[method] = t.operation(path, operation)
		}
		if len(kept) > 0 {
			paths[path] = kept
		}
	}
	for _, id := range missing {
		t.fail("operation %s is not in the description: see whether it was renamed, then mend the list", id)
	}
	for _, name := range errorSchemas {
		t.include("#/components/schemas/" + name)
	}
	if len(t.problems) > 0 {
		return nil, errors.Join(t.problems...)
	}
	info := asObject(doc["info"])
	return object{
		"openapi":    doc["openapi"],
		"info":       object{"title": "GitHub REST API, trimmed", "version": info["version"], "license": info["license"]},
		"paths":      paths,
		"components": t.components,
	}, nil
}

func (t *trimmer) fail(format string, arguments ...any) {
	t.problems = append(t.problems, fmt.Errorf(format, arguments...))
}

// operation keeps the bodies of an operation and the path parameters, which
// OpenAPI wants declared.
func (t *trimmer) operation(path string, operation object) object {
	id := asString(operation["operationId"])
	out := object{"operationId": id}
	if parameters := pathParameters(path); len(parameters) > 0 {
		out["parameters"] = parameters
	}
	if body := asObject(operation["requestBody"]); body != nil {
		out["requestBody"] = t.requestBody(body, id+" requestBody")
	}
	responses := object{}
	documented := asObject(operation["responses"])
	for _, status := range sortedKeys(documented) {
		responses[status] = t.response(asObject(documented[status]), id+" responses "+status)
	}
	out["responses"] = responses
	return out
}

var pathParameter = regexp.MustCompile(`\{([^}]+)\}`)

func pathParameters(path string) []any {
	var list []any
	for _, match := range pathParameter.FindAllStringSubmatch(path, -1) {
		list = append(list, object{"name": match[1], "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	return list
}

func (t *trimmer) requestBody(body object, where string) object {
	if ref, isRef := body["$ref"].(string); isRef {
		return t.reference(ref)
	}
	out := object{"content": t.content(asObject(body["content"]), where)}
	if required, stated := body["required"]; stated {
		out["required"] = required
	}
	return out
}

func (t *trimmer) response(response object, where string) object {
	if ref, isRef := response["$ref"].(string); isRef {
		return t.reference(ref)
	}
	// OpenAPI demands a description, validation does not read it.
	out := object{"description": ""}
	if content := t.content(asObject(response["content"]), where); len(content) > 0 {
		out["content"] = content
	}
	return out
}

func (t *trimmer) content(content object, where string) object {
	out := object{}
	for _, mediaType := range sortedKeys(content) {
		kept := object{}
		if schema, stated := asObject(content[mediaType])["schema"]; stated {
			kept["schema"] = t.schema(schema, where+" "+mediaType)
		}
		out[mediaType] = kept
	}
	return out
}

// schema keeps what validation reads. Names of properties are never taken for
// keywords, even when they are called description or example.
func (t *trimmer) schema(v any, where string) object {
	in := asObject(v)
	if in == nil {
		t.fail("%s: expected a schema, found %T", where, v)
		return nil
	}
	if ref, isRef := in["$ref"].(string); isRef {
		return t.reference(ref) // OpenAPI 3.0 ignores the neighbours of $ref
	}
	out := object{}
	for _, keyword := range sortedKeys(in) {
		value, here := in[keyword], where+"/"+keyword
		switch {
		case slices.Contains(copiedKeywords, keyword):
			out[keyword] = value
		case slices.Contains(nestedKeywords, keyword):
			out[keyword] = t.schema(value, here)
		case slices.Contains(listKeywords, keyword):
			out[keyword] = t.schemas(value, here)
		case keyword == "properties":
			out[keyword] = t.properties(asObject(value), here)
		case keyword == "additionalProperties":
			out[keyword] = t.additionalProperties(value, here)
		case keyword == "discriminator":
			out[keyword] = t.discriminator(asObject(value))
		case slices.Contains(droppedKeywords, keyword), strings.HasPrefix(keyword, "x-"):
		default:
			t.fail("%s: the keyword %q is new to hack/openapi: decide in trim.go whether validation reads it", where, keyword)
		}
	}
	return out
}

func (t *trimmer) schemas(v any, where string) []any {
	list, isList := v.([]any)
	if !isList {
		t.fail("%s: expected a list of schemas, found %T", where, v)
	}
	out := make([]any, len(list))
	for i, inner := range list {
		out[i] = t.schema(inner, fmt.Sprintf("%s/%d", where, i))
	}
	return out
}

func (t *trimmer) properties(properties object, where string) object {
	out := object{}
	for _, name := range sortedKeys(properties) {
		out[name] = t.schema(properties[name], where+"/"+name)
	}
	return out
}

func (t *trimmer) additionalProperties(v any, where string) any {
	if allowed, isFlag := v.(bool); isFlag {
		return allowed
	}
	return t.schema(v, where)
}

func (t *trimmer) discriminator(in object) object {
	out := object{"propertyName": in["propertyName"]}
	mapping := asObject(in["mapping"])
	if mapping == nil {
		return out
	}
	kept := object{}
	for _, value := range sortedKeys(mapping) {
		ref := asString(mapping[value])
		t.include(ref)
		kept[value] = ref
	}
	out["mapping"] = kept
	return out
}

func (t *trimmer) reference(ref string) object {
	t.include(ref)
	return object{"$ref": ref}
}

// include copies the component that ref names, once.
func (t *trimmer) include(ref string) {
	local, isLocal := strings.CutPrefix(ref, "#/components/")
	group, name, hasName := strings.Cut(local, "/")
	source, exists := asObject(asObject(t.doc["components"])[group])[name].(object)
	if !isLocal || !hasName || !exists {
		t.fail("the reference %q leads to no component", ref)
		return
	}
	kept := asObject(t.components[group])
	if kept == nil {
		kept = object{}
		t.components[group] = kept
	}
	if _, done := kept[name]; done {
		return
	}
	kept[name] = object{} // stands in until filled, so that cycles end
	switch group {
	case "schemas":
		kept[name] = t.schema(source, ref)
	case "responses":
		kept[name] = t.response(source, ref)
	case "requestBodies":
		kept[name] = t.requestBody(source, ref)
	default:
		t.fail("the reference %q leads to a kind of component that hack/openapi does not keep", ref)
	}
}

// asObject returns v when it is an object, nil otherwise.
func asObject(v any) object {
	if o, isObject := v.(object); isObject {
		return o
	}
	return nil
}

// asString returns v when it is a text, "" otherwise.
func asString(v any) string {
	if s, isString := v.(string); isString {
		return s
	}
	return ""
}

func sortedKeys(o object) []string {
	return slices.Sorted(maps.Keys(o))
}
