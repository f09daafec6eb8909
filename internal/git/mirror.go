// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// mirror is the bare repository of one key. One caller at a time fetches,
// commits or tidies in it; pushes from snapshots go on beside, since they only
// read objects and name them by id. While a snapshot is open nothing is taken
// out of the mirror: it is not tidied, and when it has to be made anew, that
// happens in another folder.
type mirror struct {
	git  *Git
	name string
	work chan struct{} // holds one value while somebody works

	mu     sync.Mutex
	dir    string // of the current one; empty until it was looked for
	number int    // of the current one
	broken bool
	open   map[string]int // snapshots by folder
}

func (g *Git) mirror(key string) *mirror {
	name := short(key)
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.mirrors[name]
	if m == nil {
		m = &mirror{git: g, name: name, work: make(chan struct{}, 1), open: map[string]int{}}
		g.mirrors[name] = m
	}
	return m
}

// short makes a file or ref name of any text.
func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

// with runs f in the mirror's folder, alone. Whatever a killed process left
// behind is no obstacle, and a mirror that turns out to be damaged is made
// anew, once.
func (m *mirror) with(ctx context.Context, f func(dir string) error) error {
	select {
	case m.work <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-m.work }()
	for again := false; ; again = true {
		dir, err := m.ready(ctx)
		if err == nil {
			err = f(dir)
		}
		if err == nil || ctx.Err() != nil || again || !damaged(err) {
			return m.git.explain(err)
		}
		m.git.Logger.Info("Making a damaged git mirror anew", "mirror", m.name, "failure", err.Error())
		m.markBroken(dir)
	}
}

// damaged reports whether a failure may be the mirror's own: a local command
// failed, or one that nothing else explains.
func damaged(err error) bool {
	failure := asGitError(err)
	if failure == nil || failure.timedOut > 0 || noSpace.MatchString(failure.stderr) {
		return false
	}
	return fault.Of(err).Reason == fault.ReasonUnexpected
}

// explain turns what is left of local failures into faults.
func (g *Git) explain(err error) error {
	failure := asGitError(err)
	var f *fault.Error
	if failure == nil || errors.As(err, &f) {
		return err
	}
	return g.classify(failure, failure.verb)
}

// ready returns the folder of a sound mirror.
func (m *mirror) ready(ctx context.Context) (string, error) {
	if err := m.find(); err != nil {
		return "", err
	}
	if m.dir != "" && !m.isBroken() {
		_, err := m.git.run(ctx, command{gitDir: m.dir, args: []string{"rev-parse", "--git-dir"}})
		if err == nil {
			return m.dir, dropLocks(m.dir)
		}
		if ctx.Err() != nil {
			return "", err
		}
	}
	return m.renew(ctx)
}

// find looks for the mirror that an earlier process left, the first time.
func (m *mirror) find() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.number > 0 {
		return nil
	}
	entries, err := os.ReadDir(m.git.dir)
	if err != nil {
		return fmt.Errorf("looking for a git mirror: %w", err)
	}
	var numbers []int
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), m.name+".")
		if n, err := strconv.Atoi(strings.TrimSuffix(rest, ".git")); ours && err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	m.number = slices.Max(numbers)
	m.dir = m.path(m.number)
	for _, n := range numbers {
		if n != m.number {
			m.git.remove(m.path(n))
		}
	}
	return nil
}

func (m *mirror) path(number int) string {
	return filepath.Join(m.git.dir, m.name+"."+strconv.Itoa(number)+".git")
}

// renew puts an empty mirror in the place of whatever is there. It is made
// aside and moved, so that there never is half a one.
func (m *mirror) renew(ctx context.Context) (string, error) {
	aside, err := os.MkdirTemp(m.git.scratch(), "mirror-")
	if err != nil {
		return "", fmt.Errorf("making a git mirror: %w", err)
	}
	if _, err := m.git.run(ctx, command{gitDir: aside, args: []string{"init", "--quiet", "--bare", "--template="}}); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.dir
	m.number++
	m.dir, m.broken = m.path(m.number), false
	if old != "" && m.open[old] == 0 {
		m.git.remove(old)
	}
	if err := os.Rename(aside, m.dir); err != nil {
		return "", fmt.Errorf("moving a git mirror into place: %w", err)
	}
	return m.dir, nil
}

