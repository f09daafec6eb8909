// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func TestNew_RefusesWhatIsNoKey(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	damaged := testPEM()
	damaged = append(damaged[:200:200], damaged[300:]...)
	for name, key := range map[string][]byte{
		"nothing":           nil,
		"not PEM":           []byte(testSecret),
		"another algorithm": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		"a damaged key":     damaged,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Credentials{AppID: 1, PrivateKey: key, BaseURL: "https://api.github.com"}, Options{})
			expectFault(t, err, fault.Blocked, fault.ReasonInvalidPrivateKey, "RSA key in PEM")
		})
	}
}

func TestNew_FindsTheServerFromItsBaseURL(t *testing.T) {
	for base, want := range map[string]struct{ git, graphQL, noReply string }{
		"https://api.github.com":              {"https://github.com/o/r.git", "https://api.github.com/graphql", ""},
		"https://API.GitHub.com/":             {"https://github.com/o/r.git", "https://api.github.com/graphql", ""},
		"https://api.acme.ghe.com":            {"https://acme.ghe.com/o/r.git", "https://api.acme.ghe.com/graphql", "users.noreply.acme.ghe.com"},
		"https://git.example.com/api/v3":      {"https://git.example.com/o/r.git", "https://git.example.com/api/graphql", "users.noreply.git.example.com"},
		"https://git.example.com:8443/api/v3": {"https://git.example.com:8443/o/r.git", "https://git.example.com:8443/api/graphql", "users.noreply.git.example.com"},
		"http://127.0.0.1:4567":               {"http://127.0.0.1:4567/o/r.git", "http://127.0.0.1:4567/graphql", "users.noreply.127.0.0.1"},
	} {
		t.Run(base, func(t *testing.T) {
			g := NewWithT(t)
			a, err := New(Credentials{AppID: 1, PrivateKey: testPEM(), BaseURL: base}, Options{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(a.GitURL("o/r")).To(Equal(want.git))
			g.Expect(a.GraphQLURL()).To(Equal(want.graphQL))
			g.Expect(a.server.noReplyHost()).To(Equal(want.noReply))
		})
	}
}

func TestNew_RefusesUselessBaseURLs(t *testing.T) {
	for _, base := range []string{"", "api.github.com", "ftp://host", "https://", "https://x:" + testSecret + "@host/api/v3", "https://host/?a=b", "https://github.com", "%zz"} {
		t.Run(base, func(t *testing.T) {
			_, err := New(Credentials{AppID: 1, PrivateKey: testPEM(), BaseURL: base}, Options{})
			expectFault(t, err, fault.Terminal, fault.ReasonInvalidBaseURL, "https://api.github.com")
		})
	}
}

func handleApp(f *fake) {
	f.handle("GET /app", f.signed(always(http.StatusOK, map[string]any{"id": testAppID, "slug": "sluice-test", "name": "Sluice Test",
		"permissions": map[string]any{"contents": "write", "organization_custom_roles": "read"}, "events": []string{"push", "repository"}})))
}

func TestSelf_ReadsTheAppAndItsBotAccount(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	handleApp(f)
	f.handle("GET /app/installations", f.signed(always(http.StatusOK, []any{
		installationJSON(1, "asleep", "2031-01-01T00:00:00Z"), installationJSON(testInstallation, testAccount, nil)})))
	f.handle("GET /users/{login}", func(w http.ResponseWriter, r *http.Request) {
		g.Expect(r.PathValue("login")).To(Equal("sluice-test[bot]"))
		g.Expect(r.Header.Get("Authorization")).To(Equal("token " + token(1)))
		reply(w, http.StatusOK, map[string]any{"id": 987, "login": "sluice-test[bot]"})
	})
	info, err := f.app(t).Self(background(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info).To(Equal(domain.AppInfo{ID: testAppID, Slug: "sluice-test", Name: "Sluice Test", BotUserID: 987, NoReplyHost: "users.noreply.127.0.0.1",
		Permissions: map[string]string{"contents": "write", "organization_custom_roles": "read"}, Events: []string{"push", "repository"}}))
}

func TestSelf_TriesTheNextInstallationForTheBotAccount(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	handleApp(f)
	f.handle("GET /app/installations", f.signed(always(http.StatusOK, []any{installationJSON(1, "walled", nil), installationJSON(testInstallation, testAccount, nil)})))
	f.handle("GET /users/{login}", inTurn(
		refusing(http.StatusForbidden, "Although you appear to have the correct authorization credentials, the `walled` organization has an IP allow list enabled"),
		always(http.StatusOK, map[string]any{"id": 987})))
	info, err := f.app(t).Self(background(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.BotUserID).To(BeEquivalentTo(987))
}

func TestSelf_WithoutInstallations(t *testing.T) {
	t.Run("reads the bot account as nobody", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		handleApp(f)
		f.handle("GET /app/installations", f.signed(always(http.StatusOK, []any{})))
		f.handle("GET /users/{login}", func(w http.ResponseWriter, r *http.Request) {
			g.Expect(r.Header).NotTo(HaveKey("Authorization"))
			reply(w, http.StatusOK, map[string]any{"id": 987})
		})
		info, err := f.app(t).Self(background(t))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.BotUserID).To(BeEquivalentTo(987))
	})
	t.Run("asks for one where nobody may read accounts", func(t *testing.T) {
		f := newFake(t)
		handleApp(f)
		f.handle("GET /app/installations", f.signed(always(http.StatusOK, []any{})))
		f.handle("GET /users/{login}", refusing(http.StatusUnauthorized, "Requires authentication"))
		_, err := f.app(t).Self(background(t))
		expectFault(t, err, fault.Blocked, fault.ReasonAppNotInstalled, "not installed anywhere")
	})
}

func TestSelf_SaysWhyCredentialsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		status        int
		message, want string
	}{
		"another App's key": {401, "A JSON web token could not be decoded", "the private key and App ID 4711 do not belong together"},
		"no App":            {404, "Integration not found", "there is no App with ID 4711"},
		"no key":            {401, "Integration must generate a public key", "generate one in the App's settings"},
		"issued ahead":      {401, "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued", "set this machine's clock right"},
		"expires too late":  {401, "'Expiration time' claim ('exp') is too far in the future", "set this machine's clock right"},
		"something else":    {401, "Bad credentials", "refuses the App's credentials: Bad credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.handle("GET /app", refusing(c.status, c.message))
			_, err := f.app(t).Self(background(t))
			expectFault(t, err, fault.Blocked, fault.ReasonCredentialsRefused, c.want)
		})
	}
	t.Run("and by how much the clock is off", func(t *testing.T) {
		for skew, want := range map[time.Duration]string{3 * time.Minute: "3m0s ahead", -12 * time.Minute: "12m0s behind"} {
			f := newFake(t)
			handleApp(f)
			a := f.app(t, func(_ *Credentials, o *Options) { o.Clock = clocktesting.NewFakeClock(testStart.Add(skew)) })
			_, err := a.Self(background(t))
			expectFault(t, err, fault.Blocked, fault.ReasonCredentialsRefused, want)
		}
	})
	t.Run("when the ID is not the key's", func(t *testing.T) {
		f := newFake(t)
		f.handle("GET /app", always(http.StatusOK, map[string]any{"id": 5, "slug": "other"}))
		_, err := f.app(t).Self(background(t))
		expectFault(t, err, fault.Blocked, fault.ReasonCredentialsRefused, "App 5", "App 4711")
	})
}

