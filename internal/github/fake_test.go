// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v4"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/sluice-dev/sluice/internal/fault"
)

const (
	testAppID        = 4711
	testInstallation = 77
	testAccount      = "Acme"
	testSecret       = "S3cretS3cretS3cretS3cret"
)

// testStart is far from the machine's time, so that whoever reads that is
// found out.
var testStart = time.Date(2031, time.March, 4, 10, 0, 0, 0, time.UTC)

// testKey is one RSA key for all tests; making one takes a while.
var testKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func testPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(testKey())})
}

// call is a request that the fake got.
type call struct {
	method, path, query, authorization, body string
}

func (c call) String() string { return c.method + " " + c.path }

// fake is a GitHub server with one App, installed on one organization.
type fake struct {
	*httptest.Server
	mux   *http.ServeMux
	clock *clocktesting.FakeClock

	mu    sync.Mutex
	calls []call
	mints int
	mint  http.HandlerFunc // replaces the minting of tokens when set
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{mux: http.NewServeMux(), clock: clocktesting.NewFakeClock(testStart)}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading a request: %v", err)
		}
		f.mu.Lock()
		f.calls = append(f.calls, call{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Authorization"), string(body)})
		f.mu.Unlock()
		w.Header().Set("Date", f.clock.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		f.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	f.handle("GET /orgs/{org}/installation", f.signed(func(w http.ResponseWriter, r *http.Request) {
		if !strings.EqualFold(r.PathValue("org"), testAccount) {
			refuse(w, http.StatusNotFound, "Not Found")
			return
		}
		reply(w, http.StatusOK, installationJSON(testInstallation, testAccount, nil))
	}))
	f.handle("GET /users/{user}/installation", f.signed(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "Not Found")
	}))
	f.handle("POST /app/installations/{id}/access_tokens", f.signed(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		mint := f.mint
		f.mints++
		n := f.mints
		f.mu.Unlock()
		if mint != nil {
			mint(w, r)
			return
		}
		reply(w, http.StatusCreated, map[string]any{"token": token(n), "expires_at": f.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
	}))
	return f
}

// token is the n-th installation token given out.
func token(n int) string { return fmt.Sprintf("ghs_%d_%s%d", testAppID, testSecret, n) }

func (f *fake) handle(pattern string, h http.HandlerFunc) { f.mux.HandleFunc(pattern, h) }

// signed lets requests through whose JWT is the App's and valid now.
func (f *fake) signed(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var claims jwt.RegisteredClaims
		_, err := jwt.NewParser(jwt.WithoutClaimsValidation()).ParseWithClaims(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), &claims,
			func(*jwt.Token) (any, error) { return &testKey().PublicKey, nil })
		now := f.clock.Now()
		switch {
		case err != nil || claims.Issuer != strconv.Itoa(testAppID):
			refuse(w, http.StatusUnauthorized, "A JSON web token could not be decoded")
		case claims.IssuedAt.After(now) || claims.ExpiresAt.After(now.Add(10*time.Minute)) || !claims.ExpiresAt.After(now):
			refuse(w, http.StatusUnauthorized, "'Expiration time' claim ('exp') is too far in the future")
		default:
			h(w, r)
		}
	}
}

// seen returns the requests got so far, without the look-ups of installations
// and tokens.
func (f *fake) seen() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []call
	for _, c := range f.calls {
		if !strings.HasSuffix(c.path, "/installation") && !strings.HasPrefix(c.path, "/app/") {
			list = append(list, c)
		}
	}
	return list
}

func (f *fake) minted() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mints
}

func (f *fake) setMint(h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mint = h
}

// app returns an App on the fake.
func (f *fake) app(t *testing.T, change ...func(*Credentials, *Options)) *App {
	t.Helper()
	c, o := Credentials{AppID: testAppID, PrivateKey: testPEM(), BaseURL: f.URL}, Options{Clock: f.clock}
	for _, apply := range change {
		apply(&c, &o)
	}
	a, err := New(c, o)
	if err != nil {
		t.Fatalf("making the App: %v", err)
	}
	return a
}

