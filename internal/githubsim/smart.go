// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
)

// Git's services.
const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// gitRoutes registers smart-HTTP git.
func (s *Server) gitRoutes() {
	s.mux.HandleFunc("GET /{owner}/{repo}/info/refs", s.gitInfoRefs)
	s.mux.HandleFunc("POST /{owner}/{repo}/"+uploadPack, s.gitUploadPack)
	s.mux.HandleFunc("POST /{owner}/{repo}/"+receivePack, s.gitReceivePack)
}

// gitRefusal is an answer to git before anything was exchanged. git shows the
// text, each line after "remote: ".
type gitRefusal struct {
	status   int
	text     string
	location string
}

func (f *gitRefusal) write(w http.ResponseWriter) {
	if f.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
	}
	if f.location != "" {
		w.Header().Set("Location", f.location)
	}
	http.Error(w, f.text, f.status)
}

// admit says which repository a git request is for and who asks, or why not.
func (s *Server) admit(r *http.Request, service string) (*repo, actor, *gitRefusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := traced(r)
	t.operation = "git"
	who, bad := s.gitActor(r)
	t.actor = who
	if bad != nil {
		return nil, who, bad
	}
	repo, moved := s.find(r.PathValue("owner") + "/" + strings.TrimSuffix(r.PathValue("repo"), ".git"))
	if repo != nil {
		t.repo = repo.id
	}
	switch {
	case repo == nil || !s.sees(who, repo):
		if who.account() == nil {
			return nil, who, &gitRefusal{status: http.StatusUnauthorized, text: "Repository not found."}
		}
		return nil, who, &gitRefusal{status: http.StatusNotFound, text: "Repository not found."}
	case moved && r.Method == http.MethodGet:
		location := s.api("/%s.git/info/refs?%s", repo.fullName(), r.URL.RawQuery)
		return nil, who, &gitRefusal{status: http.StatusMovedPermanently, text: "Moved to " + location, location: location}
	case repo.blocked:
		return nil, who, &gitRefusal{status: http.StatusUnavailableForLegalReasons, text: "Repository unavailable due to DMCA takedown."}
	case service == receivePack:
		return repo, who, s.refuseWriter(who, repo)
	case who.installation != nil && s.reaches(who, repo) && !contentsRead.metBy(who.token.permissions) && repo.private():
		return nil, who, &gitRefusal{status: http.StatusForbidden, text: fmt.Sprintf("Permission to %s.git denied to %s.", repo.fullName(), who.account().login)}
	}
	return repo, who, nil
}

// gitActor reads the credentials of a git request.
func (s *Server) gitActor(r *http.Request) (actor, *gitRefusal) {
	_, password, given := r.BasicAuth()
	if !given {
		return actor{}, nil
	}
	who, known := s.byToken(password)
	if !known {
		return actor{}, &gitRefusal{status: http.StatusUnauthorized, text: "Invalid username or token. Password authentication is not supported for Git operations."}
	}
	if who.suspended() {
		return who, &gitRefusal{status: http.StatusForbidden, text: "This installation has been suspended"}
	}
	return who, nil
}

// refuseWriter refuses a push of somebody who may only read.
func (s *Server) refuseWriter(who actor, r *repo) *gitRefusal {
	var allowed bool
	switch {
	case who.installation != nil:
		allowed = s.reaches(who, r) && contentsWrite.metBy(who.token.permissions)
	case who.user != nil:
		allowed = s.roleOf(who.user, r) >= accessWrite
	default:
		return &gitRefusal{status: http.StatusUnauthorized, text: "No anonymous write access."}
	}
	switch {
	case !allowed:
		return &gitRefusal{status: http.StatusForbidden, text: fmt.Sprintf("Permission to %s.git denied to %s.", r.fullName(), who.account().login)}
	case r.archived:
		return &gitRefusal{status: http.StatusForbidden, text: "This repository was archived so it is read-only."}
	}
	return nil
}

func (s *Server) gitInfoRefs(w http.ResponseWriter, r *http.Request) {
	service := r.URL.Query().Get("service")
	if service != uploadPack && service != receivePack {
		http.Error(w, "Please upgrade your git client.", http.StatusForbidden)
		return
	}
	repo, _, refused := s.admit(r, service)
	if refused != nil {
		refused.write(w)
		return
	}
	w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	if service == receivePack {
		s.mu.Lock()
		s.occupy(repo)
		refs := repo.store.advertiseReceive()
		repo.busy.Unlock()
		s.mu.Unlock()
		_, _ = w.Write(refs)
		return
	}
	if !strings.Contains(r.Header.Get("Git-Protocol"), "version=2") {
		line := "# service=" + service + "\n"
		_, _ = fmt.Fprintf(w, "%04x%s%s", len(line)+4, line, flushPacket)
	}
	serveUpload(w, r, repo, nil, "--http-backend-info-refs")
}

