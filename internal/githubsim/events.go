// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// alwaysSent are the events that Apps get without subscribing.
var alwaysSent = []string{"installation", "installation_repositories", "installation_target", "ping"}

// rawJSON is a payload that is sent as it is.
type rawJSON []byte

// MarshalJSON returns the payload.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

// wants reports whether an App is to be told of an event.
func (a *app) wants(event string) bool {
	return a.hookURL != "" && (slices.Contains(a.events, event) || slices.Contains(alwaysSent, event))
}

// send queues an event for an App. Payloads above GitHub's limit are lost.
func (s *Server) send(a *app, i *installation, r *repo, event, action string, payload map[string]any) {
	if action != "" {
		payload["action"] = action
	}
	body, err := json.Marshal(payload)
	if err != nil {
		s.options.OnInvalid(fmt.Errorf("the payload of %s: %w", event, err))
		return
	}
	if len(body) > maxPayload || s.closed {
		return
	}
	d := s.newDelivery(a, event, action, body)
	if i != nil {
		d.installation = i.id
	}
	if r != nil {
		d.repository = r.id
	}
	a.hooks.add(d)
}

// listeners returns the installations that are to be told of an event in a
// repository.
func (s *Server) listeners(r *repo, event string) []*installation {
	var list []*installation
	for _, i := range s.installationsOn(r) {
		if i.suspendedAt == nil && i.app.wants(event) {
			list = append(list, i)
		}
	}
	return list
}

// emit queues an event in a repository for everyone who listens. The payload
// is made only when somebody does.
func (s *Server) emit(r *repo, by *account, event, action string, fill func() (map[string]any, error)) {
	listeners := s.listeners(r, event)
	if len(listeners) == 0 {
		return
	}
	common, err := fill()
	if err != nil {
		s.options.OnInvalid(fmt.Errorf("the payload of %s: %w", event, err))
		return
	}
	if common["repository"] == nil {
		common["repository"] = s.repository(r)
	}
	common["sender"] = s.user(by)
	if r.owner.kind == kindOrganization {
		common["organization"] = s.organizationSimple(r.owner)
	}
	for _, i := range listeners {
		common["installation"] = s.installationLite(i)
		s.send(i.app, i, r, event, action, common)
	}
}

// maxPushCommits is how many commits a push event lists.
const maxPushCommits = 2048

// emitPush tells of a ref that moved, came or went.
func (s *Server) emitPush(r *repo, by *account, c *refCommand) error {
	var failed error
	s.emit(r, by, "push", "", func() (map[string]any, error) {
		payload, err := s.pushPayload(r, by, c)
		failed = err
		return payload, err
	})
	if c.old == "" || c.now == "" {
		s.emitRef(r, by, c)
	}
	return failed
}

func (s *Server) pushPayload(r *repo, by *account, c *refCommand) (map[string]any, error) {
	old, now := cmpOr(c.old, zeroSHA), cmpOr(c.now, zeroSHA)
	payload := map[string]any{"ref": c.ref, "before": old, "after": now, "created": c.old == "", "deleted": c.now == "", "forced": false, "base_ref": nil,
		"compare": s.api("/%s/compare/%.12s...%.12s", r.fullName(), old, now), "commits": []any{}, "head_commit": nil,
		"pusher": map[string]any{"name": by.login, "email": by.noReply()}, "repository": s.pushRepository(r)}
	if c.now == "" {
		return payload, nil
	}
	payload["forced"] = c.old != "" && !r.store.contains(c.now, c.old)
	since := c.old
	if since == "" && c.ref != "refs/heads/"+r.defaultBranch {
		since = r.store.refs["refs/heads/"+r.defaultBranch]
	}
	shas, err := r.store.between(since, c.now, maxPushCommits)
	if err != nil {
		return nil, err
	}
	commits, err := s.pushCommits(r, shas)
	if err != nil {
		return nil, err
	}
	payload["commits"] = commits
	if len(shas) == 0 || shas[len(shas)-1] != c.now {
		if commits, err = s.pushCommits(r, []string{c.now}); err != nil {
			return nil, err
		}
	}
	if len(commits) > 0 {
		payload["head_commit"] = commits[len(commits)-1]
	}
	return payload, nil
}

