// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func TestDistributeBuildsOneRootCommitPerBranch_R_DIST_07(t *testing.T) {
	g := NewWithT(t)
	source, dist, git := newRepo(t), newRepo(t), newGit(t, nil)
	source.commit("main", tree{"README.md": "one"})
	main := source.commit("main", tree{"README.md": "two", "run.sh": program("#!/bin/sh")})
	extra := source.commit("extra", tree{"extra.md": "x"})
	source.commit("private", tree{"secret.md": "x"})
	source.git("tag", "v1", "main")

	result, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "main", "extra"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.SourceHeads).To(Equal(domain.Heads{"main": main, "extra": extra}))
	g.Expect(result.Heads).To(Equal(domain.Heads{"main": dist.head("main"), "extra": dist.head("extra")}))
	g.Expect(result.Changed).To(Equal([]string{"main", "extra"}))

	g.Expect(dist.refs()).To(ConsistOf("refs/heads/main", "refs/heads/extra"), "no other branch, tag or ref is pushed")
	g.Expect(dist.git("rev-list", "--count", "main")).To(Equal("1"))
	g.Expect(dist.git("rev-parse", "main^{tree}")).To(Equal(source.git("rev-parse", "main^{tree}")), "without a convention the tree is untouched")
	g.Expect(dist.git("log", "-1", "--format=%an|%ae|%cn|%ce|%at|%ct|%B", "main")).To(Equal(
		"sluice[bot]|1+sluice[bot]@users.noreply.github.com|sluice[bot]|1+sluice[bot]@users.noreply.github.com|1772366400|1772366400|Update the project's files\n"))
}

func TestDistributeAddsOneCommitOnTop_R_REQ_05(t *testing.T) {
	g := NewWithT(t)
	source, dist, git := newRepo(t), newRepo(t), newGit(t, nil)
	source.commit("main", tree{"a": "1", "gone": "x"})
	source.commit("same", tree{"b": "1"})
	req := request(source.remote(), dist.remote(), "same", "main")
	built, err := git.Distribute(t.Context(), req)
	g.Expect(err).NotTo(HaveOccurred())

	source.commit("main", tree{"a": "2"})
	source.commit("main", tree{"a": "3"})
	updated, err := git.Distribute(t.Context(), req)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(updated.Changed).To(Equal([]string{"main"}), "a branch without a change is not in changed")
	g.Expect(updated.Heads["same"]).To(Equal(built.Heads["same"]))
	g.Expect(dist.git("rev-parse", "main^")).To(Equal(built.Heads["main"]), "one commit on top")
	g.Expect(dist.files("main")).To(Equal(map[string]string{"a": "100644 3"}), "the whole tree is replaced")
	g.Expect(dist.head("main")).To(Equal(updated.Heads["main"]))
	g.Expect(dist.git("cat-file", "commit", "main")).NotTo(ContainSubstring(source.head("main")))
}

func TestDistributeIgnoresSourceChangesThatAreNotHandedOut_R_REQ_05(t *testing.T) {
	g := NewWithT(t)
	source, dist, git := newRepo(t), newRepo(t), newGit(t, nil)
	source.commit("main", tree{"a": "1", ".handoutignore": "solution\n", "solution/a": "1"})
	req := request(source.remote(), dist.remote(), "main")
	built, err := git.Distribute(t.Context(), req)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(dist.files("main")).To(Equal(map[string]string{"a": "100644 1"}))

	head := source.commit("main", tree{"a": "1", ".handoutignore": "solution\n", "solution/a": "2"})
	again, err := git.Distribute(t.Context(), req)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Changed).To(BeEmpty())
	g.Expect(again.Heads).To(Equal(built.Heads))
	g.Expect(again.SourceHeads).To(Equal(domain.Heads{"main": head}))
}

func TestDistributeRunAgainAfterACrash(t *testing.T) {
	for _, history := range []domain.History{domain.HistorySquash, domain.HistoryWhole} {
		t.Run(string(history)+": between push and record, on another machine and later", func(t *testing.T) {
			g := NewWithT(t)
			source, dist := newRepo(t), newRepo(t)
			source.commit("main", tree{"a": "1"})
			req := request(source.remote(), dist.remote(), "main")
			req.History = history
			first, err := newGit(t, nil).Distribute(t.Context(), req)
			g.Expect(err).NotTo(HaveOccurred())

			later := newGit(t, func(o *Options) {
				c := newClock()
				c.SetTime(now.AddDate(0, 0, 1))
				o.Clock = c
			})
			again, err := later.Distribute(t.Context(), req)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again.Heads).To(Equal(first.Heads))
			g.Expect(again.SourceHeads).To(Equal(first.SourceHeads))
			g.Expect(again.Changed).To(BeEmpty())
			g.Expect(dist.head("main")).To(Equal(first.Heads["main"]))
		})
	}

	t.Run("between two of the branches of a build", func(t *testing.T) {
		g := NewWithT(t)
		source, dist, git := newRepo(t), newRepo(t), newGit(t, nil)
		source.commit("main", tree{"a": "1"})
		source.commit("extra", tree{"b": "1"})
		built, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "main"))
		g.Expect(err).NotTo(HaveOccurred())
		both, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "main", "extra"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(both.Changed).To(Equal([]string{"extra"}))
		g.Expect(both.Heads["main"]).To(Equal(built.Heads["main"]))
		g.Expect(dist.git("rev-list", "--count", "extra")).To(Equal("1"))
	})
}