// gitBody returns the body of a git request, which may be compressed.
func gitBody(r *http.Request) (io.Reader, error) {
	if r.Header.Get("Content-Encoding") == "gzip" {
		return gzip.NewReader(r.Body)
	}
	return r.Body, nil
}

func (s *Server) gitUploadPack(w http.ResponseWriter, r *http.Request) {
	repo, _, refused := s.admit(r, uploadPack)
	if refused != nil {
		refused.write(w)
		return
	}
	body, err := gitBody(r)
	if err != nil {
		http.Error(w, "The body cannot be read.", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-"+uploadPack+"-result")
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	serveUpload(w, r, repo, body)
}

// serveUpload lets git itself serve a fetch. Refs and objects only ever grow
// complete on disk, so this needs no lock.
func serveUpload(w http.ResponseWriter, r *http.Request, repo *repo, in io.Reader, extra ...string) {
	args := append([]string{"upload-pack", "--stateless-rpc"}, extra...)
	cmd := exec.CommandContext(r.Context(), "git", append(args, repo.store.dir)...)
	var env []string
	if protocol := r.Header.Get("Git-Protocol"); protocol != "" {
		env = append(env, "GIT_PROTOCOL="+protocol)
	}
	cmd.Env = gitEnv(env...)
	cmd.Stdin, cmd.Stdout = in, w
	if err := cmd.Run(); err != nil {
		traced(r).problem = "git upload-pack: " + err.Error()
	}
}

func (s *Server) gitReceivePack(w http.ResponseWriter, r *http.Request) {
	repo, who, refused := s.admit(r, receivePack)
	if refused != nil {
		refused.write(w)
		return
	}
	body, err := gitBody(r)
	if err != nil {
		http.Error(w, "The body cannot be read.", http.StatusBadRequest)
		return
	}
	in := bufio.NewReader(body)
	p, err := readPush(in)
	if err != nil {
		http.Error(w, "The push cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-"+receivePack+"-result")
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	if len(p.commands) == 0 {
		return // git asks whether its credentials are good before it sends much
	}
	p.rejected = rejectionOf(r)
	report, err := s.receive(who, repo, p, in)
	if err != nil {
		traced(r).problem = err.Error()
		http.Error(w, "simulator: "+err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.Copy(io.Discard, in)
	_, _ = w.Write(report)
}

// receive takes a push and returns its report. A push is one at a time per
// repository, and all that follows from it is done before it is answered. An
// error is the simulator's own.
func (s *Server) receive(who actor, r *repo, p *push, pack *bufio.Reader) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.occupy(r)
	defer r.busy.Unlock()
	if s.repos[r.id] != r {
		return nil, fmt.Errorf("the repository %s was deleted meanwhile", r.fullName())
	}
	if err := r.store.openQuarantine(); err != nil {
		return nil, err
	}
	unpacked, err := s.unpack(r, p, pack)
	if err == nil {
		err = s.judgePush(who, r, p)
	}
	accepted := false
	for _, c := range p.commands {
		accepted = accepted || c.refused == ""
	}
	if closing := r.store.closeQuarantine(accepted && err == nil); err == nil {
		err = closing
	}
	if err != nil {
		return nil, err
	}
	if err := s.applyPush(r, who.account(), p); err != nil {
		return nil, err
	}
	return p.report(unpacked), nil
}

// unpack stores the pack in quarantine and refuses what does not hold
// together. It returns what the report says of unpacking.
func (s *Server) unpack(r *repo, p *push, pack *bufio.Reader) (string, error) {
	if news := p.news(); len(news) > 0 {
		if !r.store.indexPack(pack) {
			p.refuse("unpacker error")
			return "index-pack failed", nil
		}
		large, err := r.store.checkConnected(news, s.options.MaxFileSize)
		if err != nil && p.shallow {
			err = errors.New("shallow update not allowed")
		}
		if err != nil {
			p.refuse(err.Error())
			return "ok", nil
		}
		if err := s.refuseLarge(r, p, large); err != nil {
			return "", err
		}
	}
	if p.rejected != nil {
		p.messages = append(p.messages, p.rejected.PushMessages...)
		p.refuse(p.rejected.RejectRefs)
	}
	return "ok", nil
}
