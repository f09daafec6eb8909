// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

const secret = "ghs_4711_A.very-secret_token"

// spy is a git that notes its arguments and the names in its environment.
func spy(t *testing.T) (command, record string) {
	t.Helper()
	dir := t.TempDir()
	record, command = filepath.Join(dir, "record"), filepath.Join(dir, "git")
	real, err := exec.LookPath("git")
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	script := fmt.Sprintf("#!/bin/sh\n{ echo \"args $*\"; env | sed 's/^/env /; s/=.*//'; } >>%q\nexec %q \"$@\"\n", record, real)
	g.Expect(os.WriteFile(command, []byte(script), 0o755)).To(Succeed())
	return command, record
}

// commandLines returns those of all processes that mention a text.
func commandLines(text string) []string {
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(text)) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func TestTokenStaysInOneProcessEnvironment_R_CORE_10(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("GITHUB_TOKEN", "ghp_of_somebody")
	t.Setenv("GIT_TRACE_CURL", "1")
	t.Setenv("GIT_DIR", "/nowhere")
	command, record := spy(t)
	git := newGit(t, func(o *Options) { o.Command = command })
	s := newServer(t)
	s.require(secret)
	source, sourceRemote := s.repo("acme/source")
	dist, distRemote := s.repo("acme/dist")
	sourceRemote.Token, distRemote.Token = token(secret), token(secret)
	source.commit("main", tree{"a": "1"})
	// While a request is answered, git and its helper are there to be looked at.
	running := make(chan []string, 100)
	s.answer(func(http.ResponseWriter, *http.Request) bool {
		running <- commandLines(s.URL)
		return false
	})
	_, err := git.Distribute(t.Context(), request(sourceRemote, distRemote, "main"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(dist.head("main")).NotTo(BeEmpty())

	// A server that repeats what it was given, and one that refuses.
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		http.Error(w, "You sent "+r.Header.Get("Authorization")+" and "+secret, http.StatusTeapot)
		return true
	})
	_, err = git.Distribute(t.Context(), request(sourceRemote, distRemote, "main"))
	g.Expect(err).To(MatchError(ContainSubstring("You sent Basic *** and ***")))
	basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + secret))
	for e := err; e != nil; e = errors.Unwrap(e) {
		g.Expect(fmt.Sprintf("%+v %#v", e, e)).NotTo(Or(ContainSubstring(secret), ContainSubstring(basic)))
	}

	close(running)
	for lines := range running {
		g.Expect(lines).To(ContainElement(ContainSubstring("remote-http")))
		g.Expect(lines).NotTo(ContainElement(Or(ContainSubstring(secret), ContainSubstring(basic))))
	}
	seen, err := os.ReadFile(record)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(seen)).To(And(ContainSubstring("args fetch"), ContainSubstring("args push")))
	g.Expect(string(seen)).NotTo(Or(ContainSubstring(secret), ContainSubstring(basic)), "no argument holds the token")
	for line := range strings.Lines(string(seen)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "env "); ok {
			g.Expect(name).To(Or(HavePrefix("GIT_"), BeElementOf("PATH", "HOME", "TMPDIR", "LC_ALL", "PWD", "OLDPWD", "SHLVL", "_")), "the environment is made from nothing")
			g.Expect(name).NotTo(Equal("GIT_TRACE_CURL"))
		}
	}
	g.Expect(filepath.WalkDir(git.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		g.Expect(string(text)).NotTo(Or(ContainSubstring(secret), ContainSubstring(basic)), path)
		return err
	})).To(Succeed())
}

func TestTokenIsAskedForAtEveryTry(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	s := newServer(t)
	s.require("second")
	source, remote := s.repo("acme/source")
	source.commit("main", tree{"a": "1"})
	asked := 0
	remote.Token = func(context.Context) (string, error) {
		asked++
		return []string{"first", "second"}[min(asked, 2)-1], nil
	}
	s.answer(failing(1, "acme/source", http.StatusBadGateway, ""))
	heads, err := git.Heads(t.Context(), remote, "refs/heads/main")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(heads).To(HaveLen(1))
	g.Expect(asked).To(Equal(2))

	refused := fault.New(fault.Blocked, fault.ReasonAppSuspended, "the App is suspended")
	remote.Token = func(context.Context) (string, error) { return "", refused }
	_, err = git.Heads(t.Context(), remote)
	g.Expect(err).To(BeIdenticalTo(refused), "its own fault reaches the caller")
	before, _ := s.log()
	_, err = git.Distribute(t.Context(), request(remote, remote, "main"))
	g.Expect(fault.Is(err, fault.ReasonAppSuspended)).To(BeTrue(), "%v", err)
	after, _ := s.log()
	g.Expect(after).To(Equal(before))
}

func TestTokenThatIsNotTaken(t *testing.T) {
	for name, token := range map[string]func(context.Context) (string, error){"a wrong one": token("wrong"), "none": nil} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			git := newGit(t, nil)
			s := newServer(t)
			s.require(secret)
			_, remote := s.repo("acme/source")
			remote.Token = token
			_, err := git.Heads(t.Context(), remote)
			g.Expect(fault.Is(err, fault.ReasonCredentialsRefused)).To(BeTrue(), "%v", err)
			g.Expect(fault.Of(err).Class).To(Equal(fault.Retryable))
			requests, _ := s.log()
			g.Expect(requests).To(HaveLen(1), "final at once, and nobody is prompted")
		})
	}
}