func TestInstallations_ReadsAllPages(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("GET /app/installations", f.signed(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("page") == "2" {
			enterprise := installationJSON(3, "", nil)
			enterprise["account"] = map[string]any{"id": 9, "slug": "big-corp"}
			reply(w, http.StatusOK, []any{enterprise})
			return
		}
		g.Expect(r.URL.Query().Get("per_page")).To(Equal("100"))
		w.Header().Set("Link", fmt.Sprintf(`<%s/app/installations?per_page=100&page=2>; rel="next"`, f.URL))
		reply(w, http.StatusOK, []any{installationJSON(1, "one", nil), installationJSON(2, "two", "2031-01-01T00:00:00Z")})
	}))
	got, err := f.app(t).Installations(background(t))
	g.Expect(err).NotTo(HaveOccurred())
	permissions := map[string]string{"contents": "write", "organization_custom_roles": "read"}
	g.Expect(got).To(Equal([]domain.Installation{
		{ID: 1, Account: "one", AccountID: 1001, Permissions: permissions},
		{ID: 2, Account: "two", AccountID: 1002, Suspended: true, Permissions: permissions},
		{ID: 3, AccountID: 9, Permissions: permissions},
	}))
}

func TestForAccount(t *testing.T) {
	t.Run("keeps one client an account, whatever the case", func(t *testing.T) {
		g := NewWithT(t)
		a := newFake(t).app(t)
		one, err := a.ForAccount(background(t), "acme")
		g.Expect(err).NotTo(HaveOccurred())
		two, err := a.ForAccount(background(t), "ACME")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(two).To(BeIdenticalTo(one))
		a.Forget("Acme")
		three, err := a.ForAccount(background(t), "acme")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(three).NotTo(BeIdenticalTo(one))
	})
	t.Run("finds a user's installation", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		f.handle("GET /users/solo/installation", f.signed(always(http.StatusOK, installationJSON(8, "solo", nil))))
		c, err := f.app(t).ForAccount(background(t), "solo")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(c.tokens.installation).To(BeEquivalentTo(8))
	})
	t.Run("says that the App is not installed", func(t *testing.T) {
		_, err := newFake(t).app(t).ForAccount(background(t), "elsewhere")
		expectFault(t, err, fault.Blocked, fault.ReasonAppNotInstalled, `"elsewhere"`)
	})
	t.Run("says that the installation is suspended", func(t *testing.T) {
		f := newFake(t)
		f.handle("GET /orgs/asleep/installation", f.signed(always(http.StatusOK, installationJSON(8, "asleep", "2031-01-01T00:00:00Z"))))
		_, err := f.app(t).ForAccount(background(t), "asleep")
		expectFault(t, err, fault.Blocked, fault.ReasonAppSuspended, `"asleep"`)
	})
	t.Run("does not let a login lead elsewhere", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		_, err := f.app(t).ForAccount(background(t), "a/b?c")
		expectFault(t, err, fault.Blocked, fault.ReasonAppNotInstalled)
		f.mu.Lock()
		defer f.mu.Unlock()
		g.Expect(f.calls[0].path).To(Equal("/orgs/a%2Fb%3Fc/installation"))
	})
	t.Run("is called by many at once", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		f.handle("GET /orgs/beta/installation", f.signed(always(http.StatusOK, installationJSON(8, "beta", nil))))
		a := f.app(t)
		ctx := background(t)
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				c, err := a.ForAccount(ctx, []string{"acme", "beta"}[i%2])
				g.Expect(err).NotTo(HaveOccurred())
				_, err = c.Token(ctx)
				g.Expect(err).NotTo(HaveOccurred())
			})
		}
		group.Wait()
		g.Expect(f.minted()).To(Equal(2), "tokens")
	})
}

