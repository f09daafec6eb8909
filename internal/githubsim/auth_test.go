// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-github/v66/github"
	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/githubsim/simtest"
)

func TestAppIsKnownByItsJWT(t *testing.T) {
	s := newSim(t)
	a := s.ok(200, s.jwt(nil), "GET", "/app", nil)
	s.Expect(a.text("slug")).To(Equal("demo"))
	s.Expect(a.at("permissions", "contents")).To(Equal("write"))
	bot := s.ok(200, s.jwt(nil), "GET", "/users/demo[bot]", nil)
	s.Expect(bot.at("id")).To(BeEquivalentTo(s.BotUserID))
	s.Expect(bot.at("id")).NotTo(Equal(a.at("id")), "the bot's account id is not the App's id")
	s.Expect(bot.text("type")).To(Equal("Bot"))
	s.ok(200, s.jwt(map[string]any{"iss": s.AppID}), "GET", "/app", nil)
	s.ok(200, s.jwt(map[string]any{"iss": a.text("client_id")}), "GET", "/app", nil)
}

func TestBadJWTsAreRefusedInGitHubsWords(t *testing.T) {
	s := newSim(t)
	now := s.clock.Now()
	const (
		issued  = "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
		expires = "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
		decoded = "A JSON web token could not be decoded"
	)
	for name, c := range map[string]struct {
		claims map[string]any
		want   string
	}{
		"too far ahead":               {map[string]any{"exp": now.Add(601 * time.Second).Unix()}, "'Expiration time' claim ('exp') is too far in the future"},
		"expired":                     {map[string]any{"exp": now.Add(-time.Second).Unix()}, expires},
		"no expiry":                   {map[string]any{"exp": nil}, expires},
		"expiry as text":              {map[string]any{"exp": "soon"}, expires},
		"issued in the future":        {map[string]any{"iat": now.Add(2 * time.Second).Unix()}, issued},
		"no time of issue":            {map[string]any{"iat": nil}, issued},
		"another App's id":            {map[string]any{"iss": "1"}, decoded},
		"no issuer":                   {map[string]any{"iss": nil}, decoded},
		"exactly ten minutes is good": {map[string]any{"exp": now.Add(600 * time.Second).Unix()}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.call(s.jwt(c.claims), "GET", "/app", nil)
			if c.want == "" {
				NewWithT(t).Expect(a.status).To(Equal(200))
				return
			}
			NewWithT(t).Expect(a.status).To(Equal(401))
			NewWithT(t).Expect(a.text("message")).To(Equal(c.want))
			NewWithT(t).Expect(a.header.Get("Date")).To(Equal(now.Format(http.TimeFormat)), "a client learns the skew from it")
		})
	}
	t.Run("another key", func(t *testing.T) {
		other := simtest.NewFixture(t, s.Client, "other", "other")
		key, err := jwt.ParseRSAPrivateKeyFromPEM(other.Key)
		s.Expect(err).NotTo(HaveOccurred())
		text, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"iss": fmt.Sprint(s.AppID), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}).SignedString(key)
		s.Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(s.call(text, "GET", "/app", nil).text("message")).To(Equal(decoded))
	})
	t.Run("HS256 with the public key is no way in", func(t *testing.T) {
		text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"iss": fmt.Sprint(s.AppID), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}).SignedString([]byte("k"))
		s.Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(s.call(text, "GET", "/app", nil).status).To(Equal(401))
	})
}

