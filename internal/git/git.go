// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package git is the only place that runs git: it brings distributions in step
// with their sources and pushes from a snapshot of them. Tokens reach git
// through the environment of that one process only (R-CORE-10).
package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Options of a Git.
type Options struct {
	// Dir holds the mirrors; it may be emptied while nothing runs.
	Dir string
	// Command is the git to run; default "git".
	Command string
	Clock   clock.Clock
	// AllowFile lets remotes be local paths: for tests.
	AllowFile bool
}

// Git runs git in mirrors of its own.
type Git struct {
	Options
	mu    sync.Mutex
	locks map[string]*sync.RWMutex
}

// New returns a Git, or an error when the command is missing or older than
// 2.39.
func New(ctx context.Context, o Options) (*Git, error) {
	if o.Command == "" {
		o.Command = "git"
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder for git mirrors: %w", err)
	}
	out, err := exec.CommandContext(ctx, o.Command, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("running %q: install git 2.39 or newer: %w", o.Command, err)
	}
	if !atLeast(string(out), 2, 39) {
		return nil, fmt.Errorf("%s is too old: install git 2.39 or newer", strings.TrimSpace(string(out)))
	}
	return &Git{Options: o, locks: map[string]*sync.RWMutex{}}, nil
}

// atLeast reads "git version 2.39.5 (...)".
func atLeast(version string, major, minor int) bool {
	fields := strings.Fields(version)
	if len(fields) < 3 {
		return false
	}
	parts := strings.SplitN(fields[2], ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, errA := strconv.Atoi(parts[0])
	b, errB := strconv.Atoi(parts[1])
	return errA == nil && errB == nil && (a > major || (a == major && b >= minor))
}

// mirror is a bare repository of one project, used under its lock: writers
// (fetch, commit) alone, pushes side by side.
type mirror struct {
	dir  string
	lock *sync.RWMutex
}

func (g *Git) mirror(key string) mirror {
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:8])
	g.mu.Lock()
	defer g.mu.Unlock()
	lock := g.locks[name]
	if lock == nil {
		lock = &sync.RWMutex{}
		g.locks[name] = lock
	}
	return mirror{dir: filepath.Join(g.Dir, name+".git"), lock: lock}
}

// prepare makes the mirror's bare repository, anew when it is damaged. What a
// killed process left behind (lock files, half a repository) is no obstacle.
func (g *Git) prepare(ctx context.Context, m mirror) error {
	if _, err := g.run(ctx, m.dir, nil, "rev-parse", "--git-dir"); err == nil {
		return g.dropLocks(m)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := os.RemoveAll(m.dir); err != nil {
		return fmt.Errorf("removing a damaged mirror: %w", err)
	}
	_, err := g.run(ctx, g.Dir, nil, "init", "--quiet", "--bare", "--template=", m.dir)
	return err
}

// dropLocks removes lock files of a process that was killed: nobody else works
// in the mirror while its lock is held.
func (g *Git) dropLocks(m mirror) error {
	return filepath.WalkDir(m.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "objects" {
			return filepath.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, ".lock") {
			return os.Remove(path)
		}
		return nil
	})
}

// remoteEnv returns the environment that carries the remote's token.
func (g *Git) remoteEnv(ctx context.Context, r domain.Remote) ([]string, error) {
	if r.Token == nil {
		return nil, nil
	}
	token, err := r.Token(ctx)
	if err != nil {
		return nil, err
	}
	return authEnv(r.URL, token)
}

// Heads returns the object ids of a remote's refs by full name; refs that do
// not exist are left out.
func (g *Git) Heads(ctx context.Context, r domain.Remote, refs ...string) (map[string]string, error) {
	env, err := g.remoteEnv(ctx, r)
	if err != nil {
		return nil, err
	}
	out, err := g.retry(ctx, func() (string, error) {
		return g.run(ctx, g.Dir, env, append([]string{"ls-remote", "--refs", "--", r.URL}, refs...)...)
	})
	if err != nil {
		return nil, classify(err, "read")
	}
	heads := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		if sha, ref, ok := strings.Cut(line, "\t"); ok {
			heads[ref] = sha
		}
	}
	return heads, nil
}

