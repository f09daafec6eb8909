// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// handle registers a REST operation. h is called with the lock held.
func (s *Server) handle(pattern, operation string, h func(*call) response) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		t := traced(r)
		t.operation = operation
		raw, err := readAll(r)
		if err != nil {
			s.write(w, r, operation, refuse(http.StatusBadRequest, "Problems parsing JSON"))
			return
		}
		resp := s.answer(r, t, raw, h)
		if resp.status < http.StatusBadRequest {
			if err := s.validateRequests(operation, r, raw); err != nil {
				s.invalid(w, r, fmt.Errorf("%s %s was accepted: %w", r.Method, r.URL.Path, err))
				return
			}
		}
		s.write(w, r, operation, resp)
	})
}

// maxRequestBody bounds what is read of a REST request.
const maxRequestBody = 64 << 20

func readAll(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	var raw bytes.Buffer
	_, err := raw.ReadFrom(http.MaxBytesReader(nil, r.Body, maxRequestBody))
	return raw.Bytes(), err
}

// apiVersions are the versions that GitHub serves.
var apiVersions = map[string]bool{"": true, "2022-11-28": true, "2026-03-10": true}

func (s *Server) answer(r *http.Request, t *trace, raw []byte, h func(*call) response) response {
	c := &call{Request: r}
	s.mu.Lock()
	defer s.mu.Unlock()
	who, bad := s.authenticate(r)
	if bad != nil {
		return *bad
	}
	c.actor, t.actor = who, who
	if bad := s.overQuota(r, who); bad != nil {
		return *bad
	}
	if version := r.Header.Get("X-Github-Api-Version"); !apiVersions[version] {
		return refuse(http.StatusBadRequest, fmt.Sprintf("%q is not a supported API version.", version))
	}
	if bad := c.readBody(raw); bad != nil {
		return *bad
	}
	return h(c)
}

// readBody reads a JSON object or list; a bare null passes, as clients send it.
func (c *call) readBody(raw []byte) *response {
	if c.Method == http.MethodGet || len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return refusal(http.StatusBadRequest, "Problems parsing JSON")
	}
	switch v := v.(type) {
	case nil:
	case map[string]any:
		c.body = v
	case []any:
		c.list = v
	default:
		return refusal(http.StatusBadRequest, "Body should be a JSON object")
	}
	return nil
}

// write sends an answer with GitHub's headers, after validating it.
func (s *Server) write(w http.ResponseWriter, r *http.Request, operation string, resp response) {
	var body []byte
	if resp.body != nil {
		var err error
		if body, err = json.Marshal(resp.body); err != nil {
			s.invalid(w, r, err)
			return
		}
	}
	h := w.Header()
	for k, v := range resp.header {
		h[k] = v
	}
	if body != nil {
		h.Set("Content-Type", "application/json; charset=utf-8")
	}
	s.headers(h, r, body)
	if r.Method == http.MethodHead {
		body = nil
	}
	if err := s.options.Validate(operation, r, resp.status, h, body); err != nil {
		s.invalid(w, r, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
		return
	}
	s.mu.Lock()
	s.covered[operation]++
	s.mu.Unlock()
	status := resp.status
	if status == http.StatusOK && h.Get("ETag") != "" && r.Header.Get("If-None-Match") == h.Get("ETag") {
		status, body = http.StatusNotModified, nil
		h.Del("Content-Type")
		s.refund(traced(r).actor)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// invalid reports what GitHub would not have said, or not have taken.
func (s *Server) invalid(w http.ResponseWriter, r *http.Request, err error) {
	traced(r).problem = err.Error()
	s.options.OnInvalid(err)
	http.Error(w, "simulator: "+err.Error(), http.StatusInternalServerError)
}

// exposed are the headers GitHub lets browsers read.
const exposed = "ETag, Link, Location, Retry-After, X-GitHub-OTP, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Used, X-RateLimit-Resource, X-RateLimit-Reset, X-GitHub-Request-Id, X-Accepted-GitHub-Permissions"

// headers sets what GitHub sends with every answer. ETags are bound to the
// token; quotas to the installation.
func (s *Server) headers(h http.Header, r *http.Request, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Set("Date", s.now().Format(http.TimeFormat))
	h.Set("X-Github-Request-Id", requestID())
	h.Set("X-Github-Media-Type", "github.v3; format=json")
	h.Set("X-Github-Api-Version-Selected", cmpOr(r.Header.Get("X-Github-Api-Version"), "2022-11-28"))
	h.Set("Access-Control-Expose-Headers", exposed)
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Vary", "Accept, Authorization, Cookie, X-GitHub-OTP,Accept-Encoding, Accept, X-Requested-With")
	if r.Method == http.MethodGet || r.Method == http.MethodHead || body != nil {
		h.Set("Cache-Control", "private, max-age=60, s-maxage=60")
	}
	if body != nil {
		sum := sha256.Sum256(append([]byte(r.Header.Get("Authorization")+"\x00"), body...))
		h.Set("ETag", `W/"`+hex.EncodeToString(sum[:])+`"`)
	}
	s.quotaHeaders(h, traced(r).actor)
}

func cmpOr(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func requestID() string {
	id := strings.ToUpper(strings.ReplaceAll(uuid.NewString(), "-", ""))
	return strings.Join([]string{id[0:4], id[4:10], id[10:16], id[16:22], id[22:30]}, ":")
}

// Primary limits an hour.
const (
	installationQuota = 5000
	anonymousQuota    = 60
)

// window starts a new hour when the last one is over.
func (i *installation) window(now time.Time) {
	if !now.Before(i.windowEnd) {
		i.windowEnd, i.used = now.Add(time.Hour).Truncate(time.Second), 0
	}
}

// free reports whether the path costs no quota.
func free(r *http.Request) bool { return r.URL.Path == "/rate_limit" }

// overQuota takes a request off the installation's hour; it answers the
// refusal when nothing is left.
func (s *Server) overQuota(r *http.Request, who actor) *response {
	i := who.installation
	if i == nil || free(r) {
		return nil
	}
	i.window(s.now())
	if i.used >= i.quota {
		bad := refuse(http.StatusForbidden, fmt.Sprintf("API rate limit exceeded for installation ID %d.", i.id))
		return &bad
	}
	i.used++
	return nil
}

// refund gives back what a request cost that turned out to be unmodified.
func (s *Server) refund(who actor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := who.installation; i != nil && i.used > 0 {
		i.used--
	}
}

func (s *Server) quotaHeaders(h http.Header, who actor) {
	limit, used, reset := s.quotaOf(who)
	h.Set("X-Ratelimit-Limit", strconv.Itoa(limit))
	h.Set("X-Ratelimit-Used", strconv.Itoa(used))
	h.Set("X-Ratelimit-Remaining", strconv.Itoa(limit-used))
	h.Set("X-Ratelimit-Reset", strconv.FormatInt(reset.Unix(), 10))
	h.Set("X-Ratelimit-Resource", "core")
}

// quotaOf returns the limit of whoever asks. Only installations' requests are
// counted.
func (s *Server) quotaOf(who actor) (limit, used int, reset time.Time) {
	now := s.now()
	if i := who.installation; i != nil {
		i.window(now)
		return i.quota, i.used, i.windowEnd
	}
	if who.app != nil || who.user != nil {
		return installationQuota, 0, now.Add(time.Hour)
	}
	return anonymousQuota, 0, now.Add(time.Hour)
}