func TestInstallationTokens(t *testing.T) {
	s := newSim(t)
	id, _ := s.repository("acme/one")
	other, _ := s.repository("acme/two")
	path := fmt.Sprintf("/app/installations/%d/access_tokens", s.installation())

	a := s.ok(201, s.jwt(nil), "POST", path, "null")
	token := a.text("token")
	s.Expect(token).To(HavePrefix(fmt.Sprintf("ghs_%d_", s.AppID)))
	s.Expect(a.text("expires_at")).To(Equal("2026-10-05T09:00:00Z"))
	s.Expect(a.text("repository_selection")).To(Equal("all"))
	s.ok(200, token, "GET", "/repos/acme/one", nil)
	s.Expect(s.ok(401, token, "GET", "/app", nil).text("message")).To(Equal("A JSON web token could not be decoded"))
	s.ok(401, "", "POST", path, nil)
	s.ok(404, s.jwt(nil), "POST", "/app/installations/1/access_tokens", nil)

	t.Run("expire after an hour by the simulator's clock", func(t *testing.T) {
		s.clock.Step(59*time.Minute + 59*time.Second)
		s.ok(200, token, "GET", "/repos/acme/one", nil)
		s.clock.Step(time.Second)
		s.Expect(s.ok(401, token, "GET", "/repos/acme/one", nil).text("message")).To(Equal("Bad credentials"))
	})
	t.Run("can be narrowed to repositories", func(t *testing.T) {
		a := s.ok(201, s.jwt(nil), "POST", path, map[string]any{"repositories": []string{"one"}})
		s.Expect(a.text("repository_selection")).To(Equal("selected"))
		s.Expect(a.at("repositories", 0, "id")).To(BeEquivalentTo(id))
		s.ok(200, a.text("token"), "GET", "/repos/acme/one", nil)
		s.ok(404, a.text("token"), "GET", fmt.Sprintf("/repositories/%d", other), nil)
		bad := s.ok(422, s.jwt(nil), "POST", path, map[string]any{"repository_ids": []int64{1}})
		s.Expect(bad.text("message")).To(Equal("There is at least one repository that does not exist or is not accessible to the parent installation."))
	})
	t.Run("can be narrowed to permissions", func(t *testing.T) {
		token := s.token(map[string]any{"permissions": map[string]string{"contents": "read"}})
		s.ok(200, token, "GET", "/repos/acme/one/commits", nil)
		a := s.ok(403, token, "POST", "/repos/acme/one/git/refs", map[string]string{"ref": "refs/heads/x", "sha": strings.Repeat("1", 40)})
		s.Expect(a.text("message")).To(Equal("Resource not accessible by integration"))
		s.Expect(a.header.Get("X-Accepted-GitHub-Permissions")).To(Equal("contents=write"))
		bad := s.ok(422, s.jwt(nil), "POST", path, map[string]any{"permissions": map[string]string{"members": "write"}})
		s.Expect(bad.text("message")).To(Equal("The permissions requested are not granted to this installation."))
	})
	t.Run("may lag behind", func(t *testing.T) {
		s.Expect(s.TokenLag(s.ctx, 3*time.Second)).To(Succeed())
		token := s.token()
		s.ok(401, token, "GET", "/repos/acme/one", nil)
		s.clock.Step(3 * time.Second)
		s.ok(200, token, "GET", "/repos/acme/one", nil)
		s.Expect(s.TokenLag(s.ctx, 0)).To(Succeed())
	})
}

func TestSuspendedAndRemovedInstallations(t *testing.T) {
	s := newSim(t)
	s.repository("acme/one")
	token, id := s.token(), s.installation()
	path := fmt.Sprintf("/app/installations/%d", id)
	s.Expect(s.Suspend(s.ctx, s.AppID, "acme", true)).To(Succeed())
	a := s.ok(403, s.jwt(nil), "POST", path+"/access_tokens", nil)
	s.Expect(a.text("message")).To(Equal("This installation has been suspended"))
	s.Expect(a.text("documentation_url")).To(HaveSuffix("#create-an-installation-access-token-for-an-app"))
	s.ok(403, token, "GET", "/repos/acme/one", nil)
	s.Expect(s.ok(200, s.jwt(nil), "GET", path, nil).text("suspended_at")).To(Equal("2026-10-05T08:00:00Z"))
	s.Expect(s.ok(200, s.jwt(nil), "GET", "/app/installations", nil).at(0, "suspended_by")).NotTo(BeNil())

	s.Expect(s.Suspend(s.ctx, s.AppID, "acme", false)).To(Succeed())
	s.ok(200, token, "GET", "/repos/acme/one", nil)

	s.Expect(s.Uninstall(s.ctx, s.AppID, "acme")).To(Succeed())
	s.ok(404, s.jwt(nil), "POST", path+"/access_tokens", nil)
	s.ok(404, s.jwt(nil), "GET", path, nil)
	s.ok(404, s.jwt(nil), "GET", "/orgs/acme/installation", nil)
	s.Expect(s.ok(401, token, "GET", "/repos/acme/one", nil).text("message")).To(Equal("Bad credentials"))
}

