// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// legalName matches the names GitHub takes for repositories.
var legalName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

func (s *Server) createRepo(c *call) response {
	org := s.organization(c)
	if org == nil {
		return notFound
	}
	if bad := s.denyCreation(c.actor, org); bad != nil {
		return *bad
	}
	name := c.text("name")
	refused := func(message string) response {
		return unprocessable("Repository creation failed.", map[string]any{"resource": "Repository", "code": "custom", "field": "name", "message": message})
	}
	switch existing, moved := s.find(org.login + "/" + name); {
	case name == "":
		return invalid("Repository", "name", "missing_field", "")
	case !legalName.MatchString(name) || name == "." || name == "..":
		return refused("name is invalid")
	case existing != nil && !moved:
		return refused("name already exists on this account")
	}
	r, err := s.newRepo(org, name, visibilityOf(c))
	if err != nil {
		return broken(err)
	}
	r.setFeatures(c)
	if bad := s.autoInit(c, r); bad != nil {
		return *bad
	}
	s.emitRepository(r, c.actor.account(), "created", nil)
	return created(s.fullRepository(c.actor, r), s.api("/repos/%s", r.fullName()))
}

// denyCreation returns why the actor may not make a repository there.
func (s *Server) denyCreation(a actor, org *account) *response {
	switch {
	case a.account() == nil:
		return refusal(http.StatusUnauthorized, "Requires authentication")
	case a.installation != nil && a.installation.account != org:
		return refusal(http.StatusNotFound, "Not Found")
	case a.installation != nil && !adminWrite.metBy(a.token.permissions):
		return notAccessible(adminWrite)
	case a.installation == nil && org.members[a.user.id] == "":
		return refusal(http.StatusForbidden, "You need admin access to the organization before adding a repository to it.")
	}
	return nil
}

// visibilityOf reads private and visibility; the latter wins.
func visibilityOf(c *call) string {
	if v := c.text("visibility"); v != "" {
		return v
	}
	if c.flag("private", false) {
		return "private"
	}
	return "public"
}

// setFeatures takes over the switches and texts a request sets.
func (r *repo) setFeatures(c *call) {
	for name := range r.features {
		r.features[name] = c.flag(name, r.features[name])
	}
	if c.given("description") {
		r.description = c.text("description")
	}
	if c.given("homepage") {
		r.homepage = c.text("homepage")
	}
}

// autoInit makes the first commit when it is asked for.
func (s *Server) autoInit(c *call, r *repo) *response {
	if !c.flag("auto_init", false) {
		return nil
	}
	// A new repository is nobody else's yet, but the store wants it occupied.
	s.occupy(r)
	defer r.busy.Unlock()
	by := c.actor.account()
	_, err := s.commitFiles(r, commitOrder{branch: r.defaultBranch, message: "Initial commit", author: by, committer: s.webFlow,
		files: map[string]string{"README.md": "# " + r.name + "\n"}})
	if err != nil {
		bad := broken(err)
		return &bad
	}
	return nil
}

func (s *Server) getRepo(c *call, r *repo) response { return ok(s.fullRepository(c.actor, r)) }

func (s *Server) updateRepo(c *call, r *repo) response {
	by := c.actor.account()
	if branch := c.text("default_branch"); branch != "" && branch != r.defaultBranch {
		if _, exists := r.store.branch(branch); !exists {
			return invalid("Repository", "default_branch", "invalid", "The branch "+branch+" was not found. Please push that ref first or create it via the Git Data API.")
		}
		if err := s.setDefaultBranch(r, branch, by); err != nil {
			return broken(err)
		}
	}
	if name := c.text("name"); name != "" && name != r.name {
		if err := s.rename(r, name, by); err != nil {
			return invalid("Repository", "name", "custom", "name already exists on this account")
		}
	}
	if v := visibilityOf(c); (c.given("private") || c.given("visibility")) && v != r.visibility {
		s.setVisibility(r, v, by)
	}
	if c.given("archived") {
		s.setArchived(r, c.flag("archived", false), by)
	}
	r.setFeatures(c)
	r.updatedAt = s.now()
	return ok(s.fullRepository(c.actor, r))
}

// setDefaultBranch makes a branch the default, and says so.
func (s *Server) setDefaultBranch(r *repo, branch string, by *account) error {
	from := r.defaultBranch
	if err := r.store.setHead(branch); err != nil {
		return err
	}
	r.defaultBranch, r.updatedAt = branch, s.now()
	s.emitRepository(r, by, "edited", map[string]any{"default_branch": map[string]any{"from": from}})
	return nil
}

