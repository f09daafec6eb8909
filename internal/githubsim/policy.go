// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// rulesetRefusal is GitHub's reason for a ref that a ruleset keeps.
const rulesetRefusal = "push declined due to repository rule violations"

// Reasons of other refusals.
const (
	atomicRefusal = "atomic push failure"
	hookRefusal   = "pre-receive hook declined"
)

// judgePush decides which commands of a push are refused, and why. The objects
// are there already, if only in quarantine. An error is the simulator's own.
func (s *Server) judgePush(who actor, r *repo, p *push) error {
	for _, c := range p.commands {
		if c.refused != "" {
			continue
		}
		if c.refused = r.refuseName(c); c.refused != "" {
			continue
		}
		if err := s.judgeContent(who, r, p, c); err != nil {
			return err
		}
	}
	if p.capabilities["atomic"] && p.anyRefused() {
		p.refuse(atomicRefusal)
	}
	return nil
}

// refuseName refuses what the names and values of refs forbid.
func (r *repo) refuseName(c *refCommand) string {
	current, exists := r.store.refs[c.ref]
	switch {
	case strings.HasPrefix(c.ref, hiddenRefs):
		return "deny updating a hidden ref"
	case !isLegalRef(c.ref):
		return "funny refname"
	case c.old == "" && exists:
		return "reference already exists"
	case c.old != "" && !exists:
		return fmt.Sprintf("cannot lock ref '%s': unable to resolve reference '%s'", c.ref, c.ref)
	case c.old != current:
		return fmt.Sprintf("cannot lock ref '%s': is at %s but expected %s", c.ref, current, c.old)
	case c.now == "" && c.ref == "refs/heads/"+r.defaultBranch:
		return "refusing to delete the current branch: " + c.ref
	}
	if other := r.store.inTheWay(c.ref); c.now != "" && other != "" {
		return fmt.Sprintf("cannot lock ref '%s': '%s' exists; cannot create '%s'", c.ref, other, c.ref)
	}
	return ""
}

// judgeContent refuses what rulesets and missing permissions forbid.
func (s *Server) judgeContent(who actor, r *repo, p *push, c *refCommand) error {
	if _, isCommit := r.store.readCommit(c.now); c.now != "" && !isCommit && strings.HasPrefix(c.ref, "refs/heads/") {
		c.refused = fmt.Sprintf("cannot update ref '%s': trying to write non-commit object %s to branch '%s'", c.ref, c.now, c.ref)
		return nil
	}
	if violations := s.violations(who, r, c); len(violations) > 0 {
		c.refused = rulesetRefusal
		p.violations = append(p.violations, violations...)
		p.messages = append(p.messages, "error: GH013: Repository rule violations found for "+c.ref+".",
			"Review all repository rules at "+s.api("/%s/rules?ref=%s", r.fullName(), url.QueryEscape(c.ref)), "")
		for _, v := range violations {
			p.messages = append(p.messages, "- "+v, "")
		}
		return nil
	}
	file, err := s.changedWorkflow(who, r, c)
	if file != "" {
		c.refused = fmt.Sprintf("refusing to allow a GitHub App to create or update workflow `%s` without `workflows` permission", file)
	}
	return err
}

const workflowFolder = ".github/workflows/"

// changedWorkflow returns a workflow file that an App without the permission
// would bring in: one whose content neither the default branch nor the branch
// itself has.
func (s *Server) changedWorkflow(who actor, r *repo, c *refCommand) (string, error) {
	if who.installation == nil || c.now == "" || levelRank[who.token.permissions["workflows"]] >= levelRank["write"] {
		return "", nil
	}
	files, err := r.store.workflows(c.now)
	if err != nil || len(files) == 0 {
		return "", err
	}
	known := map[string]bool{}
	for _, sha := range []string{c.old, r.store.refs["refs/heads/"+r.defaultBranch]} {
		if sha == "" {
			continue
		}
		had, err := r.store.workflows(sha)
		if err != nil {
			return "", err
		}
		for path, blob := range had {
			known[path+"\x00"+blob] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if !known[path+"\x00"+files[path]] {
			return path, nil
		}
	}
	return "", nil
}

// workflows returns the workflow files of a commit: blobs by path.
func (st *store) workflows(commit string) (map[string]string, error) {
	out, err := st.git("ls-tree", "-r", "-z", "--full-tree", commit, workflowFolder)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for line := range strings.SplitSeq(out, "\x00") {
		meta, path, found := strings.Cut(line, "\t")
		if f := strings.Fields(meta); found && len(f) == 3 {
			files[path] = f[2]
		}
	}
	return files, nil
}

// refuseLarge refuses a push with files above the limit, naming them.
func (s *Server) refuseLarge(r *repo, p *push, blobs []string) error {
	if len(blobs) == 0 {
		return nil
	}
	sizes, err := r.store.sizes(p.news(), blobs)
	if err != nil {
		return err
	}
	const megabyte = 1 << 20
	p.messages = append(p.messages, "error: Trace: "+random(), "error: See https://gh.io/lfs for more information.")
	for _, f := range sizes {
		p.messages = append(p.messages, fmt.Sprintf("error: File %s is %.2f MB; this exceeds GitHub's file size limit of %.2f MB",
			f.path, float64(f.size)/megabyte, float64(s.options.MaxFileSize)/megabyte))
	}
	p.messages = append(p.messages, "error: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.")
	p.refuse(hookRefusal)
	return nil
}

// sizes finds blobs in the trees of commits.
func (st *store) sizes(commits, blobs []string) ([]treeEntry, error) {
	var found []treeEntry
	for _, commit := range commits {
		entries, err := st.readTree(commit, true)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if slices.Contains(blobs, e.sha) {
				found = append(found, e)
			}
		}
	}
	return found, nil
}

// applyPush moves the refs of the commands that are not refused, and does all
// that follows from it.
func (s *Server) applyPush(r *repo, by *account, p *push) error {
	var done []*refCommand
	for _, c := range p.commands {
		if c.refused != "" {
			continue
		}
		if err := r.store.setRef(c.ref, c.now); err != nil {
			return err
		}
		done = append(done, c)
	}
	if len(done) == 0 {
		return nil
	}
	if err := s.chooseDefault(r, done); err != nil {
		return err
	}
	return s.afterPush(r, by, done)
}

// chooseDefault makes the first branch of a repository its default, when the
// one it was to have is not there.
func (s *Server) chooseDefault(r *repo, done []*refCommand) error {
	if _, exists := r.store.branch(r.defaultBranch); exists {
		return nil
	}
	for _, c := range done {
		if branch, isBranch := strings.CutPrefix(c.ref, "refs/heads/"); isBranch && c.now != "" && c.old == "" {
			r.defaultBranch = branch
			return r.store.setHead(branch)
		}
	}
	return nil
}