func TestDistributeWholePushesHistoryUnchanged_R_DIST_07(t *testing.T) {
	g := NewWithT(t)
	source, dist, git := newRepo(t), newRepo(t), newGit(t, nil)
	source.commit("main", tree{"a": "1", ".handoutignore": "a\n", "handout/b": "1"})
	source.commit("main", tree{"a": "2", ".handoutignore": "a\n", "handout/b": "1"})
	source.git("tag", "v1", "main")
	req := request(source.remote(), dist.remote(), "main")
	req.History = domain.HistoryWhole
	result, err := git.Distribute(t.Context(), req)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Heads).To(Equal(domain.Heads{"main": source.head("main")}))
	g.Expect(result.Changed).To(Equal([]string{"main"}))
	g.Expect(dist.refs()).To(Equal([]string{"refs/heads/main"}))
	g.Expect(dist.head("main")).To(Equal(source.head("main")))

	source.commit("main", tree{"a": "3"})
	result, err = git.Distribute(t.Context(), req)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Changed).To(Equal([]string{"main"}))
	g.Expect(dist.head("main")).To(Equal(source.head("main")))
}

func TestDistributeWholeRefusesARewrittenSource_R_REQ_06(t *testing.T) {
	g := NewWithT(t)
	source, dist, git := newRepo(t), newRepo(t), newGit(t, nil)
	base := source.commit("main", tree{"a": "1"})
	source.commit("main", tree{"a": "2"})
	source.commit("healthy", tree{"b": "1"})
	source.commit("second", tree{"c": "1"})
	req := request(source.remote(), dist.remote(), "healthy", "main", "second")
	req.History = domain.HistoryWhole
	_, err := git.Distribute(t.Context(), req)
	g.Expect(err).NotTo(HaveOccurred())
	before := dist.git("for-each-ref")

	source.commitOn("main", base, tree{"a": "rewritten"})
	source.commit("healthy", tree{"b": "2"})
	source.commitOn("second", "", tree{"c": "rewritten"})
	_, err = git.Distribute(t.Context(), req)
	g.Expect(fault.Is(err, fault.ReasonSourceRewritten)).To(BeTrue(), "%v", err)
	g.Expect(fault.Of(err).Class).To(Equal(fault.Terminal))
	g.Expect(err.Error()).To(ContainSubstring(`"main", "second"`))
	g.Expect(err.Error()).NotTo(ContainSubstring("healthy"))
	g.Expect(dist.git("for-each-ref")).To(Equal(before), "nothing was changed, the healthy branch neither")
}

func TestDistributeMovesAllBranchesOrNone(t *testing.T) {
	g := NewWithT(t)
	source, dist, git := newRepo(t), newRepo(t), newGit(t, nil)
	source.commit("main", tree{"a": "1"})
	source.commit("extra", tree{"b": "1"})
	dist.hook("update", `case $1 in refs/heads/extra) echo "not this one"; exit 1;; esac`)
	_, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "main", "extra"))
	g.Expect(fault.Is(err, fault.ReasonPushRejected)).To(BeTrue(), "%v", err)
	g.Expect(fault.Of(err).Class).To(Equal(fault.Blocked))
	g.Expect(err.Error()).To(And(ContainSubstring("distribution: "), ContainSubstring("not this one"), ContainSubstring("hook declined")))
	g.Expect(dist.refs()).To(BeEmpty())
}

func TestDistributeNamesMissingSourceBranches(t *testing.T) {
	source, dist, git := newRepo(t), newRepo(t), newGit(t, nil)
	source.commit("main", tree{"a": "1"})
	// A longer name that ends in the asked one is another branch.
	source.git("update-ref", "refs/heads/refs/heads/extra", source.head("main"))
	empty := newRepo(t)

	for name, c := range map[string]struct {
		source repo
		says   string
	}{
		"some missing: all of them, and no others": {source, `no branch "extra", "more":`},
		"empty source": {empty, `no branch "main", "extra", "more":`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := git.Distribute(t.Context(), request(c.source.remote(), dist.remote(), "main", "extra", "more"))
			g.Expect(fault.Is(err, fault.ReasonSourceBranchMissing)).To(BeTrue(), "%v", err)
			g.Expect(fault.Of(err).Class).To(Equal(fault.Blocked))
			g.Expect(err.Error()).To(And(ContainSubstring(c.says), ContainSubstring("spec.source.branches")))
			g.Expect(dist.refs()).To(BeEmpty())
		})
	}
}

