// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/sluice-dev/sluice/internal/fault"
)

// about says what a request was about, for the person who reads the message.
type about struct {
	what string // e.g. repository 42
	// account the installation is on; empty for the App itself.
	account string
	route   string // e.g. POST /repositories/{id}/pulls
}

// classify turns whatever went wrong into a fault. Its message names what was
// asked for and the mend, and quotes nothing of the request (R-CORE-10).
func (a *App) classify(err error, what about) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	var refused *answer
	if errors.As(err, &refused) {
		return a.refusal(refused, what)
	}
	return a.unanswered(err)
}

// unanswered classifies a request that got no answer, or one that is not
// GitHub's.
func (a *App) unanswered(err error) *fault.Error {
	host := a.server.api.Host
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	var elsewhere *redirectError
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return fault.Wrap(context.Canceled, fault.Waiting, fault.ReasonInterrupted, "interrupted; it is taken up again")
	case errors.As(err, &elsewhere):
		return fault.New(fault.Blocked, fault.ReasonGitHubRefused,
			"%s redirects to another server (%s), which gets no token: correct spec.baseURL", host, elsewhere.host)
	case errors.As(err, &syntax), errors.As(err, &shape), errors.Is(err, errNotGitHub):
		return fault.New(fault.Retryable, fault.ReasonGitHubUnreachable,
			"%s answers with something that is not GitHub's API: check spec.baseURL (GitHub Enterprise Server's ends in /api/v3) and any proxy", host)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fault.New(fault.Retryable, fault.ReasonGitHubUnreachable, "GitHub at %s did not answer in time", host)
	}
	return fault.New(fault.Retryable, fault.ReasonGitHubUnreachable, "GitHub at %s does not answer: %s", host, innermost(err))
}

// errNotGitHub is an answer without what GitHub's always holds.
var errNotGitHub = errors.New("the answer is not GitHub's")

// innermost returns the telling end of a network error; the address asked and
// whatever was in it are left out.
func innermost(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return scrub((&answer{message: err.Error()}).quote())
}

// refusal classifies an answer. Texts that have one meaning come before the
// statuses that have many.
func (a *App) refusal(r *answer, what about) *fault.Error {
	switch {
	case r.says("installation has been suspended"):
		return suspended(what.account)
	case r.says("archived so is read-only", "archived so it is read-only"):
		return fault.Wrap(r, fault.Blocked, fault.ReasonRepositoryArchived,
			"%s is archived on GitHub: unarchive it, or exclude it from the project", what.what)
	case r.blocked || r.status == http.StatusUnavailableForLegalReasons:
		return fault.Wrap(r, fault.Blocked, fault.ReasonRepositoryBlocked,
			"GitHub blocked access to %s: its owner can ask GitHub support why", what.what)
	case r.says("not accessible by integration", "You need admin access to the organization", "Must have admin rights"):
		return permissionMissing(r, what)
	case r.says("issue is locked"):
		return fault.Wrap(r, fault.Blocked, fault.ReasonConversationLocked, "the conversation of %s is locked: unlock it on GitHub", what.what)
	case r.limit.kind != unlimited:
		return a.limited(r, r.limit, a.now().Add(r.limit.wait), what)
	}
	return a.byStatus(r, what)
}

