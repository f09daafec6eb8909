// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/githubsim/openapi"
)

// Options of a Server.
type Options struct {
	// Dir holds the bare repositories.
	Dir string
	// Clock judges tokens and stamps answers; default the machine's. The
	// control interface can move it ahead.
	Clock clock.Clock
	// OnInvalid is told of every answer that GitHub's description does not
	// allow. Default: the answer is replaced by a 500 that says so.
	OnInvalid func(error)
}

// Server is the simulator: an http.Handler.
type Server struct {
	options   Options
	mux       *http.ServeMux
	validator *openapi.Validator

	mu            sync.Mutex
	baseURL       string
	offset        time.Duration
	nextID        int64
	accounts      map[string]*account // by lower-case login
	apps          map[int64]*app
	installations map[int64]*installation
	tokens        map[string]*token
	repos         map[int64]*repo
	names         map[string]int64 // lower-case full name, also former ones
	requests      []Request
	faults        []*Fault
	hooks         *hookQueue
}

// Request is one request the simulator answered.
type Request struct {
	Method    string `json:"method"`
	Path      string `json:"path"`
	Operation string `json:"operation,omitempty"`
	Status    int    `json:"status"`
	// Actor is who asked: app/<id>, installation/<id>, user/<login> or "".
	Actor string `json:"actor,omitempty"`
}

// New returns a simulator without accounts.
func New(o Options) (*Server, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	validator, err := openapi.Load()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "repos"), 0o755); err != nil {
		return nil, fmt.Errorf("making the simulator's folder: %w", err)
	}
	s := &Server{options: o, mux: http.NewServeMux(), validator: validator, nextID: 1000,
		accounts: map[string]*account{}, apps: map[int64]*app{}, installations: map[int64]*installation{},
		tokens: map[string]*token{}, repos: map[int64]*repo{}, names: map[string]int64{}}
	s.hooks = newHookQueue(s.now)
	s.routes()
	return s, nil
}

// SetBaseURL says under which address the simulator is reached; answers and
// payloads carry it.
func (s *Server) SetBaseURL(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.baseURL = strings.TrimSuffix(url, "/")
}

// Close stops delivering webhooks.
func (s *Server) Close() { s.hooks.close() }

func (s *Server) now() time.Time {
	return s.options.Clock.Now().Add(s.offset).UTC()
}

// id returns a new id; callers hold the lock.
func (s *Server) id() int64 {
	s.nextID++
	return s.nextID
}

// response is what a handler answers.
type response struct {
	status int
	body   any // nil: no body
	header http.Header
}

func ok(body any) response      { return response{status: http.StatusOK, body: body} }
func created(body any) response { return response{status: http.StatusCreated, body: body} }

const docsURL = "https://docs.github.com/rest"

// refuse answers with GitHub's error shape.
func refuse(status int, message string) response {
	return response{status: status, body: map[string]any{"message": message, "documentation_url": docsURL, "status": strconv.Itoa(status)}}
}

// invalid answers 422 with one error.
func invalid(resource, field, code, message string) response {
	e := map[string]any{"resource": resource, "code": code}
	if field != "" {
		e["field"] = field
	}
	if message != "" {
		e["message"] = message
	}
	return response{status: http.StatusUnprocessableEntity, body: map[string]any{
		"message": "Validation Failed", "errors": []any{e}, "documentation_url": docsURL}}
}

var notFound = refuse(http.StatusNotFound, "Not Found")

// call is one REST request being answered; the server's lock is held.
type call struct {
	*http.Request
	actor actor
	body  map[string]any
}

// text returns a string of the body, "" when absent.
func (c *call) text(key string) string {
	s, isText := c.body[key].(string)
	if !isText {
		return ""
	}
	return s
}

func (c *call) flag(key string, byDefault bool) bool {
	b, isFlag := c.body[key].(bool)
	if !isFlag {
		return byDefault
	}
	return b
}

