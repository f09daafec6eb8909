// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"net/http"
)

func (s *Server) getUser(c *call) response {
	a := s.accounts[key(c.PathValue("login"))]
	if a == nil {
		return notFound
	}
	return ok(s.publicUser(a))
}

// organization returns the organization a request names.
func (s *Server) organization(c *call) *account {
	a := s.accounts[key(c.PathValue("login"))]
	if a == nil || a.kind != kindOrganization {
		return nil
	}
	return a
}

func (s *Server) getOrganization(c *call) response {
	a := s.organization(c)
	if a == nil {
		return notFound
	}
	return ok(s.fullOrganization(a))
}

func (s *Server) listOrganizationRepos(c *call) response {
	org := s.organization(c)
	if org == nil {
		return notFound
	}
	var list []*repo
	for _, r := range sortedByID(s.repos) {
		if r.owner == org && s.sees(c.actor, r) {
			list = append(list, r)
		}
	}
	list, header := page(s, c, nil, list)
	out := []any{}
	for _, r := range list {
		out = append(out, s.minimalRepository(r))
	}
	return response{status: http.StatusOK, body: out, header: header}
}

func (s *Server) getRateLimit(c *call) response {
	limit, used, reset := s.quotaOf(c.actor)
	one := func(limit, used int) map[string]any {
		return map[string]any{"limit": limit, "used": used, "remaining": limit - used, "reset": reset.Unix()}
	}
	core := one(limit, used)
	return ok(map[string]any{"rate": core, "resources": map[string]any{"core": core, "search": one(30, 0), "graphql": one(installationQuota, 0)}})
}

func (s *Server) getMeta(*call) response {
	return ok(map[string]any{"verifiable_password_authentication": false})
}

func (s *Server) listInstallations(c *call) response {
	var mine []*installation
	for _, i := range sortedByID(s.installations) {
		if i.app == c.actor.app {
			mine = append(mine, i)
		}
	}
	mine, header := page(s, c, nil, mine)
	list := []any{}
	for _, i := range mine {
		list = append(list, s.installationJSON(i))
	}
	return response{status: http.StatusOK, body: list, header: header}
}

func (s *Server) getInstallation(c *call) response {
	i := s.installations[c.number("installation")]
	if i == nil || i.app != c.actor.app {
		return notFound
	}
	return ok(s.installationJSON(i))
}

func (s *Server) accountInstallation(kind string) func(*call) response {
	return func(c *call) response {
		i := s.installationOf(c.actor.app, c.PathValue("login"))
		if i == nil || i.account.kind != kind {
			return notFound
		}
		return ok(s.installationJSON(i))
	}
}

func (s *Server) repoInstallation(c *call) response {
	r, moved := s.find(c.PathValue("owner") + "/" + c.PathValue("repo"))
	if id := c.number("id"); id != 0 {
		r, moved = s.repos[id], false
	}
	if r == nil {
		return notFound
	}
	i := s.installationOf(c.actor.app, r.owner.login)
	switch {
	case i == nil || !i.covers(r):
		return notFound
	case moved:
		return s.redirect(c, r)
	}
	return ok(s.installationJSON(i))
}

func (s *Server) listCovered(c *call) response {
	if c.actor.installation == nil {
		return *notAccessible(metadataRead)
	}
	var list []*repo
	for _, r := range sortedByID(s.repos) {
		if s.reaches(c.actor, r) {
			list = append(list, r)
		}
	}
	total := len(list)
	list, header := page(s, c, nil, list)
	out := []any{}
	for _, r := range list {
		out = append(out, s.repository(r))
	}
	return response{status: http.StatusOK, header: header,
		body: map[string]any{"total_count": total, "repository_selection": c.actor.installation.selection(), "repositories": out}}
}

func (s *Server) getHookConfig(c *call) response {
	a := c.actor.app
	secret := ""
	if a.hookSecret != "" {
		secret = "********"
	}
	return ok(map[string]any{"url": a.hookURL, "content_type": "json", "insecure_ssl": "0", "secret": secret})
}
