// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	gh "github.com/google/go-github/v66/github"

	"github.com/sluice-dev/sluice/internal/fault"
)

// isStatus reports whether err is an answer of GitHub with that status.
func isStatus(err error, status int) bool {
	var r *gh.ErrorResponse
	return errors.As(err, &r) && r.Response != nil && r.Response.StatusCode == status
}

// texts returns everything an error answer says.
func texts(r *gh.ErrorResponse) string {
	parts := []string{r.Message}
	for _, e := range r.Errors {
		parts = append(parts, e.Message, e.Code)
	}
	return strings.Join(parts, "\n")
}

// classify turns an error of go-github into a fault. No text of the request
// gets into it, so no token does either (R-CORE-10).
func classify(err error, now time.Time, login string) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	var primary *gh.RateLimitError
	if errors.As(err, &primary) {
		at := primary.Rate.Reset.Time
		if !at.After(now) {
			at = now.Add(time.Minute)
		}
		return fault.Wrap(err, fault.RateLimited, fault.ReasonRateLimited,
			"GitHub's hourly quota is used up; it is full again at %s", at.UTC().Format(time.RFC3339)).At(at)
	}
	var secondary *gh.AbuseRateLimitError
	if errors.As(err, &secondary) {
		return limited(err, now.Add(secondary.GetRetryAfter()), now)
	}
	var refused *ghinstallation.HTTPError
	if errors.As(err, &refused) {
		return mintFault(err, refused, login)
	}
	var r *gh.ErrorResponse
	if errors.As(err, &r) && r.Response != nil {
		return answerFault(err, r, now)
	}
	return fault.Wrap(err, fault.Retryable, fault.ReasonGitHubUnreachable, "GitHub does not answer: %s", networkText(err))
}

func limited(err error, at, now time.Time) *fault.Error {
	if !at.After(now) {
		at = now.Add(time.Minute)
	}
	return fault.Wrap(err, fault.RateLimited, fault.ReasonRateLimited,
		"GitHub asked to slow down; going on at %s", at.UTC().Format(time.RFC3339)).At(at)
}

func answerFault(err error, r *gh.ErrorResponse, now time.Time) error {
	text := texts(r)
	switch status := r.Response.StatusCode; {
	case strings.Contains(text, "secondary rate limit") || strings.Contains(text, "submitted too quickly"):
		return limited(err, now.Add(time.Minute), now)
	case strings.Contains(strings.ToLower(text), "archived so is read-only"):
		return fault.Wrap(err, fault.Blocked, fault.ReasonRepositoryArchived, "the repository is archived on GitHub: unarchive it, or exclude it from the project")
	case r.Block != nil || status == http.StatusUnavailableForLegalReasons:
		return fault.Wrap(err, fault.Blocked, fault.ReasonRepositoryBlocked, "GitHub blocked the repository")
	case status == http.StatusNotFound && strings.Contains(text, "No common ancestor"):
		return fault.Wrap(err, fault.Blocked, fault.ReasonUnrelatedHistories,
			"the repository shares no history with what is handed out: it was not made from the distribution")
	case status == http.StatusNotFound:
		return fault.Wrap(err, fault.Blocked, fault.ReasonNotFound, "GitHub answers 404: it is gone, or the App has no access to it")
	case status == http.StatusConflict && strings.Contains(text, "Git Repository is empty"):
		return fault.Wrap(err, fault.Blocked, fault.ReasonRepositoryEmpty, "the repository is empty: push a first commit, or let the project make it")
	case status == http.StatusUnauthorized:
		return fault.Wrap(err, fault.Blocked, fault.ReasonCredentialsRefused, "%s", credentialsText(r.Message))
	case status == http.StatusForbidden && strings.Contains(text, "not accessible by integration"):
		need := r.Response.Header.Get("X-Accepted-GitHub-Permissions")
		if need == "" {
			need = "see the App's settings"
		}
		return fault.Wrap(err, fault.Blocked, fault.ReasonPermissionMissing,
			"the App lacks a permission (%s): add it in the App's settings and accept it where it is installed", need)
	case status >= 500:
		return fault.Wrap(err, fault.Retryable, fault.ReasonGitHubUnreachable, "GitHub answers %d", status)
	case strings.Contains(text, "No commits between"):
		return fault.Wrap(err, fault.Blocked, fault.ReasonNoCommits, "the pull request would bring nothing")
	case strings.Contains(text, "no history in common"):
		return fault.Wrap(err, fault.Blocked, fault.ReasonUnrelatedHistories,
			"the repository shares no history with what is handed out: it was not made from the distribution")
	default:
		return fault.Wrap(err, fault.Blocked, fault.ReasonGitHubRefused, "GitHub refused with %d: %s", status, firstLine(strings.TrimSpace(text)))
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	if len(line) > 300 {
		line = line[:300]
	}
	return line
}

// credentialsText says what to do about a refused JWT or token.
func credentialsText(message string) string {
	switch {
	case strings.Contains(message, "could not be decoded"), strings.Contains(message, "Integration not found"):
		return "GitHub refused the App's credentials: the private key and the App ID do not belong together"
	case strings.Contains(message, "claim"):
		return "GitHub refused the App's credentials for their time: this machine's clock is off"
	}
	return "GitHub refused the credentials: " + firstLine(message)
}

// mintFault says why GitHub gave no installation token. The answer is in the
// body that ghinstallation left unread.
func mintFault(err error, refused *ghinstallation.HTTPError, login string) error {
	if refused.Response == nil {
		return fault.Wrap(err, fault.Retryable, fault.ReasonGitHubUnreachable, "GitHub does not answer when asked for a token")
	}
	body, _ := io.ReadAll(io.LimitReader(refused.Response.Body, 16<<10)) //nolint:errcheck // what could be read decides
	_ = refused.Response.Body.Close()
	text := string(body)
	switch status := refused.Response.StatusCode; {
	case strings.Contains(text, "suspended"):
		return suspended(login)
	case status == http.StatusNotFound:
		return fault.Wrap(err, fault.Blocked, fault.ReasonAppNotInstalled, "the App is no longer installed on %q: install it there, on its settings page", login)
	case status == http.StatusUnauthorized:
		return fault.Wrap(err, fault.Blocked, fault.ReasonCredentialsRefused, "%s", credentialsText(text))
	case status >= 500:
		return fault.Wrap(err, fault.Retryable, fault.ReasonGitHubUnreachable, "GitHub answers %d when asked for a token", status)
	default:
		return fault.Wrap(err, fault.Blocked, fault.ReasonGitHubRefused, "GitHub refused to give a token (%d)", status)
	}
}

// networkText keeps the telling end of a network error: the address asked and
// its query are left out.
func networkText(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return firstLine(err.Error())
		}
		err = inner
	}
}

// appFault classifies an error of a call made as the App itself.
func (a *App) appFault(err error) error { return classify(err, a.now(), "") }
