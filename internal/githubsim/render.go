// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"encoding/base64"
	"fmt"
	"maps"
	"strings"
	"time"
)

// nodeID makes an opaque global id.
func nodeID(kind string, id int64, more ...string) string {
	return kind + "_" + base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("%s:%d:%s", kind, id, strings.Join(more, ":"))))
}

// api returns an address of the simulator.
func (s *Server) api(format string, args ...any) string {
	return s.baseURL + fmt.Sprintf(format, args...)
}

// user renders a simple-user; nil for nobody.
func (s *Server) user(a *account) map[string]any {
	if a == nil {
		return nil
	}
	url := s.api("/users/%s", escapePath(a.login))
	html := s.api("/%s", a.login)
	if a.kind == kindBot {
		html = s.api("/apps/%s", strings.TrimSuffix(a.login, "[bot]"))
	}
	return map[string]any{
		"login": a.login, "id": a.id, "node_id": nodeID("U", a.id), "avatar_url": s.api("/avatars/%d", a.id), "gravatar_id": "",
		"url": url, "html_url": html, "followers_url": url + "/followers", "following_url": url + "/following{/other_user}",
		"gists_url": url + "/gists{/gist_id}", "starred_url": url + "/starred{/owner}{/repo}", "subscriptions_url": url + "/subscriptions",
		"organizations_url": url + "/orgs", "repos_url": url + "/repos", "events_url": url + "/events{/privacy}",
		"received_events_url": url + "/received_events", "type": a.kind, "site_admin": false, "user_view_type": "public",
	}
}

// users renders a list of accounts.
func (s *Server) users(list []*account) []any {
	out := []any{}
	for _, a := range list {
		out = append(out, s.user(a))
	}
	return out
}

// publicUser renders a user asked for by itself.
func (s *Server) publicUser(a *account) map[string]any {
	u := s.user(a)
	maps.Copy(u, map[string]any{
		"name": nil, "company": nil, "blog": "", "location": nil, "email": nil, "hireable": nil, "bio": nil, "public_repos": 0, "public_gists": 0,
		"followers": 0, "following": 0, "created_at": stamp(a.createdAt), "updated_at": stamp(a.createdAt),
	})
	return u
}

// ownerOf renders who a repository was transferred from.
func (s *Server) ownerOf(a *account) map[string]any {
	if a.kind == kindUser {
		return s.user(a)
	}
	return s.organizationSimple(a)
}

// organizationSimple renders an organization as payloads carry it.
func (s *Server) organizationSimple(a *account) map[string]any {
	url := s.api("/orgs/%s", a.login)
	return map[string]any{"login": a.login, "id": a.id, "node_id": nodeID("O", a.id), "url": url, "repos_url": url + "/repos", "events_url": url + "/events",
		"hooks_url": url + "/hooks", "issues_url": url + "/issues", "members_url": url + "/members{/member}", "public_members_url": url + "/public_members{/member}",
		"avatar_url": s.api("/avatars/%d", a.id), "description": ""}
}

// fullOrganization renders an organization asked for by itself.
func (s *Server) fullOrganization(a *account) map[string]any {
	m := s.organizationSimple(a)
	maps.Copy(m, map[string]any{"html_url": s.api("/%s", a.login), "name": a.login, "has_organization_projects": true, "has_repository_projects": true,
		"public_repos": 0, "public_gists": 0, "followers": 0, "following": 0, "type": kindOrganization, "created_at": stamp(a.createdAt), "updated_at": stamp(a.createdAt),
		"archived_at": nil, "default_repository_permission": a.basePermission.String(), "plan": map[string]any{"name": a.plan, "space": 0, "private_repos": 0}})
	return m
}

