// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// controlPrefix is outside of GitHub's paths.
const controlPrefix = "/_sim/"

// controlRoutes registers the control interface: one POST per verb, a JSON
// object in and out. simclient is its client.
func (s *Server) controlRoutes() {
	control(s, "organization", s.addAccount("Organization"))
	control(s, "user", s.addAccount("User"))
	control(s, "app", s.addApp)
	control(s, "hook", s.setHook)
	control(s, "install", s.install)
	control(s, "suspend", s.suspend)
	control(s, "uninstall", s.uninstall)
	control(s, "repository", s.addRepository)
	control(s, "commit", s.commitAs)
	control(s, "merge", s.merge)
	control(s, "state", s.setPullState)
	control(s, "deletebranch", s.deleteBranch)
	control(s, "rename", s.rename)
	control(s, "archive", s.archive)
	control(s, "deleterepository", s.deleteRepository)
	control(s, "look", s.look)
	control(s, "requests", s.takeRequests)
	control(s, "fault", s.addFault)
	control(s, "clearfaults", s.clearFaults)
	control(s, "advance", s.advance)
	s.mux.HandleFunc("POST "+controlPrefix+"flush", func(w http.ResponseWriter, r *http.Request) {
		if err := s.Flush(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusGatewayTimeout)
			return
		}
		_, _ = fmt.Fprint(w, "{}") // the client is gone
	})
}

// control registers a verb. Its function is called with the server locked.
func control[In, Out any](s *Server, verb string, f func(In) (Out, error)) {
	s.mux.HandleFunc("POST "+controlPrefix+verb, func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, "reading the request: "+err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		out, err := f(in)
		s.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out) // the client is gone
	})
}

// Empty is an object without fields.
type Empty struct{}

// AccountRequest asks for an organization or a user.
type AccountRequest struct {
	Login string `json:"login"`
}

// AccountReply is the account made, and a person's token for git and REST.
type AccountReply struct {
	ID    int64  `json:"id"`
	Token string `json:"token,omitempty"`
}

func (s *Server) newAccount(login, kind string) *account {
	a := &account{id: s.id(), login: login, kind: kind, createdAt: s.now()}
	s.accounts[key(login)] = a
	return a
}

func (s *Server) addAccount(kind string) func(AccountRequest) (AccountReply, error) {
	return func(in AccountRequest) (AccountReply, error) {
		if in.Login == "" || s.accounts[key(in.Login)] != nil {
			return AccountReply{}, fmt.Errorf("login %q is empty or taken", in.Login)
		}
		a := s.newAccount(in.Login, kind)
		reply := AccountReply{ID: a.id}
		if kind == "User" {
			reply.Token = "ghp_" + random()
			s.tokens[reply.Token] = &token{user: a}
		}
		return reply, nil
	}
}

// AppRequest asks for a GitHub App.
type AppRequest struct {
	Slug  string `json:"slug"`
	Owner string `json:"owner"`
	// PublicKey is PEM; empty means that a key pair is made.
	PublicKey  string `json:"publicKey,omitempty"`
	HookURL    string `json:"hookURL,omitempty"`
	HookSecret string `json:"hookSecret,omitempty"`
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
	a := &app{id: s.id(), slug: in.Slug, name: in.Slug, owner: owner, createdAt: s.now(), hookURL: in.HookURL, hookSecret: in.HookSecret}
	a.bot = s.newAccount(in.Slug+"[bot]", "Bot")
	reply := AppReply{ID: a.id, BotUserID: a.bot.id}
	if in.PublicKey != "" {
		public, err := jwt.ParseRSAPublicKeyFromPEM([]byte(in.PublicKey))
		if err != nil {
			return AppReply{}, fmt.Errorf("reading the public key: %w", err)
		}
		a.key = public
	} else {
		private, err := rsa.GenerateKey(rand.Reader, keyBits)
		if err != nil {
			return AppReply{}, err
		}
		a.key = &private.PublicKey
		reply.PrivateKey = string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}))
	}
	s.apps[a.id] = a
	return reply, nil
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

