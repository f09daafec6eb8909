// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-dev/sluice/internal/domain"
)

// entry is one line of a tree listing: a file, link or submodule.
type entry struct{ mode, sha, path string }

// handOutTree returns the tree of a commit with the hand-out rules of
// R-DIST-08 applied. Modes, links and submodules stay as they are; path names
// are bytes. Without a convention in use it is the commit's own tree.
func (g *Git) handOutTree(ctx context.Context, m mirror, commit string, h domain.HandOut) (string, error) {
	tree, err := g.resolve(ctx, m, commit+"^{tree}")
	if err != nil || (h.OverlayDirectory == "" && h.IgnoreFile == "") {
		return tree, err
	}
	out, err := g.run(ctx, m.dir, nil, "ls-tree", "-r", "-z", "--full-tree", tree)
	if err != nil {
		return "", err
	}
	entries, err := parseTree(out)
	if err != nil {
		return "", err
	}
	ignored, err := g.ignoreList(ctx, m, entries, h.IgnoreFile)
	if err != nil {
		return "", err
	}
	handed := applyHandOut(entries, h, ignored)
	return g.writeTree(ctx, m, handed)
}

func parseTree(out string) ([]entry, error) {
	var entries []entry
	for _, line := range strings.Split(out, "\x00") {
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

// ignoreList reads the ignore file of the root: one path a line, comments
// with #. A file of that name shipped inside the overlay has no effect.
func (g *Git) ignoreList(ctx context.Context, m mirror, entries []entry, name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	for _, e := range entries {
		if e.path != name || e.mode == "120000" || e.mode == "160000" {
			continue
		}
		text, err := g.run(ctx, m.dir, nil, "cat-file", "blob", e.sha)
		if err != nil {
			return nil, err
		}
		list := []string{name}
		for _, line := range strings.Split(text, "\n") {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			list = append(list, strings.Trim(strings.TrimPrefix(line, "./"), "/"))
		}
		return list, nil
	}
	return nil, nil
}

// applyHandOut returns the entries handed out: without the ignored paths,
// and with the overlay's files in place of the root's of the same path. A file
// of the overlay where the root has a directory takes its place, and the other
// way round.
func applyHandOut(entries []entry, h domain.HandOut, ignored []string) []entry {
	byPath := map[string]entry{}
	var overlay []entry
	for _, e := range entries {
		inner, isOverlay := inside(e.path, h.OverlayDirectory)
		if isOverlay {
			overlay = append(overlay, entry{e.mode, e.sha, inner})
			continue
		}
		if !isIgnored(e.path, ignored) {
			byPath[e.path] = e
		}
	}
	for _, e := range overlay {
		if isIgnored(e.path, ignored) {
			continue
		}
		for dir := parent(e.path); dir != ""; dir = parent(dir) {
			delete(byPath, dir)
		}
		for path := range byPath {
			if strings.HasPrefix(path, e.path+"/") {
				delete(byPath, path)
			}
		}
		byPath[e.path] = e
	}
	list := make([]entry, 0, len(byPath))
	for _, e := range byPath {
		list = append(list, e)
	}
	return list
}

// inside returns the path below directory. A link or file of the directory's
// own name is no overlay.
func inside(path, directory string) (string, bool) {
	if directory == "" {
		return "", false
	}
	return strings.CutPrefix(path, directory+"/")
}

func parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return ""
	}
	return path[:i]
}

// isIgnored reports whether a path or a directory above it is on the list.
func isIgnored(path string, list []string) bool {
	for _, p := range list {
		if p != "" && (path == p || strings.HasPrefix(path, p+"/")) {
			return true
		}
	}
	return false
}

// writeTree writes entries as a tree, through an index of its own.
func (g *Git) writeTree(ctx context.Context, m mirror, entries []entry) (string, error) {
	dir, err := os.MkdirTemp(g.Dir, "index-")
	if err != nil {
		return "", fmt.Errorf("making a folder for an index: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	var input strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&input, "%s %s\t%s\x00", e.mode, e.sha, e.path)
	}
	if _, err := g.runInput(ctx, m.dir, env, []byte(input.String()), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	out, err := g.run(ctx, m.dir, env, "write-tree", "--missing-ok")
	return strings.TrimSpace(out), err
}