func TestSelectedRepositoriesOnly(t *testing.T) {
	s := newSim(t)
	one, _ := s.repository("acme/one")
	two, _ := s.repository("acme/two")
	s.Expect(s.Select(s.ctx, s.AppID, "acme", "one")).To(Succeed())
	token := s.token()
	a := s.ok(200, token, "GET", "/installation/repositories", nil)
	s.Expect(a.at("total_count")).To(BeEquivalentTo(1))
	s.Expect(a.at("repositories", 0, "id")).To(BeEquivalentTo(one))
	s.ok(404, token, "GET", fmt.Sprintf("/repositories/%d", two), nil)
	s.ok(404, s.jwt(nil), "GET", "/repos/acme/two/installation", nil)
	s.ok(200, s.jwt(nil), "GET", fmt.Sprintf("/repositories/%d/installation", one), nil)
	s.Expect(s.SelectAll(s.ctx, s.AppID, "acme")).To(Succeed())
	s.ok(200, token, "GET", fmt.Sprintf("/repositories/%d", two), nil)
}

func TestInstallationOnAPerson(t *testing.T) {
	s := newSim(t)
	_, err := s.User(s.ctx, "bob")
	s.Expect(err).NotTo(HaveOccurred())
	s.ok(404, s.jwt(nil), "GET", "/users/bob/installation", nil)
	s.repository("bob/mine")
	s.Expect(s.InstallOn(s.ctx, s.AppID, "bob", "mine")).To(Succeed())
	a := s.ok(200, s.jwt(nil), "GET", "/users/bob/installation", nil)
	s.Expect([]any{a.text("target_type"), a.text("repository_selection")}).To(Equal([]any{"User", "selected"}))
	s.ok(404, s.jwt(nil), "GET", "/orgs/bob/installation", nil)
	s.ok(404, s.jwt(nil), "GET", "/users/acme/installation", nil)
}

func TestRequestsNobodyMayMake(t *testing.T) {
	s := newSim(t)
	s.repository("acme/one")
	_, err := s.PublicRepository(s.ctx, "acme/open")
	s.Expect(err).NotTo(HaveOccurred())
	s.ok(404, "", "GET", "/repos/acme/one", nil)
	s.ok(200, "", "GET", "/repos/acme/open", nil)
	s.Expect(s.ok(401, "", "PATCH", "/repos/acme/open", map[string]string{"name": "mine"}).text("message")).To(Equal("Requires authentication"))
	s.ok(401, "ghp_nonsense", "GET", "/repos/acme/open", nil)
	s.ok(404, s.token(), "GET", "/repos/acme/one/", nil)
	s.Expect(s.call(s.token(), "GET", "/repos/acme/one", nil, "X-GitHub-Api-Version", "2001-01-01").status).To(Equal(400))
	s.Expect(s.call(s.token(), "GET", "/repos/acme/one", nil, "User-Agent", "").status).To(Equal(403))
	s.Expect(s.ok(400, s.token(), "PATCH", "/repos/acme/one", "{").text("message")).To(Equal("Problems parsing JSON"))
	s.Expect(s.ok(400, s.token(), "PATCH", "/repos/acme/one", `"text"`).text("message")).To(Equal("Body should be a JSON object"))
}

