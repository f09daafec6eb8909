// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import "strings"

// ZeroSHA reports whether an object id is the all-zero one that stands for "no
// object" in a push.
func ZeroSHA(sha string) bool { return strings.Trim(sha, "0") == "" }

// HandsOut reports whether the branch is one of the project's.
func (p ProjectSpec) HandsOut(branch string) bool {
	for _, b := range p.Branches {
		if b == branch {
			return true
		}
	}
	return false
}

// LeavesAhead reports whether a push to the source leaves the project behind
// it (R-AHEAD-01, R-AHEAD-03): not for a branch that is not handed out, a tag,
// a deletion, an archived project, or a head that was handed out already.
func LeavesAhead(p Project, push PushChange) bool {
	return push.Branch != "" && !push.Deleted && !ZeroSHA(push.After) &&
		p.Stage != StageArchived && p.HandsOut(push.Branch) &&
		p.SourceHeads[push.Branch] != push.After
}

// AheadCommits returns the sum of the per-branch counts, and ok=false when a
// count is unknown or nothing is ahead (R-AHEAD-05).
func AheadCommits(ahead map[string]AheadBranch) (sum int, ok bool) {
	for _, a := range ahead {
		if a.Commits == nil {
			return 0, false
		}
		sum += *a.Commits
	}
	return sum, len(ahead) > 0
}
