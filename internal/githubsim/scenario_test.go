// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/githubsim"
	"github.com/sluice-dev/sluice/internal/githubsim/simtest"
)

const scenario = `
organizations:
- {login: acme, plan: team, members: {ada: admin}}
users: [ada, bob]
repositories:
- name: acme/lab1-source
  commits:
  - {login: ada, message: Start, files: {README.md: "one\n"}}
  - {branch: hints, login: ada, message: Hints, files: {hints.txt: "h\n"}}
  collaborators: {bob: push}
- {name: acme/old, public: true, archived: true}
apps:
- slug: demo
  owner: acme
  id: 4711
  privateKeyFile: KEYFILE
  hookURL: http://127.0.0.1:9/
  hookSecret: secret
  installations:
  - {account: acme, repositories: [lab1-source]}
faults:
- {path: "^/meta$", times: 1, status: 503}
`

func TestScenarioIsMade(t *testing.T) {
	g := NewWithT(t)
	key := filepath.Join(t.TempDir(), "key.pem")
	sc, err := githubsim.ReadScenario([]byte(scenario))
	g.Expect(err).NotTo(HaveOccurred())
	sc.Apps[0].PrivateKeyFile = key
	c, server := simtest.StartServer(t, githubsim.Options{})
	made, err := server.Play(sc)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made.Tokens).To(HaveLen(2))
	g.Expect(made.Apps["demo"].ID).To(BeEquivalentTo(4711))
	g.Expect(made.Apps["demo"].PrivateKey).To(BeEmpty())
	text, err := os.ReadFile(key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(HavePrefix("-----BEGIN RSA PRIVATE KEY-----"))

	look, err := c.Look(t.Context(), "acme/lab1-source")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(look.Refs).To(HaveLen(2))
	g.Expect(look.Collaborators).To(Equal(map[string]string{"bob": "write"}))
	g.Expect(c.Look(t.Context(), "acme/old")).To(HaveField("Archived", true))

	t.Run("again with the same key", func(t *testing.T) {
		g := NewWithT(t)
		_, again := simtest.StartServer(t, githubsim.Options{})
		_, err := again.Play(sc)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.ReadFile(key)).To(Equal(text))
		g.Expect(os.WriteFile(key, []byte("x"), 0o600)).To(Succeed())
		_, third := simtest.StartServer(t, githubsim.Options{})
		_, err = third.Play(sc)
		g.Expect(err).To(MatchError(ContainSubstring("holds no RSA private key")))
	})
}

func TestScenarioSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"organisations: []":                                    `unknown field "organisations"`,
		"apps: [{slug: x, owner: nobody}]":                     "app x: an App needs",
		"organizations: [{login: acme, members: {ada: king}}]": "organization acme: role",
		"repositories: [{name: nobody/x}]":                     "repository nobody/x: no account",
		"users: ['']":                                          "user : a user needs a login",
		"faults: [{path: '('}]":                                "no regular expression",
		"organizations: [{login: acme}]\nrepositories: [{name: acme/x, collaborators: {bob: king}}]":                               `permission "king"`,
		"organizations: [{login: acme}]\napps: [{slug: x, owner: acme, installations: [{account: acme, repositories: [absent]}]}]": "no repository acme/absent",
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)
			_, server := simtest.StartServer(t, githubsim.Options{})
			sc, err := githubsim.ReadScenario([]byte(text))
			if err == nil {
				_, err = server.Play(sc)
			}
			g.Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}
}

func TestFolderOfAnEarlierSimulatorIsRefused(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	c, _ := simtest.StartServer(t, githubsim.Options{Dir: dir})
	g.Expect(c.Organization(t.Context(), "acme")).To(Succeed())
	_, err := githubsim.New(githubsim.Options{Dir: dir})
	g.Expect(err).NotTo(HaveOccurred(), "an empty one is fine")
	_, err = c.Repository(t.Context(), "acme/x")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = githubsim.New(githubsim.Options{Dir: dir})
	g.Expect(err).To(MatchError(ContainSubstring("choose an empty folder")))
}