func (m *mirror) isBroken() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken
}

// markBroken has the mirror made anew before it is worked in again, unless
// that already happened.
func (m *mirror) markBroken(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = m.broken || dir == m.dir
}

// hold keeps a folder as it is until it is let go.
func (m *mirror) hold(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[dir]++
}

func (m *mirror) letGo(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[dir]--
	if m.open[dir] > 0 {
		return
	}
	delete(m.open, dir)
	if dir != m.dir {
		m.git.remove(dir)
	}
}

// tidy packs the mirror when it has become untidy, and drops what nothing
// refers to any longer. It must not fail the work it follows.
func (m *mirror) tidy(ctx context.Context, dir string) {
	m.mu.Lock()
	busy := m.open[dir] > 0
	m.mu.Unlock()
	if busy {
		return
	}
	if _, err := m.git.run(ctx, command{gitDir: dir, args: []string{"gc", "--auto", "--quiet"}}); err != nil && ctx.Err() == nil {
		m.git.Logger.Info("Could not tidy a git mirror", "mirror", m.name, "failure", err.Error())
	}
}

// remove deletes a folder nobody uses any longer. What is left of it is found
// and removed by the next process.
func (g *Git) remove(dir string) {
	if err := os.RemoveAll(dir); err != nil {
		g.Logger.Error(err, "Could not remove a git mirror", "dir", dir)
	}
}

// Forget deletes the mirror of a key, for a project that is gone. An open
// snapshot of it stays usable until it is closed.
func (g *Git) Forget(ctx context.Context, key string) error {
	m := g.mirror(key)
	select {
	case m.work <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-m.work }()
	if err := m.find(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.dir
	m.dir, m.broken = "", false
	if old == "" || m.open[old] > 0 {
		return nil
	}
	if err := os.RemoveAll(old); err != nil {
		return fmt.Errorf("removing a git mirror: %w", err)
	}
	return nil
}

// dropLocks removes the lock files of processes that were killed. Nobody works
// in the mirror meanwhile, and pushes from it take no lock.
func dropLocks(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("looking for stale lock files: %w", err)
		case d.IsDir() && filepath.Base(filepath.Dir(path)) == "objects" && len(d.Name()) == 2:
			return filepath.SkipDir
		case !d.IsDir() && (strings.HasSuffix(path, ".lock") || d.Name() == "gc.pid"):
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("removing a stale lock file: %w", err)
			}
		}
		return nil
	})
}

// Refs of a mirror: the source's and the distribution's branches apart. Their
// last part is made from the branch's name, so that no two branches can be in
// each other's way.
const (
	sourceRefs       = "refs/source/"
	distributionRefs = "refs/distribution/"
)

// fetch brings branches of a remote into the mirror and returns their heads as
// fetched: all of them or none.
func (g *Git) fetch(ctx context.Context, dir, below string, r domain.Remote, branches []string) (domain.Heads, error) {
	_, err := g.remote(ctx, "fetch", r, func(url string) command {
		args := []string{"fetch", "--quiet", "--atomic", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
			"--no-show-forced-updates", "--no-recurse-submodules", "--", url}
		for _, b := range branches {
			args = append(args, "+refs/heads/"+b+":"+below+short(b))
		}
		return command{gitDir: dir, args: args}
	})
	if err != nil {
		return nil, err
	}
	out, err := g.run(ctx, command{gitDir: dir, args: []string{"for-each-ref", "--format=%(refname) %(objectname)", below}})
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(out) {
		ref, sha, _ := strings.Cut(strings.TrimSpace(line), " ")
		found[ref] = sha
	}
	heads := domain.Heads{}
	for _, b := range branches {
		sha := found[below+short(b)]
		if sha == "" {
			return nil, &gitError{verb: "fetch", code: -1, cause: fmt.Errorf("branch %q is not in the mirror it was fetched to", b)}
		}
		heads[b] = sha
	}
	return heads, nil
}
