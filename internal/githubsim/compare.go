// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// changedFile is a file that differs between two commits.
type changedFile struct {
	name, previous, status string
	sha                    string
	additions, deletions   int
}

// comparison is what a three-dot comparison finds.
type comparison struct {
	base          string // merge base; empty: the histories are unrelated
	status        string // identical, ahead, behind or diverged
	ahead, behind int
	commits       []string // what the head has and the base lacks, oldest first
	files         []changedFile
}

// totals returns how many lines the comparison adds and takes away.
func (c *comparison) totals() (additions, deletions int) {
	for _, f := range c.files {
		additions += f.additions
		deletions += f.deletions
	}
	return additions, deletions
}

// exitCode returns what git ended with; 0 when it did not fail by itself.
func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// compare compares two commits three-dot: the files are those that changed
// between the merge base and the head.
func (st *store) compare(base, head string) (*comparison, error) {
	pair := [2]string{base, head}
	if known := st.comparisons[pair]; known != nil {
		return known, nil
	}
	c := &comparison{}
	var err error
	if base == head {
		c.base, c.status = base, "identical"
		return remember(st.comparisons, pair, c), nil
	}
	out, err := st.git("merge-base", base, head)
	if exitCode(err) == 1 {
		return remember(st.comparisons, pair, c), nil // there is none
	}
	if err != nil {
		return nil, err
	}
	c.base = strings.TrimSpace(out)
	if out, err = st.git("rev-list", "--left-right", "--reverse", base+"..."+head); err != nil {
		return nil, err
	}
	for line := range strings.Lines(out) {
		if sha, ours := strings.CutPrefix(strings.TrimSpace(line), ">"); ours {
			c.commits = append(c.commits, sha)
		} else {
			c.behind++
		}
	}
	c.ahead = len(c.commits)
	switch {
	case c.ahead == 0:
		c.status = "behind"
	case c.behind == 0:
		c.status = "ahead"
	default:
		c.status = "diverged"
	}
	if c.base != head {
		if c.files, err = st.diff(c.base, head); err != nil {
			return nil, err
		}
	}
	return remember(st.comparisons, pair, c), nil
}

// contains reports whether commit a is b or one of b's ancestors.
func (st *store) contains(b, a string) bool {
	if a == b {
		return true
	}
	pair := [2]string{a, b}
	if known, found := st.ancestors[pair]; found {
		return known
	}
	if _, short := st.line(a, b); short {
		return remember(st.ancestors, pair, true)
	}
	_, err := st.git("merge-base", "--is-ancestor", a, b)
	if err != nil && exitCode(err) != 1 {
		return false // one of them is not there
	}
	return remember(st.ancestors, pair, err == nil)
}

// maxLine is how far line looks.
const maxLine = 32

// line returns the commits from old (exclusive; empty: the beginning) to now,
// oldest first, when they are few, known already and without merges: what most
// pushes bring, found without a git process.
func (st *store) line(old, now string) (commits []string, found bool) {
	for sha := now; len(commits) < maxLine; {
		if sha == old {
			slices.Reverse(commits)
			return commits, true
		}
		c := st.commits[sha]
		if c == nil || len(c.parents) > 1 {
			return nil, false
		}
		commits = append(commits, sha)
		sha = strings.Join(c.parents, "")
	}
	return nil, false
}

// between returns the commits that now has and old (empty: nothing) lacks,
// oldest first, at most limit.
func (st *store) between(old, now string, limit int) ([]string, error) {
	if commits, found := st.line(old, now); found {
		return commits, nil
	}
	args := []string{"rev-list", "--reverse", fmt.Sprintf("--max-count=%d", limit), now}
	if old != "" {
		args = append(args, "^"+old)
	}
	out, err := st.git(args...)
	return strings.Fields(out), err
}

var fileStatus = map[byte]string{'A': "added", 'D': "removed", 'M': "modified", 'R': "renamed", 'C': "copied", 'T': "changed"}

// diff lists the files that differ between two trees, by name.
func (st *store) diff(from, to string) ([]changedFile, error) {
	out, err := st.git("diff-tree", "-r", "-z", "-M", "--raw", "--numstat", "--no-abbrev", from, to)
	if err != nil {
		return nil, err
	}
	return parseDiff(out)
}

// parseDiff reads what git diff-tree -z --raw --numstat prints: first a raw
// entry for each file, then its counts, in the same order.
func parseDiff(out string) ([]changedFile, error) {
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	var files []changedFile
	i := 0
	for i < len(fields) && strings.HasPrefix(fields[i], ":") {
		meta := strings.Fields(fields[i])
		if len(meta) != 5 || i+1 >= len(fields) {
			return nil, fmt.Errorf("git diff-tree: cannot read %q", fields[i])
		}
		f := changedFile{sha: meta[3], status: fileStatus[meta[4][0]], name: fields[i+1]}
		i += 2
		switch f.status {
		case "removed":
			f.sha = meta[2]
		case "renamed", "copied":
			if i >= len(fields) {
				return nil, fmt.Errorf("git diff-tree: %q has no new name", f.name)
			}
			f.previous, f.name = f.name, fields[i]
			i++
		}
		files = append(files, f)
	}
	for n := 0; n < len(files) && i < len(fields); n++ {
		counts := strings.SplitN(fields[i], "\t", 3)
		if len(counts) != 3 {
			return nil, fmt.Errorf("git diff-tree: cannot read %q", fields[i])
		}
		i++
		if counts[2] == "" { // renamed: both names follow
			i += 2
		}
		files[n].additions, files[n].deletions = lineCount(counts[0]), lineCount(counts[1])
	}
	slices.SortFunc(files, func(a, b changedFile) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// lineCount reads a count of lines; binary files have "-", which counts 0.
func lineCount(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}

// mergeResult is the outcome of merging two commits.
type mergeResult struct {
	tree  string
	clean bool
}

// mergeTrees merges head into base and returns the tree, or that they conflict
// or share no history.
func (st *store) mergeTrees(base, head string) mergeResult {
	pair := [2]string{base, head}
	if known, found := st.merges[pair]; found {
		return known
	}
	out, err := st.git("merge-tree", "--write-tree", "--no-messages", base, head)
	tree, _, _ := strings.Cut(out, "\n")
	return remember(st.merges, pair, mergeResult{tree: tree, clean: err == nil})
}
