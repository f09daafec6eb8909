// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// ruleset is a repository's ruleset. What only clients read is kept as it was
// sent.
type ruleset struct {
	id                   int64
	name                 string
	target, enforcement  string
	include, exclude     []string
	conditions           any
	rules, bypass        []any
	createdAt, updatedAt time.Time
}

// denyPlan refuses rulesets where the plan does not have them.
func denyPlan(r *repo) *response {
	if r.private() && r.owner.plan == "free" {
		return refusal(http.StatusForbidden, "Upgrade to GitHub Pro or make this repository public to enable this feature.")
	}
	return nil
}

func (r *repo) ruleset(id int64) *ruleset {
	for _, rs := range r.rulesets {
		if rs.id == id {
			return rs
		}
	}
	return nil
}

func (s *Server) listRulesets(c *call, r *repo) response {
	if bad := denyPlan(r); bad != nil {
		return *bad
	}
	list, header := page(s, c, r, r.rulesets)
	out := []any{}
	for _, rs := range list {
		out = append(out, s.rulesetSimple(r, rs))
	}
	return response{status: http.StatusOK, body: out, header: header}
}

func (s *Server) getRuleset(c *call, r *repo) response {
	if bad := denyPlan(r); bad != nil {
		return *bad
	}
	rs := r.ruleset(c.number("ruleset"))
	if rs == nil {
		return notFound
	}
	return ok(s.rulesetFull(c.actor, r, rs))
}

func (s *Server) createRuleset(c *call, r *repo) response {
	if bad := denyPlan(r); bad != nil {
		return *bad
	}
	rs := &ruleset{target: "branch", createdAt: s.now()}
	if bad := s.fillRuleset(c, r, rs); bad != nil {
		return *bad
	}
	rs.id = s.id()
	r.rulesets = append(r.rulesets, rs)
	return created(s.rulesetFull(c.actor, r, rs), s.api("/repos/%s/rulesets/%d", r.fullName(), rs.id))
}

func (s *Server) updateRuleset(c *call, r *repo) response {
	if bad := denyPlan(r); bad != nil {
		return *bad
	}
	rs := r.ruleset(c.number("ruleset"))
	if rs == nil {
		return notFound
	}
	changed := *rs
	if bad := s.fillRuleset(c, r, &changed); bad != nil {
		return *bad
	}
	*rs = changed
	return ok(s.rulesetFull(c.actor, r, rs))
}

func (s *Server) deleteRuleset(c *call, r *repo) response {
	if bad := denyPlan(r); bad != nil {
		return *bad
	}
	rs := r.ruleset(c.number("ruleset"))
	if rs == nil {
		return notFound
	}
	r.rulesets = slices.DeleteFunc(r.rulesets, func(other *ruleset) bool { return other == rs })
	return noContent()
}

// fillRuleset takes over what a request says, or returns why it cannot be.
func (s *Server) fillRuleset(c *call, r *repo, rs *ruleset) *response {
	refuse := func(errors ...any) *response {
		bad := unprocessable("Validation Failed", errors...)
		return &bad
	}
	if value, given := c.body["bypass_actors"]; given && value == nil {
		bad := unprocessable("Invalid request.\n\nInvalid property /bypass_actors: data cannot be null.")
		return &bad
	}
	rs.name, rs.target, rs.enforcement = cmpOr(c.text("name"), rs.name), cmpOr(c.text("target"), rs.target), cmpOr(c.text("enforcement"), rs.enforcement)
	rs.updatedAt = s.now()
	if rs.name == "" || rs.enforcement == "" {
		bad := unprocessable("Invalid request.\n\n\"name\", \"enforcement\" weren't supplied.")
		return &bad
	}
	for _, other := range r.rulesets {
		if other.id != rs.id && other.name == rs.name {
			return refuse("Name must be unique")
		}
	}
	if conditions, given := c.body["conditions"].(map[string]any); given {
		names, isObject := conditions["ref_name"].(map[string]any)
		if !isObject || names["include"] == nil || names["exclude"] == nil {
			return refuse("Invalid target patterns: ''")
		}
		rs.conditions, rs.include, rs.exclude = conditions, texts(names["include"]), texts(names["exclude"])
	}
	if rules, given := c.body["rules"].([]any); given {
		rs.rules = rules
	}
	if actors, given := c.body["bypass_actors"].([]any); given {
		for _, one := range actors {
			if bad := s.refuseBypass(r, one); bad != "" {
				return refuse(bad)
			}
		}
		rs.bypass = actors
	}
	return nil
}

