// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-github/v66/github"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/sluice-dev/sluice/internal/githubsim"
	"github.com/sluice-dev/sluice/internal/githubsim/operations"
	"github.com/sluice-dev/sluice/internal/githubsim/simtest"
)

// covered collects what all servers of this package's tests answered.
var covered = struct {
	sync.Mutex
	answers map[string]int
}{answers: map[string]int{}}

func TestMain(m *testing.M) {
	code := m.Run()
	total := 0
	var missing []string
	for _, id := range operations.IDs {
		total += covered.answers[id]
		if covered.answers[id] == 0 {
			missing = append(missing, id)
		}
	}
	whole := flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
	if whole && code == 0 && len(missing) > 0 {
		fmt.Println("no test reaches these operations:", strings.Join(missing, ", "))
		code = 1
	}
	if whole {
		fmt.Printf("simulator: %d operations covered, %d answers validated\n", len(operations.IDs)-len(missing), total)
	}
	os.Exit(code)
}

// sim is a simulator whose clock only the test moves, with an App on acme.
type sim struct {
	*WithT
	simtest.Fixture
	t     *testing.T
	ctx   context.Context
	clock *clocktesting.FakeClock
}

var start = time.Date(2026, 10, 5, 8, 0, 0, 0, time.UTC)

func newSim(t *testing.T, options ...func(*githubsim.Options)) *sim {
	t.Helper()
	clk := clocktesting.NewFakeClock(start)
	o := githubsim.Options{Clock: clk}
	for _, set := range options {
		set(&o)
	}
	c, server := simtest.StartServer(t, o)
	t.Cleanup(func() {
		covered.Lock()
		defer covered.Unlock()
		for id, n := range server.Covered() {
			covered.answers[id] += n
		}
	})
	s := &sim{WithT: NewWithT(t), t: t, ctx: t.Context(), clock: clk}
	s.SetDefaultEventuallyTimeout(20 * time.Second)
	s.Fixture = simtest.NewFixture(t, c, "acme", "demo")
	return s
}

// repository makes a repository with a first commit on main and returns its id
// and the commit.
func (s *sim) repository(fullName string) (id int64, sha string) {
	s.t.Helper()
	id, err := s.Repository(s.ctx, fullName)
	s.Expect(err).NotTo(HaveOccurred())
	return id, s.commit(fullName, "main", map[string]string{"README.md": "one\n"})
}

func (s *sim) commit(repository, branch string, files map[string]string) string {
	s.t.Helper()
	sha, err := s.Commit(s.ctx, repository, branch, "ada", "change "+branch, files)
	s.Expect(err).NotTo(HaveOccurred())
	return sha
}

// pull is the pull request 1 of a repository as it is now.
func (s *sim) pull(repository string) githubsim.LookPull {
	s.t.Helper()
	look, err := s.Look(s.ctx, repository)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(look.Pulls).NotTo(BeEmpty())
	return look.Pulls[0]
}

// jwt returns an App's JWT with these claims put over good ones; nil removes one.
func (s *sim) jwt(changes map[string]any) string {
	s.t.Helper()
	key, err := jwt.ParseRSAPrivateKeyFromPEM(s.Key)
	s.Expect(err).NotTo(HaveOccurred())
	now := s.clock.Now()
	claims := jwt.MapClaims{"iss": fmt.Sprint(s.AppID), "iat": now.Add(-time.Minute).Unix(), "exp": now.Add(9 * time.Minute).Unix()}
	for name, value := range changes {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	text, err := jwt.NewWithClaims(jwt.SigningMethodRS256, claims).SignedString(key)
	s.Expect(err).NotTo(HaveOccurred())
	return text
}

// token mints an installation token on acme.
func (s *sim) token(options ...map[string]any) string {
	s.t.Helper()
	var body any
	if len(options) > 0 {
		body = options[0]
	}
	a := s.call(s.jwt(nil), "POST", fmt.Sprintf("/app/installations/%d/access_tokens", s.installation()), body)
	s.Expect(a.status).To(Equal(http.StatusCreated), "%s", a.raw)
	return a.text("token")
}

func (s *sim) installation() int64 {
	s.t.Helper()
	a := s.call(s.jwt(nil), "GET", "/orgs/acme/installation", nil)
	s.Expect(a.status).To(Equal(http.StatusOK), "%s", a.raw)
	return int64(a.at("id").(float64))
}

// answer is what the simulator said.
type answer struct {
	status int
	header http.Header
	raw    []byte
	body   any
}

// at follows keys and indexes into the body; nil when there is nothing.
func (a answer) at(path ...any) any {
	v := a.body
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

func (a answer) text(path ...any) string {
	text, _ := a.at(path...).(string)
	return text
}

// call asks the simulator. A body that is a string is sent as it is.
func (s *sim) call(token, method, path string, body any, headers ...string) answer {
	s.t.Helper()
	var in io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(body)
	default:
		raw, err := json.Marshal(body)
		s.Expect(err).NotTo(HaveOccurred())
		in = bytes.NewReader(raw)
	}
	if !strings.HasPrefix(path, "http") {
		path = s.URL + path
	}
	req, err := http.NewRequestWithContext(s.ctx, method, path, in)
	s.Expect(err).NotTo(HaveOccurred())
	req.Header.Set("User-Agent", "test")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	once := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := once.Do(req)
	s.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = resp.Body.Close() }()
	a := answer{status: resp.StatusCode, header: resp.Header}
	a.raw, err = io.ReadAll(resp.Body)
	s.Expect(err).NotTo(HaveOccurred())
	if len(a.raw) > 0 && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		s.Expect(json.Unmarshal(a.raw, &a.body)).To(Succeed())
	}
	return a
}

