// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// names returns the full names of the refs with a prefix, sorted.
func (st *store) names(prefix string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(st.refs)) {
		if strings.HasPrefix(name, prefix) {
			list = append(list, name)
		}
	}
	return list
}

func (s *Server) refJSON(r *repo, name string) map[string]any {
	sha := r.store.refs[name]
	return map[string]any{"ref": name, "node_id": nodeID("REF", r.id, name), "url": s.api("/repos/%s/git/%s", r.fullName(), escapePath(name)),
		"object": map[string]any{"sha": sha, "type": "commit", "url": s.api("/repos/%s/git/commits/%s", r.fullName(), sha)}}
}

func (s *Server) getRef(c *call, r *repo) response {
	if r.store.empty() {
		return emptyAnswer
	}
	name := "refs/" + c.PathValue("ref")
	if _, found := r.store.refs[name]; !found {
		return notFound
	}
	return ok(s.refJSON(r, name))
}

func (s *Server) listMatchingRefs(c *call, r *repo) response {
	if r.store.empty() {
		return emptyAnswer
	}
	names, header := page(s, c, r, r.store.names("refs/"+c.PathValue("ref")))
	list := []any{}
	for _, name := range names {
		list = append(list, s.refJSON(r, name))
	}
	return response{status: http.StatusOK, body: list, header: header}
}

// legalRef matches what git takes for a ref, nearly: enough to refuse mistakes.
var legalRef = regexp.MustCompile(`^refs(/[^\s~^:?*\[\\/][^\s~^:?*\[\\/]*){2,}$`)

func isLegalRef(name string) bool {
	return legalRef.MatchString(name) && !strings.Contains(name, "..") && !strings.Contains(name, "@{") && !strings.HasSuffix(name, ".lock") && !strings.HasSuffix(name, ".")
}

func (s *Server) createRef(c *call, r *repo) response {
	name, sha := c.text("ref"), c.text("sha")
	switch _, exists := r.store.refs[name]; {
	case r.store.empty():
		return emptyAnswer
	case !isLegalRef(name):
		return unprocessable("Reference name is invalid")
	case exists:
		return unprocessable("Reference already exists")
	case !s.hasCommit(r, sha):
		return unprocessable("Object does not exist")
	}
	return s.changeRef(c, r, refCommand{ref: name, now: sha}, http.StatusCreated)
}

func (s *Server) hasCommit(r *repo, sha string) bool {
	_, found := r.store.readCommit(sha)
	return found
}

func (s *Server) updateRef(c *call, r *repo) response {
	name, sha := "refs/"+c.PathValue("ref"), c.text("sha")
	old, exists := r.store.refs[name]
	switch {
	case r.store.empty():
		return emptyAnswer
	case !exists:
		return unprocessable("Reference does not exist")
	case !s.hasCommit(r, sha):
		return unprocessable("Object does not exist")
	case !c.flag("force", false) && !r.store.contains(sha, old):
		return unprocessable("Update is not a fast forward")
	case old == sha:
		return ok(s.refJSON(r, name))
	}
	return s.changeRef(c, r, refCommand{ref: name, old: old, now: sha}, http.StatusOK)
}

func (s *Server) deleteRef(c *call, r *repo) response {
	name := "refs/" + c.PathValue("ref")
	old, exists := r.store.refs[name]
	if !exists {
		return unprocessable("Reference does not exist")
	}
	return s.changeRef(c, r, refCommand{ref: name, old: old}, http.StatusNoContent)
}

