// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"path"
	"slices"
	"strings"

	"github.com/sluice-dev/sluice/internal/domain"
)

// The hand-out rules (R-DIST-08), without I/O. In order: the root's ignore
// file is read; the overlay is merged over the root, file by file, and its
// directory dropped; then the listed paths are removed from the result. Paths
// are bytes, compared as they are.

// entry is a file, symlink or submodule of a tree.
type entry struct{ mode, sha, path string }

// Modes of entries that are not files.
const (
	modeSymlink   = "120000"
	modeSubmodule = "160000"
)

func (e entry) isFile() bool { return e.mode != modeSymlink && e.mode != modeSubmodule }

// conventions returns the two paths in the form of a tree's own.
func conventions(h domain.HandOut) domain.HandOut {
	return domain.HandOut{OverlayDirectory: treePath(h.OverlayDirectory), IgnoreFile: treePath(h.IgnoreFile)}
}

// treePath returns a path as git writes it in a tree: from the root, without a
// slash at either end. What leads out of the tree, or nowhere, is empty.
func treePath(p string) string {
	p = path.Clean(strings.TrimLeft(p, "/"))
	if p == "." || p == ".." || strings.HasPrefix(p, "../") {
		return ""
	}
	return p
}

// parseIgnore returns the paths an ignore file lists: one a line, no globs.
// Empty lines and those that begin with # are comments.
func parseIgnore(text string) []string {
	var list []string
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if p := treePath(line); p != "" {
			list = append(list, p)
		}
	}
	return list
}

// mergeOverlay returns the entries with those below the overlay directory laid
// over the others. What the overlay brings wins: a file of it takes the place
// of a directory of that name, and a directory that of a file or symlink. A
// symlink, file or submodule at the directory's own path is no overlay.
func mergeOverlay(entries []entry, directory string) []entry {
	if directory == "" {
		return entries
	}
	files, above := map[string]bool{}, map[string]bool{}
	var merged, below []entry
	for _, e := range entries {
		if inner, ok := strings.CutPrefix(e.path, directory+"/"); ok {
			merged = append(merged, entry{e.mode, e.sha, inner})
			files[inner] = true
			for p := range parents(inner) {
				above[p] = true
			}
			continue
		}
		below = append(below, e)
	}
	if len(merged) == 0 {
		return entries
	}
	for _, e := range below {
		if !above[e.path] && !within(e.path, files) {
			merged = append(merged, e)
		}
	}
	return merged
}

// remove returns the entries without those that are listed or lie below a
// listed directory.
func remove(entries []entry, listed map[string]bool) []entry {
	if len(listed) == 0 {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return within(e.path, listed) })
}

// within reports whether a path, or a directory above it, is one of the set.
func within(p string, set map[string]bool) bool {
	if set[p] {
		return true
	}
	for up := range parents(p) {
		if set[up] {
			return true
		}
	}
	return false
}

// parents yields the directories above a path, from the inner one outwards.
func parents(p string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := strings.LastIndexByte(p, '/'); i > 0; i = strings.LastIndexByte(p[:i], '/') {
			if !yield(p[:i]) {
				return
			}
		}
	}
}

// maxLinks is how many symlinks one path may lead through.
const maxLinks = 40

// symlinks resolves paths through the symlinks of a tree.
type symlinks struct {
	at map[string]string // object id of the target by path
	// read returns a symlink's target.
	read func(sha string) (string, error)
}

func symlinksOf(entries []entry, read func(sha string) (string, error)) symlinks {
	s := symlinks{at: map[string]string{}, read: read}
	for _, e := range entries {
		if e.mode == modeSymlink {
			s.at[e.path] = e.sha
		}
	}
	return s
}

// resolve returns where a path really lies in the tree, or ok=false when it
// leaves the tree or leads nowhere. A symlink at its very end is followed only
// when last is true.
func (s symlinks) resolve(p string, last bool) (real string, ok bool, err error) {
	rest := strings.Split(p, "/")
	for followed := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if real == "" {
				return "", false, nil
			}
			real = strings.TrimPrefix(path.Dir("/"+real), "/")
			continue
		}
		next := path.Join(real, part)
		sha, isLink := s.at[next]
		if !isLink || (len(rest) == 0 && !last) {
			real = next
			continue
		}
		if followed++; followed > maxLinks {
			return "", false, nil
		}
		target, err := s.read(sha)
		if err != nil {
			return "", false, err
		}
		if strings.HasPrefix(target, "/") {
			return "", false, nil
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return real, real != "", nil
}

// removals returns the real places of the listed paths. One that is reached
// through a symlink is removed where it really lies; one that leaves the tree
// that way is not removed.
func (s symlinks) removals(list []string) (map[string]bool, error) {
	removed := map[string]bool{}
	for _, p := range list {
		real, ok, err := s.resolve(p, false)
		if err != nil {
			return nil, err
		}
		if ok {
			removed[real] = true
		}
	}
	return removed, nil
}