func (a *App) byStatus(r *answer, what about) *fault.Error {
	switch {
	case r.status == http.StatusUnauthorized:
		return a.credentialsRefused(r, what)
	case r.status == http.StatusNotFound && what.account == "":
		return fault.Wrap(r, fault.Blocked, fault.ReasonNotFound, "GitHub at %s answers 404 for %s", a.server.api.Host, what.what)
	case r.status == http.StatusNotFound:
		return fault.Wrap(r, fault.Blocked, fault.ReasonNotFound,
			"GitHub answers 404 for %s: it is gone, or the App's installation on %q has no access to it", what.what, what.account)
	case r.status == http.StatusConflict && r.says("Repository is empty"):
		return fault.Wrap(r, fault.Blocked, fault.ReasonRepositoryEmpty, "%s is empty: push a first commit to it", what.what)
	case r.status >= 500:
		return fault.Wrap(r, fault.Retryable, fault.ReasonGitHubUnreachable, "GitHub at %s cannot answer now: %s", a.server.api.Host, r.Error())
	case r.status == http.StatusRequestTimeout || r.status == http.StatusConflict:
		return fault.Wrap(r, fault.Retryable, fault.ReasonGitHubRefused, "GitHub could not do it now (%s): %s", what.what, r.Error())
	case r.status < 400:
		return fault.Wrap(r, fault.Retryable, fault.ReasonGitHubRefused,
			"GitHub redirects %s elsewhere (%d); nothing was written", what.what, r.status)
	}
	return fault.Wrap(r, fault.Blocked, fault.ReasonGitHubRefused, "GitHub refused (%s): %s", what.what, r.Error())
}

func permissionMissing(r *answer, what about) *fault.Error {
	need := r.permissions
	if need == "" {
		need = "GitHub does not say which; the request was " + what.route
	}
	where := "the App's settings"
	if what.account != "" {
		where = fmt.Sprintf("the App's settings, then accept it on %q", what.account)
	}
	return fault.Wrap(r, fault.Blocked, fault.ReasonPermissionMissing,
		"the App lacks a permission for %s (%s): grant it in %s", what.what, need, where)
}

// limited says when to go on (R-CORE-14).
func (a *App) limited(r error, l limit, at time.Time, what about) *fault.Error {
	who := "the App"
	if what.account != "" {
		who = fmt.Sprintf("the App's installation on %q", what.account)
	}
	said := "GitHub asks %s to slow down; going on at %s"
	if l.kind == hourlyQuota {
		said = "the hourly quota of %s is used up; going on at %s"
	}
	return fault.Wrap(r, fault.RateLimited, fault.ReasonRateLimited, said, who, at.UTC().Format(time.RFC3339)).At(at)
}

// credentialsRefused says what to do about a 401. An installation's token is
// ours to renew, so its refusal passes; the App's own does not.
func (a *App) credentialsRefused(r *answer, what about) *fault.Error {
	if what.account != "" {
		return fault.Wrap(r, fault.Retryable, fault.ReasonCredentialsRefused,
			"GitHub refuses the token it just gave for %q; a new one is asked for", what.account)
	}
	message := fmt.Sprintf("GitHub at %s refuses the App's credentials: %s", a.server.api.Host, r.quote())
	switch {
	case r.says("claim"):
		message = "GitHub refuses the App's credentials for their time: set this machine's clock right" + r.skewText()
	case r.says("could not be decoded", "Integration not found"):
		message = fmt.Sprintf("the private key and App ID %d do not belong together on %s: correct spec.appID, or store a key of that App",
			a.id, a.server.api.Host)
	case r.says("must generate a public key"):
		message = fmt.Sprintf("App %d has no private key on %s: generate one in the App's settings and store it", a.id, a.server.api.Host)
	}
	return fault.Wrap(r, fault.Blocked, fault.ReasonCredentialsRefused, "%s", message)
}

// skewText says how far our clock is off, when it is by more than seconds.
func (a *answer) skewText() string {
	const tolerated = 5 * time.Second
	switch skew := a.skew.Round(time.Second); {
	case a.skewKnown && skew > tolerated:
		return fmt.Sprintf(" (it is %s ahead of GitHub's)", skew)
	case a.skewKnown && skew < -tolerated:
		return fmt.Sprintf(" (it is %s behind GitHub's)", -skew)
	}
	return ""
}

func suspended(account string) *fault.Error {
	return fault.New(fault.Blocked, fault.ReasonAppSuspended,
		"the App's installation on %q is suspended: an owner of %q can unsuspend it", account, account)
}

func notInstalled(account string) *fault.Error {
	return fault.New(fault.Blocked, fault.ReasonAppNotInstalled,
		"the App is not installed on %q: install it there from the App's public page", account)
}
