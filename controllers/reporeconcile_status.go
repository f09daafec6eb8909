// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/status"
)

// repositoryStatus fills a RepoReconcile's status in from its row. Nothing of
// the source gets into it (R-PRIV-01). It asks nobody.
func repositoryStatus(o *v1alpha1.RepoReconcile, v domain.RepositoryView, p domain.Project, problem error) {
	st := &o.Status
	st.RepositoryID, st.FullName = v.Repo.ID, v.Repo.FullName
	st.EffectiveDeadline = timePointer(domain.EffectiveDeadline(v.Repository, p))
	st.FrozenAt = timePointer(v.FrozenAt)
	st.Head = nil
	if v.LastCommitSHA != "" {
		st.Head = &v1alpha1.HeadStatus{Branch: v.DefaultBranch, SHA: v.LastCommitSHA, At: timePointer(v.LastCommitAt)}
	}
	st.Members = nil
	for _, m := range v.Members {
		st.Members = append(st.Members, v1alpha1.MemberStatus{Login: m, Invitation: "None"})
	}
	st.PullRequests = nil
	for _, pr := range inOrder(v.PullRequests, p.Branches) {
		st.PullRequests = append(st.PullRequests, v1alpha1.PullRequestStatus{Branch: pr.Branch, Number: n(pr.Number), State: string(pr.State), URL: pr.URL})
	}
	st.Outcome = nil
	if v.Outcome != "" {
		st.Outcome = &v1alpha1.OutcomeStatus{Value: string(v.Outcome), Reason: v.Reason, Message: v1alpha1.ShortenMessage(v.Message), At: timePointer(v.OutcomeAt)}
	}
	st.Lock = &v1alpha1.LockStatus{Effective: "Unlocked", By: "None"}
	showProvisioned(o, v, problem)
	showRepositorySynced(o, v)
	for _, t := range []string{v1alpha1.ConditionAccessible, v1alpha1.ConditionProtected, v1alpha1.ConditionLocked} {
		status.Set(o, t, metav1.ConditionUnknown, v1alpha1.ReasonNoEffectYet, "not looked after in this release")
	}
	switch {
	case problem != nil: // said by the caller
	case v.DeletedAt != nil:
		status.Stalled(o, string(fault.ReasonGone), "the repository is gone from GitHub: take it off the list, or restore it")
	case v.Excluded:
		status.Ready(o, string(fault.ReasonSuspended), "excluded in the project's list: nothing is done with it")
	case o.Spec.Suspend:
		status.Ready(o, string(fault.ReasonSuspended), "suspended: pushes and pull requests wait")
	case v.Provision != domain.ProvisionOK:
		status.Reconciling(o, metav1.ConditionFalse, v1alpha1.ReasonProvisioning, "being provisioned")
	case v.Outcome == domain.OutcomeFailed:
		status.Remove(o, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled)
		status.Set(o, v1alpha1.ConditionReady, metav1.ConditionFalse, orWord(v.Reason), v.Message+": the next sync tries again")
	default:
		status.Ready(o, v1alpha1.ReasonSucceeded, readyMessage(v))
	}
}

// readyMessage says what the last sync came to.
func readyMessage(v domain.RepositoryView) string {
	switch {
	case v.Outcome == "":
		return "provisioned; no sync reached it yet"
	case v.Message != "":
		return v.Message
	case v.Outcome == domain.OutcomeUpToDate:
		return "has everything that was synced"
	}
	return "last sync: " + string(v.Outcome)
}

// inOrder returns the pull requests in the project's order of branches, so
// that the default branch's is the one the columns show (R-PR-08).
func inOrder(list []domain.PullRequest, branches []string) []domain.PullRequest {
	var out []domain.PullRequest
	for _, b := range branches {
		for _, pr := range list {
			if pr.Branch == b {
				out = append(out, pr)
			}
		}
	}
	return out
}

func showProvisioned(o *v1alpha1.RepoReconcile, v domain.RepositoryView, problem error) {
	switch {
	case v.Provision == domain.ProvisionOK && v.Adopted:
		status.Set(o, v1alpha1.ConditionProvisioned, metav1.ConditionTrue, v1alpha1.ReasonAdopted, v.Repo.FullName+" existed and was adopted")
	case v.Provision == domain.ProvisionOK:
		status.Set(o, v1alpha1.ConditionProvisioned, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, v.Repo.FullName+" was made from the distribution")
	case problem != nil:
		f := fault.Of(problem)
		status.Set(o, v1alpha1.ConditionProvisioned, metav1.ConditionFalse, string(f.Reason), f.Message)
	default:
		status.Set(o, v1alpha1.ConditionProvisioned, metav1.ConditionFalse, v1alpha1.ReasonProvisioning, "being provisioned")
	}
}

func showRepositorySynced(o *v1alpha1.RepoReconcile, v domain.RepositoryView) {
	reason := v.Reason
	if reason == "" {
		reason = string(v.Outcome)
	}
	switch v.Outcome {
	case "":
		status.Set(o, v1alpha1.ConditionSynced, metav1.ConditionUnknown, v1alpha1.ReasonNeverSynced, "no sync reached it yet")
	case domain.OutcomeFailed, domain.OutcomeHeld, domain.OutcomeSkipped:
		status.Set(o, v1alpha1.ConditionSynced, metav1.ConditionFalse, reason, v.Message)
	default:
		status.Set(o, v1alpha1.ConditionSynced, metav1.ConditionTrue, reason, readyMessage(v))
	}
}
