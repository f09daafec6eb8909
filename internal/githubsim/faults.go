// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"fmt"
	"net/http"
	"regexp"
	"time"
)

// Fault makes the next requests that match fail.
type Fault struct {
	// Method and Path (a regular expression) say which requests.
	Method string `json:"method,omitempty"`
	Path   string `json:"path"`
	// Times is how often; 0 means until faults are cleared.
	Times int `json:"times,omitempty"`
	// Status and Body are answered; a Status of 0 leaves the answer alone.
	Status int               `json:"status,omitempty"`
	Body   string            `json:"body,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	// Drop cuts the connection instead of answering.
	Drop bool `json:"drop,omitempty"`
	// After lets the request take its effect first.
	After bool `json:"after,omitempty"`
	// Delay comes before the answer.
	Delay time.Duration `json:"delay,omitempty"`

	path *regexp.Regexp
	used int
}

// fault returns the fault that the request meets, if any.
func (s *Server) fault(r *http.Request) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.matchFault(r)
}

func (s *Server) matchFault(r *http.Request) *Fault {
	for _, f := range s.faults {
		if (f.Method == "" || f.Method == r.Method) && f.path.MatchString(r.URL.Path) && (f.Times == 0 || f.used < f.Times) {
			f.used++
			return f
		}
	}
	return nil
}

// apply answers the request instead of its handler, if the fault says so for
// this moment: before the effect or after it.
func (f *Fault) apply(w http.ResponseWriter, r *http.Request, before bool) bool {
	if before && f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
	if before == f.After || (f.Status == 0 && !f.Drop) {
		return false
	}
	if f.Drop {
		panic(http.ErrAbortHandler) // cuts the connection without an answer
	}
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(f.Status)
	_, _ = fmt.Fprint(w, f.Body) // the client is gone
	return true
}
