// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/golang-jwt/jwt/v4"
)

// AccountRequest asks for an organization or a user.
type AccountRequest struct {
	Login string `json:"login"`
	// Plan of an organization: free, team (default) or enterprise.
	Plan string `json:"plan,omitempty"`
	// BasePermission is what members of an organization may do with all its
	// repositories: none, read (default), write or admin.
	BasePermission string `json:"basePermission,omitempty"`
}

// AccountReply is the account, and a person's token for git and REST.
type AccountReply struct {
	ID    int64  `json:"id"`
	Token string `json:"token,omitempty"`
}

// addOrganization makes an organization, or changes one that exists.
func (s *Server) addOrganization(in AccountRequest) (AccountReply, error) {
	if in.Login == "" {
		return AccountReply{}, errors.New("an organization needs a login")
	}
	a := s.accounts[key(in.Login)]
	if a == nil {
		a = s.newAccount(in.Login, kindOrganization)
	}
	if a.kind != kindOrganization {
		return AccountReply{}, fmt.Errorf("the login %q belongs to a %s", in.Login, a.kind)
	}
	a.plan = cmpOr(in.Plan, a.plan)
	switch in.BasePermission {
	case "":
	case accessNone.String():
		a.basePermission = accessNone
	default:
		base, known := parseAccess(in.BasePermission)
		if !known {
			return AccountReply{}, fmt.Errorf("base permission %q is not known", in.BasePermission)
		}
		a.basePermission = base
	}
	return AccountReply{ID: a.id}, nil
}

// addUser makes a person, or another token for one that exists.
func (s *Server) addUser(in AccountRequest) (AccountReply, error) {
	if in.Login == "" {
		return AccountReply{}, errors.New("a user needs a login")
	}
	a := s.person(in.Login)
	if a.kind != kindUser {
		return AccountReply{}, fmt.Errorf("the login %q belongs to a %s", in.Login, a.kind)
	}
	reply := AccountReply{ID: a.id, Token: "ghp_" + random()}
	s.tokens[reply.Token] = &token{user: a}
	return reply, nil
}

// MemberRequest says what a person is in an organization.
type MemberRequest struct {
	Organization string `json:"organization"`
	Login        string `json:"login"`
	// Role is admin, member, or empty to leave.
	Role string `json:"role"`
}

func (s *Server) setMember(in MemberRequest) (Empty, error) {
	org := s.accounts[key(in.Organization)]
	if org == nil || org.kind != kindOrganization {
		return Empty{}, fmt.Errorf("no organization %q", in.Organization)
	}
	who := s.person(in.Login)
	switch in.Role {
	case "":
		delete(org.members, who.id)
	case "admin", "member":
		org.members[who.id] = in.Role
	default:
		return Empty{}, fmt.Errorf("role %q is not known: use admin, member or nothing", in.Role)
	}
	return Empty{}, nil
}

// DefaultPermissions are what an App gets when nothing else is asked for.
func DefaultPermissions() map[string]string {
	return map[string]string{"actions": "write", "administration": "write", "checks": "read", "contents": "write", "issues": "write",
		"members": "read", "metadata": "read", "pull_requests": "write", "workflows": "write"}
}

// DefaultEvents are what an App subscribes to when nothing else is asked for.
func DefaultEvents() []string {
	return []string{"create", "delete", "issue_comment", "member", "organization", "pull_request", "push", "repository", "workflow_run"}
}

// AppRequest asks for a GitHub App.
type AppRequest struct {
	Slug  string `json:"slug"`
	Owner string `json:"owner"`
	// ID is the App's id; 0 means that one is chosen.
	ID int64 `json:"id,omitempty"`
	// PublicKey is PEM; empty means that a key pair is made.
	PublicKey  string `json:"publicKey,omitempty"`
	HookURL    string `json:"hookURL,omitempty"`
	HookSecret string `json:"hookSecret,omitempty"`
	// Permissions and Events replace DefaultPermissions and DefaultEvents.
	Permissions map[string]string `json:"permissions,omitempty"`
	Events      []string          `json:"events,omitempty"`
}