// rename gives a repository another name.
func (s *Server) rename(r *repo, name string, by *account) error {
	from := r.name
	if err := s.moveRepo(r, r.owner, name); err != nil {
		return err
	}
	s.emitRepository(r, by, "renamed", map[string]any{"repository": map[string]any{"name": map[string]any{"from": from}}})
	return nil
}

// transfer gives a repository another owner. Installations with a selection
// lose it; only the new owner's hear of it.
func (s *Server) transfer(r *repo, to *account, by *account) error {
	from := r.owner
	lost := s.installationsOn(r)
	if err := s.moveRepo(r, to, r.name); err != nil {
		return err
	}
	for _, i := range lost {
		if i.selected != nil {
			delete(i.selected, r.id)
			s.emitSelection(i, by, "removed", []*repo{r})
		}
	}
	kind := "organization"
	if from.kind == kindUser {
		kind = "user"
	}
	s.emitRepository(r, by, "transferred", map[string]any{"owner": map[string]any{"from": map[string]any{kind: s.ownerOf(from)}}})
	return nil
}

// setArchived archives or unarchives a repository.
func (s *Server) setArchived(r *repo, archived bool, by *account) {
	if r.archived == archived {
		return
	}
	r.archived, r.updatedAt = archived, s.now()
	action := "unarchived"
	if archived {
		action = "archived"
	}
	s.emitRepository(r, by, action, nil)
}

// setVisibility makes a repository public, private or internal.
func (s *Server) setVisibility(r *repo, visibility string, by *account) {
	wasPrivate := r.private()
	r.visibility, r.updatedAt = visibility, s.now()
	switch {
	case wasPrivate && !r.private():
		s.emitRepository(r, by, "publicized", nil)
	case !wasPrivate && r.private():
		s.emitRepository(r, by, "privatized", nil)
	}
}

// deleteRepo deletes a repository for good.
func (s *Server) deleteRepo(r *repo, by *account) error {
	s.emitRepository(r, by, "deleted", nil)
	for _, i := range s.installationsOn(r) {
		s.emitSelection(i, by, "removed", []*repo{r})
	}
	return s.dropRepo(r)
}

// installationsOn returns the installations that cover a repository.
func (s *Server) installationsOn(r *repo) []*installation {
	var list []*installation
	for _, i := range sortedByID(s.installations) {
		if i.covers(r) {
			list = append(list, i)
		}
	}
	return list
}

var emptyAnswer = refuse(http.StatusConflict, "Git Repository is empty.")

func (s *Server) listBranches(c *call, r *repo) response {
	names, header := page(s, c, r, r.store.names("refs/heads/"))
	list := []any{}
	for _, name := range names {
		sha := r.store.refs[name]
		short := strings.TrimPrefix(name, "refs/heads/")
		list = append(list, map[string]any{"name": short, "protected": r.protects(name),
			"commit": map[string]any{"sha": sha, "url": s.api("/repos/%s/commits/%s", r.fullName(), sha)}})
	}
	return response{status: http.StatusOK, body: list, header: header}
}

func (s *Server) getBranch(c *call, r *repo) response {
	name := c.PathValue("branch")
	sha, found := r.store.branch(name)
	if !found {
		return refuse(http.StatusNotFound, "Branch not found")
	}
	info, found := r.store.readCommit(sha)
	if !found {
		return broken(fmt.Errorf("the branch %s points to no commit", name))
	}
	self := s.api("/repos/%s/branches/%s", r.fullName(), escapePath(name))
	return ok(map[string]any{"name": name, "commit": s.commit(r, info), "protected": r.protects("refs/heads/" + name),
		"protection":     map[string]any{"enabled": false, "required_status_checks": map[string]any{"enforcement_level": "off", "contexts": []any{}, "checks": []any{}}},
		"protection_url": self + "/protection", "_links": map[string]any{"self": self, "html": s.api("/%s/tree/%s", r.fullName(), escapePath(name))}})
}

// maxListed bounds how far back commits are listed.
const maxListed = 10_000

