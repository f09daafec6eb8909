// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/sluice-dev/sluice/internal/clock"
)

// transport sits under every client. It makes what go-github v66 cannot see
// visible to it: a 429 becomes the 403 it knows, and a secondary limit without
// Retry-After gets one of a minute, because the library would else close the
// client until the primary quota resets.
type transport struct {
	next    http.RoundTripper
	clock   clock.Clock
	observe func(Observation)
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	started := t.clock.Now()
	resp, err := t.next.RoundTrip(req)
	if t.observe != nil {
		o := Observation{Method: req.Method, Route: route(req.URL.Path), Duration: t.clock.Since(started)}
		if resp != nil {
			o.Status = resp.StatusCode
		}
		t.observe(o)
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		resp.StatusCode = http.StatusForbidden
	}
	if resp.StatusCode == http.StatusForbidden && resp.Header.Get("Retry-After") == "" && resp.Header.Get("X-RateLimit-Remaining") != "0" {
		body, rerr := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		_ = resp.Body.Close()
		if rerr != nil {
			return nil, rerr
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if strings.Contains(string(body), "secondary rate limit") || strings.Contains(string(body), "submitted too quickly") {
			resp.Header.Set("Retry-After", "60")
		}
	}
	return resp, nil
}

// freshToken retries a 401 that is the replication lag of a token just minted
// (github answers Bad credentials for some seconds): after 1, 2 and 4 s.
type freshToken struct {
	next  http.RoundTripper
	clock clock.Clock
}

var lagDelays = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

func (f *freshToken) RoundTrip(req *http.Request) (*http.Response, error) {
	for i := 0; ; i++ {
		resp, err := f.next.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusUnauthorized || i == len(lagDelays) || (req.Body != nil && req.GetBody == nil) {
			return resp, err
		}
		_ = resp.Body.Close()
		timer := f.clock.NewTimer(lagDelays[i])
		select {
		case <-req.Context().Done():
			timer.Stop()
			return nil, req.Context().Err()
		case <-timer.C():
		}
		again := req.Clone(req.Context())
		if req.GetBody != nil {
			if again.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		req = again
	}
}

var (
	routeNumber = regexp.MustCompile(`/[0-9]+`)
	routeRepo   = regexp.MustCompile(`/repos/[^/]+/[^/]+`)
	routeNamed  = regexp.MustCompile(`/(orgs|users)/[^/]+`)
	routeRef    = regexp.MustCompile(`/(compare|git/ref|branches)/.+`)
)

// route returns a path with names and ids replaced: a bounded label.
func route(path string) string {
	path = routeRepo.ReplaceAllString(path, "/repos/{repo}")
	path = routeNamed.ReplaceAllString(path, "/$1/{name}")
	path = routeRef.ReplaceAllString(path, "/$1/{ref}")
	return routeNumber.ReplaceAllString(path, "/{id}")
}