// InstallRequest names an App and an account.
type InstallRequest struct {
	App     int64  `json:"app"`
	Account string `json:"account"`
	// Suspended is for the suspend verb.
	Suspended bool `json:"suspended,omitempty"`
}

// InstallReply is the installation.
type InstallReply struct {
	ID int64 `json:"id"`
}

func (s *Server) install(in InstallRequest) (InstallReply, error) {
	a, target := s.apps[in.App], s.accounts[key(in.Account)]
	if a == nil || target == nil {
		return InstallReply{}, fmt.Errorf("no App %d or no account %q", in.App, in.Account)
	}
	if i := s.installationOn(in); i != nil {
		return InstallReply{ID: i.id}, nil
	}
	i := &installation{id: s.id(), app: a, account: target, createdAt: s.now()}
	s.installations[i.id] = i
	return InstallReply{ID: i.id}, nil
}

func (s *Server) installationOn(in InstallRequest) *installation {
	for _, i := range s.installations {
		if i.app.id == in.App && key(i.account.login) == key(in.Account) {
			return i
		}
	}
	return nil
}

func (s *Server) suspend(in InstallRequest) (Empty, error) {
	i := s.installationOn(in)
	if i == nil {
		return Empty{}, errors.New("no such installation")
	}
	i.suspendedAt = nil
	if in.Suspended {
		now := s.now()
		i.suspendedAt = &now
	}
	return Empty{}, nil
}

func (s *Server) uninstall(in InstallRequest) (Empty, error) {
	i := s.installationOn(in)
	if i == nil {
		return Empty{}, errors.New("no such installation")
	}
	delete(s.installations, i.id)
	return Empty{}, nil
}

// RepositoryRequest asks for a repository, or names one.
type RepositoryRequest struct {
	Repository string `json:"repository"` // owner/name
	Public     bool   `json:"public,omitempty"`
	// NewName is for the rename verb; Archived for the archive verb.
	NewName  string `json:"newName,omitempty"`
	Archived bool   `json:"archived,omitempty"`
	// Login is who acts.
	Login string `json:"login,omitempty"`
}

// RepositoryReply is the repository.
type RepositoryReply struct {
	ID int64 `json:"id"`
}

func (s *Server) addRepository(in RepositoryRequest) (RepositoryReply, error) {
	owner, name, err := splitName(in.Repository)
	if err != nil {
		return RepositoryReply{}, err
	}
	account := s.accounts[key(owner)]
	if account == nil {
		return RepositoryReply{}, fmt.Errorf("no account %q", owner)
	}
	if r, moved := s.find(in.Repository); r != nil && !moved {
		return RepositoryReply{}, fmt.Errorf("%q exists", in.Repository)
	}
	r, err := s.newRepo(account, name, !in.Public)
	if err != nil {
		return RepositoryReply{}, err
	}
	return RepositoryReply{ID: r.id}, nil
}

func splitName(fullName string) (owner, name string, err error) {
	m := regexp.MustCompile(`^([^/]+)/([^/]+)$`).FindStringSubmatch(fullName)
	if m == nil {
		return "", "", fmt.Errorf("%q is no owner/name", fullName)
	}
	return m[1], m[2], nil
}

// person returns the account that acts; an empty login is somebody.
func (s *Server) person(login string) *account {
	if login == "" {
		login = "somebody"
	}
	if a := s.accounts[key(login)]; a != nil {
		return a
	}
	return s.newAccount(login, "User")
}

func (s *Server) mustFind(fullName string) (*repo, error) {
	r, _ := s.find(fullName)
	if r == nil {
		return nil, fmt.Errorf("no repository %q", fullName)
	}
	return r, nil
}

// CommitRequest makes a commit on a branch as a person. An empty content
// removes a file; a missing branch is made.
type CommitRequest struct {
	Repository string            `json:"repository"`
	Branch     string            `json:"branch"`
	Login      string            `json:"login,omitempty"`
	Files      map[string]string `json:"files"`
	Message    string            `json:"message"`
}

