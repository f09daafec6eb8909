// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Validate is ValidateAnswer where nothing is known about the request.
func (v *Validator) Validate(operationID string, status int, header http.Header, raw []byte) error {
	return v.ValidateAnswer(operationID, nil, status, header, raw)
}

// ValidateAnswer judges an answer of an operation: its status, content type and
// body, down to keys that are not documented. r is the request that was
// answered; it may be nil, then what depends on it is not judged: its method,
// and whether it was conditional.
//
// It returns nil, an *Error that names every difference, or an error that says
// that the operation is not in the description.
func (v *Validator) ValidateAnswer(operationID string, r *http.Request, status int, header http.Header, raw []byte) error {
	o, err := v.find(operationID)
	if err != nil {
		return err
	}
	return v.problems(o, fmt.Sprintf("answer %d", status), v.answer(o, r, status, header, raw))
}

func (v *Validator) answer(o *operation, r *http.Request, status int, header http.Header, raw []byte) []Problem {
	if p := o.wrongMethod(r); p != nil {
		return p
	}
	exception := exceptionFor(o, r, status)
	documented, isDocumented := o.answers[status]
	if !isDocumented && exception == nil {
		return []Problem{problem("", "the status %d is not documented for this operation: expected one of %s", status, o.statuses())}
	}
	if p := redirectWithoutTarget(status, header); p != nil {
		return p
	}
	if r != nil && r.Method == http.MethodHead {
		return withoutBody(raw, "to a HEAD request")
	}
	var first []Problem
	if isDocumented {
		if first = judgeAnswer(documented, header, raw, keysOfErrors(status)); len(first) == 0 {
			return nil
		}
	}
	if exception == nil {
		return first
	}
	second := v.judgeException(exception, header, raw, keysOfErrors(status))
	if isDocumented && len(second) > 0 {
		return first // what the operation documents is the better advice
	}
	return second
}

// judgeAnswer judges a body by what an operation documents for a status.
func judgeAnswer(documented bodies, header http.Header, raw []byte, also []string) []Problem {
	if len(documented) == 0 {
		return withoutBody(raw, "with this status")
	}
	mediaType := mediaTypeOf(header)
	expected, isDocumented := documented[mediaType]
	switch {
	case !isDocumented:
		return []Problem{problem("", "the content type is %q, expected %s", header.Get("Content-Type"), documented.mediaTypes())}
	case len(raw) == 0:
		return []Problem{problem("", "the body is empty, expected %s", mediaType)}
	case !isJSON(mediaType):
		return nil
	}
	return expected.judge(raw, true, also)
}

func (v *Validator) judgeException(e *exception, header http.Header, raw []byte, also []string) []Problem {
	if e.schema == "" {
		return withoutBody(raw, "with this status")
	}
	if mediaType := mediaTypeOf(header); !isJSON(mediaType) {
		if e.anyType {
			return nil
		}
		return []Problem{problem("", "the content type is %q, expected application/json", header.Get("Content-Type"))}
	}
	return v.exceptions[e.schema].judge(raw, true, also)
}

// ValidateRequest judges the body of a request. Keys that are not documented
// pass, as GitHub ignores them, and so does a bare null, which clients send
// for "no options". r may be nil.
//
// It returns nil, an *Error that names every difference, or an error that says
// that the operation is not in the description.
func (v *Validator) ValidateRequest(operationID string, r *http.Request, raw []byte) error {
	o, err := v.find(operationID)
	if err != nil {
		return err
	}
	list := o.wrongMethod(r)
	if list == nil {
		list = o.judgeRequest(raw)
	}
	return v.problems(o, "request", list)
}

func (o *operation) judgeRequest(raw []byte) []Problem {
	raw = bytes.TrimSpace(raw)
	expected, takesJSON := o.request["application/json"]
	switch {
	case !takesJSON, bytes.Equal(raw, []byte("null")):
		return nil
	case len(raw) == 0 && o.requestRequired:
		return []Problem{problem("", "the body is missing, expected JSON")}
	case len(raw) == 0:
		return nil
	}
	list := expected.judge(raw, false, nil)
	if also := requestExceptions[o.id]; also != nil && len(list) > 0 && len((body{schema: also}).judge(raw, false, nil)) == 0 {
		return nil
	}
	return list
}

// wrongMethod reports a request that cannot have been for this operation: a
// route that names another operation's id.
func (o *operation) wrongMethod(r *http.Request) []Problem {
	switch {
	case r == nil, r.Method == o.method, r.Method == "" && o.method == http.MethodGet, r.Method == http.MethodHead && o.method == http.MethodGet:
		return nil
	}
	return []Problem{problem("", "the request was a %s, expected %s %s", r.Method, o.method, o.path)}
}

func redirectWithoutTarget(status int, header http.Header) []Problem {
	isRedirect := status == http.StatusMovedPermanently || status == http.StatusFound || status == http.StatusTemporaryRedirect
	if !isRedirect || header.Get("Location") != "" {
		return nil
	}
	return []Problem{problem("", "a redirect without the header Location, expected the address to go to")}
}

func withoutBody(raw []byte, when string) []Problem {
	if len(raw) == 0 {
		return nil
	}
	return []Problem{problem("", "found a body of %d bytes, expected none %s", len(raw), when)}
}

// statuses names the documented statuses, for messages.
func (o *operation) statuses() string {
	var list []string
	for _, status := range slices.Sorted(maps.Keys(o.answers)) {
		list = append(list, strconv.Itoa(status))
	}
	return strings.Join(list, ", ")
}