// AppReply is the App made; PrivateKey is PEM when it was made here.
type AppReply struct {
	ID         int64  `json:"id"`
	BotUserID  int64  `json:"botUserID"`
	PrivateKey string `json:"privateKey,omitempty"`
}

const keyBits = 2048

func (s *Server) addApp(in AppRequest) (AppReply, error) {
	owner := s.accounts[key(in.Owner)]
	if owner == nil || in.Slug == "" {
		return AppReply{}, fmt.Errorf("an App needs a slug and an owner that exists; got %q and %q", in.Slug, in.Owner)
	}
	login := in.Slug + "[bot]"
	if s.accounts[key(login)] != nil || s.apps[in.ID] != nil {
		return AppReply{}, fmt.Errorf("there is an App with the slug %q or the id %d", in.Slug, in.ID)
	}
	public, private, err := appKey(in.PublicKey)
	if err != nil {
		return AppReply{}, err
	}
	a := &app{id: in.ID, slug: in.Slug, name: in.Slug, owner: owner, key: public, createdAt: s.now(), hookID: s.id(), hookURL: in.HookURL, hookSecret: in.HookSecret,
		permissions: in.Permissions, events: in.Events, bot: s.newAccount(login, kindBot), hooks: newHookQueue(s.hookClient, s.now)}
	if a.id == 0 {
		a.id = s.id()
	}
	if a.permissions == nil {
		a.permissions = DefaultPermissions()
	}
	a.permissions["metadata"] = "read" // every App has it
	if a.events == nil {
		a.events = DefaultEvents()
	}
	slices.Sort(a.events)
	s.apps[a.id] = a
	s.emitPing(a)
	return AppReply{ID: a.id, BotUserID: a.bot.id, PrivateKey: private}, nil
}

