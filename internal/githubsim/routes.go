// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"net/http"
)

// Needs that several operations share.
var (
	metadataRead  = need{"metadata=read"}
	contentsRead  = need{"contents=read"}
	contentsWrite = need{"contents=write"}
	pullsRead     = need{"pull_requests=read"}
	pullsWrite    = need{"pull_requests=write"}
	issuesRead    = need{"issues=read", "pull_requests=read"}
	issuesWrite   = need{"issues=write", "pull_requests=write"}
	adminRead     = need{"administration=read"}
	adminWrite    = need{"administration=write"}
)

// routes registers every operation by its operationId.
func (s *Server) routes() {
	s.handle("GET /app", "apps/get-authenticated", s.asApp(func(c *call) response { return ok(s.integration(c.actor.app)) }))
	s.handle("GET /app/installations", "apps/list-installations", s.asApp(s.listInstallations))
	s.handle("GET /app/installations/{installation}", "apps/get-installation", s.asApp(s.getInstallation))
	s.handle("POST /app/installations/{installation}/access_tokens", "apps/create-installation-access-token", s.asApp(s.createToken))
	s.handle("GET /app/hook/config", "apps/get-webhook-config-for-app", s.asApp(s.getHookConfig))
	s.handle("GET /app/hook/deliveries", "apps/list-webhook-deliveries", s.asApp(s.listDeliveries))
	s.handle("GET /app/hook/deliveries/{delivery}", "apps/get-webhook-delivery", s.asApp(s.getDelivery))
	s.handle("POST /app/hook/deliveries/{delivery}/attempts", "apps/redeliver-webhook-delivery", s.asApp(s.redeliver))
	s.handle("GET /orgs/{login}/installation", "apps/get-org-installation", s.asApp(s.accountInstallation(kindOrganization)))
	s.handle("GET /users/{login}/installation", "apps/get-user-installation", s.asApp(s.accountInstallation(kindUser)))
	s.handle("GET /repos/{owner}/{repo}/installation", "apps/get-repo-installation", s.asApp(s.repoInstallation))
	s.handle("GET /repositories/{id}/installation", "apps/get-repo-installation", s.asApp(s.repoInstallation))
	s.handle("GET /installation/repositories", "apps/list-repos-accessible-to-installation", s.listCovered)

	s.handle("GET /users/{login}", "users/get-by-username", s.getUser)
	s.handle("GET /orgs/{login}", "orgs/get", s.getOrganization)
	s.handle("GET /orgs/{login}/repos", "repos/list-for-org", s.listOrganizationRepos)
	s.handle("POST /orgs/{login}/repos", "repos/create-in-org", s.createRepo)
	s.handle("GET /rate_limit", "rate-limit/get", s.getRateLimit)
	s.handle("GET /meta", "meta/get", s.getMeta)

	s.repoRoutes()
	s.pullRoutes()
	s.gitRoutes()
	s.mux.HandleFunc("/", s.noRoute)
}

func (s *Server) repoRoutes() {
	s.onRepo("GET", "", "repos/get", metadataRead, s.getRepo)
	s.onRepo("PATCH", "", "repos/update", adminWrite, s.updateRepo)
	s.onRepo("GET", "/branches", "repos/list-branches", contentsRead, s.listBranches)
	s.onRepo("GET", "/branches/{branch...}", "repos/get-branch", contentsRead, s.getBranch)
	s.onRepo("GET", "/commits", "repos/list-commits", contentsRead, s.listCommits)
	s.onRepo("GET", "/commits/{ref...}", "repos/get-commit", contentsRead, s.getCommit)
	s.onRepo("GET", "/compare/{basehead...}", "repos/compare-commits-with-basehead", contentsRead, s.compareCommits)

	s.onRepo("GET", "/git/ref/{ref...}", "git/get-ref", contentsRead, s.getRef)
	s.onRepo("GET", "/git/matching-refs/{ref...}", "git/list-matching-refs", contentsRead, s.listMatchingRefs)
	s.onRepo("POST", "/git/refs", "git/create-ref", contentsWrite, s.createRef)
	s.onRepo("PATCH", "/git/refs/{ref...}", "git/update-ref", contentsWrite, s.updateRef)
	s.onRepo("DELETE", "/git/refs/{ref...}", "git/delete-ref", contentsWrite, s.deleteRef)
	s.onRepo("GET", "/git/commits/{sha}", "git/get-commit", contentsRead, s.getGitCommit)
	s.onRepo("POST", "/git/commits", "git/create-commit", contentsWrite, s.createGitCommit)
	s.onRepo("GET", "/git/trees/{sha...}", "git/get-tree", contentsRead, s.getTree)
	s.onRepo("POST", "/git/trees", "git/create-tree", contentsWrite, s.createTree)
	s.onRepo("GET", "/git/blobs/{sha}", "git/get-blob", contentsRead, s.getBlob)
	s.onRepo("POST", "/git/blobs", "git/create-blob", contentsWrite, s.createBlob)

	s.onRepo("GET", "/collaborators", "repos/list-collaborators", metadataRead, s.listCollaborators)
	s.onRepo("GET", "/collaborators/{login}", "repos/check-collaborator", metadataRead, s.checkCollaborator)
	s.onRepo("PUT", "/collaborators/{login}", "repos/add-collaborator", adminWrite, s.addCollaborator)
	s.onRepo("DELETE", "/collaborators/{login}", "repos/remove-collaborator", adminWrite, s.removeCollaborator)
	s.onRepo("GET", "/collaborators/{login}/permission", "repos/get-collaborator-permission-level", metadataRead, s.getCollaboratorPermission)
	s.onRepo("GET", "/invitations", "repos/list-invitations", adminRead, s.listInvitations)
	s.onRepo("PATCH", "/invitations/{invitation}", "repos/update-invitation", adminWrite, s.updateInvitation)
	s.onRepo("DELETE", "/invitations/{invitation}", "repos/delete-invitation", adminWrite, s.deleteInvitation)

	s.onRepo("GET", "/rulesets", "repos/get-repo-rulesets", metadataRead, s.listRulesets)
	s.onRepo("POST", "/rulesets", "repos/create-repo-ruleset", adminWrite, s.createRuleset)
	s.onRepo("GET", "/rulesets/{ruleset}", "repos/get-repo-ruleset", metadataRead, s.getRuleset)
	s.onRepo("PUT", "/rulesets/{ruleset}", "repos/update-repo-ruleset", adminWrite, s.updateRuleset)
	s.onRepo("DELETE", "/rulesets/{ruleset}", "repos/delete-repo-ruleset", adminWrite, s.deleteRuleset)
}

