// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// clone makes a work tree with so many files and commits and returns it.
func clone(t *testing.T, files, commits int) string {
	t.Helper()
	dir := t.TempDir()
	g := NewWithT(t)
	git := func(args ...string) {
		t.Helper()
		_, err := runGit(t.Context(), dir, nil, args...)
		g.Expect(err).NotTo(HaveOccurred())
	}
	git("init", "--quiet")
	for i := range files {
		g.Expect(os.WriteFile(filepath.Join(dir, fmt.Sprint("file", i)), []byte("x\n"), 0o600)).To(Succeed())
	}
	git("add", "--all")
	for i := range commits {
		git("commit", "--quiet", "--allow-empty", "-m", fmt.Sprint("commit ", i))
	}
	return dir
}

func TestSourceIsMadeWhateverTheCloneIs(t *testing.T) {
	shallow := func(t *testing.T) string {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "shallow")
		_, err := runGit(t.Context(), "", nil, "clone", "--quiet", "--depth=1", "file://"+clone(t, enoughFiles, 3), dir)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return dir
	}
	for name, c := range map[string]struct {
		root func(*testing.T) string
		want string
	}{
		"a clone with many files":   {func(t *testing.T) string { t.Helper(); return clone(t, enoughFiles, 3) }, "this project's own history: commits 3, files 200, branches main and hints"},
		"a clone with many commits": {func(t *testing.T) string { t.Helper(); return clone(t, 1, enoughCommits) }, "this project's own history: commits 50, files 1, branches main and hints"},
		"a small clone":             {func(t *testing.T) string { t.Helper(); return clone(t, 3, 3) }, "a made-up project: commits 1, files 200, branches main and hints"},
		"a shallow clone":           {shallow, "this project's files (the clone is shallow): commits 1, files 200, branches main and hints"},
		"no clone":                  {func(t *testing.T) string { t.Helper(); return t.TempDir() }, "a made-up project: commits 1, files 200, branches main and hints"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			repository, what, err := newSource(t.Context(), c.root(t), t.TempDir())
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(what).To(Equal(c.want))

			remote, err := newGitRepository(t.Context(), filepath.Join(t.TempDir(), "remote.git"))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(repository.push(t.Context(), remote.dir, branches...)).To(Succeed())
			ahead, err := remote.git(t.Context(), "rev-list", "--count", "main..hints")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ahead).To(Equal("1"))
		})
	}
}