// changeRef does to a ref what a push would, with the same rules.
func (s *Server) changeRef(c *call, r *repo, command refCommand, status int) response {
	p := &push{commands: []*refCommand{&command}}
	if err := s.judgePush(c.actor, r, p); err != nil {
		return broken(err)
	}
	if command.refused == rulesetRefusal {
		return unprocessable("Repository rule violations found\n\n" + strings.Join(p.violations, "\n"))
	}
	if command.refused != "" {
		return unprocessable(command.refused)
	}
	if err := s.applyPush(r, c.actor.account(), p); err != nil {
		return broken(err)
	}
	switch status {
	case http.StatusNoContent:
		return noContent()
	case http.StatusCreated:
		return created(s.refJSON(r, command.ref), s.api("/repos/%s/git/%s", r.fullName(), escapePath(command.ref)))
	}
	return ok(s.refJSON(r, command.ref))
}

func (s *Server) gitCommit(r *repo, info *commitInfo) map[string]any {
	parents := []any{}
	for _, p := range info.parents {
		parents = append(parents, map[string]any{"sha": p, "url": s.api("/repos/%s/git/commits/%s", r.fullName(), p), "html_url": s.api("/%s/commit/%s", r.fullName(), p)})
	}
	return map[string]any{"sha": info.sha, "node_id": nodeID("C", r.id, info.sha), "url": s.api("/repos/%s/git/commits/%s", r.fullName(), info.sha),
		"html_url": s.api("/%s/commit/%s", r.fullName(), info.sha), "author": signatureJSON(info.author), "committer": signatureJSON(info.committer),
		"tree": map[string]any{"sha": info.tree, "url": s.api("/repos/%s/git/trees/%s", r.fullName(), info.tree)}, "message": info.message, "parents": parents,
		"verification": unverified()}
}

func (s *Server) getGitCommit(c *call, r *repo) response {
	if r.store.empty() {
		return emptyAnswer
	}
	info, found := r.store.readCommit(c.PathValue("sha"))
	if !found {
		return notFound
	}
	return ok(s.gitCommit(r, info))
}

func (s *Server) createGitCommit(c *call, r *repo) response {
	if r.store.empty() {
		return emptyAnswer
	}
	tree, found := r.store.object(c.text("tree"))
	if !found || tree.kind != "tree" {
		return unprocessable("Tree SHA does not exist")
	}
	for _, parent := range c.texts("parents") {
		if !s.hasCommit(r, parent) {
			return unprocessable("Parent SHA does not exist or is not a commit object")
		}
	}
	author := s.signatureOf(c, "author", s.sign(c.actor.account()))
	info := commitInfo{tree: tree.sha, parents: c.texts("parents"), message: c.text("message"), author: author, committer: s.signatureOf(c, "committer", author)}
	sha, err := r.store.writeCommit(info)
	if err != nil {
		return broken(err)
	}
	written, found := r.store.readCommit(sha)
	if !found {
		return broken(fmt.Errorf("the commit %s cannot be read back", sha))
	}
	return created(s.gitCommit(r, written), s.api("/repos/%s/git/commits/%s", r.fullName(), sha))
}

// signatureOf reads who made a commit from the request.
func (s *Server) signatureOf(c *call, name string, otherwise signature) signature {
	given, isObject := c.body[name].(map[string]any)
	if !isObject {
		return otherwise
	}
	text := func(key string) string {
		value, isText := given[key].(string)
		if !isText {
			return ""
		}
		return value
	}
	g := signature{name: text("name"), email: text("email"), at: s.now()}
	if at, err := time.Parse(time.RFC3339, text("date")); err == nil {
		g.at = at
	}
	return g
}

// maxTreeEntries is how many entries of a tree GitHub lists.
const maxTreeEntries = 100_000

func (s *Server) getTree(c *call, r *repo) response {
	if r.store.empty() {
		return emptyAnswer
	}
	name := c.PathValue("sha")
	if commit, found := r.store.resolve(name); found {
		name = commit
	}
	if o, found := r.store.object(name); !found || (o.kind != "tree" && o.kind != "commit") {
		return notFound
	}
	entries, err := r.store.readTree(name, c.URL.Query().Get("recursive") != "")
	if err != nil {
		return broken(err)
	}
	sha := name
	if info, found := r.store.readCommit(name); found {
		sha = info.tree
	}
	return ok(s.treeJSON(r, sha, entries))
}

