// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/githubsim"
)

func TestPlainGitClonesPushesAndFetches(t *testing.T) {
	s := newSim(t)
	_, first := s.repository(lab)
	token := s.writer("ada")
	dir := s.clone(lab, token)
	s.Expect(s.mustGit(dir, "rev-parse", "HEAD")).To(Equal(first))

	second := s.write(dir, "src/b.txt", "b\n")
	s.mustGit(dir, "push", "-q", "origin", "HEAD:main", "HEAD:refs/heads/feature/x", "HEAD:refs/tags/v1")
	look, err := s.Look(s.ctx, lab)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(look.Refs).To(Equal(map[string]string{"refs/heads/main": second, "refs/heads/feature/x": second, "refs/tags/v1": second}))

	t.Run("force with lease", func(t *testing.T) {
		g := NewWithT(t)
		third := s.commit(lab, "feature/x", map[string]string{"theirs.txt": "x\n"})
		stale := s.git(dir, "push", "--force-with-lease=feature/x:"+second, "origin", first+":refs/heads/feature/x")
		g.Expect(stale.failed).To(BeTrue())
		g.Expect(stale.out).To(ContainSubstring("stale info"))
		s.mustGit(dir, "push", "-q", "--force-with-lease=feature/x:"+third, "origin", first+":refs/heads/feature/x")
		made := s.git(dir, "push", "--force-with-lease=feature/x:", "origin", second+":refs/heads/feature/x")
		g.Expect(made.failed).To(BeTrue(), "it must not exist and does")
	})
	t.Run("a later fetch brings what the API made", func(t *testing.T) {
		g := NewWithT(t)
		now := s.commit(lab, "main", map[string]string{"c.txt": "c\n"})
		s.mustGit(dir, "fetch", "-q", "origin")
		g.Expect(s.mustGit(dir, "rev-parse", "origin/main")).To(Equal(now))
		s.mustGit(dir, "fetch", "-q", "--depth=1", "--filter=blob:none", "origin", now)
	})
	t.Run("protocol versions 0 and 1", func(t *testing.T) {
		for _, version := range []string{"0", "1"} {
			out := s.mustGit(dir, "-c", "protocol.version="+version, "ls-remote", "origin", "refs/heads/main")
			NewWithT(t).Expect(out).To(HaveSuffix("refs/heads/main"))
			s.write(dir, "v"+version, "x\n")
			s.mustGit(dir, "-c", "protocol.version="+version, "push", "-q", "origin", "HEAD:refs/heads/v"+version)
		}
	})
	t.Run("a large push in pieces", func(t *testing.T) {
		s.write(dir, "big.bin", strings.Repeat("0123456789abcdef\n", 300_000))
		s.mustGit(dir, "-c", "http.postBuffer=65536", "-c", "core.compression=0", "push", "-q", "origin", "HEAD:refs/heads/big")
	})
	t.Run("deleting", func(t *testing.T) {
		g := NewWithT(t)
		s.mustGit(dir, "push", "-q", "origin", ":feature/x")
		refused := s.git(dir, "push", "origin", ":main")
		g.Expect(refused.failed).To(BeTrue())
		g.Expect(refused.out).To(ContainSubstring("refusing to delete the current branch: refs/heads/main"))
		s.mustGit(dir, "push", "-q", "origin", "HEAD:refs/heads/feature")
		g.Expect(s.git(dir, "push", "origin", "HEAD:refs/heads/feature/x").out).To(ContainSubstring("'refs/heads/feature' exists; cannot create 'refs/heads/feature/x'"))
	})
	t.Run("pull requests can be fetched by their number", func(t *testing.T) {
		head := s.commit(lab, "topic", map[string]string{"t.txt": "t\n"})
		s.open("topic", "main")
		NewWithT(t).Expect(s.mustGit(dir, "ls-remote", "origin", "refs/pull/1/head")).To(HavePrefix(head))
		hidden := s.git(dir, "push", "origin", "HEAD:refs/pull/1/head")
		NewWithT(t).Expect(hidden.out).To(ContainSubstring("deny updating a hidden ref"))
	})
}