// appKey reads a public key, or makes a pair and returns the private one, too.
func appKey(publicPEM string) (*rsa.PublicKey, string, error) {
	if publicPEM != "" {
		public, err := jwt.ParseRSAPublicKeyFromPEM([]byte(publicPEM))
		if err != nil {
			return nil, "", fmt.Errorf("reading the public key: %w", err)
		}
		return public, "", nil
	}
	private, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return nil, "", fmt.Errorf("making a key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
	return &private.PublicKey, string(text), nil
}

// HookRequest sets where an App's webhooks go.
type HookRequest struct {
	App    int64  `json:"app"`
	URL    string `json:"url"`
	Secret string `json:"secret"`
}

func (s *Server) setHook(in HookRequest) (Empty, error) {
	a := s.apps[in.App]
	if a == nil {
		return Empty{}, fmt.Errorf("no App %d", in.App)
	}
	a.hookURL, a.hookSecret = in.URL, in.Secret
	return Empty{}, nil
}

// ping greets an App's hook, as when the App was made.
func (s *Server) ping(in AppQuery) (Empty, error) {
	a := s.apps[in.App]
	if a == nil {
		return Empty{}, fmt.Errorf("no App %d", in.App)
	}
	s.emitPing(a)
	return Empty{}, nil
}

// InstallRequest names an App and an account.
type InstallRequest struct {
	App     int64  `json:"app"`
	Account string `json:"account"`
	// Repositories limits an installation to these names (without owner); nil
	// means all. It is for the install and select verbs.
	Repositories []string `json:"repositories"`
	// Suspended is for the suspend verb.
	Suspended bool `json:"suspended,omitempty"`
	// Limit and Remaining are an hour's requests, for the quota verb.
	Limit     int `json:"limit,omitempty"`
	Remaining int `json:"remaining,omitempty"`
	// Login is who does it; default somebody.
	Login string `json:"login,omitempty"`
}

// InstallReply is the installation.
type InstallReply struct {
	ID int64 `json:"id"`
}

// chosen returns the ids of an account's repositories by their names; nil for
// nil names.
func (s *Server) chosen(owner *account, names []string) (map[int64]bool, error) {
	if names == nil {
		return nil, nil
	}
	ids := map[int64]bool{}
	for _, name := range names {
		r, moved := s.find(owner.login + "/" + name)
		if r == nil || moved {
			return nil, fmt.Errorf("no repository %s/%s", owner.login, name)
		}
		ids[r.id] = true
	}
	return ids, nil
}

func (s *Server) install(in InstallRequest) (InstallReply, error) {
	a, target := s.apps[in.App], s.accounts[key(in.Account)]
	if a == nil || target == nil {
		return InstallReply{}, fmt.Errorf("no App %d or no account %q", in.App, in.Account)
	}
	if i := s.installationOf(a, in.Account); i != nil {
		return InstallReply{ID: i.id}, nil
	}
	selected, err := s.chosen(target, in.Repositories)
	if err != nil {
		return InstallReply{}, err
	}
	i := &installation{id: s.id(), app: a, account: target, createdAt: s.now(), selected: selected, quota: installationQuota}
	s.installations[i.id] = i
	s.emitInstallation(i, s.person(in.Login), "created")
	return InstallReply{ID: i.id}, nil
}

// mustInstallation finds the installation a request names.
func (s *Server) mustInstallation(in InstallRequest) (*installation, error) {
	a := s.apps[in.App]
	if a == nil {
		return nil, fmt.Errorf("no App %d", in.App)
	}
	i := s.installationOf(a, in.Account)
	if i == nil {
		return nil, fmt.Errorf("the App %s is not installed on %q", a.slug, in.Account)
	}
	return i, nil
}

// selectRepositories changes which repositories an installation covers.
func (s *Server) selectRepositories(in InstallRequest) (Empty, error) {
	i, err := s.mustInstallation(in)
	if err != nil {
		return Empty{}, err
	}
	selected, err := s.chosen(i.account, in.Repositories)
	if err != nil {
		return Empty{}, err
	}
	before := s.coveredBy(i)
	i.selected = selected
	after := s.coveredBy(i)
	by := s.person(in.Login)
	if added := without(after, before); len(added) > 0 {
		s.emitSelection(i, by, "added", added)
	}
	if removed := without(before, after); len(removed) > 0 {
		s.emitSelection(i, by, "removed", removed)
	}
	return Empty{}, nil
}

func without(list, others []*repo) []*repo {
	return slices.DeleteFunc(slices.Clone(list), func(r *repo) bool { return slices.Contains(others, r) })
}

func (s *Server) suspend(in InstallRequest) (Empty, error) {
	i, err := s.mustInstallation(in)
	if err != nil {
		return Empty{}, err
	}
	by := s.person(in.Login)
	if !in.Suspended {
		i.suspendedAt, i.suspendedBy = nil, nil
		s.emitInstallation(i, by, "unsuspend")
		return Empty{}, nil
	}
	now := s.now()
	i.suspendedAt, i.suspendedBy = &now, by
	s.emitInstallation(i, by, "suspend")
	return Empty{}, nil
}

func (s *Server) uninstall(in InstallRequest) (Empty, error) {
	i, err := s.mustInstallation(in)
	if err != nil {
		return Empty{}, err
	}
	s.emitInstallation(i, s.person(in.Login), "deleted")
	delete(s.installations, i.id)
	maps.DeleteFunc(s.tokens, func(_ string, t *token) bool { return t.installation == i })
	return Empty{}, nil
}

// setQuota changes an installation's limit and what is left of this hour's.
func (s *Server) setQuota(in InstallRequest) (Empty, error) {
	i, err := s.mustInstallation(in)
	if err != nil {
		return Empty{}, err
	}
	if in.Limit > 0 {
		i.quota = in.Limit
	}
	i.window(s.now())
	i.used = max(i.quota-in.Remaining, 0)
	return Empty{}, nil
}
