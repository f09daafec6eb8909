// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

// zeroSHA stands for no object.
const zeroSHA = "0000000000000000000000000000000000000000"

func gitEnv(extra ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}, extra...)
}

// git runs git in a bare repository and returns what it printed.
func git(dir string, input []byte, env []string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = gitEnv(env...)
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

func initBare(dir string) error {
	if _, err := git("/", nil, nil, "init", "--quiet", "--bare", "--initial-branch=main", "--template=", dir); err != nil {
		return err
	}
	for _, c := range [][2]string{{"uploadpack.allowFilter", "true"}, {"uploadpack.allowAnySHA1InWant", "true"}, {"http.receivepack", "true"},
		{"receive.advertiseAtomic", "true"}, {"gc.auto", "0"}, {"receive.hideRefs", "refs/pull"}} {
		if _, err := git(dir, nil, nil, "config", c[0], c[1]); err != nil {
			return err
		}
	}
	return nil
}

// refs returns all refs of a repository by full name.
func refs(dir string) map[string]string {
	out, err := git(dir, nil, nil, "for-each-ref", "--format=%(refname) %(objectname)")
	m := map[string]string{}
	if err != nil {
		return m
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if name, sha, found := strings.Cut(line, " "); found {
			m[name] = sha
		}
	}
	return m
}

// resolve returns the commit that a branch name or object id stands for.
func resolve(dir, name string) (string, bool) {
	for _, candidate := range []string{"refs/heads/" + name, name} {
		out, err := git(dir, nil, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", candidate+"^{commit}")
		if err == nil {
			return strings.TrimSpace(out), true
		}
	}
	return "", false
}

func isAncestor(dir, a, b string) bool {
	_, err := git(dir, nil, nil, "merge-base", "--is-ancestor", a, b)
	return err == nil
}

type changedFile struct {
	name, previous, status string
	sha                    string
	additions, deletions   int
}

type comparison struct {
	base          string // merge base; empty: none
	status        string
	ahead, behind int
	commits       []string // oldest first
	files         []changedFile
}

// maxCompareFiles is how many files GitHub lists of one comparison.
const maxCompareFiles = 300

// compare compares two commits three-dot: files are those since the merge base.
func compare(dir, base, head string) comparison {
	out, err := git(dir, nil, nil, "merge-base", base, head)
	if err != nil {
		return comparison{}
	}
	c := comparison{base: strings.TrimSpace(out)}
	counts, err := git(dir, nil, nil, "rev-list", "--left-right", "--count", base+"..."+head)
	if err != nil {
		return comparison{}
	}
	if f := strings.Fields(counts); len(f) == 2 {
		c.behind, _ = strconv.Atoi(f[0]) // git prints numbers
		c.ahead, _ = strconv.Atoi(f[1])  // git prints numbers
	}
	switch {
	case c.ahead == 0 && c.behind == 0:
		c.status = "identical"
	case c.ahead == 0:
		c.status = "behind"
	case c.behind == 0:
		c.status = "ahead"
	default:
		c.status = "diverged"
	}
	if list, err := git(dir, nil, nil, "rev-list", "--reverse", base+".."+head); err == nil {
		c.commits = strings.Fields(list)
	}
	c.files = diff(dir, c.base, head)
	return c
}

// diff lists the files that differ between two commits, sorted by name.
func diff(dir, from, to string) []changedFile {
	raw, err := git(dir, nil, nil, "diff-tree", "-r", "-z", "-M", "--raw", "--no-abbrev", from, to)
	if err != nil {
		return nil
	}
	var files []changedFile
	parts := strings.Split(raw, "\x00")
	for i := 0; i+1 < len(parts); {
		meta := strings.Fields(strings.TrimPrefix(parts[i], ":"))
		if len(meta) < 5 {
			break
		}
		f := changedFile{sha: meta[3], status: map[byte]string{'A': "added", 'D': "removed", 'M': "modified", 'R': "renamed", 'C': "copied", 'T': "changed"}[meta[4][0]]}
		if f.status == "removed" {
			f.sha = meta[2]
		}
		if meta[4][0] == 'R' || meta[4][0] == 'C' {
			f.previous, f.name = parts[i+1], parts[i+2]
			i += 3
		} else {
			f.name = parts[i+1]
			i += 2
		}
		files = append(files, f)
	}
	lines := numstat(dir, from, to)
	for i := range files {
		files[i].additions, files[i].deletions = lines[files[i].name][0], lines[files[i].name][1]
	}
	sort.Slice(files, func(i, j int) bool { return files[i].name < files[j].name })
	return files
}

func numstat(dir, from, to string) map[string][2]int {
	lines := map[string][2]int{}
	out, err := git(dir, nil, nil, "diff-tree", "-r", "-z", "--no-renames", "--numstat", from, to)
	if err != nil {
		return lines
	}
	for _, line := range strings.Split(out, "\x00") {
		if f := strings.SplitN(line, "\t", 3); len(f) == 3 {
			added, _ := strconv.Atoi(f[0])   // "-" for a binary file counts 0
			removed, _ := strconv.Atoi(f[1]) // "-" for a binary file counts 0
			lines[f[2]] = [2]int{added, removed}
		}
	}
	return lines
}

type commitInfo struct {
	sha, tree, message                       string
	parents                                  []string
	author, authorEmail, authorDate          string
	committer, committerEmail, committerDate string
}

func readCommit(dir, sha string) commitInfo {
	out, err := git(dir, nil, []string{"TZ=UTC"}, "show", "-s", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%ad%x00%cn%x00%ce%x00%cd%x00%B", sha)
	f := strings.SplitN(out, "\x00", 10)
	if err != nil || len(f) < 10 {
		return commitInfo{sha: sha}
	}
	return commitInfo{sha: f[0], tree: f[1], parents: strings.Fields(f[2]), author: f[3], authorEmail: f[4], authorDate: f[5],
		committer: f[6], committerEmail: f[7], committerDate: f[8], message: strings.TrimSpace(f[9])}
}

// signatureEnv says who makes a commit, and when.
func (s *Server) signatureEnv(a *account) []string {
	email := fmt.Sprintf("%d+%s@users.noreply.github.com", a.id, a.login)
	date := fmt.Sprintf("%d +0000", s.now().Unix())
	return []string{"GIT_AUTHOR_NAME=" + a.login, "GIT_AUTHOR_EMAIL=" + email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + a.login, "GIT_COMMITTER_EMAIL=" + email, "GIT_COMMITTER_DATE=" + date}
}

// writeFiles makes a commit on top of parent (empty: none) with files put in
// place; an empty content removes a file.
func (s *Server) writeFiles(r *repo, parent string, a *account, files map[string]string, message string) (string, error) {
	tmp, err := os.MkdirTemp(s.options.Dir, "index-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(tmp, "index")}
	if parent != "" {
		if _, err := git(r.dir, nil, env, "read-tree", parent); err != nil {
			return "", err
		}
	}
	for path, content := range files {
		if content == "" {
			if _, err := git(r.dir, nil, env, "update-index", "--force-remove", "--", path); err != nil {
				return "", err
			}
			continue
		}
		blob, err := git(r.dir, []byte(content), nil, "hash-object", "-w", "--stdin")
		if err != nil {
			return "", err
		}
		if _, err := git(r.dir, nil, env, "update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(blob)+","+path); err != nil {
			return "", err
		}
	}
	tree, err := git(r.dir, nil, env, "write-tree")
	if err != nil {
		return "", err
	}
	var parents []string
	if parent != "" {
		parents = []string{parent}
	}
	return s.commitTree(r, strings.TrimSpace(tree), a, message, parents...)
}

func (s *Server) commitTree(r *repo, tree string, a *account, message string, parents ...string) (string, error) {
	args := []string{"commit-tree", tree, "-m", message}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	out, err := git(r.dir, nil, s.signatureEnv(a), args...)
	return strings.TrimSpace(out), err
}

// mergeTree returns the tree of merging b into a; an error when they conflict.
func mergeTree(dir, a, b string) (string, error) {
	out, err := git(dir, nil, nil, "merge-tree", "--write-tree", a, b)
	if err != nil {
		return "", fmt.Errorf("the branches conflict: %w", err)
	}
	return strings.TrimSpace(out), nil
}