func TestPassingFailuresAreRetried_R_CORE_13(t *testing.T) {
	waits := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}
	for name, c := range map[string]struct {
		answer scripted
		waits  []time.Duration
		fails  bool
	}{
		"three times a 5xx, then well":      {failing(3, "receive-pack", 503, "busy"), waits, false},
		"a 5xx for ever":                    {failing(1000, "receive-pack", 500, ""), waits, true},
		"a 5xx on the pack":                 {failing(1, "/git-receive-pack", 502, ""), waits[:1], false},
		"a connection cut off":              {cutting(2, "/git-receive-pack"), waits[:1], false},
		"cut off after the push was done":   {nil, waits[:1], false},
		"a permission, which is no failure": {failing(1, "receive-pack", 403, "Permission to acme/down.git denied to sluice[bot]."), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			git := newGit(t, nil)
			_, dist := distributed(t, git)
			snap := snapshot(t, git, dist)
			s := newServer(t)
			down, remote := s.repo("acme/down")
			if c.answer == nil {
				c.answer = doneThenCut(s)
			}
			s.answer(c.answer)
			err := snap.Push(t.Context(), remote, []domain.RefUpdate{{Ref: "refs/heads/sync/main", New: snap.Heads()["main"], Force: true}})
			g.Expect(git.Clock.(*promptClock).waited()).To(Equal(c.waits))
			if !c.fails {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(down.head("sync/main")).To(Equal(snap.Heads()["main"]))
				return
			}
			g.Expect(err).To(HaveOccurred())
			if len(c.waits) == 3 {
				g.Expect(fault.Is(err, fault.ReasonGitHubUnreachable)).To(BeTrue(), "%v", err)
				g.Expect(fault.Of(err).Class).To(Equal(fault.Retryable))
				g.Expect(err.Error()).To(ContainSubstring("500"))
			}
		})
	}
}

// cutting closes the connection of the first n matching requests. The HTTP
// library under git tries once more by itself on a connection used before.
func cutting(n int64, path string) scripted {
	var left atomic.Int64
	left.Store(n)
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, path) || left.Add(-1) < 0 {
			return false
		}
		panic(http.ErrAbortHandler)
	}
}

// doneThenCut has the first push done, and its answer lost.
func doneThenCut(s *server) scripted {
	var asked atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			return false
		}
		switch asked.Add(1) {
		case 1:
			s.serve(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case 2:
			panic(http.ErrAbortHandler)
		}
		return false
	}
}

func TestRetryEndsWithTheContext(t *testing.T) {
	g := NewWithT(t)
	real := newClock()
	git := newGit(t, func(o *Options) { o.Clock = real.FakeClock })
	s := newServer(t)
	_, remote := s.repo("acme/source")
	s.answer(failing(1000, "acme", 503, ""))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := git.Heads(ctx, remote)
		failed <- err
	}()
	g.Eventually(real.HasWaiters).WithTimeout(20 * time.Second).Should(BeTrue())
	cancel()
	g.Expect(<-failed).To(MatchError(context.Canceled))
}

func TestMovedRepositoriesAreFollowedOnTheirHost(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	s := newServer(t)
	s.require(secret)
	moved, _ := s.repo("acme/after")
	head := moved.commit("main", tree{"a": "1"})
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/acme/before.git") {
			return false
		}
		http.Redirect(w, r, s.URL+strings.Replace(r.URL.String(), "before", "after", 1), http.StatusMovedPermanently)
		return true
	})
	before := s.remote("acme/before")
	before.Token = token(secret)
	heads, err := git.Heads(t.Context(), before, "refs/heads/main")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(heads).To(Equal(map[string]string{"refs/heads/main": head}))

	source := newRepo(t)
	source.commit("main", tree{"b": "1"})
	result, err := git.Distribute(t.Context(), request(source.remote(), before, "main"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(moved.head("main")).To(Equal(result.Heads["main"]))
}

// git itself would carry the token along to the other host.
func TestTokenIsNotCarriedToAnotherHost_R_CORE_10(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	s, other := newServer(t), newServer(t)
	there, _ := other.repo("acme/source")
	there.commit("main", tree{"a": "1"})
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, other.URL+r.URL.String(), http.StatusMovedPermanently)
		return true
	})
	remote := s.remote("acme/source")
	remote.Token = token(secret)
	_, err := git.Heads(t.Context(), remote)
	g.Expect(fault.Is(err, fault.ReasonInvalidBaseURL)).To(BeTrue(), "%v", err)
	g.Expect(err.Error()).To(And(ContainSubstring(other.URL), ContainSubstring("not followed")))
	requests, _ := other.log()
	g.Expect(requests).To(BeEmpty())
}

func TestMovesInACircleEnd(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	s := newServer(t)
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, s.URL+r.URL.String(), http.StatusMovedPermanently)
		return true
	})
	_, err := git.Heads(t.Context(), s.remote("acme/source"))
	g.Expect(fault.Is(err, fault.ReasonGitHubUnreachable)).To(BeTrue(), "%v", err)
	g.Expect(fault.Of(err).Class).To(Equal(fault.Retryable))
}

func TestHeads(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	r := newRepo(t)
	none, err := git.Heads(t.Context(), r.remote())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(none).To(BeEmpty(), "an empty repository")
	sha := r.commit("main", tree{"a": "1"})
	r.git("tag", "v1", "main")
	r.git("update-ref", "refs/heads/refs/heads/extra", sha)
	all, err := git.Heads(t.Context(), r.remote())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(Equal(map[string]string{"refs/heads/main": sha, "refs/tags/v1": sha, "refs/heads/refs/heads/extra": sha}))
	asked, err := git.Heads(t.Context(), r.remote(), "refs/heads/main", "refs/heads/extra")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(asked).To(Equal(map[string]string{"refs/heads/main": sha}), "a longer name is another ref")
	_, err = git.Heads(t.Context(), domain.Remote{URL: filepath.Join(r.dir, "none")})
	g.Expect(fault.Is(err, fault.ReasonNotFound)).To(BeTrue(), "%v", err)
}
