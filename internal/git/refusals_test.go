// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// What GitHub's receive-pack says, word for word, through a real git push.
func TestPushRefusedByGitHub(t *testing.T) {
	git := newGit(t, nil)
	_, dist := distributed(t, git)
	snap := snapshot(t, git, dist)
	for name, c := range map[string]struct {
		lines  []string
		reason string // after "ng <ref> "
		want   fault.Reason
		class  fault.Class
		says   []string
		hides  []string
	}{
		"a workflow file": {nil, "refusing to allow a GitHub App to create or update workflow `.github/workflows/grade.yml` without `workflows` permission",
			fault.ReasonWorkflowsPermission, fault.Blocked, []string{".github/workflows/grade.yml", "Workflows: write"}, nil},
		"a ruleset": {[]string{"error: GH013: Repository rule violations found for refs/heads/sync/main.", "Review all repository rules at https://github.com/acme/down/rules?ref=refs%2Fheads%2Fsync%2Fmain",
			"", "- Cannot force-push to this branch", "", "- Changes must be made through a pull request."}, "push declined due to repository rule violations",
			fault.ReasonRulesetViolation, fault.Blocked, []string{"push to refs/heads/sync/main:", "(Cannot force-push to this branch; Changes must be made through a pull request.)", "bypass list"}, []string{"GH013"}},
		"a ruleset without its lines": {nil, "push declined due to repository rule violations", fault.ReasonRulesetViolation, fault.Blocked, []string{"a ruleset forbids the push:"}, nil},
		"push protection, told apart from a ruleset": {[]string{"error: GH013: Repository rule violations found for refs/heads/sync/main.", "", "- GITHUB PUSH PROTECTION",
			"  —————————————————————————————————————————", "    Resolve the following violations before pushing again", "", "    - Push cannot contain secrets", "",
			"      —— GitHub Personal Access Token ——————————————————————", "       locations:", "         - commit: 8728dbe67", "           path: config/prod.env:4", "",
			"       (?) To push, remove secret from commit(s) or follow this URL to allow the secret.", "       https://github.com/acme/down/security/secret-scanning/unblock-secret/2abc"},
			"push declined due to repository rule violations", fault.ReasonPushProtection, fault.Blocked,
			[]string{"found a secret", "path: config/prod.env:4", "unblock-secret/2abc", "take it out of the handed-out files"}, []string{"ruleset"}},
		"branch protection": {[]string{"error: GH006: Protected branch update failed for refs/heads/sync/main.", "error: Required status check \"ci\" is expected."}, "protected branch hook declined",
			fault.ReasonBranchProtected, fault.Blocked, []string{"refs/heads/sync/main:", `Required status check "ci" is expected.`}, []string{"GH006"}},
		"a file above the limit": {[]string{"error: Trace: 1234", "error: See https://gh.io/lfs for more information.", "error: File data/model.bin is 143.21 MB; this exceeds GitHub's file size limit of 100.00 MB",
			"error: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com."}, "pre-receive hook declined",
			fault.ReasonFileTooLarge, fault.Blocked, []string{"data/model.bin is 143.21 MB", "Git LFS"}, nil},
		"a warning of a large file is not the refusal": {[]string{"warning: See https://gh.io/lfs for more information.", "warning: File data/a.bin is 60.00 MB; this is larger than GitHub's recommended maximum file size of 50.00 MB",
			"warning: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.",
			"error: GH013: Repository rule violations found for refs/heads/sync/main.", "- Cannot update this protected ref."}, "push declined due to repository rule violations",
			fault.ReasonRulesetViolation, fault.Blocked, []string{"Cannot update this protected ref."}, nil},
		"a push above the limit": {[]string{"fatal: pack exceeds maximum allowed size (2.00 GiB)"}, "unpacker error", fault.ReasonPushRejected, fault.Blocked, []string{"2 GB"}, nil},
		"pointers without contents": {[]string{"error: GH008: Your push referenced at least 1 unknown Git LFS object:", "    9b2c...", "Try to push them with 'git lfs push --all'."}, "pre-receive hook declined",
			fault.ReasonPushRejected, fault.Blocked, []string{"Git LFS pointers", "ignore file"}, nil},
		"a hidden ref": {nil, "deny updating a hidden ref", fault.ReasonHiddenRef, fault.Terminal, []string{"pullRequest.branchPrefix"}, nil},
		"a value the server no longer has": {[]string{"error: cannot lock ref 'refs/heads/sync/main': is at 1111111111111111111111111111111111111111 but expected 2222222222222222222222222222222222222222"},
			"failed to update ref", fault.ReasonStaleRef, fault.Retryable, []string{"moved by somebody else"}, nil},
		"a created ref that is there":   {nil, "reference already exists", fault.ReasonStaleRef, fault.Retryable, []string{"moved by somebody else"}, nil},
		"a shallow push":                {nil, "shallow update not allowed", fault.ReasonPushRejected, fault.Blocked, []string{"whole history"}, nil},
		"missing parents":               {nil, "missing necessary objects", fault.ReasonPushRejected, fault.Blocked, []string{"whole history"}, nil},
		"a hook of an enterprise":       {[]string{"Ticket number missing.", "\x1b[31mask IT\x1b[0m"}, "pre-receive hook declined", fault.ReasonPushRejected, fault.Blocked, []string{"Ticket number missing.; ", "pre-receive hook declined"}, []string{"\x1b"}},
		"something new":                 {nil, "the moon is full", fault.ReasonPushRejected, fault.Blocked, []string{"(the moon is full)"}, nil},
		"something new, at full length": {nil, strings.Repeat("no ", 2000), fault.ReasonPushRejected, fault.Blocked, []string{"no no", "..."}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newServer(t)
			_, remote := s.repo("acme/down")
			s.answer(refusing(c.lines, c.reason))
			err := snap.Push(t.Context(), remote, []domain.RefUpdate{
				{Ref: "refs/heads/sync/main", New: snap.Heads()["main"], Force: true}, {Ref: "refs/heads/sync/extra", New: snap.Heads()["main"], Force: true}})
			g.Expect(fault.Is(err, c.want)).To(BeTrue(), "%v", err)
			g.Expect(fault.Of(err).Class).To(Equal(c.class))
			for _, says := range c.says {
				g.Expect(err.Error()).To(ContainSubstring(says))
			}
			for _, hides := range c.hides {
				g.Expect(err.Error()).NotTo(ContainSubstring(hides))
			}
			g.Expect(len(err.Error())).To(BeNumerically("<", 1500))
			g.Expect(git.Clock.(*promptClock).waited()).To(BeEmpty(), "R-CORE-13: a refusal is final at once")
		})
	}
}

