// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Snapshot is a distribution's branches as they were when it was taken: every
// repository of a pass receives the same heads (R-SYNC-01). It is safe for
// concurrent use.
type Snapshot struct {
	git   *Git
	m     *mirror
	dir   string
	heads domain.Heads
	close sync.Once
}

// Snapshot fetches the distribution's branches into the mirror of that key
// and returns them, to be closed after use. Other work on the same key goes on
// meanwhile. A distribution that lacks one of the branches is a Blocked fault
// DistributionMissing.
func (g *Git) Snapshot(ctx context.Context, key string, distribution domain.Remote, branches []string) (*Snapshot, error) {
	if err := checkBranches(branches); err != nil {
		return nil, err
	}
	m := g.mirror(key)
	s := &Snapshot{git: g, m: m}
	err := m.with(ctx, func(dir string) error {
		heads, err := g.fetch(ctx, dir, distributionRefs, distribution, branches)
		if fault.Is(err, fault.ReasonBranchMissing) {
			return fault.Wrap(err, fault.Blocked, fault.ReasonDistributionMissing,
				"the distribution lacks a handed-out branch (%s): ask for a sync, which makes it anew", fault.Of(err).Message)
		}
		if err != nil {
			return prefixed(err, "distribution")
		}
		m.hold(dir)
		s.dir, s.heads = dir, heads
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Heads returns the distribution's heads by branch.
func (s *Snapshot) Heads() domain.Heads { return s.heads }

// Close lets the mirror be tidied again. Closing twice does no harm.
func (s *Snapshot) Close() error {
	s.close.Do(func() { s.m.letGo(s.dir) })
	return nil
}

// Push moves refs of a repository, all or none, each only from its expected
// old value. A ref that is where it should be already is a success, whoever
// moved it there. Without Force a ref moves forward only. A refusal is a fault
// with a reason of its own; one that passes by itself is retried after 1, 2
// and 4 seconds (R-CORE-13).
func (s *Snapshot) Push(ctx context.Context, to domain.Remote, updates []domain.RefUpdate) error {
	err := s.git.push(ctx, s.dir, to, updates)
	if failure := asGitError(err); failure != nil && mirrorDamage.MatchString(strings.Join(hear(failure).own, "\n")) {
		s.m.markBroken(s.dir)
	}
	return s.git.explain(err)
}

func (g *Git) push(ctx context.Context, dir string, to domain.Remote, updates []domain.RefUpdate) error {
	if len(updates) == 0 {
		return nil
	}
	if err := g.checkUpdates(ctx, dir, updates); err != nil {
		return err
	}
	_, err := g.remote(ctx, "push", to, func(url string) command {
		return command{gitDir: dir, args: pushArgs(url, updates), config: negotiation(updates)}
	})
	if fault.Is(err, fault.ReasonStaleRef) && g.replayed(ctx, to, updates) {
		// The push was done before, by a run that could not record it.
		return nil
	}
	return err
}

// pushArgs never contains a bare --force: each ref is held to its old value.
func pushArgs(url string, updates []domain.RefUpdate) []string {
	args := []string{"push", "--porcelain", "--no-verify", "--atomic", "--no-follow-tags", "--no-signed", "--recurse-submodules=no"}
	for _, u := range updates {
		args = append(args, "--force-with-lease="+u.Ref+":"+u.Old)
	}
	args = append(args, "--", url)
	for _, u := range updates {
		// No leading plus: it would override the lease. The lease itself lets
		// a ref be forced from the value that was read.
		args = append(args, u.New+":"+u.Ref)
	}
	return args
}

// negotiation has git ask what the repository holds before it packs, on a
// first push: the distribution's commits are in the repository then, but below
// commits that the mirror does not know. Later pushes build on an old value
// that it does know.
func negotiation(updates []domain.RefUpdate) []setting {
	for _, u := range updates {
		if u.Old != "" {
			return nil
		}
	}
	return []setting{{"push.negotiate", "true"}}
}

// checkUpdates refuses what a push must never do, before it is tried. With an
// expected old value git takes any move for a forced one, so that an unforced
// move is made sure to be forward here.
func (g *Git) checkUpdates(ctx context.Context, dir string, updates []domain.RefUpdate) error {
	for _, u := range updates {
		if why := refProblem(u.Ref); why != "" {
			return fault.New(fault.Terminal, fault.ReasonPushRejected, "%q is no name for a ref (%s)", u.Ref, why)
		}
		if !objectID.MatchString(u.New) || (u.Old != "" && !objectID.MatchString(u.Old)) || domain.ZeroSHA(u.New) {
			return fmt.Errorf("the push of %s from %q to %q names no object ids", u.Ref, u.Old, u.New)
		}
		if u.Force || u.Old == "" || u.Old == u.New {
			continue
		}
		forward, err := g.isAncestor(ctx, dir, u.Old, u.New)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || !forward {
			return fault.New(fault.Blocked, fault.ReasonPushRejected, "%s holds commits that the push would drop, so nothing was pushed: bring its branch in step with the distribution by hand", u.Ref)
		}
	}
	return nil
}

// isAncestor reports whether a commit is contained in another one.
func (g *Git) isAncestor(ctx context.Context, dir, old, now string) (bool, error) {
	_, err := g.run(ctx, command{gitDir: dir, args: []string{"merge-base", "--is-ancestor", old, now}})
	if failure := asGitError(err); failure != nil && failure.code == 1 {
		return false, nil
	}
	return err == nil, err
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

var objectID = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// checkBranches refuses branch names that git would not take, or take for
// something else than a branch.
func checkBranches(branches []string) error {
	if len(branches) == 0 {
		return errors.New("no branch is handed out")
	}
	seen := map[string]bool{}
	for _, b := range branches {
		if why := refProblem("refs/heads/" + b); why != "" {
			return fault.New(fault.Terminal, fault.ReasonSourceBranchMissing, "%q is no name for a branch (%s): correct spec.source.branches", b, why)
		}
		if seen[b] {
			return fault.New(fault.Terminal, fault.ReasonSourceBranchMissing, "branch %q is listed twice: correct spec.source.branches", b)
		}
		seen[b] = true
	}
	return nil
}

// refProblem says what keeps a full ref name from being one, by git's rules;
// empty when nothing does.
func refProblem(ref string) string {
	switch {
	case !strings.HasPrefix(ref, "refs/"):
		return "it does not begin with refs/"
	case strings.ContainsAny(ref, " ~^:?*[\\\x7f") || strings.ContainsFunc(ref, func(r rune) bool { return r < ' ' }):
		return "it holds a space, a control character or one of ~^:?*[\\"
	case strings.Contains(ref, "..") || strings.Contains(ref, "@{"):
		return "it holds .. or @{"
	case strings.HasSuffix(ref, "."):
		return "it ends with a dot"
	}
	for part := range strings.SplitSeq(ref, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return "a part of it is empty, begins with a dot or ends with .lock"
		}
	}
	return ""
}

// prefixed says which repository a fault is about.
func prefixed(err error, what string) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	return fault.Wrap(err, f.Class, f.Reason, "%s: %s", what, f.Message).At(f.RetryAt)
}