// repoLinks are the links every form of a repository carries: the end of the
// key's name, and what stands behind the repository's address.
var repoLinks = map[string]string{
	"archive": "/{archive_format}{/ref}", "assignees": "/assignees{/user}", "blobs": "/git/blobs{/sha}", "branches": "/branches{/branch}",
	"collaborators": "/collaborators{/collaborator}", "comments": "/comments{/number}", "commits": "/commits{/sha}", "compare": "/compare/{base}...{head}",
	"contents": "/contents/{+path}", "contributors": "/contributors", "deployments": "/deployments", "downloads": "/downloads", "events": "/events",
	"forks": "/forks", "git_commits": "/git/commits{/sha}", "git_refs": "/git/refs{/sha}", "git_tags": "/git/tags{/sha}", "hooks": "/hooks",
	"issue_comment": "/issues/comments{/number}", "issue_events": "/issues/events{/number}", "issues": "/issues{/number}", "keys": "/keys{/key_id}",
	"labels": "/labels{/name}", "languages": "/languages", "merges": "/merges", "milestones": "/milestones{/number}",
	"notifications": "/notifications{?since,all,participating}", "pulls": "/pulls{/number}", "releases": "/releases{/id}", "stargazers": "/stargazers",
	"statuses": "/statuses/{sha}", "subscribers": "/subscribers", "subscription": "/subscription", "tags": "/tags", "teams": "/teams", "trees": "/git/trees{/sha}",
}

// minimalRepository renders a repository of a list of an organization.
func (s *Server) minimalRepository(r *repo) map[string]any {
	url, html := s.api("/repos/%s", r.fullName()), s.api("/%s", r.fullName())
	m := map[string]any{"id": r.id, "node_id": nodeID("R", r.id), "name": r.name, "full_name": r.fullName(), "private": r.private(), "owner": s.user(r.owner),
		"url": url, "html_url": html, "description": nil, "fork": false}
	for name, rest := range repoLinks {
		m[name+"_url"] = url + rest
	}
	if r.description != "" {
		m["description"] = r.description
	}
	return m
}

// repository renders a repository as it is part of other objects.
func (s *Server) repository(r *repo) map[string]any {
	m, html := s.minimalRepository(r), s.api("/%s", r.fullName())
	open := openPulls(r)
	maps.Copy(m, map[string]any{"clone_url": html + ".git", "git_url": "git:" + strings.TrimPrefix(strings.TrimPrefix(html, "https:"), "http:") + ".git",
		"ssh_url": "git@localhost:" + r.fullName() + ".git", "svn_url": html,
		"created_at": stamp(r.createdAt), "updated_at": stamp(r.updatedAt), "pushed_at": stamp(r.pushedAt),
		"homepage": nil, "size": 0, "stargazers_count": 0, "watchers_count": 0, "language": nil, "has_pages": false, "has_discussions": false,
		"forks_count": 0, "mirror_url": nil, "archived": r.archived, "disabled": r.blocked, "open_issues_count": open, "license": nil, "topics": []string{},
		"visibility": r.visibility, "forks": 0, "open_issues": open, "watchers": 0, "default_branch": r.defaultBranch})
	for _, name := range []string{"has_issues", "has_projects", "has_wiki", "has_downloads", "is_template", "allow_forking", "web_commit_signoff_required"} {
		m[name] = r.features[name]
	}
	if r.homepage != "" {
		m["homepage"] = r.homepage
	}
	return m
}

// fullRepository renders a repository asked for by itself, with what the actor
// may do. Settings of merging are shown to those who may change them.
func (s *Server) fullRepository(who actor, r *repo) map[string]any {
	m := s.repository(r)
	m["network_count"], m["subscribers_count"] = 0, 0
	if r.owner.kind == kindOrganization {
		m["organization"] = s.user(r.owner)
	}
	role := s.roleOf(who.user, r)
	if who.installation != nil && s.reaches(who, r) {
		role = installationRole(who.token.permissions)
	}
	if who.account() != nil {
		m["permissions"] = role.permissions()
	}
	if role >= accessAdmin {
		for _, name := range []string{"allow_squash_merge", "allow_merge_commit", "allow_rebase_merge", "allow_auto_merge", "delete_branch_on_merge", "allow_update_branch"} {
			m[name] = r.features[name]
		}
	}
	return m
}

// installationRole returns the role that a token's permissions come to.
func installationRole(permissions map[string]string) access {
	switch {
	case permissions["administration"] == "write":
		return accessAdmin
	case permissions["contents"] == "write":
		return accessWrite
	}
	return accessRead
}

// repositoryLite renders a repository as installation events list it.
func repositoryLite(r *repo) map[string]any {
	return map[string]any{"id": r.id, "node_id": nodeID("R", r.id), "name": r.name, "full_name": r.fullName(), "private": r.private()}
}