// The answers before any pack is sent.
func TestRefusedByHTTPStatus(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		text   string
		push   fault.Reason
		read   fault.Reason
		class  fault.Class
		says   string // on a push
	}{
		"no permission to push": {403, "Permission to acme/down.git denied to sluice[bot].", fault.ReasonPushDenied, fault.ReasonPushDenied, fault.Blocked, "may not push to acme/down: give it"},
		"no write access":       {403, "Write access to repository not granted.", fault.ReasonPushDenied, fault.ReasonPushDenied, fault.Blocked, "Contents: write"},
		"forbidden, for a reason of its own": {
			403, "Something about policy.", fault.ReasonPushDenied, fault.ReasonGitHubRefused, fault.Blocked, "(Something about policy.)"},
		"an allow list": {403, "The 'acme' organization has an IP allow list enabled, and your IP address is not permitted to access this resource.",
			fault.ReasonGitHubRefused, fault.ReasonGitHubRefused, fault.Blocked, "outgoing address"},
		"no access, or gone":       {404, "Repository not found.", fault.ReasonNotFound, fault.ReasonNotFound, fault.Blocked, "does not find the repository"},
		"gone, with no word of it": {404, "", fault.ReasonNotFound, fault.ReasonNotFound, fault.Blocked, "does not find the repository"},
		"archived":                 {403, "This repository was archived so it is read-only.", fault.ReasonRepositoryArchived, fault.ReasonRepositoryArchived, fault.Blocked, "unarchive it"},
		"blocked":                  {403, "Access to this repository has been disabled by GitHub staff.", fault.ReasonRepositoryBlocked, fault.ReasonRepositoryBlocked, fault.Blocked, "closed the repository"},
		"blocked by law":           {451, "", fault.ReasonRepositoryBlocked, fault.ReasonRepositoryBlocked, fault.Blocked, "closed the repository"},
		"too large":                {413, "", fault.ReasonPushRejected, fault.ReasonPushRejected, fault.Blocked, "of this size"},
		"too many requests":        {429, "", fault.ReasonRateLimited, fault.ReasonRateLimited, fault.RateLimited, "fewer git requests"},
		"too many, as a 403":       {403, "You have exceeded a secondary rate limit.", fault.ReasonRateLimited, fault.ReasonRateLimited, fault.RateLimited, "fewer git requests"},
		"a teapot":                 {418, "short and stout", fault.ReasonGitHubRefused, fault.ReasonGitHubRefused, fault.Blocked, "HTTP 418 (short and stout)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			git := newGit(t, nil)
			s := newServer(t)
			_, remote := s.repo("acme/down")
			s.answer(failing(1000, "acme/down", c.status, c.text))
			source := newRepo(t)
			source.commit("main", tree{"a": "1"})
			dist := newRepo(t)
			_, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "main"))
			g.Expect(err).NotTo(HaveOccurred())
			snap := snapshot(t, git, dist)

			err = snap.Push(t.Context(), remote, []domain.RefUpdate{{Ref: "refs/heads/sync/main", New: snap.Heads()["main"], Force: true}})
			g.Expect(fault.Is(err, c.push)).To(BeTrue(), "%v", err)
			g.Expect(fault.Of(err).Class).To(Equal(c.class))
			g.Expect(err.Error()).To(ContainSubstring(c.says))
			if c.class == fault.RateLimited {
				g.Expect(fault.Of(err).RetryAt).To(Equal(now.Add(time.Minute)))
			}

			_, err = git.Distribute(t.Context(), request(remote, dist.remote(), "main"))
			g.Expect(fault.Is(err, c.read)).To(BeTrue(), "%v", err)
			g.Expect(fault.Of(err).Class).To(Equal(c.class))
			g.Expect(err.Error()).To(HavePrefix("source: "))
			g.Expect(fault.Of(err).RetryAt.IsZero()).To(Equal(c.class != fault.RateLimited))
			_, err = git.Snapshot(t.Context(), "project", remote, []string{"main"})
			g.Expect(fault.Is(err, c.read)).To(BeTrue(), "%v", err)
			g.Expect(err.Error()).To(HavePrefix("distribution: "))
			g.Expect(git.Clock.(*promptClock).waited()).To(BeEmpty(), "R-CORE-13: a refusal is final at once")
		})
	}
}

