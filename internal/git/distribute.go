// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Distribute brings a distribution in step with its source, for the build and
// for every update alike: a branch that the distribution lacks becomes one
// commit without a parent (R-DIST-07), one whose handed-out tree differs gets
// one commit on top (R-REQ-05), any other stays as it is. Under Whole the
// branches are pushed with their history (R-REQ-06). All branches move or
// none does, without force, each from the value that was read. Run again after
// a crash it finds the heads where they should be and changes nothing.
//
// Faults of its own: SourceBranchMissing (Blocked) names what the source
// lacks, SourceRewritten (Terminal) the branches that could move only by
// force, InvalidHandOut (Blocked) what is wrong with the ignore file, and
// DistributionDiverged (Retryable) says that somebody else pushed meanwhile.
func (g *Git) Distribute(ctx context.Context, r domain.DistributeRequest) (domain.DistributeResult, error) {
	none := domain.DistributeResult{}
	if err := checkRequest(r); err != nil {
		return none, err
	}
	m := g.mirror(r.Key)
	var result domain.DistributeResult
	err := m.with(ctx, func(dir string) error {
		d := distribution{Git: g, dir: dir, request: r}
		var err error
		if result, err = d.bring(ctx); err != nil {
			return err
		}
		m.tidy(ctx, dir)
		return nil
	})
	if err != nil {
		return none, err
	}
	return result, nil
}

func checkRequest(r domain.DistributeRequest) error {
	if r.Key == "" || r.Message == "" || r.Author.Name == "" || r.Author.Email == "" {
		return errors.New("a distribution needs a key, a message, and an author with a name and an address")
	}
	if r.History != domain.HistorySquash && r.History != domain.HistoryWhole {
		return fmt.Errorf("there is no history %q", r.History)
	}
	return checkBranches(r.Branches)
}

// distribution is one request at work in the mirror's folder.
type distribution struct {
	*Git
	dir     string
	request domain.DistributeRequest
}

func (d distribution) bring(ctx context.Context) (domain.DistributeResult, error) {
	none := domain.DistributeResult{}
	sources, err := d.fetchSource(ctx)
	if err != nil {
		return none, err
	}
	present, err := d.fetchPresent(ctx)
	if err != nil {
		return none, err
	}
	result := domain.DistributeResult{SourceHeads: sources, Heads: domain.Heads{}}
	var updates []domain.RefUpdate
	for _, branch := range d.request.Branches {
		head, err := d.wantedHead(ctx, sources[branch], present[branch])
		if err != nil {
			return none, prefixed(err, "branch "+branch)
		}
		result.Heads[branch] = head
		if head != present[branch] {
			result.Changed = append(result.Changed, branch)
			updates = append(updates, domain.RefUpdate{Ref: "refs/heads/" + branch, New: head, Old: present[branch]})
		}
	}
	if err := d.refuseRewritten(ctx, updates); err != nil {
		return none, err
	}
	err = d.push(ctx, d.dir, d.request.Distribution, updates)
	if fault.Is(err, fault.ReasonStaleRef) {
		return none, diverged(err)
	}
	if err != nil {
		return none, prefixed(err, "distribution")
	}
	d.remember(ctx, result)
	return result, nil
}

func diverged(err error) error {
	return fault.Wrap(err, fault.Retryable, fault.ReasonDistributionDiverged,
		"somebody else pushed to the distribution in the same moment, so nothing was changed; it is tried again")
}

// fetchSource fetches the handed-out branches and returns their heads; missing
// ones are named, all of them.
func (d distribution) fetchSource(ctx context.Context) (domain.Heads, error) {
	there, err := d.Heads(ctx, d.request.Source, headRefs(d.request.Branches)...)
	if err != nil {
		return nil, prefixed(err, "source")
	}
	var missing []string
	for _, b := range d.request.Branches {
		if there["refs/heads/"+b] == "" {
			missing = append(missing, b)
		}
	}
	if len(missing) > 0 {
		return nil, sourceLacks(nil, quoted(missing))
	}
	heads, err := d.fetch(ctx, d.dir, sourceRefs, d.request.Source, d.request.Branches)
	if fault.Is(err, fault.ReasonBranchMissing) {
		return nil, sourceLacks(err, "that was there a moment ago")
	}
	return heads, prefixed(err, "source")
}

