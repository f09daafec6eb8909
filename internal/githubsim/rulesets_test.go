// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/githubsim"
)

// rules is a ruleset on some branches.
func rules(name string, include []string, types ...string) map[string]any {
	list := []any{}
	for _, t := range types {
		rule := map[string]any{"type": t}
		if t == "pull_request" {
			rule["parameters"] = map[string]any{"dismiss_stale_reviews_on_push": false, "require_code_owner_review": false, "require_last_push_approval": false,
				"required_approving_review_count": 0, "required_review_thread_resolution": false}
		}
		list = append(list, rule)
	}
	return map[string]any{"name": name, "target": "branch", "enforcement": "active", "rules": list, "bypass_actors": []any{},
		"conditions": map[string]any{"ref_name": map[string]any{"include": include, "exclude": []string{}}}}
}

func TestRulesetsAreKeptAndListed(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	path := "/repos/" + lab + "/rulesets"
	body := rules("lock", []string{"~DEFAULT_BRANCH"}, "update", "deletion")
	body["bypass_actors"] = []any{map[string]any{"actor_id": s.AppID, "actor_type": "Integration", "bypass_mode": "always"}}
	a := s.ok(201, s.token(), "POST", path, body)
	one := fmt.Sprintf("%s/%.0f", path, a.at("id"))
	s.Expect(a.text("source_type")).To(Equal("Repository"))
	s.Expect(a.text("source")).To(Equal(lab))
	s.Expect(a.text("current_user_can_bypass")).To(Equal("always"))

	list := s.ok(200, s.token(), "GET", path, nil)
	s.Expect(list.text(0, "name")).To(Equal("lock"))
	s.Expect(list.at(0, "rules")).To(BeNil(), "a list has neither rules nor conditions")
	s.Expect(s.ok(200, s.token(), "GET", one, nil).at("rules")).To(HaveLen(2))
	weak := s.token(map[string]any{"permissions": map[string]string{"metadata": "read"}})
	s.Expect(s.ok(200, weak, "GET", one, nil).at("bypass_actors")).To(BeNil(), "only those who may change a ruleset see who passes it")
	s.ok(403, weak, "DELETE", one, nil)

	for name, c := range map[string]struct {
		change map[string]any
		want   string
	}{
		"the same name":         {map[string]any{}, "Name must be unique"},
		"no excluded branches":  {map[string]any{"name": "x", "conditions": map[string]any{"ref_name": map[string]any{"include": []string{"~ALL"}}}}, "Invalid target patterns: ''"},
		"an App that is absent": {map[string]any{"name": "x", "bypass_actors": []any{map[string]any{"actor_id": 1, "actor_type": "Integration", "bypass_mode": "always"}}}, "Actor 1 integration must be part of the ruleset source or owner organization"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := rules("lock", []string{"~ALL"}, "update")
			for k, v := range c.change {
				bad[k] = v
			}
			NewWithT(t).Expect(s.ok(422, s.token(), "POST", path, bad).text("errors", 0)).To(Equal(c.want))
		})
	}
	t.Run("null actors", func(t *testing.T) {
		bad := rules("x", []string{"~ALL"}, "update")
		bad["bypass_actors"] = nil
		NewWithT(t).Expect(s.ok(422, s.token(), "POST", path, bad).text("message")).To(ContainSubstring("Invalid property /bypass_actors: data cannot be null"))
		s.ok(422, s.token(), "POST", path, map[string]any{"name": "x"})
	})
	s.Expect(s.ok(200, s.token(), "PUT", one, map[string]any{"name": "renamed", "enforcement": "disabled"}).text("enforcement")).To(Equal("disabled"))
	s.Expect(s.Look(s.ctx, lab)).To(HaveField("Rulesets", []string{"renamed"}))
	s.ok(204, s.token(), "DELETE", one, nil)
	s.ok(404, s.token(), "GET", one, nil)
	s.ok(404, s.token(), "PUT", one, map[string]any{"name": "renamed"})
	s.ok(404, s.token(), "DELETE", one, nil)
}

