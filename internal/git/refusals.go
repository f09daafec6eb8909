// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"regexp"
	"strings"

	"github.com/sluice-dev/sluice/internal/fault"
)

// transientTexts are failures of the way or the server that pass by
// themselves. Everything a server says about permission or content is final.
var transientTexts = regexp.MustCompile(`(?i)(HTTP (?:error: )?5\d\d|The requested URL returned error: 5\d\d|hung up unexpectedly|early EOF|RPC failed|Could not resolve host|Connection (?:refused|reset|timed out)|Failed to connect|Operation timed out|Empty reply from server|unexpected disconnect)`)

var finalTexts = regexp.MustCompile(`(?i)(returned error: 4\d\d|rejected|GH0\d\d|Permission to .* denied|Repository not found)`)

func transient(stderr string) bool {
	return transientTexts.MatchString(stderr) && !finalTexts.MatchString(stderr)
}

// refusal is one thing a server says, and what it means.
type refusal struct {
	text   *regexp.Regexp
	class  fault.Class
	reason fault.Reason
	// message says what to do; $1 is the text's first group.
	message string
}

// refusals in the order they are tried: the telling ones before the general
// ones, push protection before rulesets, with which it shares its head line.
var refusals = []refusal{
	{regexp.MustCompile("refusing to allow a GitHub App to create or update workflow `([^`]+)`"), fault.Blocked, fault.ReasonWorkflowsPermission,
		"GitHub refused workflow file $1: give the App the repository permission Workflows: write, and accept it in the organization"},
	{regexp.MustCompile(`Push cannot contain secrets`), fault.Blocked, fault.ReasonPushProtection,
		"GitHub's push protection found a secret in the files: remove it from the source, or allow it on GitHub"},
	{regexp.MustCompile(`GH001: Large files detected`), fault.Blocked, fault.ReasonFileTooLarge,
		"a file is above GitHub's limit of 100 MB: remove it from the source, or use Git LFS"},
	{regexp.MustCompile(`GH006: Protected branch update failed for (\S+?)\.?\n`), fault.Blocked, fault.ReasonBranchProtected,
		"branch protection forbids the push to $1: let the App bypass it, or take the branch out of it"},
	{regexp.MustCompile(`GH013: Repository rule violations found for (\S+?)\.?\n`), fault.Blocked, fault.ReasonRulesetViolation,
		"a ruleset forbids the push to $1: add the App to its bypass list, or take the branch out of it"},
	{regexp.MustCompile(`push declined due to repository rule violations`), fault.Blocked, fault.ReasonRulesetViolation,
		"a ruleset forbids the push: add the App to its bypass list, or take the branch out of it"},
	{regexp.MustCompile(`deny updating a hidden ref`), fault.Terminal, fault.ReasonHiddenRef,
		"GitHub keeps this ref to itself: choose another pullRequest.branchPrefix"},
	{regexp.MustCompile(`(?i)repository was archived so (?:it )?is read-only`), fault.Blocked, fault.ReasonRepositoryArchived,
		"the repository is archived on GitHub: unarchive it, or exclude it from the project"},
	{regexp.MustCompile(`Permission to (\S+?)(?:\.git)? denied`), fault.Blocked, fault.ReasonPushDenied,
		"the App may not push to $1: give it the repository permission Contents: write"},
	{regexp.MustCompile(`Write access to repository not granted`), fault.Blocked, fault.ReasonPushDenied,
		"the App may not push: give it the repository permission Contents: write"},
	{regexp.MustCompile(`(?i)Repository not found|returned error: 404|does not appear to be a git repository`), fault.Blocked, fault.ReasonNotFound,
		"git does not find the repository: it is gone, renamed away, or not part of the App's installation"},
	{regexp.MustCompile(`Invalid username or (?:token|password)|Authentication failed|returned error: 401`), fault.Retryable, fault.ReasonCredentialsRefused,
		"GitHub refused the token; a new one is asked for"},
	{regexp.MustCompile(`returned error: 429`), fault.RateLimited, fault.ReasonRateLimited, "GitHub asked to push more slowly"},
	{regexp.MustCompile(`stale info|cannot lock ref|is at [0-9a-f]{40,64} but expected|fetch first|non-fast-forward`), fault.Retryable, fault.ReasonStaleRef,
		"the branch moved while it was being updated; it is tried again"},
	{regexp.MustCompile(`couldn't find remote ref (?:refs/heads/)?(\S+)`), fault.Blocked, fault.ReasonBranchMissing,
		"branch $1 does not exist"},
	{regexp.MustCompile(`\[remote rejected\] .*\(([^)]*)\)|\[rejected\] .*\(([^)]*)\)`), fault.Blocked, fault.ReasonPushRejected,
		"GitHub rejected the push: $1"},
}

// classify turns a failed git command into a fault. Other errors stay as they
// are.
func classify(err error, verb string) error {
	c, ok := asCommandError(err)
	if !ok {
		return err
	}
	text := c.stderr + "\n" + c.stdout + "\n"
	for _, r := range refusals {
		m := r.text.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		message := string(r.text.ExpandString(nil, r.message, text, m))
		return fault.Wrap(err, r.class, r.reason, "%s", message+details(r.reason, text))
	}
	if transient(c.stderr) {
		return fault.Wrap(err, fault.Retryable, fault.ReasonGitHubUnreachable, "git could not %s: %s", verb, lastLine(c.stderr))
	}
	return fault.Wrap(err, fault.Retryable, fault.ReasonUnexpected, "git could not %s: %s", verb, lastLine(c.stderr))
}

var (
	ruleLine = regexp.MustCompile(`remote: - (.+)`)
	fileLine = regexp.MustCompile(`File (.+?) is ([0-9.]+ [KMG]B)`)
)

// details adds what the server named: broken rules, files.
func details(r fault.Reason, text string) string {
	var found []string
	switch r {
	case fault.ReasonRulesetViolation:
		for _, m := range ruleLine.FindAllStringSubmatch(text, 5) {
			found = append(found, strings.TrimSpace(m[1]))
		}
	case fault.ReasonFileTooLarge:
		for _, m := range fileLine.FindAllStringSubmatch(text, 5) {
			found = append(found, m[1]+" is "+m[2])
		}
	}
	if len(found) == 0 {
		return ""
	}
	return " (" + strings.Join(found, "; ") + ")"
}