// A branch of the prefix's own name stands in the way of all below it.
func TestPushIntoANameThatIsTaken(t *testing.T) {
	for name, c := range map[string]struct{ there, ref string }{
		"a branch above": {"sync", "refs/heads/sync/main"},
		"a branch below": {"sync/main/old", "refs/heads/sync/main"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			git := newGit(t, nil)
			_, dist := distributed(t, git)
			snap := snapshot(t, git, dist)
			down := newRepo(t)
			down.commit(c.there, tree{"a": "1"})
			err := snap.Push(t.Context(), down.remote(), []domain.RefUpdate{{Ref: c.ref, New: snap.Heads()["main"], Force: true}})
			g.Expect(fault.Is(err, fault.ReasonPushRejected)).To(BeTrue(), "%v", err)
			g.Expect(fault.Of(err).Class).To(Equal(fault.Blocked))
			g.Expect(err.Error()).To(And(ContainSubstring("refs/heads/"+c.there), ContainSubstring("in the way"), ContainSubstring("pullRequest.branchPrefix")))
		})
	}
}

func TestClassifyWhatNeedsNoServer(t *testing.T) {
	git := newGit(t, nil)
	for name, c := range map[string]struct {
		stderr string
		want   fault.Reason
		class  fault.Class
		passes bool
		says   string
	}{
		"a name nobody resolves":       {"fatal: unable to access 'https://github.com/a/b.git/': Could not resolve host: github.com", fault.ReasonGitHubUnreachable, fault.Retryable, true, "Could not resolve host"},
		"nobody listens":               {"fatal: unable to access 'https://h/a.git/': Failed to connect to h port 443 after 2 ms: Couldn't connect to server", fault.ReasonGitHubUnreachable, fault.Retryable, true, "Failed to connect"},
		"a stalled connection":         {"error: RPC failed; curl 28 Operation too slow. Less than 1 bytes/sec transferred the last 120 seconds", fault.ReasonGitHubUnreachable, fault.Retryable, true, "too slow"},
		"an early end":                 {"fetch-pack: unexpected disconnect while reading sideband packet\nfatal: early EOF\nfatal: fetch-pack: invalid index-pack output", fault.ReasonGitHubUnreachable, fault.Retryable, true, "early EOF"},
		"a server in trouble":          {"error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502\nfatal: the remote end hung up unexpectedly", fault.ReasonGitHubUnreachable, fault.Retryable, true, "502"},
		"a server that lost patience":  {"error: RPC failed; HTTP 408 curl 22 The requested URL returned error: 408\nfatal: the remote end hung up unexpectedly", fault.ReasonGitHubUnreachable, fault.Retryable, true, "408"},
		"a refusal that hangs up":      {"error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403\nsend-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly", fault.ReasonPushDenied, fault.Blocked, false, "Contents: write"},
		"a certificate":                {"fatal: unable to access 'https://h/a.git/': server certificate verification failed. CAfile: none CRLfile: none", fault.ReasonGitHubUnreachable, fault.Retryable, false, "SSL_CERT_FILE"},
		"a full disk":                  {"error: file write error: No space left on device\nfatal: unable to write loose object file", fault.ReasonUnexpected, fault.Retryable, false, "enlarge the volume"},
		"a damaged mirror":             {"error: object file objects/12/34 is empty\nfatal: loose object 1234 is corrupt\nfatal: the remote end hung up unexpectedly", fault.ReasonUnexpected, fault.Retryable, false, "made anew"},
		"what the server says of disk": {"remote: fatal: No space left on device\nerror: RPC failed; HTTP 500 curl 22 The requested URL returned error: 500", fault.ReasonGitHubUnreachable, fault.Retryable, true, "500"},
		"text of a file is no verdict": {"remote: Could not resolve host\nfatal: something else", fault.ReasonUnexpected, fault.Retryable, false, "git could not push: something else"},
		"no word":                      {"", fault.ReasonUnexpected, fault.Retryable, false, "git could not push: exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			failure := &gitError{verb: "push", code: 1, stderr: c.stderr, cause: errors.New("exit status 1")}
			f := git.classify(failure, "push")
			g.Expect(f.Reason).To(Equal(c.want), f.Message)
			g.Expect(f.Class).To(Equal(c.class))
			g.Expect(f.Message).To(ContainSubstring(c.says))
			g.Expect(passes(f, failure)).To(Equal(c.passes))
		})
	}
}

