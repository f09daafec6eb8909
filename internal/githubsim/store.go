// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// zeroSHA stands for no object.
const zeroSHA = "0000000000000000000000000000000000000000"

// store is one bare repository on disk. The refs are kept in memory too, since
// nobody else writes the folder; objects are read and made by git.
//
// All methods are called with the server's lock held. Those that run git give
// it up meanwhile, so that one slow repository does not hold up the others;
// the repository's own lock keeps its state as it was.
type store struct {
	dir  string
	lock sync.Locker // the server's
	refs map[string]string
	// quarantine holds the objects of the push being received.
	quarantine *quarantine

	// What follows is remembered because it never changes: objects are
	// immutable. Each map is emptied when it grows too large.
	commits     map[string]*commitInfo
	comparisons map[[2]string]*comparison
	ancestors   map[[2]string]bool
	merges      map[[2]string]mergeResult
}

// maxRemembered bounds each of a store's maps.
const maxRemembered = 512

func remember[K comparable, V any](m map[K]V, k K, v V) V {
	if len(m) >= maxRemembered {
		clear(m)
	}
	m[k] = v
	return v
}

// repositoryConfig is what git is told about each repository: partial and
// by-id fetches work as on GitHub, and nothing is packed or removed behind the
// simulator's back.
const repositoryConfig = `[core]
	repositoryformatversion = 0
	filemode = true
	bare = true
[uploadpack]
	allowFilter = true
	allowAnySHA1InWant = true
[gc]
	auto = 0
[maintenance]
	auto = false
`

// newStore makes an empty bare repository.
func newStore(dir string, lock sync.Locker) (*store, error) {
	for _, folder := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return nil, fmt.Errorf("making a repository: %w", err)
		}
	}
	st := &store{dir: dir, lock: lock, refs: map[string]string{}, commits: map[string]*commitInfo{}, comparisons: map[[2]string]*comparison{},
		ancestors: map[[2]string]bool{}, merges: map[[2]string]mergeResult{}}
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(repositoryConfig), 0o644); err != nil {
		return nil, fmt.Errorf("making a repository: %w", err)
	}
	return st, st.setHead("main")
}

// setHead makes a branch the one that clones check out.
func (st *store) setHead(branch string) error {
	return st.writeFile("HEAD", "ref: refs/heads/"+branch+"\n")
}

// remove deletes the repository's folder.
func (st *store) remove() error { return os.RemoveAll(st.dir) }

// empty reports whether the repository has no branch and no tag.
func (st *store) empty() bool {
	for name := range st.refs {
		if !strings.HasPrefix(name, hiddenRefs) {
			return false
		}
	}
	return true
}

// hiddenRefs may be read but not written from outside.
const hiddenRefs = "refs/pull/"

func (st *store) branch(name string) (sha string, found bool) {
	sha, found = st.refs["refs/heads/"+name]
	return sha, found
}

// setRef moves, makes or (with an empty sha) deletes a ref.
func (st *store) setRef(name, sha string) error {
	if sha == "" {
		if err := os.Remove(st.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("deleting %s: %w", name, err)
		}
		st.prune(name)
		delete(st.refs, name)
		return nil
	}
	if err := st.writeFile(name, sha+"\n"); err != nil {
		return err
	}
	st.refs[name] = sha
	return nil
}

// prune removes the folders a deleted ref leaves empty, which would be in the
// way of a ref of that name.
func (st *store) prune(name string) {
	for folder := filepath.Dir(name); strings.Count(folder, "/") >= 2; folder = filepath.Dir(folder) {
		if os.Remove(st.path(folder)) != nil {
			return
		}
	}
}

// inTheWay returns a ref that keeps name from being made, because one of both
// would be a folder; "" when there is none.
func (st *store) inTheWay(name string) string {
	for existing := range st.refs {
		if strings.HasPrefix(existing, name+"/") || strings.HasPrefix(name, existing+"/") {
			return existing
		}
	}
	return ""
}

func (st *store) path(name string) string { return filepath.Join(st.dir, filepath.FromSlash(name)) }

// writeFile replaces a file at once: readers see the old text or the new one.
func (st *store) writeFile(name, text string) error {
	path := st.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	// git skips names that end so when it lists refs.
	temporary := path + ".lock"
	if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// gitEnv is the whole environment of a git process: nothing of the machine's
// or the user's configuration reaches the simulated GitHub.
func gitEnv(extra ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}, extra...)
}

// gitCommand is a git process in a bare repository.
type gitCommand struct {
	args  []string
	input []byte
	env   []string
}

// run runs git in the repository, without the server's lock, and returns what
// it printed.
func (st *store) run(c gitCommand) (string, error) {
	st.lock.Unlock()
	defer st.lock.Lock()
	cmd := exec.Command("git", c.args...)
	cmd.Dir = st.dir
	cmd.Env = gitEnv(c.env...)
	if q := st.quarantine; q != nil {
		cmd.Env = append(cmd.Env, q.env(st)...)
	}
	if c.input != nil {
		cmd.Stdin = bytes.NewReader(c.input)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("git %s: %w: %s", c.args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// git runs git with arguments only.
func (st *store) git(args ...string) (string, error) { return st.run(gitCommand{args: args}) }
