// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"fmt"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"
)

func (s *Server) routes() {
	s.handle("GET /app", "apps/get-authenticated", s.asApp(func(c *call) response { return ok(s.integration(c.actor.app)) }))
	s.handle("GET /app/installations", "apps/list-installations", s.asApp(s.listInstallations))
	s.handle("GET /app/installations/{installation}", "apps/get-installation", s.asApp(s.getInstallation))
	s.handle("POST /app/installations/{installation}/access_tokens", "apps/create-installation-access-token", s.createToken)
	s.handle("GET /app/hook/deliveries", "apps/list-webhook-deliveries", s.asApp(s.listDeliveries))
	s.handle("GET /orgs/{login}/installation", "apps/get-org-installation", s.asApp(s.accountInstallation("Organization")))
	s.handle("GET /users/{login}/installation", "apps/get-user-installation", s.asApp(s.accountInstallation("User")))
	s.handle("GET /users/{login}", "users/get-by-username", s.getUser)
	s.handle("POST /orgs/{login}/repos", "repos/create-in-org", s.createRepo)

	s.repoRoute("GET", "", "repos/get", s.getRepo)
	s.repoRoute("PATCH", "", "repos/update", s.updateRepo)
	s.repoRoute("GET", "/commits", "repos/list-commits", s.listCommits)
	s.repoRoute("GET", "/commits/{ref...}", "repos/get-commit", s.getCommit)
	s.repoRoute("GET", "/git/ref/{ref...}", "git/get-ref", s.getRef)
	s.repoRoute("GET", "/compare/{basehead...}", "repos/compare-commits", s.compareCommits)
	s.repoRoute("GET", "/pulls", "pulls/list", s.listPulls)
	s.repoRoute("POST", "/pulls", "pulls/create", s.createPull)
	s.repoRoute("GET", "/pulls/{number}", "pulls/get", s.onPull(func(_ *call, p *pull) response { return ok(s.pullFull(p)) }))
	s.repoRoute("PATCH", "/pulls/{number}", "pulls/update", s.onPull(s.updatePull))
	s.repoRoute("GET", "/issues/{number}/comments", "issues/list-comments", s.onPull(s.listComments))
	s.repoRoute("POST", "/issues/{number}/comments", "issues/create-comment", s.onPull(s.createComment))
	s.repoRoute("POST", "/issues/{number}/labels", "issues/add-labels", s.onPull(s.addLabels))

	s.mux.HandleFunc("/{owner}/{repo}/info/refs", s.gitInfoRefs)
	s.mux.HandleFunc("POST /{owner}/{repo}/git-upload-pack", s.gitService("upload-pack"))
	s.mux.HandleFunc("POST /{owner}/{repo}/git-receive-pack", s.gitService("receive-pack"))
	s.controlRoutes()
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.log(Request{Method: r.Method, Path: r.URL.Path, Status: http.StatusNotFound})
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"message":"Not Found","documentation_url":%q,"status":"404"}`, docsURL) // the client is gone
	})
}

// repoRoute registers an operation on a repository by name and by id. A former
// name answers with a redirect to the id's form.
func (s *Server) repoRoute(method, rest, operation string, h func(*call, *repo) response) {
	s.handle(method+" /repos/{owner}/{repo}"+rest, operation, func(c *call) response {
		r, moved := s.find(c.PathValue("owner") + "/" + c.PathValue("repo"))
		if r == nil || !c.actor.sees(r) {
			return notFound
		}
		if moved {
			prefix := "/repos/" + c.PathValue("owner") + "/" + c.PathValue("repo")
			return s.redirect(c, r, strings.TrimPrefix(c.URL.EscapedPath(), prefix))
		}
		return h(c, r)
	})
	s.handle(method+" /repositories/{id}"+rest, operation, func(c *call) response {
		r := s.repos[pathID(c, "id")]
		if r == nil || !c.actor.sees(r) {
			return notFound
		}
		return h(c, r)
	})
}

func (s *Server) redirect(c *call, r *repo, rest string) response {
	status := http.StatusMovedPermanently
	if c.Method != http.MethodGet {
		status = http.StatusTemporaryRedirect
	}
	location := s.api("/repositories/%d%s", r.id, rest)
	if c.URL.RawQuery != "" {
		location += "?" + c.URL.RawQuery
	}
	return response{status: status, header: http.Header{"Location": {location}},
		body: map[string]any{"message": "Moved Permanently", "url": location, "documentation_url": docsURL + "/guides/getting-started-with-the-rest-api#http-redirects"}}
}

func (s *Server) asApp(h func(*call) response) func(*call) response {
	return func(c *call) response {
		if c.actor.app == nil {
			return refuse(http.StatusUnauthorized, "A JSON web token could not be decoded")
		}
		return h(c)
	}
}

// page cuts a list as per_page and page say, and links the pages.
func page[T any](s *Server, c *call, list []T) ([]T, http.Header) {
	per, number := 30, 1
	if n, err := strconv.Atoi(c.URL.Query().Get("per_page")); err == nil && n > 0 {
		per = min(n, 100)
	}
	if n, err := strconv.Atoi(c.URL.Query().Get("page")); err == nil && n > 0 {
		number = n
	}
	start := min((number-1)*per, len(list))
	end := min(start+per, len(list))
	header := http.Header{}
	if end < len(list) {
		q := c.URL.Query()
		q.Set("page", strconv.Itoa(number+1))
		header.Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, s.baseURL, c.URL.EscapedPath(), q.Encode()))
	}
	return list[start:end], header
}

func (s *Server) listInstallations(c *call) response {
	var mine []*installation
	for _, i := range s.installations {
		if i.app == c.actor.app {
			mine = append(mine, i)
		}
	}
	sort.Slice(mine, func(a, b int) bool { return mine[a].id < mine[b].id })
	mine, header := page(s, c, mine)
	list := []any{}
	for _, i := range mine {
		list = append(list, s.installationJSON(i))
	}
	return response{status: http.StatusOK, body: list, header: header}
}

func (s *Server) getInstallation(c *call) response {
	i := s.installations[pathID(c, "installation")]
	if i == nil || i.app != c.actor.app {
		return notFound
	}
	return ok(s.installationJSON(i))
}

func (s *Server) accountInstallation(kind string) func(*call) response {
	return func(c *call) response {
		for _, i := range s.installations {
			if i.app == c.actor.app && i.account.kind == kind && key(i.account.login) == key(c.PathValue("login")) {
				return ok(s.installationJSON(i))
			}
		}
		return notFound
	}
}

func (s *Server) getUser(c *call) response {
	a := s.accounts[key(c.PathValue("login"))]
	if a == nil {
		return notFound
	}
	return ok(s.publicUser(a))
}

func (s *Server) createRepo(c *call) response {
	org := s.accounts[key(c.PathValue("login"))]
	if org == nil || c.actor.account() == nil || (c.actor.installation != nil && c.actor.installation.account != org) {
		return notFound
	}
	name := c.text("name")
	if existing, moved := s.find(org.login + "/" + name); existing != nil && !moved {
		return response{status: http.StatusUnprocessableEntity, body: map[string]any{"message": "Repository creation failed.", "documentation_url": docsURL,
			"errors": []any{map[string]any{"resource": "Repository", "code": "custom", "field": "name", "message": "name already exists on this account"}}}}
	}
	private := c.flag("private", false) || c.text("visibility") == "private" || c.text("visibility") == "internal"
	r, err := s.newRepo(org, name, private)
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	s.emitRepository(r, c.actor.account(), "created", nil)
	resp := created(s.fullRepository(r))
	resp.header = http.Header{"Location": {s.api("/repos/%s", r.fullName())}}
	return resp
}

func (s *Server) getRepo(_ *call, r *repo) response { return ok(s.fullRepository(r)) }

func (s *Server) updateRepo(c *call, r *repo) response {
	if r.archived && c.flag("archived", true) {
		return archivedAnswer
	}
	if branch := c.text("default_branch"); branch != "" {
		if _, exists := refs(r.dir)["refs/heads/"+branch]; !exists {
			return invalid("Repository", "default_branch", "invalid", "The branch "+branch+" was not found. Please push that ref first or create it via the Git Data API.")
		}
		r.defaultBranch = branch
		if _, err := git(r.dir, nil, nil, "symbolic-ref", "HEAD", "refs/heads/"+branch); err != nil {
			return refuse(http.StatusInternalServerError, err.Error())
		}
	}
	r.updatedAt = s.now()
	return ok(s.fullRepository(r))
}

var archivedAnswer = refuse(http.StatusForbidden, "Repository was archived so is read-only.")

var emptyAnswer = refuse(http.StatusConflict, "Git Repository is empty.")

func empty(r *repo) bool { return len(refs(r.dir)) == 0 }

func (s *Server) listCommits(c *call, r *repo) response {
	if empty(r) {
		return emptyAnswer
	}
	from := c.URL.Query().Get("sha")
	if from == "" {
		from = r.defaultBranch
	}
	sha, found := resolve(r.dir, from)
	if !found {
		return notFound
	}
	out, err := git(r.dir, nil, nil, "rev-list", "--max-count=1000", sha)
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	shas, header := page(s, c, strings.Fields(out))
	list := []any{}
	for _, sha := range shas {
		list = append(list, s.commit(r, sha))
	}
	return response{status: http.StatusOK, body: list, header: header}
}

func (s *Server) getCommit(c *call, r *repo) response {
	if empty(r) {
		return emptyAnswer
	}
	sha, found := resolve(r.dir, c.PathValue("ref"))
	if !found {
		return refuse(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.PathValue("ref"))
	}
	return ok(s.commit(r, sha))
}

func (s *Server) getRef(c *call, r *repo) response {
	all := refs(r.dir)
	if len(all) == 0 {
		return emptyAnswer
	}
	name := "refs/" + c.PathValue("ref")
	sha, found := all[name]
	if !found {
		return notFound
	}
	return ok(map[string]any{"ref": name, "node_id": nodeID("REF", r.id) + name, "url": s.api("/repos/%s/git/%s", r.fullName(), name),
		"object": map[string]any{"sha": sha, "type": "commit", "url": s.api("/repos/%s/git/commits/%s", r.fullName(), sha)}})
}

// maxCompareCommits is how many commits a comparison lists without paging.
const maxCompareCommits = 250

func (s *Server) compareCommits(c *call, r *repo) response {
	baseName, headName, isRange := strings.Cut(c.PathValue("basehead"), "...")
	base, haveBase := resolve(r.dir, baseName)
	head, haveHead := resolve(r.dir, headName)
	if !isRange || !haveBase || !haveHead {
		return notFound
	}
	cmp := compare(r.dir, base, head)
	if cmp.base == "" {
		return refuse(http.StatusNotFound, fmt.Sprintf("No common ancestor between %s and %s.", baseName, headName))
	}
	commits, paged := cmp.commits, c.URL.Query().Get("per_page") != ""
	if paged {
		commits, _ = page(s, c, commits)
	} else if len(commits) > maxCompareCommits {
		commits = commits[len(commits)-maxCompareCommits:]
	}
	list := []any{}
	for _, sha := range commits {
		list = append(list, s.commit(r, sha))
	}
	html := s.api("/%s/compare/%s...%s", r.fullName(), url.PathEscape(baseName), url.PathEscape(headName))
	body := map[string]any{"url": s.api("/repos/%s/compare/%s...%s", r.fullName(), url.PathEscape(baseName), url.PathEscape(headName)), "html_url": html, "permalink_url": html,
		"diff_url": html + ".diff", "patch_url": html + ".patch", "base_commit": s.commit(r, base), "merge_base_commit": s.commit(r, cmp.base),
		"status": cmp.status, "ahead_by": cmp.ahead, "behind_by": cmp.behind, "total_commits": cmp.ahead, "commits": list}
	if n := c.URL.Query().Get("page"); n == "" || n == "1" {
		body["files"] = s.files(r, head, cmp.files)
	}
	return ok(body)
}

func (s *Server) files(r *repo, head string, files []changedFile) []any {
	list := []any{}
	for i, f := range files {
		if i == maxCompareFiles {
			break
		}
		path := url.PathEscape(f.name)
		m := map[string]any{"sha": f.sha, "filename": f.name, "status": f.status, "additions": f.additions, "deletions": f.deletions, "changes": f.additions + f.deletions,
			"blob_url": s.api("/%s/blob/%s/%s", r.fullName(), head, path), "raw_url": s.api("/%s/raw/%s/%s", r.fullName(), head, path),
			"contents_url": s.api("/repos/%s/contents/%s?ref=%s", r.fullName(), path, head)}
		if f.previous != "" {
			m["previous_filename"] = f.previous
		}
		list = append(list, m)
	}
	return list
}