// pushCommits renders commits as push events list them.
func (s *Server) pushCommits(r *repo, shas []string) ([]any, error) {
	if len(shas) == 0 {
		return []any{}, nil
	}
	changes, err := r.store.changes(shas)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, info := range r.store.readCommits(shas...) {
		ch := changes[info.sha]
		person := func(g signature) map[string]any {
			m := map[string]any{"name": g.name, "email": g.email, "date": g.at.Format(time.RFC3339)}
			if a := s.linked(g.email); a != nil {
				m["username"] = a.login
			}
			return m
		}
		list = append(list, map[string]any{"id": info.sha, "tree_id": info.tree, "distinct": true, "message": info.message, "timestamp": info.committer.at.Format(time.RFC3339),
			"url": s.api("/%s/commit/%s", r.fullName(), info.sha), "author": person(info.author), "committer": person(info.committer),
			"added": ch.added, "modified": ch.modified, "removed": ch.removed})
	}
	return list, nil
}

// fileChanges are the paths a commit changes.
type fileChanges struct{ added, modified, removed []string }

// changes lists what each of some commits changes, with one git process.
// Merges change nothing by themselves.
func (st *store) changes(shas []string) (map[string]fileChanges, error) {
	out, err := st.run(gitCommand{args: []string{"diff-tree", "--stdin", "-r", "-z", "--root", "--no-renames", "--name-status"}, input: []byte(strings.Join(shas, "\n") + "\n")})
	if err != nil {
		return nil, err
	}
	all := map[string]fileChanges{}
	for _, sha := range shas {
		all[sha] = fileChanges{added: []string{}, modified: []string{}, removed: []string{}}
	}
	current := ""
	fields := strings.Split(out, "\x00")
	for i := 0; i < len(fields); i++ {
		if isSHA(fields[i]) {
			current = fields[i]
			continue
		}
		if i+1 >= len(fields) {
			break
		}
		ch, path := all[current], fields[i+1]
		switch fields[i] {
		case "A":
			ch.added = append(ch.added, path)
		case "D":
			ch.removed = append(ch.removed, path)
		default:
			ch.modified = append(ch.modified, path)
		}
		all[current] = ch
		i++
	}
	return all, nil
}

// pushRepository is a repository as push events carry it: times as epoch
// numbers, the owner with a name.
func (s *Server) pushRepository(r *repo) map[string]any {
	m := s.repository(r)
	m["created_at"], m["pushed_at"] = r.createdAt.Unix(), r.pushedAt.Unix()
	m["stargazers"], m["master_branch"], m["organization"] = 0, r.defaultBranch, r.owner.login
	owner := s.user(r.owner)
	owner["name"], owner["email"] = r.owner.login, nil
	m["owner"] = owner
	return m
}

// emitRef tells of a branch or tag that came or went.
func (s *Server) emitRef(r *repo, by *account, c *refCommand) {
	kind, name := "branch", strings.TrimPrefix(c.ref, "refs/heads/")
	if tag, isTag := strings.CutPrefix(c.ref, "refs/tags/"); isTag {
		kind, name = "tag", tag
	}
	payload := map[string]any{"ref": name, "ref_type": kind, "pusher_type": "user"}
	event := "delete"
	if c.old == "" {
		event = "create"
		payload["master_branch"], payload["description"] = r.defaultBranch, nil
	}
	s.emit(r, by, event, "", func() (map[string]any, error) { return payload, nil })
}

// emitPull tells of a pull request.
func (s *Server) emitPull(p *pull, by *account, action string, more map[string]any) {
	s.emit(p.repo, by, "pull_request", action, func() (map[string]any, error) {
		m, err := s.pullFull(p)
		if err != nil {
			return nil, err
		}
		payload := map[string]any{"number": p.number, "pull_request": m}
		for k, v := range more {
			payload[k] = v
		}
		return payload, nil
	})
}

