// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"errors"
	"fmt"
	"strings"
)

// afterPush does what a change of refs does by itself: events are sent and
// pull requests follow their branches. The refs are where they were moved to.
func (s *Server) afterPush(r *repo, by *account, done []*refCommand) error {
	r.pushedAt = s.now()
	for _, c := range done {
		if err := s.emitPush(r, by, c); err != nil {
			return err
		}
	}
	for _, c := range done {
		branch, isBranch := strings.CutPrefix(c.ref, "refs/heads/")
		if !isBranch {
			continue
		}
		for _, p := range r.sortedPulls() {
			if err := s.followBranch(p, by, branch, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// followBranch changes the state of a pull request one of whose branches moved
// or went.
func (s *Server) followBranch(p *pull, by *account, branch string, c *refCommand) error {
	switch {
	case !p.open(), p.head != branch && p.base != branch:
		return nil
	case c.now == "" && p.base == branch:
		return s.closePull(p, by, c.old)
	case c.now == "":
		return s.closePull(p, by, s.baseTip(p))
	case p.head == branch:
		return s.followHead(p, by)
	}
	if !p.repo.store.contains(c.now, p.headSHA) {
		return nil
	}
	stats, err := p.sizesFrom(c.old)
	if err != nil {
		return err
	}
	s.markMerged(p, by, c.now, stats)
	return nil
}

// followHead moves an open pull request's head to where its branch is. Wholly
// contained in the base, it is merged when it got there by an ordinary push,
// and closed when it was forced there.
func (s *Server) followHead(p *pull, by *account) error {
	st, before := p.repo.store, p.headSHA
	now, _ := st.branch(p.head)
	if before == now {
		return nil
	}
	tip := s.baseTip(p)
	stats, err := p.sizesFrom(tip)
	if err != nil {
		return err
	}
	p.headSHA, p.updatedAt = now, s.now()
	if err := s.keepPullRef(p); err != nil {
		return err
	}
	switch {
	case !st.contains(tip, now):
		p.baseSHA = tip
		s.emitPull(p, by, "synchronize", map[string]any{"before": before, "after": now})
		return nil
	case !st.contains(now, before): // forced
		return s.closePull(p, by, tip)
	}
	s.markMerged(p, by, tip, stats)
	return nil
}

// closePull ends a pull request unmerged. Its sizes stay those against base.
func (s *Server) closePull(p *pull, by *account, base string) error {
	stats, err := p.sizesFrom(base)
	if err != nil {
		return err
	}
	now := s.now()
	p.stats, p.closedAt, p.updatedAt = stats, &now, now
	s.emitPull(p, by, "closed", nil)
	return nil
}

// markMerged ends a pull request as merged by a commit that the base has now.
func (s *Server) markMerged(p *pull, by *account, sha string, stats pullStats) {
	now := s.now()
	p.stats, p.closedAt, p.mergedAt, p.mergedBy, p.mergeSHA, p.updatedAt = stats, &now, &now, by, sha, now
	s.emitPull(p, by, "closed", nil)
}

// reopenPull reopens a closed pull request, or says why it cannot be.
func (s *Server) reopenPull(p *pull, by *account) (refused string) {
	st := p.repo.store
	sha, exists := st.branch(p.head)
	base, baseExists := st.branch(p.base)
	cannot := func(format string, args ...any) string {
		return "state cannot be changed. " + fmt.Sprintf(format, args...)
	}
	switch {
	case p.open():
		return ""
	case p.mergedAt != nil:
		return cannot("The pull request was merged.")
	case !exists:
		return cannot("The %s branch was deleted.", p.head)
	case !baseExists:
		return cannot("The %s branch was deleted.", p.base)
	case !st.contains(sha, p.headSHA):
		return cannot("The %s branch was force-pushed or recreated.", p.head)
	case st.contains(base, sha):
		return cannot("There are no new commits on the %s branch.", p.head)
	case p.repo.openPull(p.head, p.base) != nil:
		return cannot("A pull request already exists for %s:%s.", p.repo.owner.login, p.head)
	}
	p.closedAt, p.updatedAt, p.headSHA, p.stats = nil, s.now(), sha, pullStats{}
	if err := s.keepPullRef(p); err != nil {
		return err.Error()
	}
	s.emitPull(p, by, "reopened", nil)
	return ""
}

// mergeOrder says how to merge a pull request.
type mergeOrder struct {
	method         string // merge, squash or rebase
	who            actor
	by             *account
	title, message string // of the commit; empty: GitHub's own
}

var errConflict = errors.New("the branches conflict")

// mergePull merges a pull request as GitHub's button does, really making the
// commits, and returns the base's new head.
func (s *Server) mergePull(p *pull, o mergeOrder) (string, error) {
	if !p.open() {
		return "", fmt.Errorf("pull request %d is not open", p.number)
	}
	base := s.baseTip(p)
	stats, err := p.sizesFrom(base)
	if err != nil {
		return "", err
	}
	sha, err := s.makeMerge(p, base, o)
	if err != nil {
		return "", err
	}
	c := &refCommand{ref: "refs/heads/" + p.base, old: base, now: sha}
	for _, v := range s.violations(o.who, p.repo, c) {
		if v != pullRequestRule { // which merging one keeps
			return "", errors.New("repository rule violations found: " + v)
		}
	}
	p.baseSHA = base
	if err := p.repo.store.setRef(c.ref, sha); err != nil {
		return "", err
	}
	s.markMerged(p, o.by, sha, stats)
	if err := s.afterPush(p.repo, o.by, []*refCommand{c}); err != nil {
		return "", err
	}
	if head, exists := p.repo.store.branch(p.head); exists && p.repo.features["delete_branch_on_merge"] {
		return sha, s.applyPush(p.repo, o.by, &push{commands: []*refCommand{{ref: "refs/heads/" + p.head, old: head}}})
	}
	return sha, nil
}

// makeMerge makes the commits of a merge and returns the last.
func (s *Server) makeMerge(p *pull, base string, o mergeOrder) (string, error) {
	st := p.repo.store
	switch o.method {
	case "rebase":
		return s.rebase(p, base, o.by)
	case "merge", "squash", "":
	default:
		return "", fmt.Errorf("method %q is not known: use merge, squash or rebase", o.method)
	}
	merged := st.mergeTrees(base, p.headSHA)
	if !merged.clean {
		return "", errConflict
	}
	c := commitInfo{tree: merged.tree, parents: []string{base, p.headSHA}, author: s.sign(o.by), committer: s.signWeb(),
		message: cmpOr(o.title, fmt.Sprintf("Merge pull request #%d from %s/%s", p.number, p.repo.owner.login, p.head)) + "\n\n" + cmpOr(o.message, p.title)}
	if o.method == "squash" {
		c.parents, c.author = []string{base}, s.sign(p.author)
		title, message, err := s.squashMessage(p, base)
		if err != nil {
			return "", err
		}
		c.message = cmpOr(o.title, title) + "\n\n" + cmpOr(o.message, message)
	}
	return st.writeCommit(c)
}

// squashMessage returns GitHub's message of a squash: that of a single commit,
// else the pull request's title over a list of the commits'.
func (s *Server) squashMessage(p *pull, base string) (title, message string, err error) {
	cmp, err := p.repo.store.compare(base, p.headSHA)
	if err != nil {
		return "", "", err
	}
	number := fmt.Sprintf(" (#%d)", p.number)
	commits := p.repo.store.readCommits(cmp.commits...)
	if len(commits) == 1 {
		title, message, _ = strings.Cut(commits[0].message, "\n")
		return title + number, strings.TrimLeft(message, "\n"), nil
	}
	var lines []string
	for _, c := range commits {
		lines = append(lines, "* "+c.message)
	}
	return p.title + number, strings.Join(lines, "\n\n"), nil
}

// rebase makes each commit anew on top of the base. Merges are left out, as
// GitHub does.
func (s *Server) rebase(p *pull, base string, by *account) (string, error) {
	st := p.repo.store
	cmp, err := st.compare(base, p.headSHA)
	if err != nil {
		return "", err
	}
	onto := base
	for _, c := range st.readCommits(cmp.commits...) {
		if len(c.parents) != 1 {
			continue
		}
		tip, found := st.readCommit(onto)
		if !found {
			return "", fmt.Errorf("the commit %s cannot be read", onto)
		}
		// A merge whose base is the commit's parent: ours is the tip's tree as
		// if it had been made from that parent.
		ours, err := st.writeCommit(commitInfo{tree: tip.tree, parents: c.parents, author: c.author, committer: c.committer, message: "rebase"})
		if err != nil {
			return "", err
		}
		merged := st.mergeTrees(ours, c.sha)
		if !merged.clean {
			return "", errConflict
		}
		if onto, err = st.writeCommit(commitInfo{tree: merged.tree, parents: []string{onto}, author: c.author, committer: s.sign(by), message: c.message}); err != nil {
			return "", err
		}
	}
	return onto, nil
}

// sign returns the signature of an account, now.
func (s *Server) sign(a *account) signature {
	return signature{name: a.login, email: a.noReply(), at: s.now()}
}

// signWeb returns the signature of commits made on GitHub's pages.
func (s *Server) signWeb() signature {
	return signature{name: "GitHub", email: "noreply@github.com", at: s.now()}
}

// commitOrder asks for a commit on a branch.
type commitOrder struct {
	branch, from      string
	message           string
	author, committer *account
	files             map[string]string // an empty content removes the file
	executable        map[string]bool
	orphan            bool // a missing branch starts without a parent
}

// commitFiles makes a commit on a branch, as a push by its author. A missing
// branch starts from another one, else from the default branch, else empty.
func (s *Server) commitFiles(r *repo, o commitOrder) (string, error) {
	st := r.store
	old, exists := st.branch(o.branch)
	parent := old
	if !exists && !o.orphan {
		var err error
		if parent, err = startOf(r, o.from); err != nil {
			return "", err
		}
	}
	base := ""
	c := commitInfo{message: o.message, author: s.sign(o.author), committer: s.sign(o.committer)}
	if o.committer == s.webFlow {
		c.committer = s.signWeb()
	}
	if parent != "" {
		info, found := st.readCommit(parent)
		if !found {
			return "", fmt.Errorf("the commit %s cannot be read", parent)
		}
		base, c.parents = info.tree, []string{parent}
	}
	tree, err := st.writeFiles(base, o.files, o.executable)
	if err != nil {
		return "", err
	}
	c.tree = tree
	sha, err := st.writeCommit(c)
	if err != nil {
		return "", err
	}
	command := &refCommand{ref: "refs/heads/" + o.branch, old: old, now: sha}
	if command.refused = r.refuseName(command); command.refused != "" {
		return "", errors.New(command.refused)
	}
	return sha, s.applyPush(r, o.author, &push{commands: []*refCommand{command}})
}

// startOf returns the commit a new branch starts from; "" in an empty
// repository.
func startOf(r *repo, from string) (string, error) {
	if from == "" {
		return r.store.refs["refs/heads/"+r.defaultBranch], nil
	}
	sha, found := r.store.resolve(from)
	if !found {
		return "", fmt.Errorf("%s has no branch or commit %q to start from", r.fullName(), from)
	}
	return sha, nil
}
