// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"errors"
	"fmt"
)

// PullRequest names a pull request and what to do with it.
type PullRequest struct {
	Repository string `json:"repository"`
	Number     int    `json:"number"`
	// Login is who acts; default somebody.
	Login string `json:"login,omitempty"`
	// Method is merge (default), squash or rebase, for the merge verb.
	Method string `json:"method,omitempty"`
	// State is open or closed, for the state verb.
	State string `json:"state,omitempty"`
	// Body is for the comment verb.
	Body string `json:"body,omitempty"`
	// Locked is for the lock verb.
	Locked bool `json:"locked,omitempty"`
}

// onPullAs calls f with the pull request a request names.
func onPullAs[Out any](s *Server, in PullRequest, f func(*pull) (Out, error)) (Out, error) {
	return within(s, in.Repository, func(r *repo) (Out, error) {
		p := r.pulls[in.Number]
		if p == nil {
			var none Out
			return none, fmt.Errorf("%s has no pull request %d", in.Repository, in.Number)
		}
		return f(p)
	})
}

func (s *Server) mergeAs(in PullRequest) (CommitReply, error) {
	return onPullAs(s, in, func(p *pull) (CommitReply, error) {
		by := s.person(in.Login)
		sha, err := s.mergePull(p, mergeOrder{method: in.Method, by: by, who: actor{user: by}})
		return CommitReply{SHA: sha}, err
	})
}

func (s *Server) setPullState(in PullRequest) (Empty, error) {
	return onPullAs(s, in, func(p *pull) (Empty, error) {
		by := s.person(in.Login)
		switch in.State {
		case "closed":
			if !p.open() {
				return Empty{}, nil
			}
			return Empty{}, s.closePull(p, by, s.baseTip(p))
		case "open":
			if bad := s.reopenPull(p, by); bad != "" {
				return Empty{}, errors.New(bad)
			}
			return Empty{}, nil
		}
		return Empty{}, fmt.Errorf("state %q is not known: use open or closed", in.State)
	})
}

func (s *Server) commentAs(in PullRequest) (Empty, error) {
	return onPullAs(s, in, func(p *pull) (Empty, error) {
		s.comment(p, actor{user: s.person(in.Login)}, in.Body)
		return Empty{}, nil
	})
}

// lockAs locks or unlocks the conversation of a pull request.
func (s *Server) lockAs(in PullRequest) (Empty, error) {
	return onPullAs(s, in, func(p *pull) (Empty, error) {
		p.locked = in.Locked
		return Empty{}, nil
	})
}
