// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/golang-jwt/jwt/v4"
	"sigs.k8s.io/yaml"
)

// Scenario is what a simulator holds at the start, as a YAML file says it.
type Scenario struct {
	Organizations []ScenarioOrganization `json:"organizations,omitempty"`
	// Users are logins of persons.
	Users        []string             `json:"users,omitempty"`
	Repositories []ScenarioRepository `json:"repositories,omitempty"`
	Apps         []ScenarioApp        `json:"apps,omitempty"`
	Faults       []Fault              `json:"faults,omitempty"`
}

// ScenarioOrganization is an organization and its members' roles by login.
type ScenarioOrganization struct {
	AccountRequest `json:",inline"`
	Members        map[string]string `json:"members,omitempty"`
}

// ScenarioRepository is a repository with commits, in order.
type ScenarioRepository struct {
	Name    string `json:"name"` // owner/name
	Public  bool   `json:"public,omitempty"`
	Commits []struct {
		Branch  string            `json:"branch,omitempty"` // default main
		Login   string            `json:"login,omitempty"`
		Message string            `json:"message,omitempty"`
		Files   map[string]string `json:"files"`
	} `json:"commits,omitempty"`
	// Collaborators are permissions by login.
	Collaborators map[string]string `json:"collaborators,omitempty"`
	Archived      bool              `json:"archived,omitempty"`
}

// ScenarioApp is an App and where it is installed.
type ScenarioApp struct {
	AppRequest `json:",inline"`
	// PrivateKeyFile holds the App's private key as PEM; a missing one is
	// written with a new key.
	PrivateKeyFile string `json:"privateKeyFile,omitempty"`
	Installations  []struct {
		Account string `json:"account"`
		// Repositories are names without the owner; none means all.
		Repositories []string `json:"repositories,omitempty"`
	} `json:"installations,omitempty"`
}

// ReadScenario reads a scenario from YAML; unknown keys are errors.
func ReadScenario(text []byte) (Scenario, error) {
	var sc Scenario
	if err := yaml.UnmarshalStrict(text, &sc); err != nil {
		return Scenario{}, fmt.Errorf("reading the scenario: %w", err)
	}
	return sc, nil
}

// Made tells what a scenario made that cannot be known beforehand.
type Made struct {
	// Tokens are persons' tokens for git and REST by login.
	Tokens map[string]string
	// Apps are the Apps by slug. The private key is left out where it is in a
	// file.
	Apps map[string]AppReply
}

// Play makes what a scenario holds.
func (s *Server) Play(sc Scenario) (Made, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	made := Made{Tokens: map[string]string{}, Apps: map[string]AppReply{}}
	for _, o := range sc.Organizations {
		if err := s.playOrganization(o); err != nil {
			return made, fmt.Errorf("organization %s: %w", o.Login, err)
		}
	}
	for _, login := range sc.Users {
		reply, err := s.addUser(AccountRequest{Login: login})
		if err != nil {
			return made, fmt.Errorf("user %s: %w", login, err)
		}
		made.Tokens[login] = reply.Token
	}
	for _, r := range sc.Repositories {
		if err := s.playRepository(r); err != nil {
			return made, fmt.Errorf("repository %s: %w", r.Name, err)
		}
	}
	for _, a := range sc.Apps {
		reply, err := s.playApp(a)
		if err != nil {
			return made, fmt.Errorf("app %s: %w", a.Slug, err)
		}
		made.Apps[a.Slug] = reply
	}
	for _, f := range sc.Faults {
		if _, err := s.addFault(f); err != nil {
			return made, fmt.Errorf("faults: %w", err)
		}
	}
	return made, nil
}

func (s *Server) playOrganization(o ScenarioOrganization) error {
	if _, err := s.addOrganization(o.AccountRequest); err != nil {
		return err
	}
	for _, login := range slices.Sorted(maps.Keys(o.Members)) {
		if _, err := s.setMember(MemberRequest{Organization: o.Login, Login: login, Role: o.Members[login]}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) playRepository(r ScenarioRepository) error {
	if _, err := s.addRepository(RepositoryRequest{Repository: r.Name, Public: r.Public}); err != nil {
		return err
	}
	for _, c := range r.Commits {
		in := CommitRequest{Repository: r.Name, Branch: cmpOr(c.Branch, "main"), Login: c.Login, Message: cmpOr(c.Message, "Update"), Files: c.Files}
		if _, err := s.commitAs(in); err != nil {
			return err
		}
	}
	for _, login := range slices.Sorted(maps.Keys(r.Collaborators)) {
		if _, err := s.addCollaboratorAs(CollaboratorRequest{Repository: r.Name, Login: login, Permission: r.Collaborators[login]}); err != nil {
			return err
		}
	}
	if r.Archived {
		_, err := s.archiveAs(RepositoryRequest{Repository: r.Name, Archived: true})
		return err
	}
	return nil
}

func (s *Server) playApp(a ScenarioApp) (AppReply, error) {
	in := a.AppRequest
	if a.PrivateKeyFile != "" && in.PublicKey == "" {
		public, err := publicKeyOf(a.PrivateKeyFile)
		if err != nil {
			return AppReply{}, err
		}
		in.PublicKey = public
	}
	reply, err := s.addApp(in)
	if err != nil {
		return AppReply{}, err
	}
	if a.PrivateKeyFile != "" && reply.PrivateKey != "" {
		if err := os.WriteFile(a.PrivateKeyFile, []byte(reply.PrivateKey), 0o600); err != nil {
			return AppReply{}, fmt.Errorf("writing the private key: %w", err)
		}
		reply.PrivateKey = ""
	}
	for _, i := range a.Installations {
		if _, err := s.install(InstallRequest{App: reply.ID, Account: i.Account, Repositories: i.Repositories}); err != nil {
			return AppReply{}, err
		}
	}
	return reply, nil
}

// publicKeyOf returns the public half of a private key's file, "" when there
// is no such file.
func publicKeyOf(file string) (string, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the private key: %w", err)
	}
	private, err := jwt.ParseRSAPrivateKeyFromPEM(text)
	if err != nil {
		return "", fmt.Errorf("%s holds no RSA private key as PEM: %w", file, err)
	}
	return publicPEM(&private.PublicKey)
}

func publicPEM(key *rsa.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), nil
}
