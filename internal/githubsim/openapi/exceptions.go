// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// exception is an answer that GitHub gives without documenting it for each
// operation.
type exception struct {
	statuses []int
	// reason says where the answer is known from.
	reason string
	// schema names what a JSON body is validated by, "" when none may be sent.
	schema string
	// anyType allows bodies that are not JSON; they are not looked into.
	anyType bool
	// applies says for which operations and requests the exception holds, nil
	// for all. The request may be nil, when nothing is known about it.
	applies func(*operation, *http.Request) bool
}

// Names of the schemas that exceptions are validated by.
const (
	basicError   = "basic-error"
	invalidError = "validation-error or validation-error-simple"
)

// exceptions are all undocumented answers that are let through. They hold also
// where an operation documents the status with another body.
var exceptions = []exception{
	{
		statuses: []int{http.StatusMovedPermanently}, schema: basicError, applies: both(onRepository, reads),
		reason: "a renamed or moved repository redirects every GET (documentation: Best practices for using the REST API)",
	}, {
		statuses: []int{http.StatusTemporaryRedirect}, schema: basicError, applies: both(onRepository, writes),
		reason: "a renamed or moved repository redirects every write, keeping method and body",
	}, {
		statuses: []int{http.StatusNotModified}, applies: both(reads, conditional),
		reason: "conditional requests work on all GETs (documentation: Best practices for using the REST API)",
	}, {
		statuses: []int{http.StatusBadRequest}, schema: basicError,
		reason: "malformed JSON, or an API version that does not exist (documentation: Troubleshooting the REST API)",
	}, {
		statuses: []int{http.StatusUnauthorized}, schema: basicError,
		reason: "credentials that are missing, expired or not replicated yet",
	}, {
		statuses: []int{http.StatusForbidden}, schema: basicError,
		reason: "missing permission, rate limits, suspended installations, archived and blocked repositories",
	}, {
		statuses: []int{http.StatusNotFound}, schema: basicError,
		reason: "stands for no access as much as for absence, so every operation can answer it (documentation: Troubleshooting the REST API)",
	}, {
		statuses: []int{http.StatusConflict}, schema: basicError, applies: onRepository,
		reason: "an empty repository answers so to whatever needs commits",
	}, {
		statuses: []int{http.StatusUnprocessableEntity}, schema: invalidError, applies: checksInput,
		reason: "a body that fails validation, or a ref that is not there to be deleted; some operations list errors as objects, some as texts",
	}, {
		statuses: []int{http.StatusTooManyRequests}, schema: basicError,
		reason: "rate limits answer 403 or 429 (documentation: Rate limits for the REST API)",
	}, {
		statuses: []int{http.StatusUnavailableForLegalReasons}, schema: basicError, applies: onRepository,
		reason: "a repository blocked for legal reasons",
	}, {
		statuses: []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout},
		schema:   basicError, anyType: true,
		reason: "outages and requests that took too long; a proxy's page is no JSON (documentation: Troubleshooting the REST API)",
	},
}

// keysOfErrors are keys that GitHub adds to errors beyond the description:
// every error carries its status as a text nowadays, and a blocked repository
// says why and since when it is blocked.
func keysOfErrors(status int) []string {
	switch {
	case status == http.StatusForbidden, status == http.StatusUnavailableForLegalReasons:
		return []string{"status", "block"}
	case status >= http.StatusBadRequest:
		return []string{"status"}
	default:
		return nil
	}
}

// requestExceptions are request bodies that GitHub takes beyond the schema, by
// operationId.
var requestExceptions = map[string]*openapi3.Schema{
	// The description says so only in prose; go-github sends this form.
	"issues/add-labels": openapi3.NewArraySchema().WithItems(openapi3.NewStringSchema()),
}

func onRepository(o *operation, _ *http.Request) bool {
	return strings.HasPrefix(o.path, "/repos/{owner}/{repo}")
}

func reads(o *operation, _ *http.Request) bool { return o.method == http.MethodGet }

func writes(o *operation, _ *http.Request) bool { return o.method != http.MethodGet }

// checksInput reports whether the operation can find its input invalid. That
// of git/delete-ref is its path; the description has the status without a body.
func checksInput(o *operation, _ *http.Request) bool {
	return len(o.request) > 0 || o.id == "git/delete-ref"
}

func conditional(_ *operation, r *http.Request) bool {
	return r == nil || r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != ""
}

func both(a, b func(*operation, *http.Request) bool) func(*operation, *http.Request) bool {
	return func(o *operation, r *http.Request) bool { return a(o, r) && b(o, r) }
}

// exceptionFor returns the exception that lets the status through, nil when
// there is none.
func exceptionFor(o *operation, r *http.Request, status int) *exception {
	for i := range exceptions {
		e := &exceptions[i]
		for _, s := range e.statuses {
			if s == status && (e.applies == nil || e.applies(o, r)) {
				return e
			}
		}
	}
	return nil
}

// exceptionBodies compiles the schemas that exceptions name.
func (c *compiler) exceptionBodies(doc *openapi3.T) (map[string]body, error) {
	schemas := openapi3.Schemas{}
	if doc.Components != nil {
		schemas = doc.Components.Schemas
	}
	for _, name := range []string{"basic-error", "validation-error", "validation-error-simple"} {
		if schemas[name] == nil {
			return nil, fmt.Errorf("GitHub's OpenAPI description lacks the schema %s, by which undocumented errors are validated", name)
		}
	}
	return map[string]body{
		// The description requires no key of a basic error; GitHub always sends the message.
		basicError: c.body(&openapi3.Schema{
			Type: &openapi3.Types{openapi3.TypeObject}, AllOf: openapi3.SchemaRefs{schemas["basic-error"]}, Required: []string{"message"},
		}),
		invalidError: c.body(&openapi3.Schema{
			AnyOf: openapi3.SchemaRefs{schemas["validation-error"], schemas["validation-error-simple"]},
		}),
	}, nil
}
