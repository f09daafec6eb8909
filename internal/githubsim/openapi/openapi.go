// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi judges answers (and request bodies) of GitHub's REST API by
// GitHub's own OpenAPI description, so that a simulator cannot drift from what
// GitHub documents.
//
// The embedded github.json is that description trimmed by hack/openapi; its
// licence is in LICENSE.octokit-openapi. An answer is held to more than a
// schema says: keys that the description does not know are refused, because a
// client written against an invented key would fail against GitHub.
package openapi

import (
	_ "embed"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

//go:embed github.json
var description []byte

// Validator judges answers and request bodies. It is immutable and may be used
// by many goroutines at once.
type Validator struct {
	version    string
	operations map[string]*operation
	exceptions map[string]body // by name of the schema
}

// operation is one operation of the description, ready to judge by.
type operation struct {
	id, method, path string
	answers          map[int]bodies
	request          bodies
	requestRequired  bool
}

// bodies holds what may be sent, by media type; empty means no body at all.
type bodies map[string]body

// body is one kind of content.
type body struct {
	schema *openapi3.Schema // nil: anything
	shape  *shape
}

// Load returns the validator for the embedded description. The work is done
// once for the process. An error means that the embedded file is damaged.
func Load() (*Validator, error) { return load() }

var load = sync.OnceValues(func() (*Validator, error) { return parse(description) })

// parse builds a validator from a description. The description is not itself
// checked against the OpenAPI specification here; the package's tests do that.
func parse(raw []byte) (*Validator, error) {
	doc, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		return nil, fmt.Errorf("reading GitHub's OpenAPI description: %w", err)
	}
	if err := correct(doc); err != nil {
		return nil, err
	}
	c := newCompiler()
	v := &Validator{version: doc.Info.Version, operations: map[string]*operation{}}
	for path, item := range doc.Paths.Map() {
		for method, source := range item.Operations() {
			o, err := c.operation(method, path, source)
			if err != nil {
				return nil, err
			}
			v.operations[o.id] = o
		}
	}
	if v.exceptions, err = c.exceptionBodies(doc); err != nil {
		return nil, err
	}
	return v, nil
}

// Version returns the version of the description, as its publisher numbers it.
func (v *Validator) Version() string { return v.version }

// Operations returns the operationIds that can be judged, sorted.
func (v *Validator) Operations() []string { return slices.Sorted(maps.Keys(v.operations)) }

// find returns an operation, or an error that says how to add it.
func (v *Validator) find(operationID string) (*operation, error) {
	if o, exists := v.operations[operationID]; exists {
		return o, nil
	}
	return nil, fmt.Errorf("openapi: there is no operation %q in the trimmed description: check its spelling, "+
		"or add it to hack/openapi/operations.txt and run hack/openapi/update.sh", operationID)
}

// compiler turns the parts of a description into what judging needs.
type compiler struct{ shapes map[string]*shape }

func newCompiler() *compiler { return &compiler{shapes: map[string]*shape{}} }

func (c *compiler) operation(method, path string, source *openapi3.Operation) (*operation, error) {
	o := &operation{id: source.OperationID, method: method, path: path, answers: map[int]bodies{}}
	for code, response := range source.Responses.Map() {
		status, err := strconv.Atoi(code)
		if err != nil {
			return nil, fmt.Errorf("operation %s: the status %q is not a number", o.id, code)
		}
		o.answers[status] = c.bodies(response.Value.Content)
	}
	if source.RequestBody != nil {
		o.request = c.bodies(source.RequestBody.Value.Content)
		o.requestRequired = source.RequestBody.Value.Required
	}
	return o, nil
}

func (c *compiler) bodies(content openapi3.Content) bodies {
	list := bodies{}
	for mediaType, m := range content {
		if m.Schema == nil {
			list[mediaType] = body{}
			continue
		}
		list[mediaType] = c.body(m.Schema.Value)
	}
	return list
}

func (c *compiler) body(schema *openapi3.Schema) body {
	mendNulls(schema, map[*openapi3.Schema]bool{})
	return body{schema: schema, shape: c.shape([]*openapi3.Schema{schema})}
}

// mediaTypes names what may be sent, sorted, for messages.
func (b bodies) mediaTypes() string {
	return strings.Join(slices.Sorted(maps.Keys(b)), ", ")
}

// isJSON says whether the media type is one of JSON's.
func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

// mediaTypeOf returns the media type without parameters such as the charset,
// "" when there is none or it is malformed.
func mediaTypeOf(header http.Header) string {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return mediaType
}

// alternatives returns the branches of allOf, anyOf and oneOf.
func alternatives(schema *openapi3.Schema) openapi3.SchemaRefs {
	return slices.Concat(schema.AllOf, schema.AnyOf, schema.OneOf)
}
