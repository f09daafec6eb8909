// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"fmt"
	"net/http"
	"slices"
)

func (s *Server) listComments(c *call, p *pull) response {
	comments, header := page(s, c, p.repo, p.comments)
	list := []any{}
	for _, m := range comments {
		list = append(list, s.commentJSON(p, m))
	}
	return response{status: http.StatusOK, body: list, header: header}
}

// refuseComment returns why a text cannot be a comment.
func refuseComment(body string) *response {
	var bad response
	switch {
	case body == "":
		bad = invalid("IssueComment", "data", "unprocessable", "Body cannot be blank")
	case tooLong(body):
		bad = invalid("IssueComment", "data", "unprocessable", "Body is too long (maximum is 65536 characters)")
	default:
		return nil
	}
	return &bad
}

func (s *Server) createComment(c *call, p *pull) response {
	if bad := refuseComment(c.text("body")); bad != nil {
		return *bad
	}
	if p.locked && (c.actor.installation != nil || s.roleOf(c.actor.user, p.repo) < accessWrite) {
		return refuse(http.StatusForbidden, "Unable to create comment because issue is locked.")
	}
	m := s.comment(p, c.actor, c.text("body"))
	return created(s.commentJSON(p, m), s.api("/repos/%s/issues/comments/%d", p.repo.fullName(), m.id))
}

// comment adds a comment to a pull request.
func (s *Server) comment(p *pull, who actor, body string) *comment {
	now := s.now()
	m := &comment{id: s.id(), author: who.account(), viaApp: who.viaApp(), body: body, createdAt: now, updatedAt: now}
	p.comments = append(p.comments, m)
	p.updatedAt = now
	s.emitComment(p, m, who.account(), "created", nil)
	return m
}

func (s *Server) updateComment(c *call, r *repo) response {
	id := c.number("comment")
	for _, p := range r.pulls {
		for _, m := range p.comments {
			if m.id != id {
				continue
			}
			if bad := refuseComment(c.text("body")); bad != nil {
				return *bad
			}
			from := m.body
			m.body, m.updatedAt = c.text("body"), s.now()
			s.emitComment(p, m, c.actor.account(), "edited", map[string]any{"body": map[string]any{"from": from}})
			return ok(s.commentJSON(p, m))
		}
	}
	return notFound
}

// labelOf returns the repository's label of a name; one is made when it is
// missing, as GitHub does when an unknown label is put on an issue.
func (s *Server) labelOf(r *repo, name string) *label {
	for _, l := range r.labels {
		if key(l.name) == key(name) {
			return l
		}
	}
	l := &label{id: s.id(), name: name, color: "ededed"}
	r.labels = append(r.labels, l)
	return l
}

func (s *Server) createLabel(c *call, r *repo) response {
	name := c.text("name")
	if name == "" {
		return invalid("Label", "name", "missing_field", "")
	}
	for _, l := range r.labels {
		if key(l.name) == key(name) {
			return invalid("Label", "name", "already_exists", "")
		}
	}
	l := s.labelOf(r, name)
	l.description, l.color = c.text("description"), cmpOr(c.text("color"), l.color)
	return created(s.labelJSON(r, l), s.api("/repos/%s/labels/%s", r.fullName(), escapePath(name)))
}

func (s *Server) listLabels(c *call, p *pull) response {
	labels, header := page(s, c, p.repo, p.labels)
	return response{status: http.StatusOK, body: s.labels(p.repo, labels), header: header}
}

// labelNames reads the forms a list of labels may have: {"labels": [...]} or
// the bare list, of texts or objects with a name.
func labelNames(c *call) (names []string, given bool) {
	list, given := c.body["labels"].([]any)
	if c.list != nil {
		list, given = c.list, true
	}
	for _, one := range list {
		if m, isObject := one.(map[string]any); isObject {
			one = m["name"]
		}
		if name, isText := one.(string); isText && name != "" {
			names = append(names, name)
		}
	}
	return names, given
}

func (s *Server) addLabels(c *call, p *pull) response {
	names, given := labelNames(c)
	if !given {
		return invalid("Label", "labels", "missing_field", "")
	}
	for _, name := range names {
		l := s.labelOf(p.repo, name)
		if !slices.Contains(p.labels, l) {
			p.labels = append(p.labels, l)
			s.emitPull(p, c.actor.account(), "labeled", map[string]any{"label": s.labelJSON(p.repo, l)})
		}
	}
	p.updatedAt = s.now()
	return ok(s.labels(p.repo, p.labels))
}

// addAssignees leaves out who cannot be assigned, as GitHub does.
func (s *Server) addAssignees(c *call, p *pull) response {
	for _, login := range c.texts("assignees") {
		a := s.accounts[key(login)]
		if a != nil && s.roleOf(a, p.repo) >= accessRead && !slices.Contains(p.assignees, a) {
			p.assignees = append(p.assignees, a)
			s.emitPull(p, c.actor.account(), "assigned", map[string]any{"assignee": s.user(a)})
		}
	}
	p.updatedAt = s.now()
	return created(s.issue(p), fmt.Sprintf("%s/assignees", s.api("/repos/%s/issues/%d", p.repo.fullName(), p.number)))
}
