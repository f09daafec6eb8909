// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/sluice/internal/clock"
)

// Request is one request as it ended, for metrics and logs.
type Request struct {
	// Installation whose token was used, or asked for; 0 for the App itself.
	Installation int64
	Method       string
	// Route is the path with ids and names replaced: a bounded label.
	Route    string
	Status   int // GitHub's own; 0 when there was no answer
	Duration time.Duration
	// Remaining requests of the hourly quota; -1 when GitHub did not say.
	Remaining int
}

// transport sits under every client. It makes what go-github v66 cannot see
// visible to it: a 429 becomes the 403 it knows, and a secondary limit without
// Retry-After gets one of a minute.
type transport struct {
	next    http.RoundTripper
	clock   clock.Clock
	prefix  string // of the API's paths, e.g. /api/v3
	observe func(Request)
}

// RoundTrip sends one request and reports it.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	started := t.clock.Now()
	resp, err := t.next.RoundTrip(req)
	if t.observe != nil {
		t.observe(t.request(req, resp, t.clock.Since(started)))
	}
	if err != nil {
		return nil, err
	}
	return resp, normalise(resp)
}

func (t *transport) request(req *http.Request, resp *http.Response, took time.Duration) Request {
	r := Request{Installation: installationOf(req.Context()), Method: req.Method, Duration: took,
		Route: route(strings.TrimPrefix(req.URL.Path, t.prefix)), Remaining: -1}
	if resp != nil {
		r.Status = resp.StatusCode
		if n, err := strconv.Atoi(resp.Header.Get(headerRemaining)); err == nil {
			r.Remaining = n
		}
	}
	return r
}

// normalise rewrites a limit's answer to the form that go-github knows.
func normalise(resp *http.Response) error {
	tooMany := resp.StatusCode == http.StatusTooManyRequests
	if tooMany {
		resp.StatusCode = http.StatusForbidden
		resp.Status = "403 Forbidden"
	}
	if resp.StatusCode != http.StatusForbidden || resp.Header.Get(headerRetryAfter) != "" || resp.Header.Get(headerRemaining) == "0" {
		return nil
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		_ = resp.Body.Close()
		return err
	}
	resp.Body = readCloser{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
	text := strings.ToLower(string(head))
	if tooMany || strings.Contains(text, "secondary rate limit") || strings.Contains(text, "secondary-rate-limits") {
		resp.Header.Set(headerRetryAfter, strconv.Itoa(int(slowDownWait/time.Second)))
	}
	return nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

type installationKey struct{}

func withInstallation(ctx context.Context, id int64) context.Context {
	return context.WithValue(ctx, installationKey{}, id)
}

func installationOf(ctx context.Context) int64 {
	if id, ok := ctx.Value(installationKey{}).(int64); ok {
		return id
	}
	return 0
}

var (
	routeRepo   = regexp.MustCompile(`^/repos/[^/]+/[^/]+`)
	routeNamed  = regexp.MustCompile(`^/(orgs|users)/[^/]+`)
	routeRef    = regexp.MustCompile(`/(compare|git/ref)/.+$`)
	routeNumber = regexp.MustCompile(`/[0-9]+\b`)
)

// route returns a path with names and ids replaced.
func route(path string) string {
	path = routeRepo.ReplaceAllString(path, "/repos/{repo}")
	path = routeNamed.ReplaceAllString(path, "/$1/{name}")
	path = routeRef.ReplaceAllString(path, "/$1/{ref}")
	return routeNumber.ReplaceAllString(path, "/{id}")
}
