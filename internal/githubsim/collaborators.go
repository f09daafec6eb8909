// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Limits of invitations.
const (
	invitationLife = 7 * 24 * time.Hour
	maxInvitations = 50 // a day and repository
)

func (i *invitation) expired(now time.Time) bool { return !now.Before(i.createdAt.Add(invitationLife)) }

// collaboratorsOf returns who has access to a repository by more than its
// being public, by id.
func (s *Server) collaboratorsOf(r *repo) []*account {
	byID := map[int64]*account{}
	for _, a := range s.accounts {
		_, direct := r.collaborators[a.id]
		if a.kind == kindUser && (direct || a == r.owner || (r.owner.members[a.id] != "" && s.roleOf(a, r) > accessNone)) {
			byID[a.id] = a
		}
	}
	return sortedByID(byID)
}

func (s *Server) listCollaborators(c *call, r *repo) response {
	list := s.collaboratorsOf(r)
	switch c.URL.Query().Get("affiliation") {
	case "direct":
		list = slices.DeleteFunc(list, func(a *account) bool { return r.collaborators[a.id] == accessNone })
	case "outside":
		list = slices.DeleteFunc(list, func(a *account) bool { return r.owner.members[a.id] != "" })
	}
	list, header := page(s, c, r, list)
	out := []any{}
	for _, a := range list {
		out = append(out, s.collaborator(a, s.roleOf(a, r)))
	}
	return response{status: http.StatusOK, body: out, header: header}
}

func (s *Server) checkCollaborator(c *call, r *repo) response {
	a := s.accounts[key(c.PathValue("login"))]
	if a == nil || !slices.Contains(s.collaboratorsOf(r), a) {
		return notFound
	}
	return noContent()
}

func (s *Server) getCollaboratorPermission(c *call, r *repo) response {
	a := s.accounts[key(c.PathValue("login"))]
	if a == nil {
		return notFound
	}
	role := s.roleOf(a, r)
	return ok(map[string]any{"permission": role.legacy(), "role_name": role.String(), "user": s.collaborator(a, role)})
}

func (s *Server) addCollaborator(c *call, r *repo) response {
	invitee := s.accounts[key(c.PathValue("login"))]
	if invitee == nil || invitee.kind != kindUser {
		return notFound
	}
	permission := accessWrite
	// A personal repository knows one kind of collaborator.
	if name := c.text("permission"); name != "" && r.owner.kind == kindOrganization {
		var known bool
		if permission, known = parseAccess(name); !known {
			return unprocessable("Validation Failed", map[string]any{"resource": "Repository", "field": "permission", "code": "invalid"})
		}
	}
	by := c.actor.account()
	old, already := r.collaborators[invitee.id]
	isMember := r.owner.members[invitee.id] != ""
	switch {
	case invitee == r.owner:
		return unprocessable("Repository owner cannot be a collaborator")
	case isMember && permission < r.owner.basePermission:
		return unprocessable(fmt.Sprintf("Cannot assign %s permission of %s", invitee.login, permission))
	case already:
		if r.collaborators[invitee.id] = permission; old != permission {
			s.emitMember(r, by, invitee, "edited", map[string]any{"old_permission": map[string]any{"from": old.legacy()}, "permission": map[string]any{"from": old.legacy(), "to": permission.legacy()}})
		}
		return noContent()
	case isMember:
		s.join(r, by, invitee, permission)
		return noContent()
	}
	return s.invite(r, by, invitee, permission)
}

// join makes somebody a collaborator.
func (s *Server) join(r *repo, by, who *account, permission access) {
	r.collaborators[who.id] = permission
	s.emitMember(r, by, who, "added", map[string]any{"permission": map[string]any{"to": permission.legacy()}, "role_name": map[string]any{"to": permission.String()}})
}

// invite invites an outsider. An open invitation is answered again, with the
// permission asked for now.
func (s *Server) invite(r *repo, by, invitee *account, permission access) response {
	now, recent := s.now(), 0
	var open *invitation
	for _, i := range r.invitations {
		if i.invitee == invitee {
			open = i
		}
		if now.Sub(i.createdAt) < 24*time.Hour {
			recent++
		}
	}
	if open != nil {
		open.permission = permission
		return created(s.invitationJSON(r, open), s.api("/user/repository_invitations/%d", open.id))
	}
	if recent >= maxInvitations {
		return unprocessable("Validation Failed", map[string]any{"resource": "Repository", "code": "custom", "field": "invitee",
			"message": "You have exceeded the limit of 50 invitations per repository in 24 hours."})
	}
	i := &invitation{id: s.id(), invitee: invitee, inviter: by, permission: permission, createdAt: now}
	r.invitations = append(r.invitations, i)
	return created(s.invitationJSON(r, i), s.api("/user/repository_invitations/%d", i.id))
}

func (s *Server) removeCollaborator(c *call, r *repo) response {
	a := s.accounts[key(c.PathValue("login"))]
	if a == nil {
		return notFound
	}
	r.invitations = slices.DeleteFunc(r.invitations, func(i *invitation) bool { return i.invitee == a })
	if _, direct := r.collaborators[a.id]; direct {
		delete(r.collaborators, a.id)
		s.emitMember(r, c.actor.account(), a, "removed", nil)
	}
	return noContent()
}

func (s *Server) listInvitations(c *call, r *repo) response {
	list, header := page(s, c, r, r.invitations)
	out := []any{}
	for _, i := range list {
		out = append(out, s.invitationJSON(r, i))
	}
	return response{status: http.StatusOK, body: out, header: header}
}

// invitation finds an invitation of the repository.
func (r *repo) invitation(id int64) *invitation {
	for _, i := range r.invitations {
		if i.id == id {
			return i
		}
	}
	return nil
}

func (s *Server) updateInvitation(c *call, r *repo) response {
	i := r.invitation(c.number("invitation"))
	if i == nil {
		return notFound
	}
	if name := c.text("permissions"); name != "" {
		permission, known := parseAccess(name)
		if !known {
			return unprocessable("Validation Failed", map[string]any{"resource": "RepositoryInvitation", "field": "permissions", "code": "invalid"})
		}
		i.permission = permission
	}
	return ok(s.invitationJSON(r, i))
}

func (s *Server) deleteInvitation(c *call, r *repo) response {
	i := r.invitation(c.number("invitation"))
	if i == nil {
		return notFound
	}
	r.dropInvitation(i)
	return noContent()
}

func (r *repo) dropInvitation(i *invitation) {
	r.invitations = slices.DeleteFunc(r.invitations, func(other *invitation) bool { return other == i })
}

// answerInvitation lets the invitee accept or decline.
func (s *Server) answerInvitation(r *repo, who *account, accept bool) error {
	for _, i := range r.invitations {
		if i.invitee != who {
			continue
		}
		if accept && i.expired(s.now()) {
			return fmt.Errorf("the invitation of %s to %s expired", who.login, r.fullName())
		}
		r.dropInvitation(i)
		if accept {
			s.join(r, who, who, i.permission)
		}
		return nil
	}
	return fmt.Errorf("%s is not invited to %s", who.login, r.fullName())
}
