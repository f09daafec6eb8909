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
			text = header[len(scheme):]
		}
	}
	if strings.Count(text, ".") == 2 && !strings.HasPrefix(text, "ghs_") {
		a, bad := s.verifyJWT(text)
		return actor{app: a}, bad
	}
	t := s.token(text)
	if t == nil {
		bad := refuse(http.StatusUnauthorized, "Bad credentials")
		return actor{}, &bad
	}
	return actor{installation: t.installation, user: t.user}, nil
}

// token returns a token that is valid now.
func (s *Server) token(text string) *token {
	t := s.tokens[text]
	if t == nil || (!t.expiresAt.IsZero() && !s.now().Before(t.expiresAt)) {
		return nil
	}
	if t.installation != nil && (t.installation.suspendedAt != nil || s.installations[t.installation.id] == nil) {
		return nil
	}
	return t
}

// verifyJWT checks an App's JWT as GitHub does: by GitHub's clock, at most ten
// minutes ahead, with GitHub's words.
func (s *Server) verifyJWT(text string) (*app, *response) {
	unauthorized := func(message string) (*app, *response) {
		bad := refuse(http.StatusUnauthorized, message)
		return nil, &bad
	}
	var claims jwt.RegisteredClaims
	var found *app
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	_, err := parser.ParseWithClaims(text, &claims, func(*jwt.Token) (any, error) {
		id, err := strconv.ParseInt(claims.Issuer, 10, 64)
		if err != nil || s.apps[id] == nil {
			return nil, errors.New("no such App")
		}
		found = s.apps[id]
		return found.key, nil
	})
	if err != nil {
		return unauthorized("A JSON web token could not be decoded")
	}
	now := s.now()
	switch {
	case claims.IssuedAt == nil || claims.IssuedAt.After(now):
		return unauthorized("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	case claims.ExpiresAt == nil || !claims.ExpiresAt.After(now):
		return unauthorized("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	case claims.ExpiresAt.After(now.Add(10 * time.Minute)):
		return unauthorized("'Expiration time' claim ('exp') is too far in the future")
	}
	return found, nil
}

// tokenLife is how long an installation token is valid.
const tokenLife = time.Hour

func (s *Server) createToken(c *call) response {
	if c.actor.app == nil {
		return refuse(http.StatusUnauthorized, "A JSON web token could not be decoded")
	}
	i := s.installations[pathID(c, "installation")]
	if i == nil || i.app != c.actor.app {
		return notFound
	}
	if i.suspendedAt != nil {
		return refuse(http.StatusForbidden, "This installation has been suspended")
	}
	text := fmt.Sprintf("ghs_%d_%s", i.app.id, random())
	expires := s.now().Add(tokenLife)
	s.tokens[text] = &token{installation: i, expiresAt: expires}
	return created(map[string]any{"token": text, "expires_at": stamp(expires), "permissions": appPermissions, "repository_selection": "all"})
}

func random() string {
	b := make([]byte, 18)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func pathID(c *call, name string) int64 {
	id, err := strconv.ParseInt(c.PathValue(name), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
