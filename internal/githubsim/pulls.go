// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

func (s *Server) onPull(h func(*call, *pull) response) func(*call, *repo) response {
	return func(c *call, r *repo) response {
		n, err := strconv.Atoi(c.PathValue("number"))
		if err != nil || n < 1 || n > len(r.pulls) {
			return notFound
		}
		return h(c, r.pulls[n-1])
	}
}

func (s *Server) listPulls(c *call, r *repo) response {
	q := c.URL.Query()
	state := q.Get("state")
	if state == "" {
		state = "open"
	}
	owner, head, qualified := strings.Cut(q.Get("head"), ":")
	var list []*pull
	for i := len(r.pulls) - 1; i >= 0; i-- {
		p := r.pulls[i]
		switch {
		case state == "open" && !p.open(), state == "closed" && p.open():
		case q.Get("base") != "" && p.base != q.Get("base"):
		// A head without its owner is ignored, as GitHub does.
		case qualified && (key(owner) != key(r.owner.login) || p.head != head):
		default:
			list = append(list, p)
		}
	}
	list, header := page(s, c, list)
	out := []any{}
	for _, p := range list {
		out = append(out, s.pullSimple(p))
	}
	return response{status: http.StatusOK, body: out, header: header}
}

// maxBody is the longest body GitHub takes, in characters.
const maxBody = 65536

func (s *Server) createPull(c *call, r *repo) response {
	if r.archived {
		return archivedAnswer
	}
	title, head, base, body := c.text("title"), c.text("head"), c.text("base"), c.text("body")
	if _, branch, qualified := strings.Cut(head, ":"); qualified {
		head = branch
	}
	all := refs(r.dir)
	headSHA, haveHead := all["refs/heads/"+head]
	baseSHA, haveBase := all["refs/heads/"+base]
	switch {
	case title == "":
		return invalid("PullRequest", "title", "missing_field", "")
	case !haveHead:
		return invalid("PullRequest", "head", "invalid", "")
	case !haveBase:
		return invalid("PullRequest", "base", "invalid", "")
	case len([]rune(body)) > maxBody:
		return invalid("Issue", "body", "custom", "body is too long (maximum is 65536 characters)")
	}
	for _, p := range r.pulls {
		if p.open() && p.head == head && p.base == base {
			return invalid("PullRequest", "", "custom", fmt.Sprintf("A pull request already exists for %s:%s.", r.owner.login, head))
		}
	}
	cmp := compare(r.dir, baseSHA, headSHA)
	switch {
	case cmp.base == "":
		return invalid("PullRequest", "", "custom", fmt.Sprintf("The %s branch has no history in common with %s", head, base))
	case cmp.ahead == 0:
		return invalid("PullRequest", "", "custom", fmt.Sprintf("No commits between %s and %s", base, head))
	}
	now := s.now()
	p := &pull{id: s.id(), number: len(r.pulls) + 1, repo: r, author: c.actor.account(), title: title, body: body, head: head, base: base,
		headSHA: headSHA, baseSHA: baseSHA, draft: c.flag("draft", false), createdAt: now, updatedAt: now}
	r.pulls = append(r.pulls, p)
	s.emitPull(p, c.actor.account(), "opened", nil)
	resp := created(s.pullFull(p))
	resp.header = http.Header{"Location": {s.api("/repos/%s/pulls/%d", r.fullName(), p.number)}}
	return resp
}

func (s *Server) updatePull(c *call, p *pull) response {
	if p.repo.archived {
		return archivedAnswer
	}
	if t := c.text("title"); t != "" {
		p.title = t
	}
	if b, given := c.body["body"].(string); given {
		p.body = b
	}
	switch c.text("state") {
	case "closed":
		if p.open() {
			s.closePull(p, c.actor.account())
		}
	case "open":
		if bad := s.reopenPull(p, c.actor.account()); bad != "" {
			return invalid("PullRequest", "state", "invalid", bad)
		}
	}
	p.updatedAt = s.now()
	return ok(s.pullFull(p))
}

func (s *Server) closePull(p *pull, by *account) {
	now := s.now()
	p.closedAt, p.updatedAt = &now, now
	s.emitPull(p, by, "closed", nil)
}

