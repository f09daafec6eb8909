// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
)

// gitRequest says which repository a git request is for and who asks, or
// answers it.
func (s *Server) gitRequest(w http.ResponseWriter, r *http.Request, write bool) (*repo, actor, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fail := func(status int, text string) (*repo, actor, bool) {
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		}
		http.Error(w, text, status)
		s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Operation: "git", Status: status})
		return nil, actor{}, false
	}
	var who actor
	if _, password, given := r.BasicAuth(); given {
		t := s.token(password)
		if t == nil {
			return fail(http.StatusUnauthorized, "Invalid username or token. Password authentication is not supported for Git operations.")
		}
		who = actor{installation: t.installation, user: t.user}
	} else if write {
		return fail(http.StatusUnauthorized, "Authentication required")
	}
	repo, _ := s.find(r.PathValue("owner") + "/" + strings.TrimSuffix(r.PathValue("repo"), ".git"))
	if repo == nil || !who.sees(repo) {
		if who == (actor{}) {
			return fail(http.StatusUnauthorized, "Repository not found.")
		}
		return fail(http.StatusNotFound, "Repository not found.")
	}
	if write && repo.archived {
		return fail(http.StatusForbidden, "This repository was archived so it is read-only.")
	}
	if f := s.matchFault(r); f != nil && f.Status != 0 {
		return fail(f.Status, f.Body)
	}
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.Path, Operation: "git", Status: http.StatusOK, Actor: who.String()})
	return repo, who, true
}

func (s *Server) gitInfoRefs(w http.ResponseWriter, r *http.Request) {
	service := r.URL.Query().Get("service")
	if service != "git-upload-pack" && service != "git-receive-pack" {
		http.Error(w, "Please upgrade your git client.", http.StatusForbidden)
		return
	}
	repo, _, allowed := s.gitRequest(w, r, service == "git-receive-pack")
	if !allowed {
		return
	}
	w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
	w.Header().Set("Cache-Control", "no-cache")
	line := "# service=" + service + "\n"
	_, _ = fmt.Fprintf(w, "%04x%s0000", len(line)+4, line) // the client is gone
	s.runService(w, r, repo, strings.TrimPrefix(service, "git-"), nil, "--http-backend-info-refs")
}

func (s *Server) gitService(service string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		repo, who, allowed := s.gitRequest(w, r, service == "receive-pack")
		if !allowed {
			return
		}
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(r.Body)
			if err != nil {
				http.Error(w, "bad gzip", http.StatusBadRequest)
				return
			}
			body = unzipped
		}
		w.Header().Set("Content-Type", "application/x-git-"+service+"-result")
		w.Header().Set("Cache-Control", "no-cache")
		if service == "upload-pack" {
			s.runService(w, r, repo, service, body)
			return
		}
		// A push is one at a time per repository, and everything that follows
		// from it is done before it is answered.
		repo.git.Lock()
		defer repo.git.Unlock()
		before := refs(repo.dir)
		var answer bytes.Buffer
		s.runService(&answer, r, repo, service, body)
		after := refs(repo.dir)
		s.mu.Lock()
		s.afterPush(repo, who.account(), before, after)
		s.mu.Unlock()
		_, _ = w.Write(answer.Bytes()) // the client is gone
	}
}

func (s *Server) runService(w io.Writer, r *http.Request, repo *repo, service string, in io.Reader, extra ...string) {
	args := append([]string{service, "--stateless-rpc"}, extra...)
	cmd := exec.CommandContext(r.Context(), "git", append(args, repo.dir)...)
	env := []string{}
	if protocol := r.Header.Get("Git-Protocol"); protocol != "" && service == "upload-pack" {
		env = append(env, "GIT_PROTOCOL="+protocol)
	}
	cmd.Env = gitEnv(env...)
	cmd.Stdin, cmd.Stdout = in, w
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil && stderr.Len() > 0 {
		_, _ = fmt.Fprintf(&stderr, "%v", err) // a buffer
	}
}