func TestCommitsMadeHereAreSound(t *testing.T) {
	s := newSim(t)
	_, err := s.Repository(s.ctx, lab)
	s.Expect(err).NotTo(HaveOccurred())
	files := map[string]string{"a/b/c.txt": "1\n", "a/b.txt": "2\n", "a.b": "3\n", "a-b": "4\n", "a0": "5\n", "run.sh": "#!/bin/sh\n"}
	_, err = s.MakeCommit(s.ctx, githubsim.CommitRequest{Repository: lab, Branch: "main", Message: "first", Files: files, Executable: []string{"run.sh"}})
	s.Expect(err).NotTo(HaveOccurred())
	s.commit(lab, "main", map[string]string{"a/b/c.txt": "", "z/new.txt": "6\n"})
	dir := s.clone(lab, s.token())
	s.Expect(s.git(dir, "fsck", "--strict", "--full").failed).To(BeFalse())
	s.Expect(s.mustGit(dir, "ls-files", "--stage", "run.sh")).To(HavePrefix("100755 "))
	s.Expect(strings.Fields(s.mustGit(dir, "ls-files"))).To(Equal([]string{"a-b", "a.b", "a/b.txt", "a0", "run.sh", "z/new.txt"}))
	s.mustGit(dir, "checkout", "-q", "HEAD~1")
	s.mustGit(dir, "rm", "-q", "-r", "--cached", ".")
	s.mustGit(dir, "add", "-A")
	s.Expect(s.mustGit(dir, "write-tree")).To(Equal(s.mustGit(dir, "rev-parse", "HEAD^{tree}")), "the tree git makes of the same files")
	for _, path := range []string{"../x", "a//b", ".git/config"} {
		_, err := s.MakeCommit(s.ctx, githubsim.CommitRequest{Repository: lab, Branch: "odd", Orphan: true, Message: "m", Files: map[string]string{path: "x\n"}})
		s.Expect(err).To(HaveOccurred(), path)
	}
}

func TestFirstPushChoosesTheDefaultBranch(t *testing.T) {
	s := newSim(t)
	_, err := s.Repository(s.ctx, lab)
	s.Expect(err).NotTo(HaveOccurred())
	token := s.writer("ada")
	dir := s.clone(lab, token)
	s.mustGit(dir, "checkout", "-q", "-b", "trunk")
	s.write(dir, "a", "a\n")
	s.mustGit(dir, "push", "-q", "origin", "trunk")
	look, err := s.Look(s.ctx, lab)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(look.DefaultBranch).To(Equal("trunk"))
	s.Expect(s.mustGit(s.clone(lab, token), "branch", "--show-current")).To(Equal("trunk"))
}

func TestAtomicPushesMoveAllOrNothing(t *testing.T) {
	s := newSim(t)
	_, first := s.repository(lab)
	dir := s.clone(lab, s.writer("ada"))
	s.write(dir, "b.txt", "b\n")
	o := s.git(dir, "push", "--atomic", "origin", "HEAD:main", "HEAD:refs/pull/1/head")
	s.Expect(o.failed).To(BeTrue())
	s.Expect(o.out).To(ContainSubstring("main (atomic push failure)"))
	look, err := s.Look(s.ctx, lab)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(look.Refs["refs/heads/main"]).To(Equal(first))
	s.Expect(s.git(dir, "push", "origin", "HEAD:main", "HEAD:refs/pull/1/head").failed).To(BeTrue())
	look, err = s.Look(s.ctx, lab)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(look.Refs["refs/heads/main"]).NotTo(Equal(first), "without atomic the good one moves")
}

