// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// nodeID makes an opaque global id.
func nodeID(kind string, id int64) string {
	return kind + "_" + base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf("%s:%d", kind, id)))
}

func (s *Server) api(format string, args ...any) string {
	return s.baseURL + fmt.Sprintf(format, args...)
}

// user renders a simple-user.
func (s *Server) user(a *account) map[string]any {
	if a == nil {
		return nil
	}
	url := s.api("/users/%s", a.login)
	return map[string]any{
		"login": a.login, "id": a.id, "node_id": nodeID("U", a.id), "avatar_url": s.api("/avatars/%d", a.id), "gravatar_id": "",
		"url": url, "html_url": s.api("/%s", strings.TrimSuffix(a.login, "[bot]")), "followers_url": url + "/followers", "following_url": url + "/following{/other_user}",
		"gists_url": url + "/gists{/gist_id}", "starred_url": url + "/starred{/owner}{/repo}", "subscriptions_url": url + "/subscriptions",
		"organizations_url": url + "/orgs", "repos_url": url + "/repos", "events_url": url + "/events{/privacy}",
		"received_events_url": url + "/received_events", "type": a.kind, "site_admin": false,
	}
}

// publicUser renders a public-user.
func (s *Server) publicUser(a *account) map[string]any {
	u := s.user(a)
	for k, v := range map[string]any{
		"user_view_type": "public", "name": nil, "company": nil, "blog": "", "location": nil, "email": nil, "hireable": nil, "bio": nil, "public_repos": 0, "public_gists": 0,
		"followers": 0, "following": 0, "created_at": stamp(a.createdAt), "updated_at": stamp(a.createdAt),
	} {
		u[k] = v
	}
	return u
}

// repoURLs are the links every form of a repository carries.
func (s *Server) repoURLs(r *repo) map[string]any {
	url := s.api("/repos/%s", r.fullName())
	html := s.api("/%s", r.fullName())
	m := map[string]any{"url": url, "html_url": html, "clone_url": html + ".git", "git_url": strings.Replace(html, "http", "git", 1) + ".git",
		"ssh_url": "git@localhost:" + r.fullName() + ".git", "svn_url": html}
	for name, rest := range map[string]string{
		"archive": "/{archive_format}{/ref}", "assignees": "/assignees{/user}", "blobs": "/git/blobs{/sha}", "branches": "/branches{/branch}",
		"collaborators": "/collaborators{/collaborator}", "comments": "/comments{/number}", "commits": "/commits{/sha}", "compare": "/compare/{base}...{head}",
		"contents": "/contents/{+path}", "contributors": "/contributors", "deployments": "/deployments", "downloads": "/downloads", "events": "/events",
		"forks": "/forks", "git_commits": "/git/commits{/sha}", "git_refs": "/git/refs{/sha}", "git_tags": "/git/tags{/sha}", "hooks": "/hooks",
		"issue_comment": "/issues/comments{/number}", "issue_events": "/issues/events{/number}", "issues": "/issues{/number}", "keys": "/keys{/key_id}",
		"labels": "/labels{/name}", "languages": "/languages", "merges": "/merges", "milestones": "/milestones{/number}",
		"notifications": "/notifications{?since,all,participating}", "pulls": "/pulls{/number}", "releases": "/releases{/id}", "stargazers": "/stargazers",
		"statuses": "/statuses/{sha}", "subscribers": "/subscribers", "subscription": "/subscription", "tags": "/tags", "teams": "/teams", "trees": "/git/trees{/sha}",
	} {
		m[name+"_url"] = url + rest
	}
	return m
}

// repository renders a repository as it is part of other objects.
func (s *Server) repository(r *repo) map[string]any {
	visibility := "public"
	if r.private {
		visibility = "private"
	}
	m := s.repoURLs(r)
	for k, v := range map[string]any{
		"id": r.id, "node_id": nodeID("R", r.id), "name": r.name, "full_name": r.fullName(), "private": r.private, "owner": s.user(r.owner),
		"description": nil, "fork": false, "created_at": stamp(r.createdAt), "updated_at": stamp(r.updatedAt), "pushed_at": stamp(r.pushedAt),
		"homepage": nil, "size": 0, "stargazers_count": 0, "watchers_count": 0, "language": nil, "has_issues": true, "has_projects": false,
		"has_downloads": true, "has_wiki": false, "has_pages": false, "has_discussions": false, "forks_count": 0, "mirror_url": nil, "archived": r.archived, "disabled": false,
		"open_issues_count": openPulls(r), "license": nil, "allow_forking": true, "is_template": false, "web_commit_signoff_required": false, "topics": []string{},
		"visibility": visibility, "forks": 0, "open_issues": openPulls(r), "watchers": 0, "default_branch": r.defaultBranch,
	} {
		m[k] = v
	}
	return m
}

