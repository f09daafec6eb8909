// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/sluice-dev/sluice/internal/domain"
)

// now is when every test begins.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// promptClock stands still, and its timers fire at once and are noted.
type promptClock struct {
	*testclock.FakeClock
	mu     sync.Mutex
	timers []time.Duration
}

func newClock() *promptClock { return &promptClock{FakeClock: testclock.NewFakeClock(now)} }

func (c *promptClock) NewTimer(d time.Duration) clock.Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timers = append(c.timers, d)
	return clock.RealClock{}.NewTimer(0)
}

func (c *promptClock) waited() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.timers
}

// newGit returns a Git of its own that may use local paths.
func newGit(t testing.TB, change func(*Options)) *Git {
	t.Helper()
	o := Options{Dir: filepath.Join(t.TempDir(), "mirrors"), Clock: newClock(), AllowFile: true}
	if change != nil {
		change(&o)
	}
	g, err := New(t.Context(), o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// repo is a repository of a test: a bare one, written to by plumbing.
type repo struct {
	t   testing.TB
	dir string
}

func newRepo(t testing.TB) repo {
	t.Helper()
	return newRepoAt(t, filepath.Join(t.TempDir(), "repo.git"))
}

func newRepoAt(t testing.TB, dir string) repo {
	t.Helper()
	r := repo{t: t, dir: dir}
	NewWithT(t).Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	r.git("init", "--quiet", "--bare", "--initial-branch=main")
	r.git("config", "http.receivepack", "true")
	return r
}

func (r repo) remote() domain.Remote { return domain.Remote{URL: r.dir} }

func (r repo) git(args ...string) string {
	r.t.Helper()
	return r.gitIn("", args...)
}

func (r repo) gitIn(input string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR=" + r.dir, "GIT_INDEX_FILE=" + filepath.Join(r.dir, "test-index"),
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com"}
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n")
}

// blob writes an object and returns its id.
func (r repo) blob(content string) string {
	r.t.Helper()
	return r.gitIn(content, "hash-object", "-w", "--stdin")
}

// file is content with a mode; a plain string is an ordinary file.
type file struct{ mode, content string }

func link(target string) file     { return file{modeSymlink, target} }
func program(content string) file { return file{"100755", content} }

// tree maps paths to a string, a file, or for a submodule a commit's id in a
// file of that mode.
type tree map[string]any

// commit puts a tree onto a branch, on top of what is there, and returns the
// commit's id.
func (r repo) commit(branch string, files tree) string {
	r.t.Helper()
	return r.commitOn(branch, r.head(branch), files)
}

// commitOn puts a tree onto a branch, over a given parent or none.
func (r repo) commitOn(branch, parent string, files tree) string {
	r.t.Helper()
	_ = os.Remove(filepath.Join(r.dir, "test-index"))
	var lines strings.Builder
	for path, v := range files {
		f, ok := v.(file)
		if !ok {
			f = file{"100644", v.(string)}
		}
		sha := f.content
		if f.mode != modeSubmodule {
			sha = r.blob(f.content)
		}
		fmt.Fprintf(&lines, "%s %s\t%s\x00", f.mode, sha, path)
	}
	r.gitIn(lines.String(), "update-index", "-z", "--index-info")
	args := []string{"commit-tree", r.git("write-tree"), "-m", "a commit"}
	if parent != "" {
		args = append(args, "-p", parent)
	}
	sha := r.git(args...)
	r.git("update-ref", "refs/heads/"+branch, sha)
	return sha
}

func (r repo) head(branch string) string {
	r.t.Helper()
	return r.git("for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

// refs returns all refs of the repository, one a line.
func (r repo) refs() []string {
	r.t.Helper()
	return strings.Fields(r.git("for-each-ref", "--format=%(refname)"))
}

// files returns a branch's tree: path to "mode content"; a submodule's content
// is its commit.
func (r repo) files(rev string) map[string]string {
	r.t.Helper()
	found := map[string]string{}
	entries, err := parseTree(r.git("ls-tree", "-r", "-z", "--full-tree", rev))
	NewWithT(r.t).Expect(err).NotTo(HaveOccurred())
	for _, e := range entries {
		content := e.sha
		if e.mode != modeSubmodule {
			cmd := exec.Command("git", "cat-file", "blob", e.sha)
			cmd.Dir = r.dir
			out, err := cmd.Output()
			NewWithT(r.t).Expect(err).NotTo(HaveOccurred())
			content = string(out)
		}
		found[e.path] = e.mode + " " + content
	}
	return found
}

// hook installs a hook that runs a shell script.
func (r repo) hook(name, script string) {
	r.t.Helper()
	g := NewWithT(r.t)
	g.Expect(os.MkdirAll(filepath.Join(r.dir, "hooks"), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(r.dir, "hooks", name), []byte("#!/bin/sh\n"+script+"\n"), 0o755)).To(Succeed())
}

// request is a usual request to distribute branches.
func request(source, distribution domain.Remote, branches ...string) domain.DistributeRequest {
	return domain.DistributeRequest{Key: "project", Source: source, Distribution: distribution, Branches: branches, History: domain.HistorySquash,
		HandOut: domain.HandOut{OverlayDirectory: "handout", IgnoreFile: ".handoutignore"},
		Author:  domain.Signature{Name: "sluice[bot]", Email: "1+sluice[bot]@users.noreply.github.com"}, Message: "Update the project's files"}
}

// server serves bare repositories over smart HTTP, as GitHub does.
type server struct {
	*httptest.Server
	t    testing.TB
	root string
	// tokens are accepted as the password; empty: everybody is.
	tokens sync.Map
	secure atomic.Bool

	mu       sync.Mutex
	requests []string
	seen     []string // Authorization headers
	script   scripted
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, root: t.TempDir()}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// repo makes a repository that the server serves under owner/name.git.
func (s *server) repo(fullName string) (repo, domain.Remote) {
	s.t.Helper()
	return newRepoAt(s.t, filepath.Join(s.root, fullName+".git")), s.remote(fullName)
}

func (s *server) remote(fullName string) domain.Remote {
	return domain.Remote{URL: s.URL + "/" + fullName + ".git"}
}

// require has the server accept these tokens only.
func (s *server) require(tokens ...string) {
	s.secure.Store(true)
	for _, token := range tokens {
		s.tokens.Store(token, true)
	}
}

func token(text string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return text, nil }
}

// answer has the server answer matching requests by itself; nil ends that.
func (s *server) answer(f scripted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = f
}

// log returns the requests received so far, "GET /o/r.git/info/refs ...".
func (s *server) log() (requests, authorization []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.requests...), append([]string{}, s.seen...)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.String())
	s.seen = append(s.seen, r.Header.Get("Authorization"))
	script := s.script
	s.mu.Unlock()
	if script == nil || !script(w, r) {
		s.serve(w, r)
	}
}

// serve checks the token and has git answer.
func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	if _, known := s.tokens.Load(password); s.secure.Load() && (!known || user != "x-access-token") {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, "Invalid username or token. Password authentication is not supported for Git operations.", http.StatusUnauthorized)
		return
	}
	if r.ContentLength < 0 && r.Body != nil { // CGI wants a length
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	}
	(&cgi.Handler{
		Path:       filepath.Join(execPath(s.t), "git-http-backend"),
		Env:        []string{"GIT_PROJECT_ROOT=" + s.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + user, "GIT_CONFIG_NOSYSTEM=1", "HOME=" + s.root},
		InheritEnv: []string{"PATH"},
		Stderr:     io.Discard,
	}).ServeHTTP(w, r)
}

