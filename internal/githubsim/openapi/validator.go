// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi validates the simulator's answers against GitHub's own
// OpenAPI description, trimmed to what the simulator serves. An answer must
// have a status that the operation defines, fit its schema, and have no key
// that the schema does not know.
package openapi

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

// github.json is made by hack/openapi-update.sh from @octokit/openapi.
//
//go:embed github.json
var document []byte

// extraStatuses are answers that GitHub gives to every operation although its
// description names them for few. Their bodies must be a basic-error.
var extraStatuses = map[int]string{
	http.StatusMovedPermanently:           "a renamed or moved repository",
	http.StatusNotModified:                "a conditional request",
	http.StatusTemporaryRedirect:          "a renamed or moved repository",
	http.StatusBadRequest:                 "a body that is no JSON object",
	http.StatusUnauthorized:               "bad credentials",
	http.StatusForbidden:                  "no permission, an archived repository, a rate limit",
	http.StatusNotFound:                   "no such thing, or none to be seen",
	http.StatusConflict:                   "an empty repository",
	http.StatusTooManyRequests:            "a rate limit",
	http.StatusUnavailableForLegalReasons: "a blocked repository",
}

// Validator validates answers by operationId.
type Validator struct {
	operations map[string]*openapi3.Operation
	basicError *openapi3.Schema
}

// Load returns the validator of the embedded description.
var Load = sync.OnceValues(func() (*Validator, error) { return load(document) })

func load(text []byte) (*Validator, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, fmt.Errorf("reading GitHub's description: %w", err)
	}
	v := &Validator{operations: map[string]*openapi3.Operation{}}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			v.operations[op.OperationID] = op
		}
	}
	v.correct()
	basic := doc.Components.Schemas["basic-error"]
	if basic == nil {
		return nil, fmt.Errorf("GitHub's description has no basic-error")
	}
	v.basicError = basic.Value
	return v, nil
}

// correct mends what the description says and GitHub cannot mean: that the
// account of a listed installation is a user AND an enterprise. Elsewhere in
// the description it is either.
func (v *Validator) correct() {
	op := v.operations["apps/list-installations"]
	if op == nil {
		return
	}
	list, err := v.schema(op, http.StatusOK)
	if err != nil || list == nil || list.Items == nil {
		return
	}
	if account := list.Items.Value.Properties["account"]; account != nil {
		account.Value.AnyOf, account.Value.AllOf = append(account.Value.AnyOf, account.Value.AllOf...), nil
	}
}

// Validate returns what is wrong with an answer to an operation: the JSON
// pointer, the key and what was expected; nil when nothing is.
func (v *Validator) Validate(operationID string, status int, header http.Header, body []byte) error {
	op := v.operations[operationID]
	if op == nil {
		return fmt.Errorf("operation %q is not in GitHub's description: add it to the list and trim the description anew", operationID)
	}
	schema, err := v.schema(op, status)
	if err != nil || schema == nil {
		return err
	}
	if len(body) == 0 {
		if status == http.StatusNotModified || status == http.StatusNoContent {
			return nil
		}
		return fmt.Errorf("%s answers %d without a body", operationID, status)
	}
	if t := header.Get("Content-Type"); !strings.HasPrefix(t, "application/json") {
		return fmt.Errorf("%s answers %d with content type %q", operationID, status, t)
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return fmt.Errorf("%s answers %d with a body that is no JSON: %w", operationID, status, err)
	}
	if err := schema.VisitJSON(value, openapi3.VisitAsResponse(), openapi3.SetSchemaErrorMessageCustomizer(brief)); err != nil {
		return fmt.Errorf("%s answers %d: %w", operationID, status, err)
	}
	if path, key := unknownKey(schema, value, ""); key != "" {
		return fmt.Errorf("%s answers %d: %s has the key %q, which GitHub's description does not know", operationID, status, orRoot(path), key)
	}
	return nil
}

// brief says where a value does not fit and why, without quoting schemas.
func brief(e *openapi3.SchemaError) string {
	text := "/" + strings.Join(e.JSONPointer(), "/") + ": " + e.Reason
	if e.Origin != nil {
		text += " (" + e.Origin.Error() + ")"
	}
	return text
}

// schema returns the schema of an answer's body; nil when it has none.
func (v *Validator) schema(op *openapi3.Operation, status int) (*openapi3.Schema, error) {
	resp := op.Responses.Value(strconv.Itoa(status))
	if resp == nil || resp.Value == nil {
		if _, allowed := extraStatuses[status]; allowed {
			return v.basicError, nil
		}
		return nil, fmt.Errorf("%s never answers %d", op.OperationID, status)
	}
	media := resp.Value.Content.Get("application/json")
	if media == nil || media.Schema == nil {
		return nil, nil
	}
	return media.Schema.Value, nil
}

func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// unknownKey returns the first key, in order, that no branch of the schema
// knows, and the pointer of the object it is in.
func unknownKey(s *openapi3.Schema, value any, path string) (where, key string) {
	switch value := value.(type) {
	case map[string]any:
		properties, closed := known(s)
		if !closed {
			return "", ""
		}
		keys := make([]string, 0, len(value))
		for k := range value {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			schemas, isKnown := properties[k]
			if !isKnown {
				return path, k
			}
			if where, key := inAny(schemas, value[k], path+"/"+k); key != "" {
				return where, key
			}
		}
	case []any:
		for _, items := range itemSchemas(s) {
			for i, inner := range value {
				if where, key := unknownKey(items, inner, fmt.Sprintf("%s/%d", path, i)); key != "" {
					return where, key
				}
			}
		}
	}
	return "", ""
}

// inAny looks for an unknown key that every one of the schemas does not know.
func inAny(schemas []*openapi3.Schema, value any, path string) (where, key string) {
	for _, s := range schemas {
		if where, key = unknownKey(s, value, path); key == "" {
			return "", ""
		}
	}
	return where, key
}

// branches returns a schema and all it is combined of.
func branches(s *openapi3.Schema) []*openapi3.Schema {
	list := []*openapi3.Schema{s}
	for _, group := range []openapi3.SchemaRefs{s.AllOf, s.AnyOf, s.OneOf} {
		for _, ref := range group {
			if ref.Value != nil {
				list = append(list, branches(ref.Value)...)
			}
		}
	}
	return list
}

// known returns the properties that any branch knows. closed is false when a
// branch takes any key: it names no property, or says so.
func known(s *openapi3.Schema) (properties map[string][]*openapi3.Schema, closed bool) {
	properties = map[string][]*openapi3.Schema{}
	for _, b := range branches(s) {
		if b.AdditionalProperties.Schema != nil || (b.AdditionalProperties.Has != nil && *b.AdditionalProperties.Has) {
			return nil, false
		}
		for name, p := range b.Properties {
			if p.Value != nil {
				properties[name] = append(properties[name], p.Value)
			}
		}
	}
	return properties, len(properties) > 0
}

func itemSchemas(s *openapi3.Schema) []*openapi3.Schema {
	var list []*openapi3.Schema
	for _, b := range branches(s) {
		if b.Items != nil && b.Items.Value != nil {
			list = append(list, b.Items.Value)
		}
	}
	return list
}
