// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// controlPrefix is outside of GitHub's paths.
const controlPrefix = "/_sim/"

// controlRoutes registers the control interface: one POST per verb, a JSON
// object in and out. simclient is its client.
func (s *Server) controlRoutes() {
	control(s, "organization", s.addOrganization)
	control(s, "user", s.addUser)
	control(s, "member", s.setMember)
	control(s, "app", s.addApp)
	control(s, "hook", s.setHook)
	control(s, "ping", s.ping)
	control(s, "install", s.install)
	control(s, "select", s.selectRepositories)
	control(s, "suspend", s.suspend)
	control(s, "uninstall", s.uninstall)
	control(s, "quota", s.setQuota)

	control(s, "repository", s.addRepository)
	control(s, "rename", s.renameAs)
	control(s, "transfer", s.transferAs)
	control(s, "archive", s.archiveAs)
	control(s, "visibility", s.setVisibilityAs)
	control(s, "block", s.block)
	control(s, "deleterepository", s.deleteRepositoryAs)
	control(s, "collaborator", s.addCollaboratorAs)
	control(s, "invitation", s.answerInvitationAs)

	control(s, "commit", s.commitAs)
	control(s, "branch", s.moveBranch)
	control(s, "deletebranch", s.deleteBranch)
	control(s, "merge", s.mergeAs)
	control(s, "state", s.setPullState)
	control(s, "comment", s.commentAs)
	control(s, "lock", s.lockAs)

	control(s, "look", s.look)
	control(s, "repositories", s.repositories)
	control(s, "requests", s.requests)
	control(s, "deliveries", s.deliveriesOf)
	control(s, "holdhooks", s.holdHooks)
	control(s, "fault", s.addFault)
	control(s, "clearfaults", s.clearFaults)
	control(s, "tokenlag", s.setTokenLag)
	control(s, "advance", s.advance)
	control(s, "setclock", s.setClock)
	s.controlMux.HandleFunc("POST "+controlPrefix+"flush", s.flushRequest)
	s.controlMux.HandleFunc(controlPrefix, func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("the control interface has no %s %s", r.Method, r.URL.Path), http.StatusNotFound)
	})
}

// control registers a verb. Its function is called with the server's lock held.
func control[In, Out any](s *Server, verb string, f func(In) (Out, error)) {
	s.controlMux.HandleFunc("POST "+controlPrefix+verb, func(w http.ResponseWriter, r *http.Request) {
		var in In
		decoder := json.NewDecoder(r.Body)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&in); err != nil {
			http.Error(w, "reading the request: "+err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		out, err := f(in)
		s.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
}

// Empty is an object without fields.
type Empty struct{}

// flushLimit ends a flush that nothing would end, as when hooks are held.
const flushLimit = time.Minute

func (s *Server) flushRequest(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), flushLimit)
	defer cancel()
	if err := s.Flush(ctx); err != nil {
		http.Error(w, err.Error(), http.StatusGatewayTimeout)
		return
	}
	_, _ = fmt.Fprint(w, "{}")
}

// person returns the account that acts; an unknown login becomes a user, and
// an empty one is somebody.
func (s *Server) person(login string) *account {
	login = cmpOr(login, "somebody")
	if a := s.accounts[key(login)]; a != nil {
		return a
	}
	return s.newAccount(login, kindUser)
}

func splitName(fullName string) (owner, name string, err error) {
	owner, name, found := strings.Cut(fullName, "/")
	if !found || owner == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is no owner/name", fullName)
	}
	return owner, name, nil
}

// within calls f with a repository to itself.
func within[Out any](s *Server, fullName string, f func(*repo) (Out, error)) (Out, error) {
	var none Out
	r, _ := s.find(fullName)
	if r == nil {
		return none, fmt.Errorf("no repository %q", fullName)
	}
	s.occupy(r)
	defer r.busy.Unlock()
	if s.repos[r.id] != r {
		return none, fmt.Errorf("the repository %q was deleted meanwhile", fullName)
	}
	return f(r)
}

// AdvanceRequest moves the simulator's clock ahead.
type AdvanceRequest struct {
	By time.Duration `json:"by"`
}

// ClockReply is the simulator's time.
type ClockReply struct {
	Now time.Time `json:"now"`
}

func (s *Server) advance(in AdvanceRequest) (ClockReply, error) {
	s.offset.Add(int64(in.By))
	return ClockReply{Now: s.now()}, nil
}

// ClockRequest sets the simulator's clock, which then runs on.
type ClockRequest struct {
	Now time.Time `json:"now"`
}

func (s *Server) setClock(in ClockRequest) (ClockReply, error) {
	s.offset.Add(int64(in.Now.Sub(s.now())))
	return ClockReply{Now: s.now()}, nil
}

func (s *Server) addFault(f Fault) (Empty, error) {
	if err := f.prepare(); err != nil {
		return Empty{}, err
	}
	s.faults = append(s.faults, &f)
	return Empty{}, nil
}

func (s *Server) clearFaults(Empty) (Empty, error) {
	s.faults = nil
	return Empty{}, nil
}

// TokenLagRequest makes new installation tokens useless for a while, as when
// GitHub has not replicated them yet.
type TokenLagRequest struct {
	Lag time.Duration `json:"lag"`
}

func (s *Server) setTokenLag(in TokenLagRequest) (Empty, error) {
	s.tokenLag = in.Lag
	return Empty{}, nil
}