func TestFetchOfABranchThatVanishes(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	s := newServer(t)
	source, remote := s.repo("acme/source")
	dist, distRemote := s.repo("acme/dist")
	source.commit("main", tree{"a": "1"})
	req := request(remote, distRemote, "main")
	_, err := git.Distribute(t.Context(), req)
	g.Expect(err).NotTo(HaveOccurred())

	vanish := func(r repo, path string) scripted {
		asked := 0
		return func(_ http.ResponseWriter, req *http.Request) bool {
			if strings.HasPrefix(req.URL.Path, path) && strings.HasSuffix(req.URL.Path, "/info/refs") {
				if asked++; asked == 2 { // the first is the listing, the second the fetch
					r.git("update-ref", "-d", "refs/heads/main")
				}
			}
			return false
		}
	}
	s.answer(vanish(dist, "/acme/dist"))
	_, err = git.Distribute(t.Context(), req)
	g.Expect(fault.Is(err, fault.ReasonDistributionDiverged)).To(BeTrue(), "%v", err)
	s.answer(vanish(source, "/acme/source"))
	_, err = git.Distribute(t.Context(), req)
	g.Expect(fault.Is(err, fault.ReasonSourceBranchMissing)).To(BeTrue(), "%v", err)
	g.Expect(fault.Of(err).Class).To(Equal(fault.Blocked))
}
