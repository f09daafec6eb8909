// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// How much makes a repository worth handing out in the demo: one of the two.
const (
	enoughCommits = 50
	enoughFiles   = 200
)

// gitRepository is a bare repository in a scratch folder, and who works in it.
type gitRepository struct {
	dir string
	// env is added to git's environment.
	env []string
}

// newGitRepository makes an empty one.
func newGitRepository(ctx context.Context, dir string) (*gitRepository, error) {
	r := &gitRepository{dir: dir}
	_, err := runGit(ctx, "", nil, "init", "--quiet", "--bare", dir)
	return r, err
}

// git runs git in the repository and returns what it printed.
func (r *gitRepository) git(ctx context.Context, args ...string) (string, error) {
	return runGit(ctx, r.dir, r.env, args...)
}

// runGit runs git without anybody's configuration. The error names the verb
// only: addresses hold tokens here.
func runGit(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	// safe.directory: the clone may be somebody else's, as in containers.
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), env...), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_COMMITTER_NAME=ada", "GIT_COMMITTER_EMAIL=ada@example.com")
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

// newSource makes the source's branches main and hints out of this project's
// own commit HEAD, hints one commit ahead. A shallow clone has no history to
// push: its files become one commit. Outside of git, and when the project is
// small, files are made up. It returns a description for people.
func newSource(ctx context.Context, root, scratch string) (*gitRepository, string, error) {
	r, err := newGitRepository(ctx, filepath.Join(scratch, "source.git"))
	if err != nil {
		return nil, "", err
	}
	head, what, err := r.borrow(ctx, root)
	if err != nil {
		return nil, "", err
	}
	if head == "" {
		what = "a made-up project"
		if head, err = r.invent(ctx, filepath.Join(scratch, "invented")); err != nil {
			return nil, "", err
		}
	}
	hints, err := r.addFile(ctx, head, "HINTS.md", "# Hints\n\nRead the tests first.\n", "Add hints")
	if err != nil {
		return nil, "", err
	}
	for branch, sha := range map[string]string{"main": head, "hints": hints} {
		if _, err := r.git(ctx, "update-ref", "refs/heads/"+branch, sha); err != nil {
			return nil, "", err
		}
	}
	commits, err := r.git(ctx, "rev-list", "--count", "main")
	if err != nil {
		return nil, "", err
	}
	files, err := r.files(ctx, "main")
	return r, fmt.Sprintf("%s: commits %s, files %d, branches main and hints", what, commits, files), err
}

// borrow makes the objects of the project's clone visible here, without
// changing anything there, and returns the commit to hand out; none when the
// project is no clone or too small.
func (r *gitRepository) borrow(ctx context.Context, root string) (head, what string, err error) {
	head, err = runGit(ctx, root, nil, "rev-parse", "--verify", "--quiet", "HEAD")
	if err != nil {
		return "", "", nil //nolint:nilerr // not a clone, or one without a commit: something is made up
	}
	top, err := runGit(ctx, root, nil, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", "", nil //nolint:nilerr // as above
	}
	if real, err := filepath.EvalSymlinks(root); err != nil || real != top {
		return "", "", nil //nolint:nilerr // a folder within somebody else's clone
	}
	objects, err := runGit(ctx, root, nil, "rev-parse", "--git-path", "objects")
	if err != nil {
		return "", "", err
	}
	if !filepath.IsAbs(objects) {
		objects = filepath.Join(root, objects)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "objects", "info", "alternates"), []byte(objects+"\n"), 0o600); err != nil {
		return "", "", err
	}
	files, err := r.files(ctx, head)
	if err != nil {
		return "", "", err
	}
	shallow, err := runGit(ctx, root, nil, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return "", "", err
	}
	if shallow == "true" {
		if files < enoughFiles {
			return "", "", nil
		}
		head, err = r.git(ctx, "commit-tree", "-m", "State of this project", head+"^{tree}")
		return head, "this project's files (the clone is shallow)", err
	}
	count, err := r.git(ctx, "rev-list", "--count", head)
	if err != nil {
		return "", "", err
	}
	commits, err := strconv.Atoi(count)
	if err != nil {
		return "", "", err
	}
	if commits < enoughCommits && files < enoughFiles {
		return "", "", nil
	}
	return head, "this project's own history", nil
}

func (r *gitRepository) files(ctx context.Context, commit string) (int, error) {
	list, err := r.git(ctx, "ls-tree", "-r", "--name-only", commit)
	return strings.Count(list, "\n") + 1, err
}

// invent makes one commit of enough files and returns it.
func (r *gitRepository) invent(ctx context.Context, dir string) (string, error) {
	for i := range enoughFiles {
		folder := filepath.Join(dir, fmt.Sprintf("part%02d", i/20))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("file%03d.txt", i)), fmt.Appendf(nil, "File %d.\n", i), 0o600); err != nil {
			return "", err
		}
	}
	w := &gitRepository{dir: r.dir, env: []string{"GIT_DIR=" + r.dir, "GIT_WORK_TREE=" + dir}}
	if _, err := w.git(ctx, "add", "--all", dir); err != nil {
		return "", err
	}
	tree, err := w.git(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	return r.git(ctx, "commit-tree", "-m", "First state", tree)
}

// addFile makes a commit on top of another that adds a file.
func (r *gitRepository) addFile(ctx context.Context, parent, name, content, message string) (string, error) {
	path := filepath.Join(r.dir, "content")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return "", err
	}
	blob, err := r.git(ctx, "hash-object", "-w", path)
	if err != nil {
		return "", err
	}
	w := &gitRepository{dir: r.dir, env: []string{"GIT_INDEX_FILE=" + filepath.Join(r.dir, "index-of-"+filepath.Base(name))}}
	if _, err := w.git(ctx, "read-tree", parent); err != nil {
		return "", err
	}
	if _, err := w.git(ctx, "update-index", "--add", "--cacheinfo", "100644,"+blob+","+name); err != nil {
		return "", err
	}
	tree, err := w.git(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	return r.git(ctx, "commit-tree", "-p", parent, "-m", message, tree)
}

// push pushes branches to an address.
func (r *gitRepository) push(ctx context.Context, url string, branches ...string) error {
	_, err := r.git(ctx, append([]string{"push", "--quiet", url}, branches...)...)
	return err
}
