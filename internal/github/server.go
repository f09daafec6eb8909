// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"net/url"
	"strings"

	"github.com/sluice-dev/sluice/internal/fault"
)

// enterprisePath is where GitHub Enterprise Server keeps its REST API.
const enterprisePath = "/api/v3"

// server is a GitHub server by the address of its REST API. Everything else it
// offers is found from there.
type server struct {
	api *url.URL // with a trailing slash
}

// parseServer reads spec.baseURL. Credentials in the address are refused: they
// would end up in messages.
func parseServer(baseURL string) (server, error) {
	const use = "use https://api.github.com, or https://HOST/api/v3 for GitHub Enterprise Server"
	u, err := url.Parse(baseURL)
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http"):
		return server{}, fault.New(fault.Terminal, fault.ReasonInvalidBaseURL, "baseURL is no address of a REST API: %s", use)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return server{}, fault.New(fault.Terminal, fault.ReasonInvalidBaseURL,
			"baseURL for %q holds more than scheme, host and path: %s", u.Host, use)
	case strings.EqualFold(u.Hostname(), "github.com"):
		return server{}, fault.New(fault.Terminal, fault.ReasonInvalidBaseURL, "baseURL %q is GitHub's website: %s", baseURL, use)
	}
	u.Host = strings.ToLower(u.Host)
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	u.RawPath = ""
	return server{api: u}, nil
}

// root returns the API's address without the trailing slash.
func (s server) root() string { return strings.TrimSuffix(s.api.String(), "/") }

// webHost returns the host, with its port, that people and git use.
func (s server) webHost() string {
	switch host := s.api.Host; {
	case host == "api.github.com":
		return "github.com"
	case strings.HasPrefix(host, "api.") && strings.HasSuffix(host, ".ghe.com"):
		return strings.TrimPrefix(host, "api.")
	default:
		return host
	}
}

// gitURL returns the address git uses for owner/name.
func (s server) gitURL(fullName string) string {
	return s.api.Scheme + "://" + s.webHost() + "/" + fullName + ".git"
}

// graphQLURL returns the address of the GraphQL API. On GitHub Enterprise
// Server it lies beside the REST API, not below it.
func (s server) graphQLURL() string {
	path := "/graphql"
	if strings.TrimRight(s.api.Path, "/") == enterprisePath {
		path = "/api/graphql"
	}
	return s.api.Scheme + "://" + s.api.Host + path
}

// noReplyHost returns the host of no-reply addresses; empty on github.com,
// which is everybody's default.
func (s server) noReplyHost() string {
	host := (&url.URL{Host: s.webHost()}).Hostname()
	if host == "github.com" {
		return ""
	}
	return "users.noreply." + host
}

// serves reports whether a redirect may lead to u: never to another host or
// scheme, for the request carries a token.
func (s server) serves(u *url.URL) bool {
	return u.Scheme == s.api.Scheme && strings.EqualFold(u.Host, s.api.Host)
}