func TestApp_SaysThatTheServerIsNotGitHub(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"a web page":        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>Sign in</html>")) },
		"another API":       always(http.StatusOK, map[string]any{"hello": "world"}),
		"another API's id":  always(http.StatusOK, map[string]any{"id": "abc"}),
		"an empty document": func(http.ResponseWriter, *http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.handle("GET /app", h)
			_, err := f.app(t).Self(background(t))
			expectFault(t, err, fault.Retryable, fault.ReasonGitHubUnreachable, "not GitHub's API", "spec.baseURL")
		})
	}
}

func TestApp_SaysThatNobodyAnswers(t *testing.T) {
	t.Run("no server", func(t *testing.T) {
		f := newFake(t)
		a := f.app(t)
		f.Close()
		_, err := a.Self(background(t))
		expectFault(t, err, fault.Retryable, fault.ReasonGitHubUnreachable, "127.0.0.1", "connection refused")
	})
	t.Run("a server that hangs up", func(t *testing.T) {
		f := newFake(t)
		f.handle("GET /app", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		_, err := f.app(t).Self(background(t))
		expectFault(t, err, fault.Retryable, fault.ReasonGitHubUnreachable, "does not answer")
	})
	t.Run("a certificate nobody trusts", func(t *testing.T) {
		s := httptest.NewTLSServer(http.NotFoundHandler())
		t.Cleanup(s.Close)
		a, err := New(Credentials{AppID: testAppID, PrivateKey: testPEM(), BaseURL: s.URL}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Self(background(t))
		expectFault(t, err, fault.Retryable, fault.ReasonGitHubUnreachable, "certificate")
	})
}