// client returns the client of the fake's installation.
func (f *fake) client(t *testing.T, change ...func(*Credentials, *Options)) *Client {
	t.Helper()
	c, err := f.app(t, change...).ForAccount(t.Context(), testAccount)
	if err != nil {
		t.Fatalf("finding the installation: %v", err)
	}
	return c
}

func installationJSON(id int64, account string, suspendedAt any) map[string]any {
	return map[string]any{"id": id, "account": map[string]any{"id": id + 1000, "login": account}, "suspended_at": suspendedAt,
		"permissions": map[string]any{"contents": "write", "organization_custom_roles": "read"}}
}

func reply(w http.ResponseWriter, status int, body any) {
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

// refuse answers with GitHub's error shape.
func refuse(w http.ResponseWriter, status int, message string, errs ...any) {
	body := map[string]any{"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)}
	if len(errs) > 0 {
		body["errors"] = errs
	}
	reply(w, status, body)
}

func always(status int, body any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { reply(w, status, body) }
}

func refusing(status int, message string, errs ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { refuse(w, status, message, errs...) }
}

// inTurn answers each further request with the next handler; the last stays.
func inTurn(handlers ...http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	n := 0
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handlers[min(n, len(handlers)-1)]
		n++
		mu.Unlock()
		h(w, r)
	}
}

func repositoryJSON(id int64, fullName string) map[string]any {
	owner, name, _ := strings.Cut(fullName, "/")
	return map[string]any{"id": id, "node_id": "R_" + name, "full_name": fullName, "name": name, "default_branch": "main", "private": true,
		"owner": map[string]any{"id": 5, "login": owner}}
}

// step moves the clock by each of steps when somebody waits for it, checks that
// no less was waited for, and returns once done is closed.
func (f *fake) step(t *testing.T, done <-chan struct{}, steps ...time.Duration) {
	t.Helper()
	g := NewWithT(t)
	for _, s := range steps {
		g.Eventually(f.clock.HasWaiters).WithTimeout(10 * time.Second).Should(BeTrue())
		f.clock.Step(s - time.Millisecond)
		g.Expect(f.clock.HasWaiters()).To(BeTrue(), "waited less than %s", s)
		f.clock.Step(time.Millisecond)
	}
	g.Eventually(done).WithTimeout(10 * time.Second).Should(BeClosed())
}

// theFault checks an error's class, reason and words, and that it holds no
// secret, and returns the fault.
func theFault(t *testing.T, err error, class fault.Class, reason fault.Reason, words ...string) *fault.Error {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) {
		t.Fatalf("got %v (%T), want a fault %s", err, err, reason)
	}
	if f.Class != class || f.Reason != reason {
		t.Errorf("got %s %s (%s), want %s %s", f.Class, f.Reason, f.Message, class, reason)
	}
	for _, w := range words {
		if !strings.Contains(f.Message, w) {
			t.Errorf("message %q lacks %q", f.Message, w)
		}
	}
	expectNoSecret(t, err)
	return f
}

// expectFault is theFault for callers that need no more of it.
func expectFault(t *testing.T, err error, class fault.Class, reason fault.Reason, words ...string) {
	t.Helper()
	if theFault(t, err, class, reason, words...) == nil {
		t.Error("no fault")
	}
}

// expectNoSecret checks the whole chain of an error, in every way it may be
// printed.
func expectNoSecret(t *testing.T, err error) {
	t.Helper()
	key := strings.Split(string(testPEM()), "\n")[1]
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, text := range []string{e.Error(), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", e)} {
			for _, secret := range []string{testSecret, key, "eyJ"} {
				if strings.Contains(text, secret) {
					t.Errorf("%T shows a secret: %s", e, text)
				}
			}
		}
	}
}

// run does f in the background and returns a channel that closes at its end.
func run(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

func background(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}