// fetch brings a remote's branches to refs below prefix in the mirror.
func (g *Git) fetch(ctx context.Context, m mirror, r domain.Remote, prefix string, branches []string) error {
	env, err := g.remoteEnv(ctx, r)
	if err != nil {
		return err
	}
	args := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--force", "--", r.URL}
	for _, b := range branches {
		args = append(args, "refs/heads/"+b+":"+prefix+b)
	}
	_, err = g.retry(ctx, func() (string, error) { return g.run(ctx, m.dir, env, args...) })
	return classify(err, "read")
}

// Snapshot is a distribution's branches as they were when it was taken: every
// repository of a pass receives the same heads (R-SYNC-01).
type Snapshot struct {
	git   *Git
	m     mirror
	heads domain.Heads
}

// Snapshot fetches the distribution's branches and keeps the mirror from being
// changed until it is closed.
func (g *Git) Snapshot(ctx context.Context, key string, distribution domain.Remote, branches []string) (*Snapshot, error) {
	m := g.mirror(key)
	m.lock.Lock()
	heads, err := g.fetchDistribution(ctx, m, distribution, branches)
	m.lock.Unlock()
	if err != nil {
		return nil, err
	}
	m.lock.RLock()
	return &Snapshot{git: g, m: m, heads: heads}, nil
}

func (g *Git) fetchDistribution(ctx context.Context, m mirror, distribution domain.Remote, branches []string) (domain.Heads, error) {
	if err := g.prepare(ctx, m); err != nil {
		return nil, err
	}
	if err := g.fetch(ctx, m, distribution, distPrefix, branches); err != nil {
		if fault.Is(err, fault.ReasonBranchMissing) {
			return nil, fault.Wrap(err, fault.Blocked, fault.ReasonDistributionMissing,
				"the distribution lacks a handed-out branch: ask for a sync, which makes it anew")
		}
		return nil, err
	}
	heads := domain.Heads{}
	for _, b := range branches {
		sha, err := g.resolve(ctx, m, distPrefix+b)
		if err != nil {
			return nil, err
		}
		heads[b] = sha
	}
	return heads, nil
}

// resolve returns the object id of a ref of the mirror.
func (g *Git) resolve(ctx context.Context, m mirror, ref string) (string, error) {
	out, err := g.run(ctx, m.dir, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", ref)
	return strings.TrimSpace(out), err
}

// Heads returns the distribution's heads by branch.
func (s *Snapshot) Heads() domain.Heads { return s.heads }

// Close lets the mirror be changed again.
func (s *Snapshot) Close() error {
	s.m.lock.RUnlock()
	return nil
}

// Push moves refs of a repository, all or none, each only from its expected
// old value. A refusal is a fault with a reason of its own; one that passes by
// itself is retried after 1, 2 and 4 seconds (R-CORE-13).
func (s *Snapshot) Push(ctx context.Context, to domain.Remote, updates []domain.RefUpdate) error {
	return s.git.push(ctx, s.m, to, updates)
}

func (g *Git) push(ctx context.Context, m mirror, to domain.Remote, updates []domain.RefUpdate) error {
	args := []string{"push", "--porcelain", "--no-verify", "--atomic"}
	for _, u := range updates {
		args = append(args, "--force-with-lease="+u.Ref+":"+u.Old)
	}
	args = append(args, "--", to.URL)
	for _, u := range updates {
		spec := u.New + ":" + u.Ref
		if u.Force {
			spec = "+" + spec
		}
		args = append(args, spec)
	}
	_, err := g.retry(ctx, func() (string, error) {
		env, err := g.remoteEnv(ctx, to)
		if err != nil {
			return "", err
		}
		return g.run(ctx, m.dir, env, args...)
	})
	if err == nil {
		return nil
	}
	err = classify(err, "write")
	if fault.Is(err, fault.ReasonStaleRef) && g.replayed(ctx, to, updates) {
		// The push was done before, by a run that could not record it.
		return nil
	}
	return err
}

// replayed reports whether every ref already is where the push wants it.
func (g *Git) replayed(ctx context.Context, to domain.Remote, updates []domain.RefUpdate) bool {
	refs := make([]string, 0, len(updates))
	for _, u := range updates {
		refs = append(refs, u.Ref)
	}
	heads, err := g.Heads(ctx, to, refs...)
	if err != nil {
		return false
	}
	for _, u := range updates {
		if heads[u.Ref] != u.New {
			return false
		}
	}
	return true
}

// asCommandError returns the git failure in err's chain.
func asCommandError(err error) (*commandError, bool) {
	var c *commandError
	ok := errors.As(err, &c)
	return c, ok
}
