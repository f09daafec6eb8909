// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// onPull finds the pull request a path names.
func (s *Server) onPull(h func(*call, *pull) response) func(*call, *repo) response {
	return func(c *call, r *repo) response {
		p := r.pulls[int(c.number("number"))]
		if p == nil {
			return notFound
		}
		return h(c, p)
	}
}

func (s *Server) listPulls(c *call, r *repo) response {
	q := c.URL.Query()
	state := cmpOr(q.Get("state"), "open")
	owner, head, qualified := strings.Cut(q.Get("head"), ":")
	var list []*pull
	for _, p := range r.sortedPulls() {
		switch {
		case state == "open" && !p.open(), state == "closed" && p.open():
		case q.Get("base") != "" && p.base != q.Get("base"):
		// A head without its owner is ignored, as GitHub does.
		case qualified && (key(owner) != key(r.owner.login) || p.head != head):
		default:
			list = append(list, p)
		}
	}
	sortPulls(list, q.Get("sort"), q.Get("direction"))
	list, header := page(s, c, r, list)
	out := []any{}
	for _, p := range list {
		out = append(out, s.pullSimple(p))
	}
	return response{status: http.StatusOK, body: out, header: header}
}

// sortPulls orders pull requests, which come by number. Without a wish the
// newest come first.
func sortPulls(list []*pull, by, direction string) {
	if by == "updated" {
		slices.SortStableFunc(list, func(a, b *pull) int { return a.updatedAt.Compare(b.updatedAt) })
	}
	if direction == "desc" || (direction == "" && (by == "" || by == "created")) {
		slices.Reverse(list)
	}
}

func (s *Server) getPull(_ *call, p *pull) response {
	m, err := s.pullFull(p)
	if err != nil {
		return broken(err)
	}
	// GitHub works it out when it is asked for.
	if p.open() {
		merged := p.repo.store.mergeTrees(s.baseTip(p), p.headSHA)
		m["mergeable"], m["mergeable_state"], m["rebaseable"] = merged.clean, "dirty", merged.clean
		if merged.clean {
			m["mergeable_state"] = "clean"
		}
		if p.draft {
			m["mergeable_state"] = "draft"
		}
	}
	return ok(m)
}

// baseTip returns where the base branch is now; where it was when there is
// none.
func (s *Server) baseTip(p *pull) string {
	if sha, exists := p.repo.store.branch(p.base); exists && p.open() {
		return sha
	}
	return p.baseSHA
}

// maxBody is the longest body GitHub takes, in characters.
const maxBody = 65536

func tooLong(text string) bool { return utf8.RuneCountInString(text) > maxBody }

func (s *Server) createPull(c *call, r *repo) response {
	title, head, base, body := c.text("title"), c.text("head"), c.text("base"), c.text("body")
	if owner, branch, qualified := strings.Cut(head, ":"); qualified && key(owner) == key(r.owner.login) {
		head = branch
	}
	headSHA, haveHead := r.store.branch(head)
	baseSHA, haveBase := r.store.branch(base)
	custom := func(format string, args ...any) response {
		return invalid("PullRequest", "", "custom", fmt.Sprintf(format, args...))
	}
	switch {
	case title == "":
		return invalid("PullRequest", "title", "missing_field", "")
	case !haveHead:
		return invalid("PullRequest", "head", "invalid", "")
	case !haveBase:
		return invalid("PullRequest", "base", "invalid", "")
	case tooLong(body):
		return invalid("Issue", "body", "custom", "body is too long (maximum is 65536 characters)")
	case c.flag("draft", false) && r.owner.plan == "free" && r.private():
		return custom("Draft pull requests are not supported in this repository.")
	}
	if r.openPull(head, base) != nil {
		return custom("A pull request already exists for %s:%s.", r.owner.login, head)
	}
	cmp, err := r.store.compare(baseSHA, headSHA)
	switch {
	case err != nil:
		return broken(err)
	case cmp.base == "":
		return custom("The %s branch has no history in common with %s", head, base)
	case cmp.ahead == 0:
		return custom("No commits between %s and %s", base, head)
	}
	now := s.now()
	r.numbers++
	p := &pull{id: s.id(), number: r.numbers, repo: r, author: c.actor.account(), title: title, body: body, head: head, base: base,
		headSHA: headSHA, baseSHA: baseSHA, draft: c.flag("draft", false), createdAt: now, updatedAt: now}
	r.pulls[p.number] = p
	if err := s.keepPullRef(p); err != nil {
		return broken(err)
	}
	s.emitPull(p, c.actor.account(), "opened", nil)
	m, err := s.pullFull(p)
	if err != nil {
		return broken(err)
	}
	return created(m, s.api("/repos/%s/pulls/%d", r.fullName(), p.number))
}