func (s *Server) listCommits(c *call, r *repo) response {
	if r.store.empty() {
		return emptyAnswer
	}
	from := c.URL.Query().Get("sha")
	if from == "" {
		from = r.defaultBranch
	}
	sha, found := r.store.resolve(from)
	if !found {
		return notFound
	}
	args := []string{"rev-list", fmt.Sprintf("--max-count=%d", maxListed), sha}
	if path := c.URL.Query().Get("path"); path != "" {
		args = append(args, "--", path)
	}
	out, err := r.store.git(args...)
	if err != nil {
		return broken(err)
	}
	shas, header := page(s, c, r, strings.Fields(out))
	return response{status: http.StatusOK, body: s.commits(r, shas), header: header}
}

// commits renders commits by their ids.
func (s *Server) commits(r *repo, shas []string) []any {
	list := []any{}
	for _, info := range r.store.readCommits(shas...) {
		list = append(list, s.commit(r, info))
	}
	return list
}

func (s *Server) getCommit(c *call, r *repo) response {
	if r.store.empty() {
		return emptyAnswer
	}
	sha, found := r.store.resolve(c.PathValue("ref"))
	if !found {
		return unprocessable("No commit found for SHA: " + c.PathValue("ref"))
	}
	info, found := r.store.readCommit(sha)
	if !found {
		return notFound
	}
	parent := emptyTree
	if len(info.parents) > 0 {
		parent = info.parents[0]
	}
	files, err := r.store.diff(parent, sha)
	if err != nil {
		return broken(err)
	}
	m := s.commit(r, info)
	additions, deletions := (&comparison{files: files}).totals()
	m["stats"] = map[string]any{"additions": additions, "deletions": deletions, "total": additions + deletions}
	m["files"] = s.files(r, sha, files)
	return ok(m)
}

// emptyTree is git's id of a tree without entries, which every repository
// knows.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// Limits of comparisons.
const (
	maxCompareCommits = 250
	maxCompareFiles   = 300
)

func (s *Server) compareCommits(c *call, r *repo) response {
	baseName, headName, isRange := strings.Cut(c.PathValue("basehead"), "...")
	base, haveBase := s.resolveSide(r, baseName)
	head, haveHead := s.resolveSide(r, headName)
	if !isRange || !haveBase || !haveHead {
		return notFound
	}
	cmp, err := r.store.compare(base, head)
	if err != nil {
		return broken(err)
	}
	if cmp.base == "" {
		return refuse(http.StatusNotFound, fmt.Sprintf("No common ancestor between %s and %s.", baseName, headName))
	}
	commits, query := cmp.commits, c.URL.Query()
	header := http.Header{}
	if query.Has("per_page") || query.Has("page") {
		commits, header = page(s, c, r, commits)
	} else if len(commits) > maxCompareCommits {
		commits = commits[len(commits)-maxCompareCommits:]
	}
	ends := r.store.readCommits(base, cmp.base)
	if len(ends) != 2 {
		return notFound
	}
	path := fmt.Sprintf("%s...%s", escapePath(baseName), escapePath(headName))
	html := s.api("/%s/compare/%s", r.fullName(), path)
	body := map[string]any{"url": s.api("/repos/%s/compare/%s", r.fullName(), path), "html_url": html,
		"permalink_url": s.api("/%s/compare/%s:%s...%s:%s", r.fullName(), r.owner.login, base[:7], r.owner.login, head[:7]),
		"diff_url":      html + ".diff", "patch_url": html + ".patch", "base_commit": s.commit(r, ends[0]), "merge_base_commit": s.commit(r, ends[1]),
		"status": cmp.status, "ahead_by": cmp.ahead, "behind_by": cmp.behind, "total_commits": cmp.ahead, "commits": s.commits(r, commits)}
	if n := query.Get("page"); n == "" || n == "1" {
		body["files"] = s.files(r, head, cmp.files)
	}
	return response{status: http.StatusOK, body: body, header: header}
}

// resolveSide resolves one end of a comparison: a branch, tag or object id,
// also with the owner before it.
func (s *Server) resolveSide(r *repo, name string) (string, bool) {
	if owner, rest, qualified := strings.Cut(name, ":"); qualified && key(owner) == key(r.owner.login) {
		name = rest
	}
	return r.store.resolve(name)
}

// files renders the changed files of a comparison or commit.
func (s *Server) files(r *repo, head string, files []changedFile) []any {
	list := []any{}
	for i, f := range files {
		if i == maxCompareFiles {
			break
		}
		path := escapePath(f.name)
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