var execPath = func() func(t testing.TB) string {
	read := sync.OnceValues(func() ([]byte, error) { return exec.Command("git", "--exec-path").Output() })
	return func(t testing.TB) string {
		out, err := read()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
}()

// scripted answers a request in git's place when it returns true.
type scripted = func(w http.ResponseWriter, r *http.Request) bool

// onPush runs f when a push's pack arrives, before git handles it.
func onPush(f func()) scripted {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			f()
		}
		return false
	}
}

// packet frames one line of git's protocol.
func packet(payload string) string { return fmt.Sprintf("%04x%s", len(payload)+4, payload) }

// refusing answers pushes as GitHub's receive-pack does that refuses them: its
// lines to the user, and a reason for every ref.
func refusing(lines []string, reason string) scripted {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			return false
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return false
		}
		report := packet("unpack ok\n")
		for _, ref := range pushedRefs(body) {
			report += packet("ng " + ref + " " + reason + "\n")
		}
		report += "0000"
		w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
		answer := ""
		for _, line := range lines {
			answer += packet("\x02" + line + "\n")
		}
		_, _ = io.WriteString(w, answer+packet("\x01"+report)+"0000")
		return true
	}
}

// pushedRefs reads the refs of the commands that begin a push's body.
func pushedRefs(body []byte) []string {
	var refs []string
	for len(body) >= 4 {
		var length int
		if _, err := fmt.Sscanf(string(body[:4]), "%04x", &length); err != nil || length < 4 || length > len(body) {
			return refs
		}
		command, _, _ := strings.Cut(string(body[4:length]), "\x00")
		if fields := strings.Fields(command); len(fields) == 3 {
			refs = append(refs, fields[2])
		}
		body = body[length:]
	}
	return refs
}

// failing answers the first n matching requests with a status.
func failing(n int, path string, status int, text string) scripted {
	var left atomic.Int64
	left.Store(int64(n))
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.String(), path) || left.Add(-1) < 0 {
			return false
		}
		http.Error(w, text, status)
		return true
	}
}
