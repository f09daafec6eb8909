// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/githubsim/openapi"
)

// Validate judges an answer of an operation by GitHub's description.
type Validate func(operationID string, r *http.Request, status int, header http.Header, body []byte) error

// Options of a Server.
type Options struct {
	// Dir holds the bare repositories, which end with the simulator. It is made
	// when it is missing, and must hold none.
	Dir string
	// Clock judges tokens and stamps answers; default the machine's. The
	// control interface can move it ahead.
	Clock clock.Clock
	// BaseURL is where the simulator is reached; Listen sets it.
	BaseURL string
	// Validate judges every answer; default is GitHub's OpenAPI description.
	Validate Validate
	// OnInvalid is told of every answer that Validate does not allow, and of
	// every request that was accepted though GitHub's description of requests
	// does not allow it. The client gets a 500 that says so in either case.
	OnInvalid func(error)
	// MaxFileSize is the largest file a push may hold, in bytes; default
	// GitHub's 100 MB.
	MaxFileSize int64
	// HookTimeout is how long a webhook's receiver may take; default 10 s.
	HookTimeout time.Duration
}

// Server is the simulator: an http.Handler.
type Server struct {
	options          Options
	mux              *http.ServeMux // REST and git
	controlMux       *http.ServeMux
	validateRequests func(operationID string, r *http.Request, body []byte) error
	hookClient       *http.Client
	offset           atomic.Int64 // how far the clock was moved ahead, in ns

	// mu guards all that follows, and every repository. It is given up while
	// git runs; see store.
	mu            sync.Mutex
	baseURL       string
	nextID        int64
	accounts      map[string]*account // by lower-case login
	webFlow       *account            // who makes commits on GitHub's pages
	apps          map[int64]*app
	installations map[int64]*installation
	tokens        map[string]*token
	repos         map[int64]*repo
	names         map[string]int64 // lower-case full name, also former ones
	log           requestLog
	faults        []*Fault
	tokenLag      time.Duration
	covered       map[string]int // answers by operationId
	closed        bool
}

// New returns a simulator without accounts.
func New(o Options) (*Server, error) {
	validator, err := openapi.Load()
	if err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Validate == nil {
		o.Validate = validator.ValidateAnswer
	}
	if o.OnInvalid == nil {
		o.OnInvalid = func(error) {}
	}
	if o.MaxFileSize == 0 {
		o.MaxFileSize = 100 << 20
	}
	if o.HookTimeout == 0 {
		o.HookTimeout = 10 * time.Second
	}
	if err := prepareFolder(filepath.Join(o.Dir, "repos")); err != nil {
		return nil, err
	}
	s := &Server{options: o, mux: http.NewServeMux(), controlMux: http.NewServeMux(), validateRequests: validator.ValidateRequest, hookClient: &http.Client{Timeout: o.HookTimeout},
		baseURL: strings.TrimSuffix(o.BaseURL, "/"), nextID: 1000,
		accounts: map[string]*account{}, apps: map[int64]*app{}, installations: map[int64]*installation{},
		tokens: map[string]*token{}, repos: map[int64]*repo{}, names: map[string]int64{}, covered: map[string]int{}}
	s.webFlow = s.newAccount("web-flow", kindUser)
	s.routes()
	s.controlRoutes()
	return s, nil
}

// prepareFolder makes the folder of the repositories. What is in memory ended
// with the simulator that left any there, so they are of no use.
func prepareFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the simulator's folder: %w", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the simulator's folder: %w", err)
	}
	if len(left) > 0 {
		return fmt.Errorf("%s holds repositories of another simulator: choose an empty folder", dir)
	}
	return nil
}

// SetBaseURL says under which address the simulator is reached; answers and
// payloads carry it.
func (s *Server) SetBaseURL(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.baseURL = strings.TrimSuffix(url, "/")
}

// Close stops delivering webhooks. Those still queued are lost.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	var queues []*hookQueue
	for _, a := range s.apps {
		queues = append(queues, a.hooks)
	}
	s.mu.Unlock()
	for _, q := range queues {
		q.close()
	}
}

// now returns the simulator's time.
func (s *Server) now() time.Time {
	return s.options.Clock.Now().Add(time.Duration(s.offset.Load())).UTC()
}

// id returns a new id; callers hold the lock.
func (s *Server) id() int64 {
	s.nextID++
	return s.nextID
}

// Flush waits until every webhook queued so far was answered.
func (s *Server) Flush(ctx context.Context) error {
	s.mu.Lock()
	apps := sortedByID(s.apps)
	s.mu.Unlock()
	for _, a := range apps {
		if err := a.hooks.flush(ctx); err != nil {
			return fmt.Errorf("webhooks of the App %s are still under way: %w", a.slug, err)
		}
	}
	return nil
}

// Covered returns how many answers each operation gave, all of them validated.
func (s *Server) Covered() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]int, len(s.covered))
	for id, n := range s.covered {
		out[id] = n
	}
	return out
}

// trace collects what the request log tells of a request.
type trace struct {
	operation string
	actor     actor
	repo      int64
	problem   string
}

type traceKey struct{}

// traced returns the trace of a request.
func traced(r *http.Request) *trace {
	t, found := r.Context().Value(traceKey{}).(*trace)
	if !found {
		return &trace{}
	}
	return t
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, controlPrefix) {
		s.controlMux.ServeHTTP(w, r)
		return
	}
	if r.UserAgent() == "" {
		http.Error(w, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header (https://docs.github.com/en/rest/overview/resources-in-the-rest-api#user-agent-required).", http.StatusForbidden)
		return
	}
	t := &trace{}
	r = r.WithContext(context.WithValue(r.Context(), traceKey{}, t))
	f, started := s.arrive(r)
	out := &recorder{ResponseWriter: w, status: http.StatusOK}
	defer func() { s.leave(r, t, out.status, started) }()
	f.serve(out, r, s.mux)
}

// arrive finds the fault the request meets, and notes when it came.
func (s *Server) arrive(r *http.Request) (*Fault, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fault(r), s.now()
}

func (s *Server) leave(r *http.Request, t *trace, status int, started time.Time) {
	entry := Request{Time: started, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Operation: t.operation, Status: status,
		Actor: t.actor.String(), Repository: t.repo, Problem: t.problem}
	if t.actor.installation != nil {
		entry.Installation = t.actor.installation.id
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.add(entry)
}

// recorder remembers the status of an answer; 0 stands for none.
type recorder struct {
	http.ResponseWriter
	status int
	sent   bool
}

// WriteHeader sends the status.
func (r *recorder) WriteHeader(status int) {
	if !r.sent && status >= http.StatusOK {
		r.status, r.sent = status, true
	}
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