// fullRepository renders a repository asked for by itself.
func (s *Server) fullRepository(r *repo) map[string]any {
	m := s.repository(r)
	m["network_count"], m["subscribers_count"] = 0, 0
	return m
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

// appPermissions are what every simulated App was given.
var appPermissions = map[string]any{"administration": "write", "contents": "write", "issues": "write", "members": "read", "metadata": "read",
	"pull_requests": "write", "workflows": "write", "actions": "write", "checks": "read"}

var appEvents = []string{"member", "organization", "pull_request", "push", "repository", "workflow_run"}

func (s *Server) integration(a *app) map[string]any {
	return map[string]any{"id": a.id, "slug": a.slug, "node_id": nodeID("A", a.id), "owner": s.user(a.owner), "name": a.name, "description": nil,
		"external_url": s.api("/apps/%s", a.slug), "html_url": s.api("/apps/%s", a.slug), "created_at": stamp(a.createdAt), "updated_at": stamp(a.createdAt),
		"permissions": appPermissions, "events": appEvents, "installations_count": s.countInstallations(a)}
}

func (s *Server) countInstallations(a *app) int {
	n := 0
	for _, i := range s.installations {
		if i.app == a {
			n++
		}
	}
	return n
}

func (s *Server) installationJSON(i *installation) map[string]any {
	m := map[string]any{"id": i.id, "app_id": i.app.id, "app_slug": i.app.slug, "target_id": i.account.id, "target_type": i.account.kind, "single_file_name": nil,
		"repository_selection": "all", "access_tokens_url": s.api("/app/installations/%d/access_tokens", i.id), "html_url": s.api("/organizations/%s/settings/installations/%d", i.account.login, i.id),
		"repositories_url": s.api("/installation/repositories"), "events": appEvents, "account": s.user(i.account), "permissions": appPermissions,
		"created_at": stamp(i.createdAt), "updated_at": stamp(i.createdAt), "suspended_by": nil, "suspended_at": nil}
	if i.suspendedAt != nil {
		m["suspended_at"], m["suspended_by"] = stamp(*i.suspendedAt), s.user(i.account)
	}
	return m
}

// pullSimple renders a pull request of a list.
func (s *Server) pullSimple(p *pull) map[string]any {
	url := s.api("/repos/%s/pulls/%d", p.repo.fullName(), p.number)
	issue := s.api("/repos/%s/issues/%d", p.repo.fullName(), p.number)
	html := s.api("/%s/pull/%d", p.repo.fullName(), p.number)
	side := func(ref, sha string) map[string]any {
		return map[string]any{"label": p.repo.owner.login + ":" + ref, "ref": ref, "sha": sha, "user": s.user(p.repo.owner), "repo": s.repository(p.repo)}
	}
	link := func(href string) map[string]any { return map[string]any{"href": href} }
	state := "open"
	if !p.open() {
		state = "closed"
	}
	m := map[string]any{
		"id": p.id, "node_id": nodeID("PR", p.id), "number": p.number, "state": state, "locked": false, "title": p.title, "body": nil, "user": s.user(p.author),
		"url": url, "html_url": html, "diff_url": html + ".diff", "patch_url": html + ".patch", "issue_url": issue, "commits_url": url + "/commits",
		"review_comments_url": url + "/comments", "review_comment_url": s.api("/repos/%s/pulls/comments{/number}", p.repo.fullName()),
		"comments_url": issue + "/comments", "statuses_url": s.api("/repos/%s/statuses/%s", p.repo.fullName(), p.headSHA),
		"labels": s.labels(p), "milestone": nil, "assignee": nil, "assignees": []any{}, "requested_reviewers": []any{}, "requested_teams": []any{},
		"created_at": stamp(p.createdAt), "updated_at": stamp(p.updatedAt), "closed_at": nil, "merged_at": nil, "merge_commit_sha": nil,
		"head": side(p.head, p.headSHA), "base": side(p.base, p.baseSHA), "author_association": "CONTRIBUTOR", "auto_merge": nil, "draft": p.draft,
		"_links": map[string]any{"self": link(url), "html": link(html), "issue": link(issue), "comments": link(issue + "/comments"),
			"review_comments": link(url + "/comments"), "review_comment": link(url + "/comments{/number}"), "commits": link(url + "/commits"), "statuses": link(url + "/statuses")},
	}
	if p.body != "" {
		m["body"] = p.body
	}
	if p.closedAt != nil {
		m["closed_at"] = stamp(*p.closedAt)
	}
	if p.mergedAt != nil {
		m["merged_at"], m["merge_commit_sha"] = stamp(*p.mergedAt), p.mergeSHA
	}
	return m
}

// pullFull renders a pull request asked for by itself.
func (s *Server) pullFull(p *pull) map[string]any {
	m := s.pullSimple(p)
	cmp := compare(p.repo.dir, p.baseSHA, p.headSHA)
	additions, deletions := 0, 0
	for _, f := range cmp.files {
		additions += f.additions
		deletions += f.deletions
	}
	for k, v := range map[string]any{
		"merged": p.mergedAt != nil, "mergeable": p.open(), "mergeable_state": "clean", "merged_by": nil, "comments": len(p.comments), "review_comments": 0,
		"maintainer_can_modify": false, "commits": cmp.ahead, "additions": additions, "deletions": deletions, "changed_files": len(cmp.files), "rebaseable": nil,
	} {
		m[k] = v
	}
	if p.mergedBy != nil {
		m["merged_by"] = s.user(p.mergedBy)
	}
	return m
}

func (s *Server) labels(p *pull) []any {
	list := []any{}
	for _, l := range p.labels {
		list = append(list, map[string]any{"id": l.id, "node_id": nodeID("LA", l.id), "url": s.api("/repos/%s/labels/%s", p.repo.fullName(), l.name),
			"name": l.name, "description": "", "color": "ededed", "default": false})
	}
	return list
}

func (s *Server) commentJSON(p *pull, c comment) map[string]any {
	return map[string]any{"id": c.id, "node_id": nodeID("IC", c.id), "url": s.api("/repos/%s/issues/comments/%d", p.repo.fullName(), c.id),
		"html_url":  s.api("/%s/pull/%d#issuecomment-%d", p.repo.fullName(), p.number, c.id),
		"issue_url": s.api("/repos/%s/issues/%d", p.repo.fullName(), p.number), "user": s.user(c.author), "body": c.body,
		"created_at": stamp(c.createdAt), "updated_at": stamp(c.createdAt), "author_association": "CONTRIBUTOR"}
}

// commit renders a commit of a repository.
func (s *Server) commit(r *repo, sha string) map[string]any {
	info := readCommit(r.dir, sha)
	url := s.api("/repos/%s/commits/%s", r.fullName(), info.sha)
	html := s.api("/%s/commit/%s", r.fullName(), info.sha)
	parents := []any{}
	for _, p := range info.parents {
		parents = append(parents, map[string]any{"sha": p, "url": s.api("/repos/%s/commits/%s", r.fullName(), p), "html_url": s.api("/%s/commit/%s", r.fullName(), p)})
	}
	gitURL := s.api("/repos/%s/git/commits/%s", r.fullName(), info.sha)
	signature := func(name, email, date string) map[string]any {
		return map[string]any{"name": name, "email": email, "date": date}
	}
	return map[string]any{"sha": info.sha, "node_id": "C_" + info.sha, "url": url, "html_url": html, "comments_url": url + "/comments",
		"commit": map[string]any{"author": signature(info.author, info.authorEmail, info.authorDate), "committer": signature(info.committer, info.committerEmail, info.committerDate),
			"message": info.message, "tree": map[string]any{"sha": info.tree, "url": s.api("/repos/%s/git/trees/%s", r.fullName(), info.tree)}, "url": gitURL, "comment_count": 0},
		"author": s.accountOf(info.authorEmail), "committer": s.accountOf(info.committerEmail), "parents": parents}
}

// accountOf returns the account that an e-mail address is linked to, nil for
// none: only no-reply addresses are.
func (s *Server) accountOf(email string) any {
	name, host, _ := strings.Cut(email, "@")
	if !strings.HasPrefix(host, "users.noreply.") {
		return nil
	}
	_, login, found := strings.Cut(name, "+")
	if !found {
		login = name
	}
	if a := s.accounts[key(login)]; a != nil {
		return s.user(a)
	}
	return nil
}