func TestGitIsRefusedInGitHubsWords(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	token := s.writer("ada")
	dir := s.clone(lab, token)
	s.write(dir, "b.txt", "b\n")
	push := func(token string) string { return s.git(dir, "push", s.GitURL(lab, token), "HEAD:main").out }

	t.Run("no access", func(t *testing.T) {
		outsider, err := s.User(s.ctx, "eve")
		s.Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(push(outsider)).To(ContainSubstring("remote: Repository not found."))
	})
	t.Run("a reader", func(t *testing.T) {
		reader, err := s.User(s.ctx, "rita")
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.Collaborator(s.ctx, lab, "rita", "pull")).To(Succeed())
		NewWithT(t).Expect(push(reader)).To(ContainSubstring("remote: Permission to acme/lab.git denied to rita."))
	})
	t.Run("an App without the permission", func(t *testing.T) {
		NewWithT(t).Expect(push(s.token(map[string]any{"permissions": map[string]string{"contents": "read"}}))).To(
			ContainSubstring("remote: Permission to acme/lab.git denied to demo[bot]."))
	})
	t.Run("a bad token", func(t *testing.T) {
		NewWithT(t).Expect(push("ghs_nonsense")).To(ContainSubstring("Invalid username or token. Password authentication is not supported for Git operations."))
	})
	t.Run("nobody", func(t *testing.T) {
		o := s.git(dir, "ls-remote", s.URL+"/"+lab+".git")
		NewWithT(t).Expect(o.failed).To(BeTrue())
		_, err := s.PublicRepository(s.ctx, "acme/open")
		s.Expect(err).NotTo(HaveOccurred())
		s.mustGit(dir, "ls-remote", s.URL+"/acme/open.git")
		NewWithT(t).Expect(s.git(dir, "push", s.URL+"/acme/open.git", "HEAD:main").failed).To(BeTrue())
	})
	t.Run("archived", func(t *testing.T) {
		s.Expect(s.Archive(s.ctx, lab, true)).To(Succeed())
		NewWithT(t).Expect(push(token)).To(ContainSubstring("remote: This repository was archived so it is read-only."))
		s.mustGit(dir, "fetch", "-q", "origin")
		s.Expect(s.Archive(s.ctx, lab, false)).To(Succeed())
	})
	t.Run("suspended", func(t *testing.T) {
		installed := s.token()
		s.Expect(s.Suspend(s.ctx, s.AppID, "acme", true)).To(Succeed())
		NewWithT(t).Expect(push(installed)).To(ContainSubstring("suspended"))
		s.Expect(s.Suspend(s.ctx, s.AppID, "acme", false)).To(Succeed())
	})
	t.Run("blocked", func(t *testing.T) {
		s.Expect(s.Block(s.ctx, lab, true)).To(Succeed())
		NewWithT(t).Expect(push(token)).To(ContainSubstring("DMCA"))
		s.Expect(s.Block(s.ctx, lab, false)).To(Succeed())
	})
	t.Run("by a fault, as hooks do", func(t *testing.T) {
		g := NewWithT(t)
		s.Expect(s.Fault(s.ctx, githubsim.Fault{Path: "git-receive-pack$", Times: 1, RejectRefs: "push declined due to repository rule violations",
			PushMessages: []string{"error: GH013: Repository rule violations found for refs/heads/main.", "", "- GITHUB PUSH PROTECTION"}})).To(Succeed())
		out := push(token)
		g.Expect(out).To(ContainSubstring("remote: - GITHUB PUSH PROTECTION"))
		g.Expect(out).To(ContainSubstring("[remote rejected] HEAD -> main (push declined due to repository rule violations)"))
		g.Expect(push(token)).NotTo(ContainSubstring("rejected"))
	})
}

func TestRenamedRepositoryIsStillReachedByGit(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	dir := s.clone(lab, s.writer("ada"))
	s.Expect(s.Rename(s.ctx, lab, "lab2")).To(Succeed())
	s.write(dir, "b.txt", "b\n")
	s.mustGit(dir, "push", "-q", "origin", "HEAD:main")
	s.mustGit(dir, "fetch", "-q", "origin")
	_, err := s.Repository(s.ctx, lab)
	s.Expect(err).NotTo(HaveOccurred())
	s.commit(lab, "main", map[string]string{"new.txt": "another repository\n"})
	s.Expect(s.git(dir, "push", "-q", "origin", "HEAD:main").out).To(ContainSubstring("rejected"), "the name leads to who has it now")
}

func TestFilesAboveTheLimitAreRefused(t *testing.T) {
	s := newSim(t, func(o *githubsim.Options) { o.MaxFileSize = 1 << 20 })
	s.repository(lab)
	dir := s.clone(lab, s.writer("ada"))
	s.write(dir, "fits.bin", strings.Repeat("x", 1<<20))
	s.mustGit(dir, "push", "-q", "origin", "HEAD:main")
	s.write(dir, "sub/huge.bin", strings.Repeat("x", 1<<20+1<<19))
	o := s.git(dir, "push", "origin", "HEAD:main")
	s.Expect(o.failed).To(BeTrue())
	s.Expect(o.out).To(ContainSubstring("error: GH001: Large files detected."))
	s.Expect(o.out).To(ContainSubstring("File sub/huge.bin is 1.50 MB; this exceeds GitHub's file size limit of 1.00 MB"))
	s.Expect(o.out).To(ContainSubstring("(pre-receive hook declined)"))
}

func TestAppsWithoutThePermissionCannotBringWorkflows(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	weak := s.token(map[string]any{"permissions": map[string]string{"contents": "write"}})
	dir := s.clone(lab, s.writer("ada"))
	s.write(dir, ".github/workflows/ci.yml", "on: push\n")
	o := s.git(dir, "push", s.GitURL(lab, weak), "HEAD:refs/heads/sync/main")
	s.Expect(o.failed).To(BeTrue())
	s.Expect(o.out).To(ContainSubstring("(refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission)"))
	s.mustGit(dir, "push", "-q", "origin", "HEAD:main")
	s.write(dir, "b.txt", "b\n")
	s.mustGit(dir, "push", "-q", s.GitURL(lab, weak), "HEAD:refs/heads/sync/main")
	s.write(dir, ".github/workflows/ci.yml", "on: pull_request\n")
	s.mustGit(dir, "push", "-q", s.GitURL(lab, s.token()), "HEAD:refs/heads/sync/main")
}