func (s *Server) pullRoutes() {
	s.onRepo("GET", "/pulls", "pulls/list", pullsRead, s.listPulls)
	s.onRepo("POST", "/pulls", "pulls/create", pullsWrite, s.createPull)
	s.onRepo("GET", "/pulls/{number}", "pulls/get", pullsRead, s.onPull(s.getPull))
	s.onRepo("PATCH", "/pulls/{number}", "pulls/update", pullsWrite, s.onPull(s.updatePull))
	s.onRepo("PUT", "/pulls/{number}/merge", "pulls/merge", contentsWrite, s.onPull(s.mergeByAPI))
	s.onRepo("POST", "/pulls/{number}/requested_reviewers", "pulls/request-reviewers", pullsWrite, s.onPull(s.requestReviewers))

	s.onRepo("GET", "/issues/{number}/comments", "issues/list-comments", issuesRead, s.onPull(s.listComments))
	s.onRepo("POST", "/issues/{number}/comments", "issues/create-comment", issuesWrite, s.onPull(s.createComment))
	s.onRepo("PATCH", "/issues/comments/{comment}", "issues/update-comment", issuesWrite, s.updateComment)
	s.onRepo("GET", "/issues/{number}/labels", "issues/list-labels-on-issue", issuesRead, s.onPull(s.listLabels))
	s.onRepo("POST", "/issues/{number}/labels", "issues/add-labels", issuesWrite, s.onPull(s.addLabels))
	s.onRepo("POST", "/issues/{number}/assignees", "issues/add-assignees", issuesWrite, s.onPull(s.addAssignees))
	s.onRepo("POST", "/labels", "issues/create-label", issuesWrite, s.createLabel)
}

// noRoute answers what GitHub does not have, or the simulator does not serve.
func (s *Server) noRoute(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"message":"Not Found","documentation_url":"` + docsURL + `","status":"404"}`))
}

// asApp lets only an App's JWT in.
func (s *Server) asApp(h func(*call) response) func(*call) response {
	return func(c *call) response {
		if c.actor.app == nil {
			return refuse(http.StatusUnauthorized, "A JSON web token could not be decoded")
		}
		return h(c)
	}
}

// onRepo registers an operation on a repository by name and by id. A former
// name answers with a redirect to the id's form. The handler is called with
// the repository to itself.
func (s *Server) onRepo(method, rest, operation string, n need, h func(*call, *repo) response) {
	byName := func(c *call) (*repo, bool) { return s.find(c.PathValue("owner") + "/" + c.PathValue("repo")) }
	byID := func(c *call) (*repo, bool) { return s.repos[c.number("id")], false }
	for path, find := range map[string]func(*call) (*repo, bool){"/repos/{owner}/{repo}": byName, "/repositories/{id}": byID} {
		s.handle(method+" "+path+rest, operation, func(c *call) response {
			r, moved := find(c)
			if r == nil || !s.sees(c.actor, r) {
				return notFound
			}
			if moved {
				return s.redirect(c, r)
			}
			return s.inRepo(c, r, n, h)
		})
	}
}

// inRepo calls a handler with the repository to itself, unless the actor may
// not do this, or nobody may.
func (s *Server) inRepo(c *call, r *repo, n need, h func(*call, *repo) response) response {
	s.occupy(r)
	defer r.busy.Unlock()
	traced(c.Request).repo = r.id
	if s.repos[r.id] != r {
		return notFound // deleted while we waited
	}
	if bad := s.deny(c.actor, r, n); bad != nil {
		return *bad
	}
	switch {
	case r.blocked:
		return blockedAnswer(r)
	case r.archived && n.writes() && !unarchives(c):
		return refuse(http.StatusForbidden, "Repository was archived so is read-only.")
	}
	return h(c, r)
}

// occupy takes a repository for the caller alone. It gives the server's lock
// up meanwhile, because a repository's comes first.
func (s *Server) occupy(r *repo) {
	s.mu.Unlock()
	r.busy.Lock()
	s.mu.Lock()
}

// unarchives reports whether a request ends a repository's being archived,
// which is the one write it still takes.
func unarchives(c *call) bool {
	return c.Method == http.MethodPatch && c.given("archived") && !c.flag("archived", true)
}

// blockedAnswer is what GitHub says of a repository it closed.
func blockedAnswer(r *repo) response {
	answer := refuse(http.StatusUnavailableForLegalReasons, "Repository access blocked")
	if body, isObject := answer.body.(map[string]any); isObject {
		body["block"] = map[string]any{"reason": "dmca", "created_at": stamp(r.updatedAt), "html_url": "https://github.com/github/dmca"}
	}
	return answer
}
