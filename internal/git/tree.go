// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// maxIgnoreFile bounds an ignore file, in bytes.
const maxIgnoreFile = 1 << 20

// handOutTree returns the tree of a commit with the hand-out rules applied
// (R-DIST-08). Contents, modes, symlinks and submodules stay as they are. When
// the rules change nothing it is the commit's own tree.
func (g *Git) handOutTree(ctx context.Context, dir, commit string, h domain.HandOut) (string, error) {
	tree, err := g.treeOf(ctx, dir, commit)
	h = conventions(h)
	if err != nil || h == (domain.HandOut{}) {
		return tree, err
	}
	entries, err := g.listTree(ctx, dir, tree)
	if err != nil {
		return "", err
	}
	handed, err := g.handOut(ctx, dir, entries, h)
	if err != nil || slices.Equal(handed, entries) {
		return tree, err
	}
	return g.writeTree(ctx, dir, handed)
}

func (g *Git) handOut(ctx context.Context, dir string, entries []entry, h domain.HandOut) ([]entry, error) {
	read := func(sha string) (string, error) {
		return g.run(ctx, command{gitDir: dir, args: []string{"cat-file", "blob", sha}})
	}
	list, err := g.ignoreList(ctx, dir, entries, h.IgnoreFile, read)
	if err != nil {
		return nil, err
	}
	handed := entries
	if h.IgnoreFile != "" {
		handed = slices.DeleteFunc(slices.Clone(handed), func(e entry) bool { return e.path == h.IgnoreFile && e.mode != modeSubmodule })
	}
	handed = mergeOverlay(handed, h.OverlayDirectory)
	removed, err := symlinksOf(handed, read).removals(list)
	if err != nil {
		return nil, err
	}
	if h.IgnoreFile != "" {
		// One that the overlay brought lists nothing, and is of no use to
		// those it would be handed to.
		handed = slices.DeleteFunc(slices.Clone(handed), func(e entry) bool { return e.path == h.IgnoreFile && e.isFile() })
	}
	handed = remove(handed, removed)
	slices.SortFunc(handed, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return handed, nil
}

// ignoreList returns what the root's ignore file lists; nothing without one.
// What is meant to keep files back must not fail unseen: one that is a symlink
// is followed inside the tree, and refused when it leads anywhere else.
func (g *Git) ignoreList(ctx context.Context, dir string, entries []entry, name string, read func(sha string) (string, error)) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	at := map[string]entry{}
	for _, e := range entries {
		at[e.path] = e
	}
	found, there := at[name]
	if !there {
		return nil, nil
	}
	if found.mode == modeSymlink {
		real, ok, err := symlinksOf(entries, read).resolve(name, true)
		if err != nil {
			return nil, err
		}
		if found = at[real]; !ok || found.path == "" {
			return nil, fault.New(fault.Blocked, fault.ReasonInvalidHandOut, "the ignore file %s is a symlink that leads to no file of the source: commit it as a file", name)
		}
	}
	if !found.isFile() {
		return nil, fault.New(fault.Blocked, fault.ReasonInvalidHandOut, "the ignore file %s is a submodule: commit it as a file", name)
	}
	out, err := g.run(ctx, command{gitDir: dir, args: []string{"cat-file", "-s", found.sha}})
	if err != nil {
		return nil, err
	}
	if size, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64); err != nil || size > maxIgnoreFile {
		return nil, fault.New(fault.Blocked, fault.ReasonInvalidHandOut, "the ignore file %s is larger than 1 MiB: list directories instead of their files", name)
	}
	text, err := read(found.sha)
	return parseIgnore(text), err
}

// treeOf returns the tree of a commit.
func (g *Git) treeOf(ctx context.Context, dir, commit string) (string, error) {
	out, err := g.run(ctx, command{gitDir: dir, args: []string{"rev-parse", "--verify", "--end-of-options", commit + "^{tree}"}})
	return strings.TrimSpace(out), err
}

// listTree returns all entries below a tree, by path.
func (g *Git) listTree(ctx context.Context, dir, tree string) ([]entry, error) {
	out, err := g.run(ctx, command{gitDir: dir, args: []string{"ls-tree", "-r", "-z", "--full-tree", tree}})
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(out)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	return entries, err
}

// parseTree reads "mode type sha TAB path NUL", any number of times.
func parseTree(out string) ([]entry, error) {
	var entries []entry
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if line == "" {
			continue
		}
		meta, path, ok := strings.Cut(line, "\t")
		fields := strings.Fields(meta)
		if !ok || len(fields) != 3 {
			return nil, fmt.Errorf("git printed an unreadable tree entry %q", line)
		}
		entries = append(entries, entry{mode: fields[0], sha: fields[2], path: path})
	}
	return entries, nil
}

// writeTree writes entries as a tree, through an index of its own.
func (g *Git) writeTree(ctx context.Context, dir string, entries []entry) (string, error) {
	aside, err := os.MkdirTemp(g.scratch(), "index-")
	if err != nil {
		return "", fmt.Errorf("making a folder for an index: %w", err)
	}
	defer func() { _ = os.RemoveAll(aside) }()
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(aside, "index")}
	var input strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&input, "%s %s\t%s\x00", e.mode, e.sha, e.path)
	}
	if _, err := g.run(ctx, command{gitDir: dir, env: index, args: []string{"update-index", "-z", "--index-info"}, input: []byte(input.String())}); err != nil {
		return "", err
	}
	out, err := g.run(ctx, command{gitDir: dir, env: index, args: []string{"write-tree"}})
	return strings.TrimSpace(out), err
}
