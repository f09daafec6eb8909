// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-dev/sluice/internal/fault"
)

// heard is what a failed git process said, taken apart: what the server says
// must not be mistaken for what git says about itself, nor the other way round.
type heard struct {
	// server holds the server's lines and its reasons for rejected refs.
	server []string
	// own holds git's own lines.
	own []string
	// local holds git's reasons for refs it did not even send.
	local []string
	// status is the HTTP status git told; zero when it told none.
	status int
}

var (
	httpStatus     = regexp.MustCompile(`(?:returned error: |RPC failed; HTTP )([1-5]\d\d)`)
	porcelainLine  = regexp.MustCompile(`^!\t[^\t]*\t\[(remote rejected|remote failure|rejected|no match)\](?: \((.*)\))?`)
	someoneElses   = regexp.MustCompile(`^atomic (?:push|transaction) fail`)
	maxServerLines = 40
)

// hear takes a failure apart. Reasons that only say that another ref of the
// same atomic push was refused are left out.
func hear(e *gitError) heard {
	var h heard
	for line := range strings.Lines(e.stderr) {
		line = strings.TrimRight(line, "\r\n")
		if said, ok := strings.CutPrefix(line, "remote:"); ok {
			if said = plain(said); said != "" && len(h.server) < maxServerLines {
				h.server = append(h.server, said)
			}
			continue
		}
		h.own = append(h.own, plain(line))
		if m := httpStatus.FindStringSubmatch(line); m != nil {
			h.status, _ = strconv.Atoi(m[1])
		}
	}
	for line := range strings.Lines(e.stdout) {
		m := porcelainLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		switch {
		case m == nil || someoneElses.MatchString(m[2]):
		case strings.HasPrefix(m[1], "remote"):
			h.server = appendNew(h.server, plain(m[2]))
		default:
			h.local = appendNew(h.local, plain(m[2]))
		}
	}
	return h
}

func appendNew(lines []string, line string) []string {
	if slices.Contains(lines, line) {
		return lines
	}
	return append(lines, line)
}

// refusal is one thing that may have happened, and what it means.
type refusal struct {
	// server, local and own are looked for in those parts of what was said;
	// status is an HTTP status. Any of them will do.
	server, local, own *regexp.Regexp
	status             int

	class  fault.Class
	reason fault.Reason
	// message says what is wrong and what to do. $1 is what the expression
	// found, $name the details.
	message string
	// details finds what the server named: rules, files.
	details *regexp.Regexp
}

func re(text string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + text) }