func openPulls(r *repo) int {
	n := 0
	for _, p := range r.pulls {
		if p.open() {
			n++
		}
	}
	return n
}

// integration renders an App.
func (s *Server) integration(a *app) map[string]any {
	installations := 0
	for _, i := range s.installations {
		if i.app == a {
			installations++
		}
	}
	m := s.integrationLite(a)
	m["installations_count"] = installations
	return m
}

func (s *Server) integrationLite(a *app) map[string]any {
	return map[string]any{"id": a.id, "slug": a.slug, "client_id": a.clientID(), "node_id": nodeID("A", a.id), "owner": s.user(a.owner), "name": a.name, "description": nil,
		"external_url": s.api("/apps/%s", a.slug), "html_url": s.api("/apps/%s", a.slug), "created_at": stamp(a.createdAt), "updated_at": stamp(a.createdAt),
		"permissions": a.permissions, "events": a.events}
}

// installationLite renders an installation as events in repositories carry it.
func (s *Server) installationLite(i *installation) map[string]any {
	return map[string]any{"id": i.id, "node_id": nodeID("I", i.id)}
}

func (s *Server) installationJSON(i *installation) map[string]any {
	html := s.api("/settings/installations/%d", i.id)
	if i.account.kind == kindOrganization {
		html = s.api("/organizations/%s/settings/installations/%d", i.account.login, i.id)
	}
	m := map[string]any{"id": i.id, "app_id": i.app.id, "app_slug": i.app.slug, "client_id": i.app.clientID(), "target_id": i.account.id, "target_type": i.account.kind, "single_file_name": nil,
		"repository_selection": i.selection(), "access_tokens_url": s.api("/app/installations/%d/access_tokens", i.id), "html_url": html,
		"repositories_url": s.api("/installation/repositories"), "events": i.app.events, "account": s.user(i.account), "permissions": i.app.permissions,
		"created_at": stamp(i.createdAt), "updated_at": stamp(i.createdAt), "suspended_by": nil, "suspended_at": stampOr(i.suspendedAt),
		"has_multiple_single_files": false, "single_file_paths": []any{}}
	if i.suspendedBy != nil {
		m["suspended_by"] = s.user(i.suspendedBy)
	}
	return m
}

// pullSimple renders a pull request of a list.
func (s *Server) pullSimple(p *pull) map[string]any {
	name := p.repo.fullName()
	url, issue, html := s.api("/repos/%s/pulls/%d", name, p.number), s.api("/repos/%s/issues/%d", name, p.number), s.api("/%s/pull/%d", name, p.number)
	side := func(ref, sha string) map[string]any {
		return map[string]any{"label": p.repo.owner.login + ":" + ref, "ref": ref, "sha": sha, "user": s.user(p.repo.owner), "repo": s.repository(p.repo)}
	}
	link := func(href string) map[string]any { return map[string]any{"href": href} }
	state := "open"
	if !p.open() {
		state = "closed"
	}
	m := map[string]any{
		"id": p.id, "node_id": nodeID("PR", p.id), "number": p.number, "state": state, "locked": p.locked, "title": p.title, "body": nil, "user": s.user(p.author),
		"url": url, "html_url": html, "diff_url": html + ".diff", "patch_url": html + ".patch", "issue_url": issue, "commits_url": url + "/commits",
		"review_comments_url": url + "/comments", "review_comment_url": s.api("/repos/%s/pulls/comments{/number}", name),
		"comments_url": issue + "/comments", "statuses_url": s.api("/repos/%s/statuses/%s", name, p.headSHA),
		"labels": s.labels(p.repo, p.labels), "milestone": nil, "assignee": nil, "assignees": s.users(p.assignees), "requested_reviewers": s.users(p.reviewers), "requested_teams": []any{},
		"created_at": stamp(p.createdAt), "updated_at": stamp(p.updatedAt), "closed_at": stampOr(p.closedAt), "merged_at": stampOr(p.mergedAt), "merge_commit_sha": nil,
		"head": side(p.head, p.headSHA), "base": side(p.base, p.baseSHA), "author_association": s.association(p.author, p.repo), "auto_merge": nil, "draft": p.draft, "active_lock_reason": nil,
		"_links": map[string]any{"self": link(url), "html": link(html), "issue": link(issue), "comments": link(issue + "/comments"),
			"review_comments": link(url + "/comments"), "review_comment": link(s.api("/repos/%s/pulls/comments{/number}", name)), "commits": link(url + "/commits"), "statuses": link(s.api("/repos/%s/statuses/%s", name, p.headSHA))},
	}
	if p.body != "" {
		m["body"] = p.body
	}
	if len(p.assignees) > 0 {
		m["assignee"] = s.user(p.assignees[0])
	}
	if p.mergedAt != nil {
		m["merge_commit_sha"] = p.mergeSHA
	}
	return m
}