// emitComment tells of a comment on a pull request.
func (s *Server) emitComment(p *pull, m *comment, by *account, action string, changes map[string]any) {
	s.emit(p.repo, by, "issue_comment", action, func() (map[string]any, error) {
		payload := map[string]any{"issue": s.issue(p), "comment": s.commentJSON(p, m)}
		if changes != nil {
			payload["changes"] = changes
		}
		return payload, nil
	})
}

// emitRepository tells of a repository itself.
func (s *Server) emitRepository(r *repo, by *account, action string, changes map[string]any) {
	s.emit(r, by, "repository", action, func() (map[string]any, error) {
		payload := map[string]any{}
		if changes != nil {
			payload["changes"] = changes
		}
		return payload, nil
	})
}

// emitMember tells of a collaborator. It goes to all installations on the
// organization, whether they cover the repository or not.
func (s *Server) emitMember(r *repo, by, member *account, action string, changes map[string]any) {
	for _, i := range sortedByID(s.installations) {
		if i.account != r.owner || i.suspendedAt != nil || !i.app.wants("member") || !(need{"members=read"}).metBy(i.app.permissions) {
			continue
		}
		payload := map[string]any{"member": s.user(member), "repository": s.repository(r), "sender": s.user(by), "installation": s.installationLite(i)}
		if r.owner.kind == kindOrganization {
			payload["organization"] = s.organizationSimple(r.owner)
		}
		if changes != nil {
			payload["changes"] = changes
		}
		s.send(i.app, i, r, "member", action, payload)
	}
}

// emitInstallation tells an App of its own installation.
func (s *Server) emitInstallation(i *installation, by *account, action string) {
	if !i.app.wants("installation") {
		return
	}
	payload := map[string]any{"installation": s.installationJSON(i), "sender": s.user(by)}
	if action == "created" || action == "deleted" {
		payload["repositories"], payload["requester"] = repositoriesLite(s.coveredBy(i)), nil
		if action == "deleted" {
			delete(payload, "requester")
		}
	}
	s.send(i.app, i, nil, "installation", action, payload)
}

// coveredBy returns the repositories of an installation.
func (s *Server) coveredBy(i *installation) []*repo {
	var list []*repo
	for _, r := range sortedByID(s.repos) {
		if i.covers(r) {
			list = append(list, r)
		}
	}
	return list
}

func repositoriesLite(repos []*repo) []any {
	list := []any{}
	for _, r := range repos {
		list = append(list, repositoryLite(r))
	}
	return list
}

// emitSelection tells an App that repositories came to its installation, or
// left it.
func (s *Server) emitSelection(i *installation, by *account, action string, repos []*repo) {
	if !i.app.wants("installation_repositories") {
		return
	}
	payload := map[string]any{"installation": s.installationJSON(i), "repository_selection": i.selection(), "repositories_added": []any{}, "repositories_removed": []any{},
		"requester": nil, "sender": s.user(by)}
	payload["repositories_"+action] = repositoriesLite(repos)
	s.send(i.app, i, nil, "installation_repositories", action, payload)
}

// emitPing greets a new hook.
func (s *Server) emitPing(a *app) {
	if !a.wants("ping") {
		return
	}
	s.send(a, nil, nil, "ping", "", map[string]any{"zen": "Keep it logically awesome.", "hook_id": a.hookID,
		"hook": map[string]any{"type": "App", "id": a.hookID, "name": "web", "active": true, "events": a.events, "app_id": a.id,
			"config":     map[string]any{"content_type": "json", "insecure_ssl": "0", "secret": "********", "url": a.hookURL},
			"updated_at": stamp(a.createdAt), "created_at": stamp(a.createdAt), "deliveries_url": s.api("/app/hook/deliveries")}})
}
