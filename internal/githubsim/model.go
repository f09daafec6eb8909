// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"crypto/rsa"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kinds of accounts.
const (
	kindOrganization = "Organization"
	kindUser         = "User"
	kindBot          = "Bot"
)

// account is an organization, a user or a bot.
type account struct {
	id        int64
	login     string
	kind      string
	createdAt time.Time

	// Of an organization only:
	members        map[int64]string // by account id: admin or member
	basePermission access           // what members may do everywhere
	plan           string           // free, team or enterprise
}

func (a *account) noReply() string {
	return fmt.Sprintf("%d+%s@users.noreply.github.com", a.id, a.login)
}

type app struct {
	id          int64
	slug, name  string
	owner       *account
	bot         *account
	key         *rsa.PublicKey
	createdAt   time.Time
	hookID      int64
	hookURL     string
	hookSecret  string
	permissions map[string]string
	events      []string
	hooks       *hookQueue
}

type installation struct {
	id          int64
	app         *app
	account     *account
	createdAt   time.Time
	suspendedAt *time.Time
	suspendedBy *account
	// selected holds the ids of the repositories it covers; nil: all.
	selected  map[int64]bool
	quota     int
	used      int
	windowEnd time.Time
}

// covers reports whether a repository is part of the installation.
func (i *installation) covers(r *repo) bool {
	return i.account == r.owner && (i.selected == nil || i.selected[r.id])
}

// selection returns what GitHub calls the choice of repositories.
func (i *installation) selection() string {
	if i.selected == nil {
		return "all"
	}
	return "selected"
}

// token is an installation's or a person's.
type token struct {
	installation *installation
	permissions  map[string]string
	repositories map[int64]bool // nil: all that the installation covers
	user         *account
	validFrom    time.Time
	expiresAt    time.Time // zero: never
}

type repo struct {
	id                             int64
	owner                          *account
	name                           string
	description, homepage          string
	visibility                     string // public, private or internal
	archived                       bool
	blocked                        bool // closed by GitHub: 451
	defaultBranch                  string
	createdAt, pushedAt, updatedAt time.Time
	features                       map[string]bool // has_issues, allow_squash_merge, ...
	store                          *store
	numbers                        int // of issues and pull requests
	pulls                          map[int]*pull
	labels                         []*label
	collaborators                  map[int64]access
	invitations                    []*invitation
	rulesets                       []*ruleset

	// busy is held for the whole of whatever uses the repository. It is taken
	// before the server's lock.
	busy sync.Mutex
}

func (r *repo) fullName() string { return r.owner.login + "/" + r.name }

func (r *repo) private() bool { return r.visibility != "public" }

// sortedPulls returns the pull requests by number.
func (r *repo) sortedPulls() []*pull {
	var list []*pull
	for _, n := range slices.Sorted(maps.Keys(r.pulls)) {
		list = append(list, r.pulls[n])
	}
	return list
}

// features of a new repository.
func defaultFeatures() map[string]bool {
	return map[string]bool{"has_issues": true, "has_projects": true, "has_wiki": true, "has_downloads": true, "is_template": false,
		"allow_squash_merge": true, "allow_merge_commit": true, "allow_rebase_merge": true, "allow_auto_merge": false,
		"delete_branch_on_merge": false, "allow_update_branch": false, "allow_forking": true, "web_commit_signoff_required": false}
}

type pull struct {
	id                   int64
	number               int
	repo                 *repo
	author               *account
	title, body          string
	head, base           string
	headSHA, baseSHA     string
	draft, locked        bool
	createdAt, updatedAt time.Time
	closedAt, mergedAt   *time.Time
	mergedBy             *account
	mergeSHA             string
	labels               []*label
	assignees, reviewers []*account
	comments             []*comment
	stats                pullStats
}

// pullStats are the sizes GitHub shows. They stand still once it is closed.
type pullStats struct{ commits, files, additions, deletions int }

func (p *pull) open() bool { return p.closedAt == nil }

// state returns open, closed or merged.
func (p *pull) state() string {
	switch {
	case p.mergedAt != nil:
		return "merged"
	case p.open():
		return "open"
	}
	return "closed"
}

