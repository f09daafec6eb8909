// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Refs of a mirror: the source's and the distribution's branches apart.
const (
	sourcePrefix = "refs/source/"
	distPrefix   = "refs/heads/"
)

// Distribute brings a distribution in step with its source, for the build and
// for every update alike: a branch that the distribution lacks becomes one
// commit without a parent (R-DIST-07), one whose handed-out tree differs gets
// one commit on top (R-REQ-05), any other stays as it is. Under Whole the
// branches are pushed with their history (R-REQ-06). All branches move or
// none does, without force, each from the value that was read. Run again after
// a crash it finds the heads where they should be and changes nothing.
func (g *Git) Distribute(ctx context.Context, r domain.DistributeRequest) (domain.DistributeResult, error) {
	m := g.mirror(r.Key)
	m.lock.Lock()
	defer m.lock.Unlock()
	none := domain.DistributeResult{}
	if err := g.prepare(ctx, m); err != nil {
		return none, err
	}
	sources, err := g.fetchSource(ctx, m, r)
	if err != nil {
		return none, err
	}
	present, err := g.fetchPresent(ctx, m, r)
	if err != nil {
		return none, err
	}
	result := domain.DistributeResult{SourceHeads: sources, Heads: domain.Heads{}}
	var updates []domain.RefUpdate
	for _, branch := range r.Branches {
		head, err := g.wantedHead(ctx, m, r, sources[branch], present[branch])
		if err != nil {
			return none, fmt.Errorf("branch %s: %w", branch, err)
		}
		result.Heads[branch] = head
		if head != present[branch] {
			result.Changed = append(result.Changed, branch)
			updates = append(updates, domain.RefUpdate{Ref: "refs/heads/" + branch, New: head, Old: present[branch]})
		}
	}
	if len(updates) == 0 {
		return result, nil
	}
	if r.History == domain.HistoryWhole {
		if err := g.refuseRewritten(ctx, m, updates); err != nil {
			return none, err
		}
	}
	if err := g.push(ctx, m, r.Distribution, updates); err != nil {
		if fault.Is(err, fault.ReasonStaleRef) {
			return none, fault.Wrap(err, fault.Retryable, fault.ReasonDistributionDiverged,
				"somebody else pushed to the distribution in the same moment; it is tried again")
		}
		return none, err
	}
	return result, nil
}

// fetchSource fetches the handed-out branches and returns their heads; missing
// ones are named.
func (g *Git) fetchSource(ctx context.Context, m mirror, r domain.DistributeRequest) (domain.Heads, error) {
	refs := make([]string, 0, len(r.Branches))
	for _, b := range r.Branches {
		refs = append(refs, "refs/heads/"+b)
	}
	there, err := g.Heads(ctx, r.Source, refs...)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, b := range r.Branches {
		if there["refs/heads/"+b] == "" {
			missing = append(missing, fmt.Sprintf("%q", b))
		}
	}
	if len(missing) > 0 {
		return nil, fault.New(fault.Blocked, fault.ReasonSourceBranchMissing,
			"the source has no branch %s: push it, or correct spec.source.branches", strings.Join(missing, ", "))
	}
	if err := g.fetch(ctx, m, r.Source, sourcePrefix, r.Branches); err != nil {
		return nil, err
	}
	heads := domain.Heads{}
	for _, b := range r.Branches {
		if heads[b], err = g.resolve(ctx, m, sourcePrefix+b); err != nil {
			return nil, err
		}
	}
	return heads, nil
}

// fetchPresent fetches the branches the distribution has and returns their
// heads.
func (g *Git) fetchPresent(ctx context.Context, m mirror, r domain.DistributeRequest) (domain.Heads, error) {
	there, err := g.Heads(ctx, r.Distribution, "refs/heads/*")
	if err != nil {
		return nil, err
	}
	present := domain.Heads{}
	var branches []string
	for _, b := range r.Branches {
		if sha := there["refs/heads/"+b]; sha != "" {
			present[b] = sha
			branches = append(branches, b)
		}
	}
	if len(branches) == 0 {
		return present, nil
	}
	return present, g.fetch(ctx, m, r.Distribution, distPrefix, branches)
}

// wantedHead returns the object id that a distribution's branch should be at.
func (g *Git) wantedHead(ctx context.Context, m mirror, r domain.DistributeRequest, source, present string) (string, error) {
	if r.History == domain.HistoryWhole {
		return source, nil
	}
	tree, err := g.handOutTree(ctx, m, source, r.HandOut)
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", tree, "-m", r.Message}
	if present != "" {
		old, err := g.resolve(ctx, m, present+"^{tree}")
		if err != nil {
			return "", err
		}
		if old == tree {
			return present, nil
		}
		args = append(args, "-p", present)
	}
	out, err := g.run(ctx, m.dir, g.commitEnv(r.Author), args...)
	return strings.TrimSpace(out), err
}

// refuseRewritten refuses, before anything moves, branches that the
// distribution could take only by force: the source was rewritten.
func (g *Git) refuseRewritten(ctx context.Context, m mirror, updates []domain.RefUpdate) error {
	var rewritten []string
	for _, u := range updates {
		if u.Old == "" {
			continue
		}
		if _, err := g.run(ctx, m.dir, nil, "merge-base", "--is-ancestor", u.Old, u.New); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			rewritten = append(rewritten, fmt.Sprintf("%q", strings.TrimPrefix(u.Ref, "refs/heads/")))
		}
	}
	if len(rewritten) == 0 {
		return nil
	}
	return fault.New(fault.Terminal, fault.ReasonSourceRewritten,
		"the source's history was rewritten on branch %s, and nothing was changed: push a state that contains what was handed out", strings.Join(rewritten, ", "))
}
