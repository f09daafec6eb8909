// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	_ = os.Chmod(path, 0o644)
	g.Expect(os.WriteFile(path, []byte(content), 0o644)).To(Succeed())
}

// objects returns the files that hold a mirror's objects.
func objects(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	NewWithT(t).Expect(filepath.WalkDir(filepath.Join(dir, "objects"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	})).To(Succeed())
	return found
}

func TestDamagedMirrorsAreMadeAnew(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, dir string){
		"the folder is gone":        func(t *testing.T, dir string) { NewWithT(t).Expect(os.RemoveAll(dir)).To(Succeed()) },
		"a file in its place":       func(t *testing.T, dir string) { _ = os.RemoveAll(dir); write(t, dir, "x") },
		"half made: no objects":     func(t *testing.T, dir string) { NewWithT(t).Expect(os.RemoveAll(dir + "/objects")).To(Succeed()) },
		"half made: no HEAD":        func(t *testing.T, dir string) { NewWithT(t).Expect(os.Remove(dir + "/HEAD")).To(Succeed()) },
		"a configuration of zeros":  func(t *testing.T, dir string) { write(t, dir+"/config", "\x00\x00\x00\x00") },
		"a configuration of others": func(t *testing.T, dir string) { write(t, dir+"/config", "[core]\n\trepositoryformatversion = 99\n") },
		"empty refs": func(t *testing.T, dir string) {
			write(t, dir+"/"+sourceRefs+short("main"), "")
			write(t, dir+"/"+distributionRefs+short("main"), "")
		},
		"a folder in a ref's place": func(t *testing.T, dir string) {
			_ = os.Remove(dir + "/" + sourceRefs + short("main"))
			write(t, dir+"/"+sourceRefs+short("main")+"/x", strings.Repeat("1", 40)+"\n")
		},
		"packed refs of rubbish": func(t *testing.T, dir string) { write(t, dir+"/packed-refs", "rubbish\n") },
		"objects emptied": func(t *testing.T, dir string) {
			for _, path := range objects(t, dir) {
				write(t, path, "")
			}
		},
		"objects of rubbish": func(t *testing.T, dir string) {
			for _, path := range objects(t, dir) {
				write(t, path, "rubbish")
			}
		},
		"objects lost": func(t *testing.T, dir string) {
			for _, path := range objects(t, dir) {
				_ = os.Remove(path)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			git := newGit(t, nil)
			source, dist := newRepo(t), newRepo(t)
			source.commit("main", tree{"a": "1", ".handoutignore": "b\n", "b": "1"})
			req := request(source.remote(), dist.remote(), "main")
			_, err := git.Distribute(t.Context(), req)
			g.Expect(err).NotTo(HaveOccurred())
			damage(t, git.mirror("project").dir)

			source.commit("main", tree{"a": "2", ".handoutignore": "b\n", "b": "1"})
			result, err := git.Distribute(t.Context(), req)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(result.Changed).To(Equal([]string{"main"}))
			g.Expect(dist.files("main")).To(Equal(map[string]string{"a": "100644 2"}))

			damage(t, git.mirror("project").dir)
			s, err := git.Snapshot(t.Context(), "project", dist.remote(), []string{"main"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.Heads()["main"]).To(Equal(dist.head("main")))
			g.Expect(s.Close()).To(Succeed())
			left, err := filepath.Glob(filepath.Join(git.dir, "*.git"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(left).To(HaveLen(1), "what was damaged is thrown away")
		})
	}
}

func TestPushFromADamagedMirrorHasItMadeAnew(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	_, dist := distributed(t, git)
	s := snapshot(t, git, dist)
	for _, path := range objects(t, s.dir) {
		write(t, path, "")
	}
	down := newRepo(t)
	update := []domain.RefUpdate{{Ref: "refs/heads/sync/main", New: s.Heads()["main"], Force: true}}
	err := s.Push(t.Context(), down.remote(), update)
	g.Expect(fault.Of(err).Class).To(Equal(fault.Retryable))
	g.Expect(err).To(MatchError(ContainSubstring("made anew")))
	g.Expect(git.Clock.(*promptClock).waited()).To(BeEmpty())

	next := snapshot(t, git, dist)
	g.Expect(next.Push(t.Context(), down.remote(), update)).To(Succeed())
	g.Expect(down.head("sync/main")).To(Equal(dist.head("main")))
}

func TestStaleLocksAreNoObstacle(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	source, dist := distributed(t, git)
	dir := git.mirror("project").dir
	locks := []string{"HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock", sourceRefs + short("main") + ".lock", distributionRefs + short("main") + ".lock", "objects/info/commit-graphs/x.lock", "gc.pid"}
	for _, name := range locks {
		write(t, filepath.Join(dir, name), "")
	}
	source.commit("main", tree{"a": "2"})
	result, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "main"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.Changed).To(Equal([]string{"main"}))
	g.Expect(git.mirror("project").dir).To(Equal(dir), "the mirror is kept")
	for _, name := range locks {
		g.Expect(filepath.Join(dir, name)).NotTo(BeAnExistingFile())
	}
}

func TestMirrorsSurviveARestart(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	_, dist := distributed(t, git)
	dir := git.mirror("project").dir
	write(t, filepath.Join(git.scratch(), "left-over"), "x")
	older := strings.Replace(dir, ".1.git", ".0.git", 1)
	newest := strings.Replace(dir, ".1.git", ".7.git", 1)
	g.Expect(os.Rename(dir, newest)).To(Succeed())
	write(t, filepath.Join(dir, "x"), "an older one")
	write(t, filepath.Join(older, "x"), "not one of ours")
	g.Expect(git.Close()).To(Succeed())

	next := newGit(t, func(o *Options) { o.Dir = git.Dir })
	s := snapshot(t, next, dist)
	g.Expect(s.dir).To(Equal(newest))
	g.Expect(dir).NotTo(BeADirectory())
	g.Expect(filepath.Join(next.scratch(), "left-over")).NotTo(BeAnExistingFile())
}

func TestProcessesShareAFolderWithoutMeeting(t *testing.T) {
	g := NewWithT(t)
	first := newGit(t, nil)
	second := newGit(t, func(o *Options) { o.Dir = first.Dir })
	g.Expect(second.dir).NotTo(Equal(first.dir))

	// A git that its killed operator left behind keeps the folder claimed.
	orphan := exec.Command("sleep", "60")
	orphan.ExtraFiles = []*os.File{first.lock}
	g.Expect(orphan.Start()).To(Succeed())
	g.Expect(first.Close()).To(Succeed())
	third := newGit(t, func(o *Options) { o.Dir = first.Dir })
	g.Expect(third.dir).NotTo(BeElementOf(first.dir, second.dir))
	g.Expect(orphan.Process.Kill()).To(Succeed())
	_ = orphan.Wait()
	fourth := newGit(t, func(o *Options) { o.Dir = first.Dir })
	g.Expect(fourth.dir).To(Equal(first.dir))
}

func TestMirrorsAreTidied(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	source, dist := distributed(t, git)
	m := git.mirror("project")
	// One object more than gc's measure in the folder that it samples.
	for i := range 30 {
		write(t, filepath.Join(m.dir, "objects", "17", strings.Repeat("0", 36)+string(rune('a'+i/16))+string("0123456789abcdef"[i%16])), "")
	}
	s := snapshot(t, git, dist)
	m.tidy(t.Context(), m.dir)
	packs := func() []string {
		found, err := filepath.Glob(filepath.Join(m.dir, "objects", "pack", "*.pack"))
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	g.Expect(packs()).To(BeEmpty(), "not while a snapshot is open")
	g.Expect(s.Close()).To(Succeed())
	source.commit("main", tree{"a": "2"})
	_, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "main"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(packs()).NotTo(BeEmpty())
	g.Expect(git.mirror("project").dir).To(Equal(m.dir))
}

// A cancelled context ends git with everything it started.
func TestCancelKillsTheProcessGroup(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	command := filepath.Join(dir, "git")
	write(t, command, `#!/bin/sh
case $1 in version) echo git version 2.39.5; exit;; esac
sleep 300 &
echo $$ $! >`+pids+`
wait
`)
	g.Expect(os.Chmod(command, 0o755)).To(Succeed())
	git := newGit(t, func(o *Options) { o.Command = command })
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := git.Heads(ctx, domain.Remote{URL: "/nowhere"})
		failed <- err
	}()
	var running []string
	g.Eventually(func() []string {
		text, _ := os.ReadFile(pids)
		running = strings.Fields(string(text))
		return running
	}).WithTimeout(20 * time.Second).Should(HaveLen(2))
	cancel()
	g.Expect(<-failed).To(MatchError(context.Canceled))
	for _, pid := range running {
		g.Eventually(func() bool { return gone(pid) }).WithTimeout(20*time.Second).Should(BeTrue(), pid)
	}
}

// gone reports whether a process has ended, waited for or not.
func gone(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestAProcessThatMakesNoEnd(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	command := filepath.Join(dir, "git")
	write(t, command, "#!/bin/sh\ncase $1 in version) echo git version 2.39.5; exit;; esac\nsleep 300\n")
	g.Expect(os.Chmod(command, 0o755)).To(Succeed())
	git := newGit(t, func(o *Options) { o.Command, o.Timeout = command, 2*time.Second })
	_, err := git.Heads(t.Context(), domain.Remote{URL: "/nowhere"})
	g.Expect(fault.Is(err, fault.ReasonGitHubUnreachable)).To(BeTrue(), "%v", err)
	g.Expect(err).To(MatchError(ContainSubstring("within 2s")))
	g.Expect(git.Clock.(*promptClock).waited()).To(BeEmpty(), "not tried again at once")
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	g := NewWithT(t)
	_, err := New(t.Context(), Options{Dir: t.TempDir(), Command: "no-such-git"})
	g.Expect(err).To(MatchError(ContainSubstring("install git 2.39 or newer")))

	old := filepath.Join(t.TempDir(), "git")
	write(t, old, "#!/bin/sh\necho git version 2.30.2\n")
	g.Expect(os.Chmod(old, 0o755)).To(Succeed())
	_, err = New(t.Context(), Options{Dir: t.TempDir(), Command: old})
	g.Expect(err).To(MatchError(ContainSubstring("git version 2.30.2 is too old")))

	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	_, err = New(t.Context(), Options{Dir: file})
	g.Expect(err).To(MatchError(And(ContainSubstring("folder for git mirrors"), ContainSubstring(syscall.ENOTDIR.Error()))))
}

func TestAtLeast(t *testing.T) {
	for version, want := range map[string]bool{"git version 2.39.5": true, "git version 2.39.3 (Apple Git-146)": true, "git version 3.0.0": true, "git version 2.47.0.rc1": true,
		"git version 2.38.9": false, "git version 1.99.0": false, "git version x": false, "git version 2": false, "": false} {
		NewWithT(t).Expect(atLeast(version, 2, 39)).To(Equal(want), version)
	}
}

func TestBoundedBuffer(t *testing.T) {
	g := NewWithT(t)
	messages := &boundedBuffer{limit: 4}
	n, err := messages.Write([]byte("abcdef"))
	g.Expect(n, err).To(Equal(6))
	g.Expect(messages.String()).To(Equal("abcd"))
	output := &boundedBuffer{limit: 4, strict: true}
	_, err = output.Write([]byte("abcd"))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = output.Write([]byte("e"))
	g.Expect(err).To(MatchError(errTooMuch))
}