// openPull returns the open pull request between two branches.
func (r *repo) openPull(head, base string) *pull {
	for _, p := range r.pulls {
		if p.open() && p.head == head && p.base == base {
			return p
		}
	}
	return nil
}

// keepPullRef lets refs/pull/<n>/head follow the pull request's head.
func (s *Server) keepPullRef(p *pull) error {
	return p.repo.store.setRef(fmt.Sprintf("%s%d/head", hiddenRefs, p.number), p.headSHA)
}

func (s *Server) updatePull(c *call, p *pull) response {
	by := c.actor.account()
	if bad := s.editPull(c, p); bad != nil {
		return *bad
	}
	switch state := c.text("state"); state {
	case "closed":
		if p.open() {
			if err := s.closePull(p, by, s.baseTip(p)); err != nil {
				return broken(err)
			}
		}
	case "open":
		if bad := s.reopenPull(p, by); bad != "" {
			return invalid("PullRequest", "state", "invalid", bad)
		}
	case "":
	default:
		return invalid("PullRequest", "state", "invalid", "")
	}
	m, err := s.pullFull(p)
	if err != nil {
		return broken(err)
	}
	return ok(m)
}

// editPull takes over a new title, body and base.
func (s *Server) editPull(c *call, p *pull) *response {
	changes := map[string]any{}
	from := func(old any) map[string]any { return map[string]any{"from": old} }
	if body := c.text("body"); tooLong(body) {
		bad := invalid("Issue", "body", "custom", "body is too long (maximum is 65536 characters)")
		return &bad
	} else if c.given("body") && body != p.body {
		changes["body"], p.body = from(p.body), body
	}
	if title := c.text("title"); title != "" && title != p.title {
		changes["title"], p.title = from(p.title), title
	}
	if base := c.text("base"); base != "" && base != p.base {
		sha, exists := p.repo.store.branch(base)
		if !exists {
			bad := invalid("PullRequest", "base", "invalid", "")
			return &bad
		}
		changes["base"] = map[string]any{"ref": from(p.base), "sha": from(p.baseSHA)}
		p.base, p.baseSHA = base, sha
	}
	if len(changes) > 0 {
		p.updatedAt = s.now()
		s.emitPull(p, c.actor.account(), "edited", map[string]any{"changes": changes})
	}
	return nil
}

// sizes returns what GitHub shows of a pull request's changes.
func (s *Server) sizes(p *pull) (pullStats, error) {
	if !p.open() {
		return p.stats, nil
	}
	return p.sizesFrom(s.baseTip(p))
}

// sizesFrom returns the sizes of a pull request's changes to a base.
func (p *pull) sizesFrom(base string) (pullStats, error) {
	cmp, err := p.repo.store.compare(base, p.headSHA)
	if err != nil {
		return pullStats{}, err
	}
	additions, deletions := cmp.totals()
	return pullStats{commits: cmp.ahead, files: len(cmp.files), additions: additions, deletions: deletions}, nil
}

func (s *Server) mergeByAPI(c *call, p *pull) response {
	if sha := c.text("sha"); sha != "" && sha != p.headSHA {
		return refuse(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	}
	if !p.open() || p.draft {
		return refuse(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	}
	sha, err := s.mergePull(p, mergeOrder{method: cmpOr(c.text("merge_method"), "merge"), who: c.actor, by: c.actor.account(), title: c.text("commit_title"), message: c.text("commit_message")})
	if err != nil {
		return refuse(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	}
	return ok(map[string]any{"sha": sha, "merged": true, "message": "Pull Request successfully merged"})
}

func (s *Server) requestReviewers(c *call, p *pull) response {
	for _, login := range c.texts("reviewers") {
		a := s.accounts[key(login)]
		if a == nil || s.roleOf(a, p.repo) == accessNone || a == p.author {
			return unprocessable("Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the " + p.repo.fullName() + " repository.")
		}
		if !slices.Contains(p.reviewers, a) {
			p.reviewers = append(p.reviewers, a)
			s.emitPull(p, c.actor.account(), "review_requested", map[string]any{"requested_reviewer": s.user(a)})
		}
	}
	p.updatedAt = s.now()
	return created(s.pullSimple(p), "")
}