// Somebody pushes between the fetch and the push.
func TestDistributeNeverOverwritesAPushOfAnother(t *testing.T) {
	for _, had := range []bool{true, false} {
		t.Run(map[bool]string{true: "an update", false: "a build"}[had], func(t *testing.T) {
			g := NewWithT(t)
			s := newServer(t)
			source, git := newRepo(t), newGit(t, nil)
			dist, remote := s.repo("acme/dist")
			req := request(source.remote(), remote, "main")
			source.commit("main", tree{"a": "1"})
			if had {
				_, err := git.Distribute(t.Context(), req)
				g.Expect(err).NotTo(HaveOccurred())
				source.commit("main", tree{"a": "2"})
			}
			theirs := ""
			s.answer(onPush(func() {
				if theirs == "" {
					theirs = dist.commit("main", tree{"theirs": "1"})
				}
			}))
			_, err := git.Distribute(t.Context(), req)
			g.Expect(fault.Is(err, fault.ReasonDistributionDiverged)).To(BeTrue(), "%v", err)
			g.Expect(fault.Of(err).Class).To(Equal(fault.Retryable))
			g.Expect(dist.head("main")).To(Equal(theirs))

			again, err := git.Distribute(t.Context(), req)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(again.Changed).To(Equal([]string{"main"}))
			g.Expect(dist.git("rev-parse", "main^")).To(Equal(theirs), "their commit stays below")
			g.Expect(dist.files("main")).NotTo(HaveKey("theirs"))
		})
	}
}

func TestDistributeBranchesThatNestInEachOtherOverTime(t *testing.T) {
	g := NewWithT(t)
	source, dist, git := newRepo(t), newRepo(t), newGit(t, nil)
	source.commit("lab", tree{"a": "1"})
	_, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "lab"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, r := range []repo{source, dist} {
		r.git("update-ref", "-d", "refs/heads/lab")
	}
	source.commit("lab/one", tree{"a": "2"})
	result, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "lab/one"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Changed).To(Equal([]string{"lab/one"}))
	g.Expect(dist.refs()).To(Equal([]string{"refs/heads/lab/one"}))
}

func TestDistributeChecksTheRequestFirst(t *testing.T) {
	git := newGit(t, nil)
	for name, c := range map[string]struct {
		change func(*domain.DistributeRequest)
		says   string
	}{
		"no branches":          {func(r *domain.DistributeRequest) { r.Branches = nil }, "no branch"},
		"a refspec":            {func(r *domain.DistributeRequest) { r.Branches = []string{"main:refs/heads/x"} }, "no name for a branch"},
		"a glob":               {func(r *domain.DistributeRequest) { r.Branches = []string{"*"} }, "no name for a branch"},
		"a branch twice":       {func(r *domain.DistributeRequest) { r.Branches = []string{"a", "b", "a"} }, `"a" is listed twice`},
		"no key":               {func(r *domain.DistributeRequest) { r.Key = "" }, "needs a key"},
		"no author":            {func(r *domain.DistributeRequest) { r.Author.Email = "" }, "an author"},
		"unknown history":      {func(r *domain.DistributeRequest) { r.History = "Some" }, `history "Some"`},
		"a helper as address":  {func(r *domain.DistributeRequest) { r.Source.URL = "ext::sh -c true" }, "no https address"},
		"an option as address": {func(r *domain.DistributeRequest) { r.Source.URL = "--upload-pack=true" }, "no https address"},
		"ssh":                  {func(r *domain.DistributeRequest) { r.Source.URL = "ssh://host/a" }, "no https address"},
		"a token in the address, which is not repeated": {
			func(r *domain.DistributeRequest) { r.Source.URL = "https://x:ghs_secret@host/a" }, "at host holds credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := request(domain.Remote{URL: "/nowhere"}, domain.Remote{URL: "/nowhere"}, "main")
			c.change(&r)
			_, err := git.Distribute(t.Context(), r)
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			g.Expect(err.Error()).NotTo(ContainSubstring("ghs_secret"))
		})
	}
}

func TestRefProblem(t *testing.T) {
	for _, good := range []string{"refs/heads/main", "refs/heads/sync/main", "refs/heads/feature/a.b-c_d", "refs/heads/ünïcode", "refs/heads/-dash", "refs/heads/@"} {
		NewWithT(t).Expect(refProblem(good)).To(BeEmpty(), good)
	}
	for _, bad := range []string{"", "main", "refs/heads/", "refs/heads//a", "refs/heads/.a", "refs/heads/a/.b", "refs/heads/a..b", "refs/heads/a.lock", "refs/heads/a.",
		"refs/heads/a b", "refs/heads/a~1", "refs/heads/a^", "refs/heads/a:b", "refs/heads/a?", "refs/heads/a*", "refs/heads/a[", `refs/heads/a\b`, "refs/heads/a@{1}", "refs/heads/a\nb"} {
		g := NewWithT(t)
		g.Expect(refProblem(bad)).NotTo(BeEmpty(), "%q", bad)
	}
}