type label struct {
	id                       int64
	name, color, description string
}

type comment struct {
	id                   int64
	author               *account
	viaApp               *app
	body                 string
	createdAt, updatedAt time.Time
}

type invitation struct {
	id               int64
	invitee, inviter *account
	permission       access
	createdAt        time.Time
}

// actor is who asks: an App by JWT, an installation or a person by token.
type actor struct {
	app          *app
	installation *installation
	token        *token
	user         *account
}

// String names the actor for the request log.
func (a actor) String() string {
	switch {
	case a.installation != nil:
		return fmt.Sprintf("installation/%d", a.installation.id)
	case a.app != nil:
		return fmt.Sprintf("app/%d", a.app.id)
	case a.user != nil:
		return "user/" + a.user.login
	}
	return ""
}

// account returns who the actor's acts come from; nil for nobody.
func (a actor) account() *account {
	if a.installation != nil {
		return a.installation.app.bot
	}
	return a.user
}

// viaApp returns the App the actor acts for.
func (a actor) viaApp() *app {
	if a.installation != nil {
		return a.installation.app
	}
	return a.app
}

// key makes names comparable: GitHub ignores case in them.
func key(name string) string { return strings.ToLower(name) }

// find returns the repository of that name today, or the one that once had it.
func (s *Server) find(fullName string) (r *repo, moved bool) {
	r = s.repos[s.names[key(fullName)]]
	if r == nil {
		return nil, false
	}
	return r, key(r.fullName()) != key(fullName)
}

// newRepo makes a repository with an empty bare repository behind it.
func (s *Server) newRepo(owner *account, name, visibility string) (*repo, error) {
	now := s.now()
	id := s.id()
	st, err := newStore(filepath.Join(s.options.Dir, "repos", fmt.Sprintf("%d.git", id)), &s.mu)
	if err != nil {
		return nil, err
	}
	r := &repo{id: id, owner: owner, name: name, visibility: visibility, defaultBranch: "main", createdAt: now, updatedAt: now, pushedAt: now,
		features: defaultFeatures(), store: st, pulls: map[int]*pull{}, collaborators: map[int64]access{}}
	s.repos[r.id] = r
	s.names[key(r.fullName())] = r.id
	return r, nil
}

// dropRepo forgets a repository; its former names reach nothing any more.
func (s *Server) dropRepo(r *repo) error {
	delete(s.repos, r.id)
	maps.DeleteFunc(s.names, func(_ string, id int64) bool { return id == r.id })
	for _, i := range s.installations {
		delete(i.selected, r.id)
	}
	return r.store.remove()
}

// moveRepo gives a repository another name or owner. The old name leads to it
// until another repository takes that name.
func (s *Server) moveRepo(r *repo, owner *account, name string) error {
	if other, moved := s.find(owner.login + "/" + name); other != nil && !moved && other != r {
		return fmt.Errorf("%s/%s exists already", owner.login, name)
	}
	r.owner, r.name = owner, name
	r.updatedAt = s.now()
	s.names[key(r.fullName())] = r.id
	return nil
}

// newAccount registers an account.
func (s *Server) newAccount(login, kind string) *account {
	a := &account{id: s.id(), login: login, kind: kind, createdAt: s.now()}
	if kind == kindOrganization {
		a.members, a.basePermission, a.plan = map[int64]string{}, accessRead, "team"
	}
	s.accounts[key(login)] = a
	return a
}

// accountByID returns the account of an id.
func (s *Server) accountByID(id int64) *account {
	for _, a := range s.accounts {
		if a.id == id {
			return a
		}
	}
	return nil
}

// installationOf returns an App's installation on an account.
func (s *Server) installationOf(a *app, login string) *installation {
	for _, i := range s.installations {
		if i.app == a && key(i.account.login) == key(login) {
			return i
		}
	}
	return nil
}

// sortedByID returns the values of a map in the order of their ids.
func sortedByID[V any](m map[int64]V) []V {
	var list []V
	for _, id := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[id])
	}
	return list
}
