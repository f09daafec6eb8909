// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"time"
)

// Fault makes the next requests that match fail. Control requests are never
// touched.
type Fault struct {
	// Method and Path (a regular expression on the path) say which requests;
	// empty ones match all.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Times is how often; 0 means until faults are cleared.
	Times int `json:"times,omitempty"`
	// Skip lets that many matching requests pass first.
	Skip int `json:"skip,omitempty"`
	// Status, Body and Header are answered instead of the real answer; a
	// Status of 0 leaves the answer alone.
	Status int               `json:"status,omitempty"`
	Body   string            `json:"body,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	// Drop cuts the connection instead of answering.
	Drop bool `json:"drop,omitempty"`
	// After lets the request take its effect first.
	After bool `json:"after,omitempty"`
	// Delay comes before anything else, in real time.
	Delay time.Duration `json:"delay,omitempty"`
	// RejectRefs refuses all refs of a push with this reason, as GitHub's
	// hooks do, and PushMessages are the lines shown with it.
	RejectRefs   string   `json:"rejectRefs,omitempty"`
	PushMessages []string `json:"pushMessages,omitempty"`

	path *regexp.Regexp
	seen int
}

// prepare compiles the expression.
func (f *Fault) prepare() error {
	path, err := regexp.Compile(f.Path)
	if err != nil {
		return fmt.Errorf("path %q is no regular expression: %w", f.Path, err)
	}
	f.path = path
	return nil
}

// fault returns the fault that the request meets, nil for none.
func (s *Server) fault(r *http.Request) *Fault {
	for _, f := range s.faults {
		if (f.Method != "" && f.Method != r.Method) || !f.path.MatchString(r.URL.Path) {
			continue
		}
		f.seen++
		if f.seen > f.Skip && (f.Times == 0 || f.seen <= f.Skip+f.Times) {
			return f
		}
	}
	return nil
}

// replaces reports whether something else than the real answer is sent.
func (f *Fault) replaces() bool { return f.Drop || f.Status != 0 }

type rejectionKey struct{}

// rejectionOf returns the fault that refuses the push a request is, nil for
// none.
func rejectionOf(r *http.Request) *Fault {
	f, found := r.Context().Value(rejectionKey{}).(*Fault)
	if !found || f.RejectRefs == "" {
		return nil
	}
	return f
}

// serve answers a request with the fault, if there is one.
func (f *Fault) serve(w *recorder, r *http.Request, next http.Handler) {
	if f == nil {
		next.ServeHTTP(w, r)
		return
	}
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			w.status = 0
			return
		}
	}
	if !f.replaces() {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), rejectionKey{}, f)))
		return
	}
	if f.After {
		next.ServeHTTP(httptest.NewRecorder(), r)
	}
	if f.Drop {
		w.status = 0
		panic(http.ErrAbortHandler) // cuts the connection without an answer
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(f.Status)
	_, _ = fmt.Fprint(w, f.Body)
}
