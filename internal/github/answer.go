// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// answer is a refusal of GitHub as an error. It stands in for go-github's and
// ghinstallation's own errors, which hold the request and with it the token;
// no such thing may be in an error's chain (R-CORE-10).
type answer struct {
	status  int
	message string
	details []detail
	// blocked is true when GitHub took the repository down.
	blocked bool
	// permissions is what GitHub says the request needed, e.g. contents=write.
	permissions string
	limit       limit
	// skew is our clock minus GitHub's when it answered; known says whether
	// GitHub told its time.
	skew      time.Duration
	skewKnown bool
}

// detail is one entry of a 422's errors. Some endpoints give plain text; it is
// in Message then.
type detail struct {
	Resource, Field, Code, Message string
}

// limit says whether an answer is a rate limit, and for how long to wait.
type limit struct {
	kind limitKind
	wait time.Duration
}

type limitKind int

const (
	unlimited limitKind = iota
	// hourlyQuota ends when the quota is full again.
	hourlyQuota
	// slowDown is a secondary limit: too much at once.
	slowDown
)

const (
	// slowDownWait is the shortest wait after a secondary limit that names
	// none.
	slowDownWait = time.Minute
	// quotaWindow is the longest a primary quota can take to be full again.
	quotaWindow = time.Hour
	maxAnswer   = 64 << 10
	maxQuoted   = 300
)

// Error returns the status and what GitHub said, without anything of the
// request.
func (a *answer) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("GitHub answered %d: %s", a.status, a.quote()), ": ")
}

// says reports whether any of GitHub's texts contains one of the words,
// whatever their case.
func (a *answer) says(words ...string) bool {
	text := strings.ToLower(a.texts())
	for _, w := range words {
		if strings.Contains(text, strings.ToLower(w)) {
			return true
		}
	}
	return false
}

func (a *answer) texts() string {
	parts := []string{a.message}
	for _, d := range a.details {
		parts = append(parts, d.Message)
	}
	return strings.Join(parts, "\n")
}

// quote returns GitHub's words, fit for a condition: one line, not too long.
func (a *answer) quote() string {
	var parts []string
	if a.message != "" {
		parts = append(parts, a.message)
	}
	for _, d := range a.details {
		switch {
		case d.Message != "":
			parts = append(parts, d.Message)
		case d.Field != "":
			parts = append(parts, strings.TrimSpace(d.Field+" "+d.Code))
		}
	}
	line := strings.Join(strings.Fields(strings.Join(parts, "; ")), " ")
	if runes := []rune(line); len(runes) > maxQuoted {
		line = string(runes[:maxQuoted]) + "…"
	}
	return line
}

// readAnswer reads a refusal; the caller closes the body. now is our clock's
// reading as it came in.
func readAnswer(resp *http.Response, now time.Time) *answer {
	a := &answer{status: resp.StatusCode, permissions: scrub(resp.Header.Get("X-Accepted-GitHub-Permissions"))}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		a.skew, a.skewKnown = now.Sub(date), true
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	var parsed struct {
		Message string            `json:"message"`
		Errors  []json.RawMessage `json:"errors"`
		Block   json.RawMessage   `json:"block"`
	}
	if json.Unmarshal(body, &parsed) == nil {
		a.message = scrub(parsed.Message)
		a.blocked = len(parsed.Block) > 0 && string(parsed.Block) != "null"
		for _, raw := range parsed.Errors {
			a.details = append(a.details, readDetail(raw))
		}
	}
	a.limit = readLimit(a, resp.Header, now)
	return a
}

func readDetail(raw json.RawMessage) detail {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return detail{Message: scrub(text)}
	}
	var d detail
	if json.Unmarshal(raw, &d) != nil {
		return detail{}
	}
	d.Message = scrub(d.Message)
	return d
}

// readLimit recognises both kinds of limit. The wait is reckoned by GitHub's
// own clock where it tells it, so that the two are never mixed (R-CORE-04).
func readLimit(a *answer, h http.Header, now time.Time) limit {
	after, named := retryAfter(h, now)
	switch {
	case a.says("secondary rate limit", "submitted too quickly", "abuse detection"):
		if !named {
			after = slowDownWait
			if h.Get(headerRemaining) == "0" {
				after = untilReset(a, h, now)
			}
		}
		return limit{slowDown, after}
	case a.status != http.StatusForbidden && a.status != http.StatusTooManyRequests:
		return limit{}
	case h.Get(headerRemaining) == "0":
		if !named {
			after = untilReset(a, h, now)
		}
		return limit{hourlyQuota, after}
	case a.says("rate limit"), named, a.status == http.StatusTooManyRequests:
		if !named {
			after = slowDownWait
		}
		return limit{slowDown, after}
	}
	return limit{}
}

const (
	headerRemaining  = "X-RateLimit-Remaining"
	headerReset      = "X-RateLimit-Reset"
	headerRetryAfter = "Retry-After"
)

// untilReset returns how long the quota takes to be full again: at most an
// hour, and a minute when GitHub does not say.
func untilReset(a *answer, h http.Header, now time.Time) time.Duration {
	seconds, err := strconv.ParseInt(h.Get(headerReset), 10, 64)
	if err != nil {
		return slowDownWait
	}
	wait := time.Unix(seconds, 0).Sub(now)
	if a.skewKnown {
		wait += a.skew
	}
	if wait <= 0 {
		return slowDownWait
	}
	return min(wait, quotaWindow)
}

// retryAfter reads the header of that name: seconds or a date.
func retryAfter(h http.Header, now time.Time) (wait time.Duration, named bool) {
	text := h.Get(headerRetryAfter)
	if text == "" {
		return 0, false
	}
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 {
		return time.Duration(min(seconds, int(24*time.Hour/time.Second))) * time.Second, true
	}
	if date, err := http.ParseTime(text); err == nil {
		if sent, derr := http.ParseTime(h.Get("Date")); derr == nil {
			now = sent
		}
		return max(date.Sub(now), 0), true
	}
	return 0, false
}

// isStatus reports whether err is an answer of GitHub with that status.
func isStatus(err error, status int) bool {
	var a *answer
	return errors.As(err, &a) && a.status == status
}

// secrets are what a token or a key looks like.
var secrets = regexp.MustCompile(`(?i)\b(?:gh[a-z]_[A-Za-z0-9_.\-]+|github_pat_\w+|(?:bearer|token|basic)\s+[A-Za-z0-9+/=_.\-]{16,}|eyJ[A-Za-z0-9_\-]+\.[A-Za-z0-9_.\-]+)|-----BEGIN [A-Z ]*PRIVATE KEY-----[^"]*`)

// scrub takes everything out of a foreign text that looks like a secret: a
// proxy may send a request's headers back (R-CORE-10).
func scrub(text string) string { return secrets.ReplaceAllString(text, "[redacted]") }