// association says what somebody is to a repository.
func (s *Server) association(a *account, r *repo) string {
	switch {
	case a == r.owner:
		return "OWNER"
	case r.owner.members[a.id] != "":
		return "MEMBER"
	case r.collaborators[a.id] != accessNone:
		return "COLLABORATOR"
	}
	return "CONTRIBUTOR"
}

// pullFull renders a pull request asked for by itself. Whether it can be
// merged is not known yet, as GitHub answers at first.
func (s *Server) pullFull(p *pull) (map[string]any, error) {
	stats, err := s.sizes(p)
	if err != nil {
		return nil, err
	}
	m := s.pullSimple(p)
	maps.Copy(m, map[string]any{
		"merged": p.mergedAt != nil, "mergeable": nil, "mergeable_state": "unknown", "merged_by": nil, "comments": len(p.comments), "review_comments": 0,
		"maintainer_can_modify": false, "commits": stats.commits, "additions": stats.additions, "deletions": stats.deletions, "changed_files": stats.files, "rebaseable": nil,
	})
	if p.mergedBy != nil {
		m["merged_by"] = s.user(p.mergedBy)
	}
	return m, nil
}

// issue renders a pull request as the issue it is as well.
func (s *Server) issue(p *pull) map[string]any {
	name := p.repo.fullName()
	url, html := s.api("/repos/%s/issues/%d", name, p.number), s.api("/%s/pull/%d", name, p.number)
	pull := s.pullSimple(p)
	m := map[string]any{"url": url, "repository_url": s.api("/repos/%s", name), "labels_url": url + "/labels{/name}", "comments_url": url + "/comments", "events_url": url + "/events",
		"html_url": html, "id": p.id, "node_id": nodeID("PR", p.id), "comments": len(p.comments),
		"pull_request": map[string]any{"url": pull["url"], "html_url": html, "diff_url": html + ".diff", "patch_url": html + ".patch", "merged_at": pull["merged_at"]}}
	for _, key := range []string{"number", "title", "user", "labels", "state", "locked", "assignee", "assignees", "milestone", "created_at", "updated_at", "closed_at",
		"author_association", "active_lock_reason", "body", "draft"} {
		m[key] = pull[key]
	}
	return m
}

func (s *Server) labelJSON(r *repo, l *label) map[string]any {
	return map[string]any{"id": l.id, "node_id": nodeID("LA", l.id), "url": s.api("/repos/%s/labels/%s", r.fullName(), escapePath(l.name)),
		"name": l.name, "description": l.description, "color": l.color, "default": false}
}

func (s *Server) labels(r *repo, list []*label) []any {
	out := []any{}
	for _, l := range list {
		out = append(out, s.labelJSON(r, l))
	}
	return out
}

func (s *Server) commentJSON(p *pull, c *comment) map[string]any {
	m := map[string]any{"id": c.id, "node_id": nodeID("IC", c.id), "url": s.api("/repos/%s/issues/comments/%d", p.repo.fullName(), c.id),
		"html_url":  s.api("/%s/pull/%d#issuecomment-%d", p.repo.fullName(), p.number, c.id),
		"issue_url": s.api("/repos/%s/issues/%d", p.repo.fullName(), p.number), "user": s.user(c.author), "body": c.body,
		"created_at": stamp(c.createdAt), "updated_at": stamp(c.updatedAt), "author_association": s.association(c.author, p.repo), "performed_via_github_app": nil}
	if c.viaApp != nil {
		m["performed_via_github_app"] = s.integrationLite(c.viaApp)
	}
	return m
}

func signatureJSON(g signature) map[string]any {
	return map[string]any{"name": g.name, "email": g.email, "date": g.at.UTC().Format(time.RFC3339)}
}