func TestRulesetsNeedAPlanInPrivateRepositories(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	s.Expect(s.ConfigureOrganization(s.ctx, githubsim.AccountRequest{Login: "acme", Plan: "free"})).To(Succeed())
	for method, path := range map[string]string{"GET": "", "POST": "", "PUT": "/1", "DELETE": "/1"} {
		a := s.ok(403, s.token(), method, "/repos/"+lab+"/rulesets"+path, rules("x", []string{"~ALL"}, "update"))
		s.Expect(a.text("message")).To(Equal("Upgrade to GitHub Pro or make this repository public to enable this feature."))
	}
	s.Expect(s.SetPublic(s.ctx, lab, true)).To(Succeed())
	s.ok(200, s.token(), "GET", "/repos/"+lab+"/rulesets", nil)
}

func TestPushesKeepRulesets(t *testing.T) {
	s := newSim(t)
	_, first := s.repository(lab)
	person := s.writer("ada")
	dir := s.clone(lab, person)
	s.write(dir, "b.txt", "b\n")
	s.mustGit(dir, "push", "-q", "origin", "HEAD:main", "HEAD:refs/heads/release/1/x")
	lock := rules("rules", []string{"~DEFAULT_BRANCH", "refs/heads/release/**/*"}, "non_fast_forward", "deletion", "creation")
	lock["bypass_actors"] = []any{map[string]any{"actor_id": s.AppID, "actor_type": "Integration", "bypass_mode": "always"}}
	s.ok(201, s.token(), "POST", "/repos/"+lab+"/rulesets", lock)

	for name, c := range map[string]struct{ refspec, want string }{
		"forcing":  {"+" + first + ":main", "- Cannot force-push to this branch"},
		"deleting": {":release/1/x", "- Cannot delete this branch"},
		"making":   {"HEAD:refs/heads/release/2/y", "- Cannot create ref due to creations being restricted."},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			o := s.git(dir, "push", "origin", c.refspec)
			g.Expect(o.failed).To(BeTrue())
			g.Expect(o.out).To(ContainSubstring("remote: error: GH013: Repository rule violations found for refs/heads/"))
			g.Expect(o.out).To(ContainSubstring("remote: " + c.want))
			g.Expect(o.out).To(ContainSubstring("(push declined due to repository rule violations)"))
		})
	}
	s.mustGit(dir, "push", "-q", s.GitURL(lab, s.token()), "+"+first+":main")
	s.mustGit(dir, "push", "-q", "origin", "HEAD:main", "HEAD:refs/heads/other")

	t.Run("by API as well", func(t *testing.T) {
		bad := s.ok(422, person, "PATCH", "/repos/"+lab+"/git/refs/heads/main", map[string]any{"sha": first, "force": true})
		NewWithT(t).Expect(bad.text("message")).To(HavePrefix("Repository rule violations found"))
	})
	t.Run("a lock lets nobody but the App in", func(t *testing.T) {
		g := NewWithT(t)
		s.ok(201, s.token(), "POST", "/repos/"+lab+"/rulesets", rules("lock", []string{"~ALL"}, "update"))
		s.commit(lab, "topic", map[string]string{"t": "t\n"})
		s.open("topic", "main")
		_, err := s.Merge(s.ctx, lab, 1, "merge", "ada")
		g.Expect(err).To(MatchError(ContainSubstring("Cannot update this protected ref.")))
		s.write(dir, "c.txt", "c\n")
		g.Expect(s.git(dir, "push", "origin", "HEAD:other").out).To(ContainSubstring("- Cannot update this protected ref."))
		s.mustGit(dir, "push", "-q", "origin", "HEAD:refs/heads/new")
	})
}

func TestPullRequestRuleLetsMergesIn(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	s.ok(201, s.token(), "POST", "/repos/"+lab+"/rulesets", rules("review", []string{"refs/heads/ma*"}, "pull_request"))
	dir := s.clone(lab, s.writer("ada"))
	s.write(dir, "b.txt", "b\n")
	s.Expect(s.git(dir, "push", "origin", "HEAD:main").out).To(ContainSubstring("- Changes must be made through a pull request."))
	s.mustGit(dir, "push", "-q", "origin", "HEAD:topic")
	s.open("topic", "main")
	_, err := s.Merge(s.ctx, lab, 1, "squash", "ada")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.ok(200, s.token(), "GET", "/repos/"+lab+"/branches/main", nil).at("protected")).To(BeTrue())
	s.Expect(s.ok(200, s.token(), "GET", "/repos/"+lab+"/branches/topic", nil).at("protected")).To(BeFalse())
}