// refuseBypass returns why an actor cannot be let past a ruleset: an App must
// be installed for the owner.
func (s *Server) refuseBypass(r *repo, given any) string {
	kind, id := bypassActor(given)
	if kind != "Integration" {
		return ""
	}
	a := s.apps[id]
	if a == nil || s.installationOf(a, r.owner.login) == nil {
		return fmt.Sprintf("Actor %d integration must be part of the ruleset source or owner organization", id)
	}
	return ""
}

func bypassActor(given any) (kind string, id int64) {
	m, isObject := given.(map[string]any)
	if !isObject {
		return "", 0
	}
	kind, _ = m["actor_type"].(string)
	number, _ := m["actor_id"].(float64)
	return kind, int64(number)
}

// bypasses reports whether the actor need not keep a ruleset when pushing.
func (s *Server) bypasses(who actor, r *repo, rs *ruleset) bool {
	for _, one := range rs.bypass {
		m, isObject := one.(map[string]any)
		if !isObject || m["bypass_mode"] == "pull_request" {
			continue
		}
		kind, id := bypassActor(one)
		switch {
		case kind == "Integration" && who.viaApp() != nil && who.viaApp().id == id,
			kind == "User" && who.user != nil && who.user.id == id,
			kind == "OrganizationAdmin" && who.user != nil && r.owner.members[who.user.id] == "admin",
			kind == "RepositoryRole" && who.user != nil && s.roleOf(who.user, r) >= repositoryRole(id):
			return true
		}
	}
	return false
}

// repositoryRole returns the role of a bypass actor of the type
// RepositoryRole: GitHub numbers them.
func repositoryRole(id int64) access {
	switch id {
	case 2:
		return accessMaintain
	case 4:
		return accessWrite
	}
	return accessAdmin
}

// applies reports whether a ruleset is about a ref.
func (rs *ruleset) applies(r *repo, ref string) bool {
	prefix := "refs/heads/"
	if rs.target == "tag" {
		prefix = "refs/tags/"
	}
	if rs.enforcement != "active" || !strings.HasPrefix(ref, prefix) || rs.target == "push" {
		return false
	}
	matches := func(pattern string) bool {
		switch pattern {
		case "~ALL":
			return true
		case "~DEFAULT_BRANCH":
			return ref == "refs/heads/"+r.defaultBranch
		}
		return matchRef(pattern, ref)
	}
	return slices.ContainsFunc(rs.include, matches) && !slices.ContainsFunc(rs.exclude, matches)
}

// matchRef matches a ref by a pattern as fnmatch does with FNM_PATHNAME: *
// and ? stop at slashes, ** does not.
func matchRef(pattern, ref string) bool {
	var expression strings.Builder
	expression.WriteString("^")
	for i := 0; i < len(pattern); i++ {
		switch {
		case strings.HasPrefix(pattern[i:], "**/"):
			expression.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(pattern[i:], "**"):
			expression.WriteString(".*")
			i++
		case pattern[i] == '*':
			expression.WriteString("[^/]*")
		case pattern[i] == '?':
			expression.WriteString("[^/]")
		default:
			expression.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	matched, err := regexp.MatchString(expression.String()+"$", ref)
	return err == nil && matched
}

// protects reports whether any ruleset is about a ref.
func (r *repo) protects(ref string) bool {
	return slices.ContainsFunc(r.rulesets, func(rs *ruleset) bool { return rs.applies(r, ref) })
}

// violations returns the rules that a change of a ref breaks, in GitHub's words.
func (s *Server) violations(who actor, r *repo, c *refCommand) []string {
	var list []string
	for _, rs := range r.rulesets {
		if !rs.applies(r, c.ref) || s.bypasses(who, r, rs) {
			continue
		}
		for _, one := range rs.rules {
			m, isObject := one.(map[string]any)
			if !isObject {
				continue
			}
			if text := brokenRule(m["type"], r, c); text != "" && !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return list
}

// pullRequestRule is what GitHub says of changes that come by no pull request.
const pullRequestRule = "Changes must be made through a pull request."

// brokenRule returns what a change of a ref breaks of one rule.
func brokenRule(rule any, r *repo, c *refCommand) string {
	makes, deletes := c.old == "", c.now == ""
	moves := !makes && !deletes
	switch {
	case rule == "creation" && makes:
		return "Cannot create ref due to creations being restricted."
	case rule == "update" && moves:
		return "Cannot update this protected ref."
	case rule == "deletion" && deletes:
		return "Cannot delete this branch"
	case rule == "non_fast_forward" && moves && !r.store.contains(c.now, c.old):
		return "Cannot force-push to this branch"
	case rule == "pull_request" && moves:
		return pullRequestRule
	}
	return ""
}