// refusals in the order they are tried: what only one situation says before
// what several say. Push protection comes before rulesets, with which it
// shares its head line, and the ways of the network come last, because a
// server that refuses may hang up as well.
var refusals = []refusal{
	{server: re("refusing to allow .* to create or update workflow `([^`]+)`"),
		class: fault.Blocked, reason: fault.ReasonWorkflowsPermission,
		message: "GitHub refused the workflow file $1: give the App the repository permission Workflows: write, and accept it in the organization"},
	{server: re(`Push cannot contain secrets|GITHUB PUSH PROTECTION|GH009:`),
		class: fault.Blocked, reason: fault.ReasonPushProtection,
		message: "GitHub's push protection found a secret in the files: take it out of the handed-out files, or allow it on GitHub",
		details: re(`^(?:[-*]\s+)?((?:path: )\S.*|https://\S+/unblock-secret/\S+)$`)},
	{server: re(`error: GH001:|exceeds GitHub's file size limit`),
		class: fault.Blocked, reason: fault.ReasonFileTooLarge,
		message: "a file is above GitHub's limit of 100 MB: take it out of the handed-out files, or use Git LFS",
		details: re(`File (.+? is [0-9.]+ [KMGT]B); this exceeds`)},
	{server: re(`pack exceeds maximum allowed size`),
		class: fault.Blocked, reason: fault.ReasonPushRejected,
		message: "the push is above GitHub's limit of 2 GB: make what is handed out smaller, for example with the ignore file"},
	{server: re(`GH008:`),
		class: fault.Blocked, reason: fault.ReasonPushRejected,
		message: "the files hold Git LFS pointers whose contents are not in this repository: commit the contents themselves, or keep those files back with the ignore file"},
	{server: re(`GH006: Protected branch update failed for (\S+?)\.?$`),
		class: fault.Blocked, reason: fault.ReasonBranchProtected,
		message: "branch protection forbids the push to $1: let the App bypass it, or take the branch out of it", details: ruleLines},
	{server: re(`protected branch hook declined`),
		class: fault.Blocked, reason: fault.ReasonBranchProtected,
		message: "branch protection forbids the push: let the App bypass it, or take the branch out of it", details: ruleLines},
	{server: re(`GH013: Repository rule violations found for (\S+?)\.?$`),
		class: fault.Blocked, reason: fault.ReasonRulesetViolation,
		message: "a ruleset forbids the push to $1: add the App to its bypass list, or take the branch out of it", details: ruleLines},
	{server: re(`push declined due to repository rule violations`),
		class: fault.Blocked, reason: fault.ReasonRulesetViolation,
		message: "a ruleset forbids the push: add the App to its bypass list, or take the branch out of it", details: ruleLines},
	{server: re(`deny updating a hidden ref`),
		class: fault.Terminal, reason: fault.ReasonHiddenRef,
		message: "GitHub keeps this ref to itself: choose another pullRequest.branchPrefix"},
	{server: re(`repository was archived so (?:it )?is read-only`),
		class: fault.Blocked, reason: fault.ReasonRepositoryArchived,
		message: "the repository is archived on GitHub: unarchive it, or exclude it from the project"},
	{server: re(`Repository access blocked|disabled by GitHub staff|DMCA takedown|repository (?:has been|is) (?:disabled|locked)`), status: 451,
		class: fault.Blocked, reason: fault.ReasonRepositoryBlocked,
		message: "GitHub has closed the repository: see its page on GitHub for the reason"},
	{server: re(`rate limit|too many requests|submitted too quickly`), status: 429,
		class: fault.RateLimited, reason: fault.ReasonRateLimited,
		message: "GitHub asked for fewer git requests; waiting a minute"},
	{server: re(`IP allow list`),
		class: fault.Blocked, reason: fault.ReasonGitHubRefused,
		message: "the organization's IP allow list does not let the operator in: add its outgoing address"},
	{server: re(`Permission to (\S+?)(?:\.git)? denied`),
		class: fault.Blocked, reason: fault.ReasonPushDenied,
		message: "the App may not push to $1: give it the repository permission Contents: write, and accept it in the organization"},
	{server: re(`Write access to repository not granted`),
		class: fault.Blocked, reason: fault.ReasonPushDenied,
		message: "the App may not push: give it the repository permission Contents: write, and accept it in the organization"},
	{server: re(`Invalid username or (?:token|password)|Bad credentials`), own: re(`Authentication failed|could not read (?:Username|Password)`), status: 401,
		class: fault.Retryable, reason: fault.ReasonCredentialsRefused,
		message: "GitHub did not take the App's token for git; it is tried again with a new one"},
	{server: re(`Repository not found`), own: re(`^fatal: repository '.*' not found|does not appear to be a git repository`), status: 404,
		class: fault.Blocked, reason: fault.ReasonNotFound,
		message: "git does not find the repository: it is gone, or not part of the App's installation"},
	{server: re(`'(refs/[^']+)' exists; cannot create`),
		class: fault.Blocked, reason: fault.ReasonPushRejected,
		message: "$1 is in the way of the branch's name: delete or rename it, or choose another pullRequest.branchPrefix"},
	{server: re(`directory/?file conflict|file/directory conflict`), own: re(`directory file conflict`),
		class: fault.Blocked, reason: fault.ReasonPushRejected,
		message: "another branch is in the way of the branch's name: delete or rename it, or choose another pullRequest.branchPrefix"},
	{server: re(`is at [0-9a-f]{40,64} but expected|reference already exists|incorrect old value|cannot lock ref|failed to update ref|fetch first|non-fast-forward`),
		local: re(`stale info|fetch first|non-fast-forward|already exists|remote ref updated`),
		class: fault.Retryable, reason: fault.ReasonStaleRef,
		message: "the branch was moved by somebody else meanwhile, so nothing was pushed; it is tried again"},
	{server: re(`shallow update not allowed|missing necessary objects`),
		class: fault.Blocked, reason: fault.ReasonPushRejected,
		message: "GitHub says that the push is not complete: hand out a whole history, not a shallow clone"},
	{own: re(`couldn't find remote ref (?:refs/heads/)?(\S+)`),
		class: fault.Blocked, reason: fault.ReasonBranchMissing, message: `branch "$1" does not exist`},
	{own: re(`does not support --atomic push`),
		class: fault.Blocked, reason: fault.ReasonPushRejected,
		message: "the server cannot move several branches at once: use GitHub, or a GitHub Enterprise Server that is still supported"},
	{own: untrusted,
		class: fault.Retryable, reason: fault.ReasonGitHubUnreachable,
		message: "the server's certificate is not trusted: give the operator its authority's certificate in SSL_CERT_FILE"},
	{own: noSpace,
		class: fault.Retryable, reason: fault.ReasonUnexpected,
		message: "there is no room for git's mirrors: enlarge the volume they are on"},
	{status: 413,
		class: fault.Blocked, reason: fault.ReasonPushRejected,
		message: "the server takes no push of this size: raise the limit of what stands before it, or hand less out"},
}

var (
	ruleLines = re(`^(?:[-*]|error:)\s+(?:GH\d+:.*|(.+))$`)
	untrusted = re(`certificate (?:problem|verif\w+)|server certificate|CAfile|unable to get local issuer`)
	noSpace   = re(`no space left on device|disk quota exceeded`)

	// mirrorDamage is what git says when its own objects or files are broken.
	mirrorDamage = re(`pack-objects died|unable to read [0-9a-f]{6}|unable to read tree|object file .* is empty|loose object .* is corrupt|` +
		`bad object|packfile .* (?:cannot|is|does)|does not match index|missing (?:blob|tree|commit) object|not a git repository|inflate: data stream error|bad tree object`)

	// passing is what the way to the server, or the server, has to say of
	// failures that pass by themselves.
	passing = re(`hung up|early EOF|RPC failed|Could not resolve|Connection (?:refused|reset|timed out)|Failed to connect|Couldn't connect|` +
		`timed? ?out|Empty reply from server|unexpected disconnect|expected flush|Operation too slow|SSL_ERROR|GnuTLS recv error|TLS connection`)
)

