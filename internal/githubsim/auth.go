// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// tokenPrefix starts the text of installation tokens.
const tokenPrefix = "ghs_"

// authenticate returns who asks. The token is an App's JWT, an installation's
// or a person's; nothing at all is an anonymous reader.
func (s *Server) authenticate(r *http.Request) (actor, *response) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return actor{}, nil
	}
	text := header
	for _, scheme := range []string{"Bearer ", "token "} {
		if len(header) > len(scheme) && strings.EqualFold(header[:len(scheme)], scheme) {
			text = strings.TrimSpace(header[len(scheme):])
		}
	}
	if _, password, isBasic := r.BasicAuth(); isBasic {
		text = password
	}
	if strings.Count(text, ".") == 2 && !strings.HasPrefix(text, tokenPrefix) { // a JWT has three parts
		a, bad := s.verifyJWT(text)
		return actor{app: a}, bad
	}
	who, known := s.byToken(text)
	if !known {
		return actor{}, refusal(http.StatusUnauthorized, "Bad credentials")
	}
	if who.suspended() {
		return who, suspendedAnswer()
	}
	return who, nil
}

func (a actor) suspended() bool { return a.installation != nil && a.installation.suspendedAt != nil }

func suspendedAnswer() *response {
	return &response{status: http.StatusForbidden, body: map[string]any{"message": "This installation has been suspended", "status": "403",
		"documentation_url": "https://docs.github.com/rest/reference/apps#create-an-installation-access-token-for-an-app"}}
}

// byToken returns who has a token that is valid now.
func (s *Server) byToken(text string) (actor, bool) {
	t, now := s.tokens[text], s.now()
	if t == nil || now.Before(t.validFrom) || (!t.expiresAt.IsZero() && !now.Before(t.expiresAt)) {
		return actor{}, false
	}
	if i := t.installation; i != nil && s.installations[i.id] != i {
		return actor{}, false
	}
	return actor{installation: t.installation, token: t, user: t.user}, true
}

// maxAhead is how far ahead a JWT may expire.
const maxAhead = 10 * time.Minute

// verifyJWT checks an App's JWT as GitHub does: by GitHub's clock, at most ten
// minutes ahead, with GitHub's words.
func (s *Server) verifyJWT(text string) (*app, *response) {
	unauthorized := func(message string) (*app, *response) {
		return nil, refusal(http.StatusUnauthorized, message)
	}
	var claims struct {
		Issuer    any `json:"iss"`
		IssuedAt  any `json:"iat"`
		ExpiresAt any `json:"exp"`
		jwt.RegisteredClaims
	}
	var found *app
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	_, err := parser.ParseWithClaims(text, &claims, func(*jwt.Token) (any, error) {
		if found = s.appOf(claims.Issuer); found == nil {
			return nil, errors.New("no such App")
		}
		return found.key, nil
	})
	if err != nil {
		return unauthorized("A JSON web token could not be decoded")
	}
	now := float64(s.now().UnixNano()) / float64(time.Second)
	issued, hasIssued := claims.IssuedAt.(float64)
	expires, hasExpires := claims.ExpiresAt.(float64)
	switch {
	case !hasIssued || issued > now:
		return unauthorized("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case !hasExpires || expires <= now:
		return unauthorized("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case expires > now+maxAhead.Seconds():
		return unauthorized("'Expiration time' claim ('exp') is too far in the future")
	}
	return found, nil
}

// appOf returns the App that issued a JWT: by its id, as text or number, or by
// its client id.
func (s *Server) appOf(issuer any) *app {
	switch issuer := issuer.(type) {
	case float64:
		return s.apps[int64(issuer)]
	case string:
		if id, err := strconv.ParseInt(issuer, 10, 64); err == nil {
			return s.apps[id]
		}
		for _, a := range s.apps {
			if a.clientID() == issuer {
				return a
			}
		}
	}
	return nil
}

func (a *app) clientID() string { return fmt.Sprintf("Iv23li%014d", a.id) }

// tokenLife is how long an installation token is valid.
const tokenLife = time.Hour

// maxTokenRepositories is how many repositories a token can be narrowed to.
const maxTokenRepositories = 500

func (s *Server) createToken(c *call) response {
	i := s.installations[c.number("installation")]
	if i == nil || i.app != c.actor.app {
		return notFound
	}
	if i.suspendedAt != nil {
		return *suspendedAnswer()
	}
	t := &token{installation: i, permissions: i.app.permissions, validFrom: s.now().Add(s.tokenLag), expiresAt: s.now().Add(tokenLife)}
	if bad := s.narrow(c, t); bad != nil {
		return *bad
	}
	text := fmt.Sprintf("%s%d_%s", tokenPrefix, i.app.id, random())
	s.tokens[text] = t
	body := map[string]any{"token": text, "expires_at": stamp(t.expiresAt), "permissions": t.permissions, "repository_selection": i.selection()}
	if t.repositories != nil {
		body["repository_selection"] = "selected"
		list := []any{}
		for id := range t.repositories {
			list = append(list, s.repository(s.repos[id]))
		}
		body["repositories"] = list
	}
	return created(body, "")
}

// narrow limits a token to what the request asks for.
func (s *Server) narrow(c *call, t *token) *response {
	i := t.installation
	outside := unprocessable("There is at least one repository that does not exist or is not accessible to the parent installation.")
	names, ids := c.texts("repositories"), c.numbers("repository_ids")
	if len(names)+len(ids) > maxTokenRepositories {
		bad := unprocessable("Too many repositories")
		return &bad
	}
	for _, name := range names {
		r, moved := s.find(i.account.login + "/" + name)
		if r == nil || moved {
			return &outside
		}
		ids = append(ids, r.id)
	}
	for _, id := range ids {
		r := s.repos[id]
		if r == nil || !i.covers(r) {
			return &outside
		}
		if t.repositories == nil {
			t.repositories = map[int64]bool{}
		}
		t.repositories[id] = true
	}
	wanted, narrowed := c.body["permissions"].(map[string]any)
	if !narrowed {
		return nil
	}
	t.permissions = map[string]string{"metadata": "read"}
	for name, level := range wanted {
		text, isText := level.(string)
		if !isText || levelRank[text] == 0 || levelRank[text] > levelRank[i.app.permissions[name]] {
			bad := unprocessable("The permissions requested are not granted to this installation.")
			return &bad
		}
		t.permissions[name] = text
	}
	return nil
}

// tokenBytes is how much of a token is random.
const tokenBytes = 24

func random() string {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// stamp renders a time as GitHub does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// stampOr renders a time that may be missing.
func stampOr(t *time.Time) any {
	if t == nil {
		return nil
	}
	return stamp(*t)
}