// handle registers a REST operation.
func (s *Server) handle(pattern, operation string, h func(*call) response) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, operation, h)
	})
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.UserAgent() == "" && !strings.HasPrefix(r.URL.Path, controlPrefix) {
		http.Error(w, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header", http.StatusForbidden)
		return
	}
	s.mux.ServeHTTP(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, operation string, h func(*call) response) {
	fault := s.fault(r)
	if fault != nil && fault.apply(w, r, true) {
		s.log(Request{Method: r.Method, Path: r.URL.Path, Operation: operation, Status: fault.Status})
		return
	}
	c := &call{Request: r}
	resp := s.answer(c, h)
	if fault != nil && fault.apply(w, r, false) {
		s.log(Request{Method: r.Method, Path: r.URL.Path, Operation: operation, Status: fault.Status, Actor: c.actor.String()})
		return
	}
	s.write(w, r, c.actor, operation, resp)
}

func (s *Server) answer(c *call, h func(*call) response) response {
	if bad := readBody(c); bad != nil {
		return *bad
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	who, bad := s.authenticate(c.Request)
	if bad != nil {
		return *bad
	}
	c.actor = who
	return h(c)
}

// readBody reads a JSON object; a bare null passes, as clients send it.
func readBody(c *call) *response {
	if c.Body == nil || c.Method == http.MethodGet {
		return nil
	}
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(http.MaxBytesReader(nil, c.Body, 10<<20)); err != nil || raw.Len() == 0 {
		return nil
	}
	var v any
	if err := json.Unmarshal(raw.Bytes(), &v); err != nil {
		r := refuse(http.StatusBadRequest, "Problems parsing JSON")
		return &r
	}
	if v == nil {
		return nil
	}
	object, isObject := v.(map[string]any)
	if !isObject {
		r := refuse(http.StatusBadRequest, "Body should be a JSON object")
		return &r
	}
	c.body = object
	return nil
}

// write sends an answer with GitHub's headers, after validating it.
func (s *Server) write(w http.ResponseWriter, r *http.Request, who actor, operation string, resp response) {
	var body []byte
	if resp.body != nil {
		var err error
		if body, err = json.Marshal(resp.body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
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
	s.mu.Lock()
	s.headers(h, r, who, body)
	s.mu.Unlock()
	if err := s.validator.ValidateAnswer(operation, r, resp.status, h, body); err != nil {
		err = fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
		if s.options.OnInvalid != nil {
			s.options.OnInvalid(err)
		}
		http.Error(w, "simulator: "+err.Error(), http.StatusInternalServerError)
		return
	}
	status := resp.status
	if r.Method == http.MethodGet && status == http.StatusOK && r.Header.Get("If-None-Match") == h.Get("ETag") {
		status, body = http.StatusNotModified, nil
		h.Del("Content-Type")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone
	s.log(Request{Method: r.Method, Path: r.URL.Path, Operation: operation, Status: status, Actor: who.String()})
}

// headers sets what GitHub sends with every answer. ETags are bound to the
// token; quotas to the installation.
func (s *Server) headers(h http.Header, r *http.Request, who actor, body []byte) {
	now := s.now()
	h.Set("Date", now.Format(http.TimeFormat))
	h.Set("X-GitHub-Request-Id", strings.ToUpper(strings.ReplaceAll(uuid.NewString(), "-", ":")))
	h.Set("X-GitHub-Media-Type", "github.v3; format=json")
	h.Set("Cache-Control", "private, max-age=60, s-maxage=60")
	h.Set("Vary", "Accept, Authorization, Cookie, X-GitHub-OTP")
	sum := sha256.Sum256(append([]byte(r.Header.Get("Authorization")), body...))
	h.Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
	if who.installation != nil {
		used, reset := who.installation.spend(now)
		h.Set("X-RateLimit-Limit", strconv.Itoa(hourlyQuota))
		h.Set("X-RateLimit-Used", strconv.Itoa(used))
		h.Set("X-RateLimit-Remaining", strconv.Itoa(hourlyQuota-used))
		h.Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
		h.Set("X-RateLimit-Resource", "core")
	}
}

// hourlyQuota is an installation's primary limit.
const hourlyQuota = 5000

func (s *Server) log(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
}

// Flush waits until every webhook queued so far was answered.
func (s *Server) Flush(ctx context.Context) error {
	if err := s.hooks.flush(ctx); err != nil {
		return errors.New("webhooks are still under way")
	}
	return nil
}