func TestPushesThatLackObjectsAreRefused(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	token := s.writer("ada")
	dir := s.clone(lab, token)
	s.write(dir, "b.txt", "b\n")

	t.Run("from a shallow clone", func(t *testing.T) {
		s.mustGit(dir, "push", "-q", "origin", "HEAD:main")
		shallow := filepath.Join(t.TempDir(), "shallow")
		s.mustGit(t.TempDir(), "clone", "-q", "--depth=1", s.GitURL(lab, token), shallow)
		_, err := s.Repository(s.ctx, "acme/empty")
		s.Expect(err).NotTo(HaveOccurred())
		o := s.git(shallow, "push", s.GitURL("acme/empty", token), "HEAD:main")
		NewWithT(t).Expect(o.failed).To(BeTrue())
		NewWithT(t).Expect(o.out).To(ContainSubstring("shallow update not allowed"))
	})
	t.Run("with a tree that is not there", func(t *testing.T) {
		head := s.mustGit(dir, "rev-parse", "HEAD")
		commit := s.mustGit(dir, "commit-tree", "-m", "hollow", "-p", head, s.mustGit(dir, "rev-parse", "HEAD^{tree}"))
		raw := s.git(dir, "cat-file", "commit", commit).out
		hollow := strings.Replace(raw, s.mustGit(dir, "rev-parse", "HEAD^{tree}"), strings.Repeat("5", 40), 1) + "\n"
		file := filepath.Join(t.TempDir(), "hollow")
		s.Expect(os.WriteFile(file, []byte(hollow), 0o600)).To(Succeed())
		sha := s.mustGit(dir, "hash-object", "-t", "commit", "-w", "--literally", file)
		a := s.sendPack(dir, token, "refs/heads/hollow", sha)
		NewWithT(t).Expect(string(a.raw)).To(ContainSubstring("ng refs/heads/hollow missing necessary objects"))
		look, err := s.Look(s.ctx, lab)
		s.Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(look.Refs).NotTo(HaveKey("refs/heads/hollow"))
		s.ok(404, token, "GET", "/repos/"+lab+"/git/commits/"+sha, nil)
	})
	t.Run("with a pack that is damaged", func(t *testing.T) {
		a := s.send(token, "refs/heads/x", strings.Repeat("6", 40), "PACK\x00\x00\x00\x02\x00\x00\x00\x01garbage")
		NewWithT(t).Expect(string(a.raw)).To(ContainSubstring("unpack index-pack failed"))
		NewWithT(t).Expect(string(a.raw)).To(ContainSubstring("ng refs/heads/x unpacker error"))
	})
	t.Run("with something that is no commit", func(t *testing.T) {
		blob := s.mustGit(dir, "rev-parse", "HEAD:b.txt")
		NewWithT(t).Expect(s.git(dir, "push", "origin", blob+":refs/heads/blob").failed).To(BeTrue())
	})
	t.Run("with commands that make no sense", func(t *testing.T) {
		a := s.call("", "POST", s.GitURL(lab, token)+"/git-receive-pack", "00zz")
		NewWithT(t).Expect(a.status).To(Equal(400))
		a = s.call("", "POST", s.GitURL(lab, token)+"/git-receive-pack", "0000")
		NewWithT(t).Expect(a.status).To(Equal(200), "git asks so whether its credentials are good")
		NewWithT(t).Expect(s.call("", "GET", s.GitURL(lab, token)+"/info/refs", nil).status).To(Equal(403))
	})
}

// sendPack pushes one object, and nothing that it needs.
func (s *sim) sendPack(dir, token, ref, sha string) answer {
	s.t.Helper()
	name := filepath.Join(s.t.TempDir(), "p")
	list := filepath.Join(s.t.TempDir(), "list")
	s.Expect(os.WriteFile(list, []byte(sha+"\n"), 0o600)).To(Succeed())
	out := s.mustGit(dir, "-c", "alias.pack=!git pack-objects -q "+name+" < "+list, "pack")
	pack, err := os.ReadFile(name + "-" + out + ".pack")
	s.Expect(err).NotTo(HaveOccurred())
	return s.send(token, ref, sha, string(pack))
}

// send pushes a pack as it is.
func (s *sim) send(token, ref, sha, pack string) answer {
	s.t.Helper()
	command := strings.Repeat("0", 40) + " " + sha + " " + ref + "\x00report-status"
	length := "00" + string("0123456789abcdef"[(len(command)+4)>>4]) + string("0123456789abcdef"[(len(command)+4)&15])
	return s.call("", "POST", s.GitURL(lab, token)+"/git-receive-pack", length+command+"0000"+pack, "Content-Type", "application/x-git-receive-pack-request")
}