// ok is call where the status must be this one.
func (s *sim) ok(status int, token, method, path string, body any) answer {
	s.t.Helper()
	a := s.call(token, method, path, body)
	s.Expect(a.status).To(Equal(status), "%s %s: %s", method, path, a.raw)
	return a
}

// app returns a go-github client that is the App on acme.
func (s *sim) app() *github.Client {
	s.t.Helper()
	transport, err := ghinstallation.New(http.DefaultTransport, s.AppID, s.installation(), s.Key)
	s.Expect(err).NotTo(HaveOccurred())
	transport.BaseURL = s.URL
	return s.goGithub(&http.Client{Transport: transport})
}

func (s *sim) goGithub(h *http.Client) *github.Client {
	s.t.Helper()
	c, err := github.NewClient(h).WithEnterpriseURLs(s.URL, s.URL)
	s.Expect(err).NotTo(HaveOccurred())
	c.BaseURL.Path = "/"
	return c
}

// gitOutcome is what a git command printed and whether it worked.
type gitOutcome struct {
	out    string
	failed bool
}

// git runs git like a person with no configuration of their own.
func (s *sim) git(dir string, args ...string) gitOutcome {
	s.t.Helper()
	cmd := exec.CommandContext(s.ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.t.TempDir(), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com"}
	out, err := cmd.CombinedOutput()
	return gitOutcome{out: strings.TrimSpace(string(out)), failed: err != nil}
}

// mustGit is git where it must work; it returns what was printed.
func (s *sim) mustGit(dir string, args ...string) string {
	s.t.Helper()
	o := s.git(dir, args...)
	s.Expect(o.failed).To(BeFalse(), "git %s: %s", strings.Join(args, " "), o.out)
	return o.out
}

// clone clones a repository with a token and returns the folder.
func (s *sim) clone(repository, token string) string {
	s.t.Helper()
	dir := filepath.Join(s.t.TempDir(), "clone")
	s.mustGit(s.t.TempDir(), "clone", "-q", s.GitURL(repository, token), dir)
	return dir
}

// write commits a file in a clone and returns the commit.
func (s *sim) write(dir, path, content string) string {
	s.t.Helper()
	full := filepath.Join(dir, path)
	s.Expect(os.MkdirAll(filepath.Dir(full), 0o755)).To(Succeed())
	s.Expect(os.WriteFile(full, []byte(content), 0o644)).To(Succeed())
	s.mustGit(dir, "add", "-A")
	s.mustGit(dir, "commit", "-q", "-m", "write "+path)
	return s.mustGit(dir, "rev-parse", "HEAD")
}

// writer makes a person who may push to acme's repositories and returns a token.
func (s *sim) writer(login string) string {
	s.t.Helper()
	s.Expect(s.ConfigureOrganization(s.ctx, githubsim.AccountRequest{Login: "acme", BasePermission: "write"})).To(Succeed())
	s.Expect(s.Member(s.ctx, "acme", login, "member")).To(Succeed())
	token, err := s.User(s.ctx, login)
	s.Expect(err).NotTo(HaveOccurred())
	return token
}

// events returns what was delivered, as event/action, in order.
func events(list []githubsim.Delivery) []string {
	var names []string
	for _, d := range list {
		names = append(names, strings.TrimSuffix(d.Event+"/"+d.Action, "/"))
	}
	return slices.Clip(names)
}

// fastImport feeds git fast-import.
func (s *sim) fastImport(dir, stream string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.ctx, "git", "fast-import", "--quiet", "--force")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stream)
	out, err := cmd.CombinedOutput()
	s.Expect(err).NotTo(HaveOccurred(), "%s", out)
}