// rateLimitPause is how long to wait where git does not say for how long.
const rateLimitPause = time.Minute

// classify turns a failed git process into a fault. do says what it was for:
// "push", "fetch".
func (g *Git) classify(e *gitError, do string) *fault.Error {
	h := hear(e)
	if e.timedOut > 0 {
		return fault.Wrap(e, fault.Retryable, fault.ReasonGitHubUnreachable, "git could not %s within %s and was given up", do, e.timedOut)
	}
	own := strings.Join(h.own, "\n")
	if mirrorDamage.MatchString(own) {
		return fault.Wrap(e, fault.Retryable, fault.ReasonUnexpected, "git could not %s from its local copy, which is made anew: %s", do, lastLine(own))
	}
	for _, r := range refusals {
		if message, ok := r.meets(h); ok {
			f := fault.Wrap(e, r.class, r.reason, "%s", message)
			if r.class == fault.RateLimited {
				f = f.At(g.Clock.Now().Add(rateLimitPause))
			}
			return f
		}
	}
	return unnamed(e, h, do)
}

// unnamed classifies what no refusal describes, by who said it.
func unnamed(e *gitError, h heard, do string) *fault.Error {
	said := strings.Join(h.server, "; ")
	switch {
	case h.status == 403 && do == "push":
		return fault.Wrap(e, fault.Blocked, fault.ReasonPushDenied,
			"GitHub refused the push: give the App the repository permission Contents: write, and accept it in the organization%s", inBrackets(said))
	case h.status/100 == 4 && h.status != 408:
		return fault.Wrap(e, fault.Blocked, fault.ReasonGitHubRefused, "GitHub refused git's request with HTTP %d%s", h.status, inBrackets(said))
	case h.status/100 == 3:
		return fault.Wrap(e, fault.Retryable, fault.ReasonGitHubUnreachable, "the repository was moved while git wanted to %s; it is tried again", do)
	case rejected(e.stdout):
		said = strings.Join(slices.Concat(h.server, h.local), "; ")
		return fault.Wrap(e, fault.Blocked, fault.ReasonPushRejected, "GitHub rejected the push: see what it says, and change the handed-out files or the repository's settings%s", inBrackets(said))
	case h.status/100 == 5 || h.status == 408 || passing.MatchString(strings.Join(h.own, "\n")):
		return fault.Wrap(e, fault.Retryable, fault.ReasonGitHubUnreachable, "git could not %s: %s", do, summary(e, h))
	}
	return fault.Wrap(e, fault.Retryable, fault.ReasonUnexpected, "git could not %s: %s", do, summary(e, h))
}

// rejected reports whether the server's report names a refused ref.
func rejected(stdout string) bool {
	for line := range strings.Lines(stdout) {
		if m := porcelainLine.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil && m[1] != "no match" && m[1] != "remote failure" {
			return true
		}
	}
	return false
}

// summary returns the line that says most: git's first complaint, which names
// the cause; those after it are what came of it.
func summary(e *gitError, h heard) string {
	for _, line := range h.own {
		if strings.HasPrefix(line, "error: ") || strings.HasPrefix(line, "fatal: ") {
			return strings.TrimSpace(line[len("error: "):])
		}
	}
	return strings.TrimPrefix(e.Error(), "git "+e.verb+": ")
}

// meets reports whether the refusal describes what was heard, and returns its
// message filled in.
func (r refusal) meets(h heard) (message string, ok bool) {
	for _, in := range []struct {
		text  *regexp.Regexp
		lines []string
	}{{r.server, h.server}, {r.local, h.local}, {r.own, h.own}} {
		if in.text == nil {
			continue
		}
		for _, line := range in.lines {
			if m := in.text.FindStringSubmatchIndex(line); m != nil {
				filled := string(in.text.ExpandString(nil, r.message, line, m))
				return filled + inBrackets(strings.Join(r.named(h.server), "; ")), true
			}
		}
	}
	if r.status != 0 && r.status == h.status {
		return r.message, true
	}
	return "", false
}

// maxDetails bounds how many details a message lists.
const maxDetails = 5

// named returns the details the server named, each once.
func (r refusal) named(lines []string) []string {
	if r.details == nil {
		return nil
	}
	var found []string
	seen := map[string]bool{}
	for _, line := range lines {
		m := r.details.FindStringSubmatch(line)
		if m == nil || m[1] == "" || seen[m[1]] {
			continue
		}
		if seen[m[1]] = true; len(found) == maxDetails {
			return append(found, "...")
		}
		found = append(found, strings.TrimSpace(m[1]))
	}
	return found
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", s)
}
