// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package git is the only place that runs git. It brings distributions in step
// with their sources (Distribute) and pushes from a fixed state of them
// (Snapshot). Work is done in bare mirrors of its own, one per key, which are
// thrown away and made anew when they are damaged. Tokens reach git through
// the environment of one process each (R-CORE-10), and what a server refuses
// comes back as a fault that says what to do.
package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
)

// defaultTimeout ends a git process that makes no end by itself; a stalled
// connection is given up much earlier (see baseEnv).
const defaultTimeout = 30 * time.Minute

// Options of a Git.
type Options struct {
	// Dir holds the mirrors. It may be shared by several processes, and
	// emptied while none runs; nothing in it is lost for good.
	Dir string
	// Command is the git to run; default "git", looked up in PATH.
	Command string
	// Clock dates commits and times retries; default the machine's.
	Clock clock.Clock
	// Logger tells of retries and of mirrors made anew; default silent.
	Logger logr.Logger
	// Timeout ends any one git process, in real time; default 30 minutes.
	Timeout time.Duration
	// Transport asks where a repository moved; default http's own.
	Transport http.RoundTripper
	// AllowFile lets remotes be local paths: for tests.
	AllowFile bool
}

// Git runs git in mirrors of its own. It is safe for concurrent use.
type Git struct {
	Options
	dir  string   // this process's own part of Options.Dir
	lock *os.File // held as long as this process or a git it started lives

	mu      sync.Mutex
	mirrors map[string]*mirror
}

// New returns a Git, or an error that says what to install or change: the
// command is missing or older than 2.39, or Dir cannot be written.
func New(ctx context.Context, o Options) (*Git, error) {
	o.Command = cmp.Or(o.Command, "git")
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	command, err := exec.LookPath(o.Command)
	if err == nil {
		command, err = filepath.Abs(command)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for %q: install git 2.39 or newer: %w", o.Command, err)
	}
	o.Command = command
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("the folder for git mirrors: %w", err)
	}
	g := &Git{Options: o, mirrors: map[string]*mirror{}}
	if err := g.claimDir(); err != nil {
		return nil, err
	}
	version, err := g.run(ctx, invoke("version"))
	if err == nil && !atLeast(version, 2, 39) {
		err = fmt.Errorf("%s is too old: install git 2.39 or newer", strings.TrimSpace(version))
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// maxProcesses bounds how many processes share one Dir.
const maxProcesses = 64

// claimDir takes the first part of Dir that no living process uses. Every git
// inherits the lock, so a part whose operator was killed counts as used until
// its last git has ended: then its lock files are known to be stale.
func (g *Git) claimDir() error {
	if err := os.MkdirAll(g.Dir, 0o700); err != nil {
		return fmt.Errorf("making the folder for git mirrors: %w", err)
	}
	for n := range maxProcesses {
		dir := filepath.Join(g.Dir, strconv.Itoa(n))
		lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return fmt.Errorf("claiming a folder for git mirrors: %w", err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = lock.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				continue
			}
			return fmt.Errorf("locking %s.lock: %w", dir, err)
		}
		g.dir, g.lock = dir, lock
		if err := os.RemoveAll(g.scratch()); err != nil {
			return errors.Join(fmt.Errorf("emptying the scratch folder: %w", err), g.Close())
		}
		if err := os.MkdirAll(g.scratch(), 0o700); err != nil {
			return errors.Join(fmt.Errorf("making the scratch folder: %w", err), g.Close())
		}
		return nil
	}
	return fmt.Errorf("%d processes use %s already: give this one a folder of its own", maxProcesses, g.Dir)
}

// scratch is for what a process needs no longer than it lives.
func (g *Git) scratch() string { return filepath.Join(g.dir, "scratch") }

// Close gives the folder of mirrors back. The Git is of no use afterwards.
func (g *Git) Close() error { return g.lock.Close() }

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

// Heads returns the object ids of a remote's refs by full name
// (refs/heads/main), read without a mirror; refs that do not exist are left
// out. Without refs it returns all of them, tags not peeled.
func (g *Git) Heads(ctx context.Context, r domain.Remote, refs ...string) (map[string]string, error) {
	out, err := g.remote(ctx, "read the repository", r, func(url string) command {
		return invoke(append([]string{"ls-remote", "--quiet", "--refs", "--", url}, refs...)...)
	})
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for line := range strings.Lines(out) {
		if sha, ref, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			all[ref] = sha
		}
	}
	if len(refs) == 0 {
		return all, nil
	}
	// git takes a name for the end of a longer one, too.
	heads := map[string]string{}
	for _, ref := range refs {
		if sha, ok := all[ref]; ok {
			heads[ref] = sha
		}
	}
	return heads, nil
}
