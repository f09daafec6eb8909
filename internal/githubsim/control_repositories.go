// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"fmt"
)

// RepositoryRequest asks for a repository, or names one.
type RepositoryRequest struct {
	Repository string `json:"repository"` // owner/name
	Public     bool   `json:"public,omitempty"`
	// NewName is for the rename verb, NewOwner for transfer, Archived for
	// archive, Blocked for block.
	NewName  string `json:"newName,omitempty"`
	NewOwner string `json:"newOwner,omitempty"`
	Archived bool   `json:"archived,omitempty"`
	Blocked  bool   `json:"blocked,omitempty"`
	// Login is who acts; default somebody.
	Login string `json:"login,omitempty"`
}

// RepositoryReply is the repository.
type RepositoryReply struct {
	ID int64 `json:"id"`
}

func visibility(public bool) string {
	if public {
		return "public"
	}
	return "private"
}

func (s *Server) addRepository(in RepositoryRequest) (RepositoryReply, error) {
	owner, name, err := splitName(in.Repository)
	if err != nil {
		return RepositoryReply{}, err
	}
	a := s.accounts[key(owner)]
	if a == nil {
		return RepositoryReply{}, fmt.Errorf("no account %q", owner)
	}
	if r, moved := s.find(in.Repository); r != nil && !moved {
		return RepositoryReply{}, fmt.Errorf("%q exists", in.Repository)
	}
	r, err := s.newRepo(a, name, visibility(in.Public))
	if err != nil {
		return RepositoryReply{}, err
	}
	s.emitRepository(r, s.person(in.Login), "created", nil)
	return RepositoryReply{ID: r.id}, nil
}

func (s *Server) renameAs(in RepositoryRequest) (Empty, error) {
	if !legalName.MatchString(in.NewName) {
		return Empty{}, fmt.Errorf("%q is no name for a repository", in.NewName)
	}
	return within(s, in.Repository, func(r *repo) (Empty, error) {
		return Empty{}, s.rename(r, in.NewName, s.person(in.Login))
	})
}

func (s *Server) transferAs(in RepositoryRequest) (Empty, error) {
	to := s.accounts[key(in.NewOwner)]
	if to == nil {
		return Empty{}, fmt.Errorf("no account %q", in.NewOwner)
	}
	return within(s, in.Repository, func(r *repo) (Empty, error) {
		return Empty{}, s.transfer(r, to, s.person(in.Login))
	})
}

func (s *Server) archiveAs(in RepositoryRequest) (Empty, error) {
	return within(s, in.Repository, func(r *repo) (Empty, error) {
		s.setArchived(r, in.Archived, s.person(in.Login))
		return Empty{}, nil
	})
}

func (s *Server) setVisibilityAs(in RepositoryRequest) (Empty, error) {
	return within(s, in.Repository, func(r *repo) (Empty, error) {
		s.setVisibility(r, visibility(in.Public), s.person(in.Login))
		return Empty{}, nil
	})
}

func (s *Server) block(in RepositoryRequest) (Empty, error) {
	return within(s, in.Repository, func(r *repo) (Empty, error) {
		r.blocked = in.Blocked
		return Empty{}, nil
	})
}

func (s *Server) deleteRepositoryAs(in RepositoryRequest) (Empty, error) {
	return within(s, in.Repository, func(r *repo) (Empty, error) {
		return Empty{}, s.deleteRepo(r, s.person(in.Login))
	})
}

// CollaboratorRequest is about one person's access to a repository.
type CollaboratorRequest struct {
	Repository string `json:"repository"`
	Login      string `json:"login"`
	// Permission is pull, triage, push, maintain or admin; empty takes the
	// access away. It is for the collaborator verb.
	Permission string `json:"permission,omitempty"`
	// Accept is for the invitation verb: accept or decline.
	Accept bool `json:"accept,omitempty"`
}

// addCollaboratorAs gives a person access at once, as if an invitation had
// been accepted.
func (s *Server) addCollaboratorAs(in CollaboratorRequest) (Empty, error) {
	permission, known := parseAccess(in.Permission)
	if !known && in.Permission != "" {
		return Empty{}, fmt.Errorf("permission %q is not known", in.Permission)
	}
	return within(s, in.Repository, func(r *repo) (Empty, error) {
		who := s.person(in.Login)
		if in.Permission == "" {
			delete(r.collaborators, who.id)
			s.emitMember(r, s.person(""), who, "removed", nil)
			return Empty{}, nil
		}
		s.join(r, s.person(""), who, permission)
		return Empty{}, nil
	})
}

func (s *Server) answerInvitationAs(in CollaboratorRequest) (Empty, error) {
	return within(s, in.Repository, func(r *repo) (Empty, error) {
		return Empty{}, s.answerInvitation(r, s.person(in.Login), in.Accept)
	})
}

// CommitRequest makes a commit on a branch as a person, whatever rulesets say.
type CommitRequest struct {
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
	// From is the branch or commit that a missing branch starts from; default
	// the default branch. Orphan starts it without a parent.
	From   string `json:"from,omitempty"`
	Orphan bool   `json:"orphan,omitempty"`
	Login  string `json:"login,omitempty"`
	// Files are put in place; an empty content removes a file.
	Files map[string]string `json:"files,omitempty"`
	// Executable lists the files that can be run.
	Executable []string `json:"executable,omitempty"`
	Message    string   `json:"message,omitempty"`
	// To is where the branch verb puts the branch.
	To string `json:"to,omitempty"`
}

// CommitReply is the commit's object id.
type CommitReply struct {
	SHA string `json:"sha"`
}

func (s *Server) commitAs(in CommitRequest) (CommitReply, error) {
	return within(s, in.Repository, func(r *repo) (CommitReply, error) {
		by := s.person(in.Login)
		executable := map[string]bool{}
		for _, path := range in.Executable {
			executable[path] = true
		}
		sha, err := s.commitFiles(r, commitOrder{branch: in.Branch, from: in.From, orphan: in.Orphan, message: in.Message, author: by, committer: by,
			files: in.Files, executable: executable})
		return CommitReply{SHA: sha}, err
	})
}

// moveBranch puts a branch on a commit, as a person's forced push would; a
// missing branch is made.
func (s *Server) moveBranch(in CommitRequest) (CommitReply, error) {
	return within(s, in.Repository, func(r *repo) (CommitReply, error) {
		sha, found := r.store.resolve(in.To)
		if !found {
			return CommitReply{}, fmt.Errorf("%s has no branch or commit %q", in.Repository, in.To)
		}
		return CommitReply{SHA: sha}, s.pushAs(r, in, sha)
	})
}

func (s *Server) deleteBranch(in CommitRequest) (Empty, error) {
	return within(s, in.Repository, func(r *repo) (Empty, error) {
		if _, exists := r.store.branch(in.Branch); !exists {
			return Empty{}, fmt.Errorf("%s has no branch %q", in.Repository, in.Branch)
		}
		return Empty{}, s.pushAs(r, in, "")
	})
}

// pushAs moves a branch as a push of a person.
func (s *Server) pushAs(r *repo, in CommitRequest, sha string) error {
	old, _ := r.store.branch(in.Branch)
	c := &refCommand{ref: "refs/heads/" + in.Branch, old: old, now: sha}
	if old == sha {
		return nil
	}
	if refused := r.refuseName(c); refused != "" {
		return fmt.Errorf("%s: %s", c.ref, refused)
	}
	return s.applyPush(r, s.person(in.Login), &push{commands: []*refCommand{c}})
}