// CommitReply is the commit's object id.
type CommitReply struct {
	SHA string `json:"sha"`
}

func (s *Server) commitAs(in CommitRequest) (CommitReply, error) {
	r, err := s.mustFind(in.Repository)
	if err != nil {
		return CommitReply{}, err
	}
	by := s.person(in.Login)
	before := refs(r.dir)
	sha, err := s.writeFiles(r, before["refs/heads/"+in.Branch], by, in.Files, in.Message)
	if err != nil {
		return CommitReply{}, err
	}
	return CommitReply{SHA: sha}, s.moveRef(r, by, before, "refs/heads/"+in.Branch, sha)
}

// moveRef moves a ref as somebody's push would. An empty sha deletes it.
func (s *Server) moveRef(r *repo, by *account, before map[string]string, ref, sha string) error {
	args := []string{"update-ref", ref, sha}
	if sha == "" {
		args = []string{"update-ref", "-d", ref}
	}
	if _, err := git(r.dir, nil, nil, args...); err != nil {
		return err
	}
	s.afterPush(r, by, before, refs(r.dir))
	return nil
}

// PullRequest names a pull request and what to do with it.
type PullRequest struct {
	Repository string `json:"repository"`
	Number     int    `json:"number"`
	Login      string `json:"login,omitempty"`
	// Method of a merge: merge or squash.
	Method string `json:"method,omitempty"`
	// State to set: closed or open.
	State string `json:"state,omitempty"`
}

func (s *Server) pull(in PullRequest) (*pull, error) {
	r, err := s.mustFind(in.Repository)
	if err != nil {
		return nil, err
	}
	if in.Number < 1 || in.Number > len(r.pulls) {
		return nil, fmt.Errorf("%s has no pull request %d", in.Repository, in.Number)
	}
	return r.pulls[in.Number-1], nil
}

func (s *Server) merge(in PullRequest) (CommitReply, error) {
	p, err := s.pull(in)
	if err != nil {
		return CommitReply{}, err
	}
	if !p.open() {
		return CommitReply{}, fmt.Errorf("pull request %d is not open", in.Number)
	}
	by := s.person(in.Login)
	before := refs(p.repo.dir)
	base := before["refs/heads/"+p.base]
	tree, err := mergeTree(p.repo.dir, base, p.headSHA)
	if err != nil {
		return CommitReply{}, err
	}
	var sha string
	switch in.Method {
	case "", "merge":
		sha, err = s.commitTree(p.repo, tree, by, fmt.Sprintf("Merge pull request #%d from %s/%s", p.number, p.repo.owner.login, p.head), base, p.headSHA)
	case "squash":
		sha, err = s.commitTree(p.repo, tree, by, fmt.Sprintf("%s (#%d)", p.title, p.number), base)
	default:
		return CommitReply{}, fmt.Errorf("method %q is not known: use merge or squash", in.Method)
	}
	if err != nil {
		return CommitReply{}, err
	}
	p.baseSHA = base
	s.markMerged(p, by, sha)
	return CommitReply{SHA: sha}, s.moveRef(p.repo, by, before, "refs/heads/"+p.base, sha)
}

func (s *Server) setPullState(in PullRequest) (Empty, error) {
	p, err := s.pull(in)
	if err != nil {
		return Empty{}, err
	}
	if in.State == "closed" {
		s.closePull(p, s.person(in.Login))
		return Empty{}, nil
	}
	if bad := s.reopenPull(p, s.person(in.Login)); bad != "" {
		return Empty{}, errors.New(bad)
	}
	return Empty{}, nil
}

func (s *Server) deleteBranch(in CommitRequest) (Empty, error) {
	r, err := s.mustFind(in.Repository)
	if err != nil {
		return Empty{}, err
	}
	return Empty{}, s.moveRef(r, s.person(in.Login), refs(r.dir), "refs/heads/"+in.Branch, "")
}

