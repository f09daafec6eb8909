// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"crypto/rsa"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// account is an organization, a user or a bot.
type account struct {
	id        int64
	login     string
	kind      string // Organization, User or Bot
	createdAt time.Time
}

type app struct {
	id         int64
	slug, name string
	owner      *account
	bot        *account
	key        *rsa.PublicKey
	createdAt  time.Time
	hookURL    string
	hookSecret string
}

type installation struct {
	id          int64
	app         *app
	account     *account
	createdAt   time.Time
	suspendedAt *time.Time
	windowEnd   time.Time
	used        int
}

// spend takes one request off the hour's quota.
func (i *installation) spend(now time.Time) (used int, reset time.Time) {
	if !now.Before(i.windowEnd) {
		i.windowEnd, i.used = now.Add(time.Hour), 0
	}
	i.used = min(i.used+1, hourlyQuota)
	return i.used, i.windowEnd
}

// token is an installation's or a person's.
type token struct {
	installation *installation
	user         *account
	expiresAt    time.Time // zero: never
}

type repo struct {
	id            int64
	owner         *account
	name          string
	private       bool
	archived      bool
	defaultBranch string
	createdAt     time.Time
	pushedAt      time.Time
	updatedAt     time.Time
	dir           string
	pulls         []*pull // by number - 1
	git           sync.Mutex
}

func (r *repo) fullName() string { return r.owner.login + "/" + r.name }

type pull struct {
	id                   int64
	number               int
	repo                 *repo
	author               *account
	title, body          string
	head, base           string
	headSHA, baseSHA     string
	draft                bool
	createdAt, updatedAt time.Time
	closedAt, mergedAt   *time.Time
	mergedBy             *account
	mergeSHA             string
	labels               []label
	comments             []comment
}

func (p *pull) open() bool { return p.closedAt == nil }

type label struct {
	id   int64
	name string
}

type comment struct {
	id        int64
	author    *account
	body      string
	createdAt time.Time
}

// actor is who asks: an App by JWT, an installation or a person by token.
type actor struct {
	app          *app
	installation *installation
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

// account returns who the actor's acts come from.
func (a actor) account() *account {
	if a.installation != nil {
		return a.installation.app.bot
	}
	return a.user
}

// sees reports whether the actor has access to a repository.
func (a actor) sees(r *repo) bool {
	if a.installation != nil {
		return a.installation.account == r.owner || !r.private
	}
	return a.user != nil || !r.private
}

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
func (s *Server) newRepo(owner *account, name string, private bool) (*repo, error) {
	now := s.now()
	id := s.id()
	r := &repo{id: id, owner: owner, name: name, private: private, defaultBranch: "main", createdAt: now, updatedAt: now, pushedAt: now,
		dir: filepath.Join(s.options.Dir, "repos", fmt.Sprintf("%d.git", id))}
	if err := initBare(r.dir); err != nil {
		return nil, err
	}
	s.repos[r.id] = r
	s.names[key(r.fullName())] = r.id
	return r, nil
}
