// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"fmt"
	"time"
)

// EffectiveDeadline returns the repository's own deadline when set, else the
// project's; nil is none.
func EffectiveDeadline(r Repository, p Project) *time.Time {
	if r.DeadlineAt != nil {
		return r.DeadlineAt
	}
	return p.DeadlineAt
}

// DeadlineReached reports whether a deadline counts as reached at now: it is
// when it is not after now (R-DL-02).
func DeadlineReached(deadline *time.Time, now time.Time) bool {
	return deadline != nil && !deadline.After(now)
}

// Skip decides whether a pass leaves a repository alone without asking GitHub
// anything (R-SYNC-03). It returns the reason and a sentence, or ok=false when
// the repository has its turn. A passed deadline counts whether or not the
// repository is locked, and even when staff unlocked it.
func Skip(r Repository, p Project, now time.Time) (reason, message string, skip bool) {
	switch {
	case r.DeletedAt != nil:
		return "Gone", "the repository is gone from GitHub", true
	case r.Excluded || !r.Listed:
		return "NotLive", "the project's list no longer includes the repository", true
	case r.Provision != ProvisionOK || r.Repo.ID == 0:
		return "NotProvisioned", "the repository is not provisioned yet; it gets the next sync once it is", true
	case !r.Live():
		return "NotLive", "the repository no longer belongs to the project", true
	case r.Suspended:
		return "Suspended", "spec.suspend is true on its RepoReconcile", true
	case DeadlineReached(EffectiveDeadline(r, p), now):
		return "DeadlinePassed", fmt.Sprintf("its deadline %s has passed",
			EffectiveDeadline(r, p).UTC().Format(time.RFC3339)), true
	case r.LockedAt != nil:
		return "Locked", "the repository is locked", true
	}
	return "", "", false
}