func (s *Server) rename(in RepositoryRequest) (Empty, error) {
	r, err := s.mustFind(in.Repository)
	if err != nil {
		return Empty{}, err
	}
	old := r.name
	r.name = in.NewName
	s.names[key(r.fullName())] = r.id
	s.emitRepository(r, s.person(in.Login), "renamed", map[string]any{"repository": map[string]any{"name": map[string]any{"from": old}}})
	return Empty{}, nil
}

func (s *Server) archive(in RepositoryRequest) (Empty, error) {
	r, err := s.mustFind(in.Repository)
	if err != nil {
		return Empty{}, err
	}
	r.archived = in.Archived
	action := "unarchived"
	if in.Archived {
		action = "archived"
	}
	s.emitRepository(r, s.person(in.Login), action, nil)
	return Empty{}, nil
}

func (s *Server) deleteRepository(in RepositoryRequest) (Empty, error) {
	r, err := s.mustFind(in.Repository)
	if err != nil {
		return Empty{}, err
	}
	s.emitRepository(r, s.person(in.Login), "deleted", nil)
	delete(s.repos, r.id)
	for name, id := range s.names {
		if id == r.id {
			delete(s.names, name)
		}
	}
	return Empty{}, nil
}

// Look is what a repository holds.
type Look struct {
	ID            int64             `json:"id"`
	FullName      string            `json:"fullName"`
	Private       bool              `json:"private"`
	DefaultBranch string            `json:"defaultBranch"`
	Refs          map[string]string `json:"refs"`
	Pulls         []LookPull        `json:"pulls"`
}

// LookPull is a pull request of a Look.
type LookPull struct {
	Number   int      `json:"number"`
	State    string   `json:"state"` // open, closed or merged
	Title    string   `json:"title"`
	Body     string   `json:"body"`
	Head     string   `json:"head"`
	Base     string   `json:"base"`
	HeadSHA  string   `json:"headSHA"`
	Author   string   `json:"author"`
	Comments []string `json:"comments"`
	Labels   []string `json:"labels"`
}

func (s *Server) look(in RepositoryRequest) (Look, error) {
	r, err := s.mustFind(in.Repository)
	if err != nil {
		return Look{}, err
	}
	l := Look{ID: r.id, FullName: r.fullName(), Private: r.private, DefaultBranch: r.defaultBranch, Refs: refs(r.dir)}
	for _, p := range r.pulls {
		lp := LookPull{Number: p.number, State: "open", Title: p.title, Body: p.body, Head: p.head, Base: p.base, HeadSHA: p.headSHA, Author: p.author.login}
		if p.mergedAt != nil {
			lp.State = "merged"
		} else if !p.open() {
			lp.State = "closed"
		}
		for _, c := range p.comments {
			lp.Comments = append(lp.Comments, c.body)
		}
		for _, label := range p.labels {
			lp.Labels = append(lp.Labels, label.name)
		}
		l.Pulls = append(l.Pulls, lp)
	}
	return l, nil
}

// takeRequests returns the request log and empties it.
func (s *Server) takeRequests(Empty) ([]Request, error) {
	taken := s.requests
	s.requests = nil
	if taken == nil {
		taken = []Request{}
	}
	return taken, nil
}

func (s *Server) addFault(f Fault) (Empty, error) {
	path, err := regexp.Compile(f.Path)
	if err != nil {
		return Empty{}, fmt.Errorf("path %q is no regular expression: %w", f.Path, err)
	}
	f.path = path
	s.faults = append(s.faults, &f)
	return Empty{}, nil
}

func (s *Server) clearFaults(Empty) (Empty, error) {
	s.faults = nil
	return Empty{}, nil
}

// AdvanceRequest moves the simulator's clock ahead.
type AdvanceRequest struct {
	By time.Duration `json:"by"`
}

func (s *Server) advance(in AdvanceRequest) (Empty, error) {
	s.offset += in.By
	return Empty{}, nil
}