func unverified() map[string]any {
	return map[string]any{"verified": false, "reason": "unsigned", "signature": nil, "payload": nil, "verified_at": nil}
}

// commit renders a commit of a repository.
func (s *Server) commit(r *repo, info *commitInfo) map[string]any {
	url := s.api("/repos/%s/commits/%s", r.fullName(), info.sha)
	parents := []any{}
	for _, p := range info.parents {
		parents = append(parents, map[string]any{"sha": p, "url": s.api("/repos/%s/commits/%s", r.fullName(), p), "html_url": s.api("/%s/commit/%s", r.fullName(), p)})
	}
	m := map[string]any{"sha": info.sha, "node_id": nodeID("C", r.id, info.sha), "url": url, "html_url": s.api("/%s/commit/%s", r.fullName(), info.sha), "comments_url": url + "/comments",
		"commit": map[string]any{"author": signatureJSON(info.author), "committer": signatureJSON(info.committer), "message": info.message,
			"tree": map[string]any{"sha": info.tree, "url": s.api("/repos/%s/git/trees/%s", r.fullName(), info.tree)},
			"url":  s.api("/repos/%s/git/commits/%s", r.fullName(), info.sha), "comment_count": 0, "verification": unverified()},
		"author": nil, "committer": nil, "parents": parents}
	if a := s.linked(info.author.email); a != nil {
		m["author"] = s.user(a)
	}
	if a := s.linked(info.committer.email); a != nil {
		m["committer"] = s.user(a)
	}
	return m
}

// linked returns the account that an e-mail address is linked to, nil for
// none: only no-reply addresses are.
func (s *Server) linked(email string) *account {
	if email == "noreply@github.com" {
		return s.webFlow
	}
	name, host, _ := strings.Cut(email, "@")
	if !strings.HasPrefix(host, "users.noreply.") {
		return nil
	}
	id, login, found := strings.Cut(name, "+")
	if !found {
		return s.accounts[key(name)]
	}
	if a := s.accounts[key(login)]; a != nil && fmt.Sprint(a.id) == id {
		return a
	}
	return nil
}

// collaborator renders somebody with access to a repository.
func (s *Server) collaborator(a *account, role access) map[string]any {
	m := s.user(a)
	m["permissions"], m["role_name"] = role.permissions(), role.String()
	return m
}

func (s *Server) invitationJSON(r *repo, i *invitation) map[string]any {
	return map[string]any{"id": i.id, "node_id": nodeID("RI", i.id), "repository": s.minimalRepository(r), "invitee": s.user(i.invitee), "inviter": s.user(i.inviter),
		"permissions": i.permission.String(), "created_at": stamp(i.createdAt), "expired": i.expired(s.now()),
		"url": s.api("/user/repository_invitations/%d", i.id), "html_url": s.api("/%s/invitations", r.fullName())}
}

// rulesetSimple renders a ruleset of a list.
func (s *Server) rulesetSimple(r *repo, rs *ruleset) map[string]any {
	return map[string]any{"id": rs.id, "node_id": nodeID("RRS", rs.id), "name": rs.name, "target": rs.target, "source_type": "Repository", "source": r.fullName(),
		"enforcement": rs.enforcement, "created_at": stamp(rs.createdAt), "updated_at": stamp(rs.updatedAt),
		"_links": map[string]any{"self": map[string]any{"href": s.api("/repos/%s/rulesets/%d", r.fullName(), rs.id)},
			"html": map[string]any{"href": s.api("/%s/rules/%d", r.fullName(), rs.id)}}}
}

// rulesetFull renders a ruleset asked for by itself. Who may pass it is shown
// to those who may change it.
func (s *Server) rulesetFull(who actor, r *repo, rs *ruleset) map[string]any {
	m := s.rulesetSimple(r, rs)
	m["conditions"] = rs.conditions
	if rs.conditions == nil {
		m["conditions"] = map[string]any{}
	}
	m["rules"] = orEmpty(rs.rules)
	if s.deny(who, r, adminWrite) == nil {
		m["bypass_actors"] = orEmpty(rs.bypass)
	}
	m["current_user_can_bypass"] = "never"
	if s.bypasses(who, r, rs) {
		m["current_user_can_bypass"] = "always"
	}
	return m
}

func orEmpty(list []any) []any {
	if list == nil {
		return []any{}
	}
	return list
}