func sourceLacks(cause error, branches string) error {
	return fault.Wrap(cause, fault.Blocked, fault.ReasonSourceBranchMissing,
		"the source has no branch %s: push it, or correct spec.source.branches", branches)
}

// fetchPresent fetches the branches the distribution has and returns their
// heads.
func (d distribution) fetchPresent(ctx context.Context) (domain.Heads, error) {
	there, err := d.Heads(ctx, d.request.Distribution, headRefs(d.request.Branches)...)
	if err != nil {
		return nil, prefixed(err, "distribution")
	}
	var branches []string
	for _, b := range d.request.Branches {
		if there["refs/heads/"+b] != "" {
			branches = append(branches, b)
		}
	}
	if len(branches) == 0 {
		return domain.Heads{}, nil
	}
	heads, err := d.fetch(ctx, d.dir, distributionRefs, d.request.Distribution, branches)
	if fault.Is(err, fault.ReasonBranchMissing) {
		return nil, diverged(err)
	}
	return heads, prefixed(err, "distribution")
}

// wantedHead returns the commit that a distribution's branch should be at;
// present is where it is, empty when the distribution lacks it.
func (d distribution) wantedHead(ctx context.Context, source, present string) (string, error) {
	if d.request.History == domain.HistoryWhole {
		return source, nil
	}
	tree, err := d.handOutTree(ctx, d.dir, source, d.request.HandOut)
	if err != nil {
		return "", err
	}
	args := []string{"commit-tree", tree, "-F", "-"}
	if present != "" {
		old, err := d.treeOf(ctx, d.dir, present)
		if err != nil {
			return "", err
		}
		if old == tree {
			return present, nil
		}
		args = append(args, "-p", present)
	}
	message := strings.TrimRight(d.request.Message, "\n") + "\n"
	out, err := d.run(ctx, command{gitDir: d.dir, args: args, env: d.authorship(), input: []byte(message)})
	return strings.TrimSpace(out), err
}

// authorship is the environment that says who makes a commit, and when.
func (d distribution) authorship() []string {
	who, date := d.request.Author, fmt.Sprintf("%d +0000", d.Clock.Now().Unix())
	return []string{
		"GIT_AUTHOR_NAME=" + who.Name, "GIT_AUTHOR_EMAIL=" + who.Email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + who.Name, "GIT_COMMITTER_EMAIL=" + who.Email, "GIT_COMMITTER_DATE=" + date,
	}
}

// refuseRewritten refuses, before anything moves, branches that the
// distribution could take only by force: the source was rewritten (R-REQ-06).
// A commit on top of what is there never is.
func (d distribution) refuseRewritten(ctx context.Context, updates []domain.RefUpdate) error {
	if d.request.History != domain.HistoryWhole {
		return nil
	}
	var rewritten []string
	for _, u := range updates {
		if u.Old == "" {
			continue
		}
		forward, err := d.isAncestor(ctx, d.dir, u.Old, u.New)
		if err != nil {
			return err
		}
		if !forward {
			rewritten = append(rewritten, strings.TrimPrefix(u.Ref, "refs/heads/"))
		}
	}
	if len(rewritten) == 0 {
		return nil
	}
	return fault.New(fault.Terminal, fault.ReasonSourceRewritten,
		"the source's history was rewritten on branch %s, so nothing was changed: push a state that contains what was handed out", quoted(rewritten))
}

// remember notes in the mirror where the distribution is now, so that the next
// fetch need not ask for what was made here. The next fetch does without it.
func (d distribution) remember(ctx context.Context, result domain.DistributeResult) {
	var input strings.Builder
	for _, branch := range result.Changed {
		fmt.Fprintf(&input, "update %s %s\n", distributionRefs+short(branch), result.Heads[branch])
	}
	if input.Len() == 0 {
		return
	}
	_, err := d.run(ctx, command{gitDir: d.dir, args: []string{"update-ref", "--stdin"}, input: []byte(input.String())})
	if err != nil && ctx.Err() == nil {
		d.Logger.Info("Could not note a distribution's heads in its git mirror", "failure", err.Error())
	}
}

func headRefs(branches []string) []string {
	refs := make([]string, 0, len(branches))
	for _, b := range branches {
		refs = append(refs, "refs/heads/"+b)
	}
	return refs
}

func quoted(names []string) string {
	list := make([]string, 0, len(names))
	for _, n := range names {
		list = append(list, fmt.Sprintf("%q", n))
	}
	return strings.Join(list, ", ")
}