func TestPersonsMayDoWhatTheirRoleSays(t *testing.T) {
	s := newSim(t)
	s.repository("acme/one")
	token, err := s.User(s.ctx, "bob")
	s.Expect(err).NotTo(HaveOccurred())
	s.ok(404, token, "GET", "/repos/acme/one", nil)
	s.Expect(s.Collaborator(s.ctx, "acme/one", "bob", "pull")).To(Succeed())
	s.Expect(s.ok(200, token, "GET", "/repos/acme/one", nil).at("permissions", "push")).To(BeFalse())
	s.ok(404, token, "POST", "/repos/acme/one/git/refs", map[string]string{"ref": "refs/heads/x", "sha": strings.Repeat("1", 40)})
	s.Expect(s.ok(403, token, "PATCH", "/repos/acme/one", map[string]string{"name": "x"}).text("message")).To(Equal("Must have admin rights to Repository."))
	s.Expect(s.Member(s.ctx, "acme", "bob", "admin")).To(Succeed())
	s.ok(200, token, "PATCH", "/repos/acme/one", map[string]string{"description": "ours"})
}

func TestQuotaIsCountedAndRefusedWhenSpent(t *testing.T) {
	s := newSim(t)
	s.repository("acme/one")
	token := s.token()
	a := s.ok(200, token, "GET", "/repos/acme/one", nil)
	s.Expect(a.header.Get("X-RateLimit-Limit")).To(Equal("5000"))
	s.Expect(a.header.Get("X-RateLimit-Remaining")).To(Equal("4999"))
	s.Expect(a.header.Get("X-RateLimit-Resource")).To(Equal("core"))
	s.Expect(a.header.Get("X-RateLimit-Reset")).To(Equal(fmt.Sprint(start.Add(time.Hour).Unix())))

	s.Expect(s.Quota(s.ctx, s.AppID, "acme", 0, 1)).To(Succeed())
	s.ok(200, token, "GET", "/repos/acme/one", nil)
	refused := s.ok(403, token, "GET", "/repos/acme/one", nil)
	s.Expect(refused.text("message")).To(Equal(fmt.Sprintf("API rate limit exceeded for installation ID %d.", s.installation())))
	s.Expect(refused.header.Get("X-RateLimit-Remaining")).To(Equal("0"))
	s.Expect(s.ok(200, token, "GET", "/rate_limit", nil).at("resources", "core", "remaining")).To(BeEquivalentTo(0), "asking is free")
	s.clock.Step(59 * time.Minute)
	s.ok(403, token, "GET", "/repos/acme/one", nil)
	s.clock.Step(time.Minute)
	s.ok(200, s.token(), "GET", "/repos/acme/one", nil)
}

func TestGoGithubWithGhinstallationIsTheApp(t *testing.T) {
	// ghinstallation signs by the machine's clock.
	s := newSim(t)
	s.clock.SetTime(time.Now())
	c := s.app()
	repo, _, err := c.Repositories.Create(s.ctx, "acme", &github.Repository{Name: github.String("made"), Private: github.Bool(true), AutoInit: github.Bool(true)})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(repo.GetPermissions()["admin"]).To(BeTrue())
	branch, _, err := c.Repositories.GetBranch(s.ctx, "acme", "made", "main", 1)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(branch.GetCommit().GetAuthor().GetLogin()).To(Equal("demo[bot]"))
	s.Expect(branch.GetCommit().GetCommitter().GetLogin()).To(Equal("web-flow"))
	s.Expect(s.Suspend(s.ctx, s.AppID, "acme", true)).To(Succeed())
	fresh, err := ghinstallation.New(http.DefaultTransport, s.AppID, s.installation(), s.Key)
	s.Expect(err).NotTo(HaveOccurred())
	fresh.BaseURL = s.URL
	_, err = fresh.Token(s.ctx)
	s.Expect(err).To(MatchError(ContainSubstring("403")))
}