// reopenPull reopens a closed pull request, or says why it cannot be.
func (s *Server) reopenPull(p *pull, by *account) string {
	sha, exists := refs(p.repo.dir)["refs/heads/"+p.head]
	switch {
	case p.open():
		return ""
	case p.mergedAt != nil:
		return "state cannot be changed. The pull request was merged."
	case !exists:
		return fmt.Sprintf("state cannot be changed. The %s branch was deleted.", p.head)
	case sha != p.headSHA && !isAncestor(p.repo.dir, p.headSHA, sha):
		return fmt.Sprintf("state cannot be changed. The %s branch was force-pushed or recreated.", p.head)
	}
	p.closedAt, p.updatedAt, p.headSHA = nil, s.now(), sha
	s.emitPull(p, by, "reopened", nil)
	return ""
}

func (s *Server) markMerged(p *pull, by *account, sha string) {
	now := s.now()
	p.closedAt, p.mergedAt, p.mergedBy, p.mergeSHA, p.updatedAt = &now, &now, by, sha, now
	s.emitPull(p, by, "closed", nil)
}

func (s *Server) listComments(c *call, p *pull) response {
	comments, header := page(s, c, p.comments)
	list := []any{}
	for _, m := range comments {
		list = append(list, s.commentJSON(p, m))
	}
	return response{status: http.StatusOK, body: list, header: header}
}

func (s *Server) createComment(c *call, p *pull) response {
	if p.repo.archived {
		return archivedAnswer
	}
	body := c.text("body")
	if len([]rune(body)) > maxBody {
		return invalid("IssueComment", "data", "unprocessable", "Body is too long (maximum is 65536 characters)")
	}
	m := comment{id: s.id(), author: c.actor.account(), body: body, createdAt: s.now()}
	p.comments = append(p.comments, m)
	p.updatedAt = m.createdAt
	return created(s.commentJSON(p, m))
}

func (s *Server) addLabels(c *call, p *pull) response {
	names, given := c.body["labels"].([]any)
	if !given {
		return invalid("Label", "labels", "missing_field", "")
	}
	for _, n := range names {
		name := fmt.Sprint(n)
		known := false
		for _, l := range p.labels {
			known = known || key(l.name) == key(name)
		}
		if !known {
			p.labels = append(p.labels, label{id: s.id(), name: name})
		}
	}
	return ok(s.labels(p))
}

// afterPush does what a change of refs does by itself: pull requests follow
// their branches, events are sent. before and after are all refs of the
// repository; the server's lock is held.
func (s *Server) afterPush(r *repo, by *account, before, after map[string]string) {
	changed := false
	for name := range union(before, after) {
		old, now := before[name], after[name]
		if old == now {
			continue
		}
		changed = true
		s.emitPush(r, by, name, old, now)
		if branch, isBranch := strings.CutPrefix(name, "refs/heads/"); isBranch {
			s.followBranch(r, by, branch, old, now)
		}
	}
	if changed {
		r.pushedAt = s.now()
	}
}

// followBranch changes the state of the pull requests of a branch that moved.
func (s *Server) followBranch(r *repo, by *account, branch, old, now string) {
	for _, p := range r.pulls {
		switch {
		case !p.open():
		case p.head == branch && now == "":
			s.closePull(p, by)
		case p.head == branch:
			s.followHead(p, by, old, now)
		case p.base == branch && now != "":
			p.baseSHA = now
			if isAncestor(r.dir, p.headSHA, now) {
				s.markMerged(p, by, now)
			}
		}
	}
}

// followHead moves an open pull request's head. Wholly contained in the base,
// it is merged when it got there by an ordinary push, and closed when it was
// forced there.
func (s *Server) followHead(p *pull, by *account, old, now string) {
	forced := old != "" && !isAncestor(p.repo.dir, old, now)
	before := p.headSHA
	p.headSHA, p.updatedAt = now, s.now()
	if isAncestor(p.repo.dir, now, p.baseSHA) {
		if forced {
			s.closePull(p, by)
		} else {
			s.markMerged(p, by, now)
		}
		return
	}
	s.emitPull(p, by, "synchronize", map[string]any{"before": before, "after": now})
}

func union(a, b map[string]string) map[string]bool {
	m := map[string]bool{}
	for k := range a {
		m[k] = true
	}
	for k := range b {
		m[k] = true
	}
	return m
}