func (s *Server) treeJSON(r *repo, sha string, entries []treeEntry) map[string]any {
	list := []any{}
	for i, e := range entries {
		if i == maxTreeEntries {
			break
		}
		m := map[string]any{"path": e.path, "mode": e.mode, "type": e.kind, "sha": e.sha, "url": s.api("/repos/%s/git/%ss/%s", r.fullName(), e.kind, e.sha)}
		if e.size >= 0 {
			m["size"] = e.size
		}
		list = append(list, m)
	}
	return map[string]any{"sha": sha, "url": s.api("/repos/%s/git/trees/%s", r.fullName(), sha), "tree": list, "truncated": len(entries) > maxTreeEntries}
}

func (s *Server) createTree(c *call, r *repo) response {
	if r.store.empty() {
		return emptyAnswer
	}
	given, isList := c.body["tree"].([]any)
	if !isList {
		return unprocessable("Invalid tree info")
	}
	var entries []treeEntry
	for _, one := range given {
		e, bad := readTreeEntry(r, one)
		if bad != nil {
			return *bad
		}
		entries = append(entries, e)
	}
	base := c.text("base_tree")
	if _, found := r.store.object(base); base != "" && !found {
		return unprocessable("base_tree is not a valid tree oid")
	}
	sha, err := r.store.writeTree(base, entries)
	if err != nil {
		return unprocessable("GitRPC::BadObjectState")
	}
	list, err := r.store.readTree(sha, false)
	if err != nil {
		return broken(err)
	}
	return created(s.treeJSON(r, sha, list), s.api("/repos/%s/git/trees/%s", r.fullName(), sha))
}

// readTreeEntry reads one entry of a tree to be made: content or a sha; a sha
// of null removes the path.
func readTreeEntry(r *repo, given any) (treeEntry, *response) {
	bad := func(message string) (treeEntry, *response) {
		answer := unprocessable(message)
		return treeEntry{}, &answer
	}
	m, isObject := given.(map[string]any)
	if !isObject {
		return bad("Invalid tree info")
	}
	c := call{body: m}
	e := treeEntry{path: c.text("path"), mode: c.text("mode"), sha: c.text("sha")}
	if e.path == "" || strings.HasPrefix(e.path, "/") {
		return bad("tree.path contains a malformed path component")
	}
	if content, isText := m["content"].(string); isText {
		sha, err := r.store.writeObject("blob", []byte(content))
		if err != nil {
			return bad(err.Error())
		}
		e.sha = sha
	} else if e.sha != "" {
		if _, found := r.store.object(e.sha); !found {
			return bad("tree.sha " + e.sha + " is not a valid blob")
		}
	}
	return e, nil
}

func (s *Server) getBlob(c *call, r *repo) response {
	o, found := r.store.object(c.PathValue("sha"))
	if !found || o.kind != "blob" {
		return notFound
	}
	return ok(map[string]any{"sha": o.sha, "node_id": nodeID("B", r.id, o.sha), "size": len(o.data), "url": s.api("/repos/%s/git/blobs/%s", r.fullName(), o.sha),
		"content": base64.StdEncoding.EncodeToString(o.data) + "\n", "encoding": "base64"})
}

func (s *Server) createBlob(c *call, r *repo) response {
	if r.store.empty() {
		return emptyAnswer
	}
	data := []byte(c.text("content"))
	if c.text("encoding") == "base64" {
		decoded, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(c.text("content"), "\n", ""))
		if err != nil {
			return unprocessable("content is not valid Base64")
		}
		data = decoded
	}
	sha, err := r.store.writeObject("blob", data)
	if err != nil {
		return broken(err)
	}
	url := s.api("/repos/%s/git/blobs/%s", r.fullName(), sha)
	return created(map[string]any{"sha": sha, "url": url}, url)
}
