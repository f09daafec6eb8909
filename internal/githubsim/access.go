// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"net/http"
	"strings"
)

// access is what somebody may do with a repository, in GitHub's order.
type access int

// The roles, from none to all.
const (
	accessNone access = iota
	accessRead
	accessTriage
	accessWrite
	accessMaintain
	accessAdmin
)

// accessNames are the roles as invitations and role_name have them.
var accessNames = []string{"none", "read", "triage", "write", "maintain", "admin"}

func (a access) String() string { return accessNames[a] }

// parseAccess reads a role; pull and push are GitHub's older names of read and
// write.
func parseAccess(name string) (access, bool) {
	switch name {
	case "pull":
		return accessRead, true
	case "push":
		return accessWrite, true
	}
	for i, n := range accessNames {
		if n == name && i > 0 {
			return access(i), true
		}
	}
	return accessNone, false
}

// legacy returns the role as the permission field has it, which knows four.
func (a access) legacy() string {
	switch a {
	case accessTriage:
		return "read"
	case accessMaintain:
		return "write"
	}
	return a.String()
}

// permissions lists what the role includes, as repositories carry it.
func (a access) permissions() map[string]any {
	return map[string]any{"admin": a >= accessAdmin, "maintain": a >= accessMaintain, "push": a >= accessWrite, "triage": a >= accessTriage, "pull": a >= accessRead}
}

// roleOf returns what a person may do with a repository.
func (s *Server) roleOf(user *account, r *repo) access {
	role := accessNone
	if !r.private() {
		role = accessRead
	}
	switch {
	case user == nil:
		return role
	case user == r.owner, r.owner.members[user.id] == "admin":
		return accessAdmin
	case r.owner.members[user.id] != "":
		role = max(role, r.owner.basePermission)
	}
	return max(role, r.collaborators[user.id])
}

// sees reports whether the actor can read a repository.
func (s *Server) sees(a actor, r *repo) bool {
	if a.installation != nil {
		return s.reaches(a, r) || !r.private()
	}
	return s.roleOf(a.user, r) > accessNone
}

// reaches reports whether an installation's token covers a repository.
func (s *Server) reaches(a actor, r *repo) bool {
	return a.installation.covers(r) && (a.token.repositories == nil || a.token.repositories[r.id])
}

// need is what an operation asks for: any of these, as permission=level.
type need []string

var levelRank = map[string]int{"read": 1, "write": 2, "admin": 3}

// header returns the need as X-Accepted-GitHub-Permissions has it.
func (n need) header() string { return strings.Join(n, "; ") }

// metBy reports whether the permissions of a token suffice.
func (n need) metBy(granted map[string]string) bool {
	for _, one := range n {
		name, level, _ := strings.Cut(one, "=")
		if levelRank[granted[name]] >= levelRank[level] {
			return true
		}
	}
	return len(n) == 0
}

// writes reports whether the operation changes something.
func (n need) writes() bool { return len(n) > 0 && strings.HasSuffix(n[0], "=write") }

// role returns what a person needs for the operation.
func (n need) role() access {
	if len(n) == 0 {
		return accessRead
	}
	switch name, level, _ := strings.Cut(n[0], "="); {
	case level != "write":
		return accessRead
	case name == "administration":
		return accessAdmin
	case name == "issues", name == "pull_requests":
		return accessRead
	}
	return accessWrite
}

// deny returns the refusal of an operation on a repository the actor can see,
// nil when it is allowed.
func (s *Server) deny(a actor, r *repo, n need) *response {
	switch {
	case a.installation != nil && !s.reaches(a, r):
		if !n.writes() {
			return nil // a public repository can be read by anybody
		}
		return notAccessible(n)
	case a.installation != nil:
		if !n.metBy(a.token.permissions) {
			return notAccessible(n)
		}
	case a.account() == nil && n.writes():
		return refusal(http.StatusUnauthorized, "Requires authentication")
	case s.roleOf(a.user, r) < n.role():
		if n.role() == accessAdmin {
			return refusal(http.StatusForbidden, "Must have admin rights to Repository.")
		}
		return refusal(http.StatusNotFound, "Not Found")
	}
	return nil
}

// notAccessible says that the App lacks a permission, and which.
func notAccessible(n need) *response {
	r := refuse(http.StatusForbidden, "Resource not accessible by integration")
	r.header = http.Header{"X-Accepted-Github-Permissions": {n.header()}}
	return &r
}
