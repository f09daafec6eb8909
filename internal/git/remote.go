// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// retryDelays are the pauses between tries of what passes by itself
// (R-CORE-13).
var retryDelays = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// remote runs a git command that talks to a repository elsewhere and returns
// what it printed. do says in words what it is for ("push"). A token is asked
// for at every try, so that one which ran out in between does no harm. What
// passes by itself is tried again after 1, 2 and 4 seconds; a permission or a
// rejection is final at once (R-CORE-13). A repository that moved is followed,
// on the same host only.
func (g *Git) remote(ctx context.Context, do string, r domain.Remote, build func(url string) command) (string, error) {
	address, err := g.checkAddress(r.URL)
	if err != nil {
		return "", err
	}
	hops := 0
	for tries := 0; ; {
		token := ""
		if r.Token != nil {
			if token, err = r.Token(ctx); err != nil {
				return "", err
			}
		}
		c := build(address.String())
		if token != "" {
			c = authorize(c, address, token)
		}
		out, err := g.run(ctx, c)
		failure := asGitError(err)
		if failure == nil {
			return out, err
		}
		if status := hear(failure).status; status/100 == 3 && hops < maxHops {
			if address, err = g.moved(ctx, address, token); err != nil {
				return "", err
			}
			hops++
			continue
		}
		f := g.classify(failure, do)
		if !passes(f, failure) || tries == len(retryDelays) {
			return "", f
		}
		g.Logger.Info("Retrying git after a passing failure", "verb", failure.verb, "failure", f.Message, "delay", retryDelays[tries])
		if err := g.pause(ctx, retryDelays[tries]); err != nil {
			return "", err
		}
		tries++
	}
}

// passes reports whether a failure is worth another try at once: of the way or
// of the server, and not of a limit of ours.
func passes(f *fault.Error, failure *gitError) bool {
	return f.Reason == fault.ReasonGitHubUnreachable && failure.timedOut == 0 && !untrusted.MatchString(failure.stderr)
}

func (g *Git) pause(ctx context.Context, d time.Duration) error {
	timer := g.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// checkAddress refuses addresses that git would take for something else, and
// those that would put a secret into an argument (R-CORE-10).
func (g *Git) checkAddress(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fault.New(fault.Terminal, fault.ReasonInvalidBaseURL, "a repository's git address cannot be read: correct spec.baseURL")
	case u.User != nil:
		return nil, fault.New(fault.Terminal, fault.ReasonInvalidBaseURL, "the git address at %s holds credentials: take them out of spec.baseURL", u.Host)
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return u, nil
	case g.AllowFile && u.Scheme == "" && strings.HasPrefix(u.Path, "/"):
		return u, nil
	}
	return nil, fault.New(fault.Terminal, fault.ReasonInvalidBaseURL, "%q is no https address of a git repository: correct spec.baseURL", raw)
}

// authorize gives a command the token, in its environment and for that host
// alone.
func authorize(c command, address *url.URL, token string) command {
	basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))
	c.config = append(c.config, setting{"http." + origin(address) + "/.extraHeader", "Authorization: Basic " + basic})
	c.secrets = append(c.secrets, token, basic)
	return c
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

const (
	// maxHops is how many moves of a repository are followed.
	maxHops = 5
	// moveTimeout is how long the question where to may take.
	moveTimeout = 30 * time.Second
	refsPath    = "/info/refs"
)

// moved asks where a renamed or transferred repository is now. git's own way
// of following would hand the token to whatever host the answer names; here
// another host is refused.
func (g *Git) moved(ctx context.Context, address *url.URL, token string) (*url.URL, error) {
	limited, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodGet, address.String()+refsPath+"?service=git-upload-pack", http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking where a repository moved: %w", err)
	}
	if token != "" {
		req.SetBasicAuth("x-access-token", token)
	}
	resp, err := g.Transport.RoundTrip(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fault.Wrap(err, fault.Retryable, fault.ReasonGitHubUnreachable, "%s does not answer where a repository moved to", address.Host)
	}
	_ = resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return nil, fault.Wrap(err, fault.Retryable, fault.ReasonGitHubUnreachable, "%s says that a repository moved, but not where to", address.Host)
	}
	if origin(to) != origin(address) || to.User != nil || !strings.HasSuffix(to.Path, refsPath) {
		return nil, fault.New(fault.Blocked, fault.ReasonInvalidBaseURL,
			"%s sends git on to %s, which is not followed because the token is not for it: correct spec.baseURL", address.Host, origin(to))
	}
	to.Path, to.RawPath, to.RawQuery, to.Fragment = strings.TrimSuffix(to.Path, refsPath), "", "", ""
	return to, nil
}
