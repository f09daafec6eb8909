// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/status"
)

// projectStatus fills a ProjectSync's status in from its rows. It asks nobody.
func projectStatus(p *v1alpha1.ProjectSync, v domain.ProjectView) {
	st := &p.Status
	st.ObservedGeneration = p.Generation
	st.Stage = p.Spec.Stage
	st.Source, st.Distribution = nil, nil
	if v.SourceRepo.ID != 0 {
		st.Source = &v1alpha1.SourceStatus{RepositoryID: v.SourceRepo.ID, Heads: heads(v.Branches, v.SourceHeads)}
	}
	if v.DistributionRepo.ID != 0 {
		st.Distribution = &v1alpha1.DistributionStatus{RepositoryID: v.DistributionRepo.ID, Repository: v.DistributionRepo.FullName, Heads: heads(v.Branches, v.DistributionHeads)}
	}
	st.Ahead, st.AheadBy = ahead(v)
	st.Sync = syncStatus(v)
	st.Repositories = &v1alpha1.RepositoriesStatus{Total: n(v.Repositories.Total), Live: n(v.Repositories.Live), Locked: n(v.Repositories.Locked),
		Deleted: n(v.Repositories.Deleted), Provisioned: n(v.Repositories.Provisioned)}
	o := outcomes(v.Outcomes)
	st.Outcomes = &o
	st.Failing = failing(v.Failing)
	showIgnored(p, p.IgnoredFields())
	showBuilt(p, v)
	showAhead(p, v)
	showSynced(p, v)
	showReady(p, v)
	st.NextAction = nextAction(p, v)
}

func n(i int) int32 { return int32(i) } //nolint:gosec // counts of repositories

func heads(order []string, h domain.Heads) []v1alpha1.Head {
	var list []v1alpha1.Head
	for _, b := range order {
		if h[b] != "" {
			list = append(list, v1alpha1.Head{Branch: b, SHA: h[b]})
		}
	}
	return list
}

func ahead(v domain.ProjectView) ([]v1alpha1.AheadStatus, string) {
	if v.Stage == domain.StageArchived || !v.Built() || len(v.Ahead) == 0 {
		return nil, "" // never ahead where nothing can be synced (R-AHEAD-05)
	}
	list := make([]v1alpha1.AheadStatus, 0, len(v.Ahead))
	for branch, a := range v.Ahead {
		s := v1alpha1.AheadStatus{Branch: branch, SHA: a.SHA, PushedAt: stamp(a.PushedAt)}
		if a.Commits != nil {
			c := n(*a.Commits)
			s.Commits = &c
		}
		list = append(list, s)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Branch < list[j].Branch })
	sum, known := domain.AheadCommits(v.Ahead)
	switch {
	case !known:
		return list, "yes"
	case sum == 1:
		return list, "1 commit"
	}
	return list, fmt.Sprintf("%d commits", sum)
}

func syncStatus(v domain.ProjectView) *v1alpha1.SyncStatus {
	s := &v1alpha1.SyncStatus{}
	if r := v.LastRequest; r != nil {
		s.LastRequest = &v1alpha1.RequestStatus{Token: r.Value, Source: string(r.Source), Answer: string(r.Answer), Reason: r.Reason, Message: v1alpha1.ShortenMessage(r.Message), Time: stamp(r.AnsweredAt)}
	}
	if a := v.ActivePass; a != nil {
		started := stamp(a.StartedAt)
		s.InProgress = &v1alpha1.PassStatus{Phase: string(a.Phase), Settled: n(v.Settled), Pushed: n(v.Settled), Total: n(v.Targets), StartedAt: &started}
		if v.Problem.Reason != "" {
			s.InProgress.WaitingFor = v.Problem.Reason
			if !v.Problem.RetryAt.IsZero() {
				s.InProgress.ETA = timePointer(&v.Problem.RetryAt)
			}
		}
		s.Progress = fmt.Sprintf("%d/%d", v.Settled, v.Targets)
	}
	if l := v.LastPass; l != nil {
		s.LastCompleted = &v1alpha1.CompletedPass{Time: stamp(*l.FinishedAt), Token: l.Token.Value, Counts: outcomes(l.Counts)}
		if s.Progress == "" {
			s.Progress = "done"
		}
	}
	if s.LastRequest == nil && s.InProgress == nil && s.LastCompleted == nil {
		return nil
	}
	return s
}

func outcomes(c domain.Counts) v1alpha1.Outcomes {
	return v1alpha1.Outcomes{Opened: n(c.Opened), Updated: n(c.Updated), UpToDate: n(c.UpToDate), Held: n(c.Held), Skipped: n(c.Skipped), Failed: n(c.Failed)}
}

func failing(list []domain.Repository) []v1alpha1.FailingRepository {
	var out []v1alpha1.FailingRepository
	for _, r := range list {
		message := r.Message
		if len(message) > 1000 {
			message = message[:1000] + "..."
		}
		out = append(out, v1alpha1.FailingRepository{Repository: r.Repo.FullName, Outcome: string(r.Outcome), Reason: orWord(r.Reason), Message: message, Since: timePointer(r.OutcomeAt)})
	}
	return out
}

func orWord(reason string) string {
	if reason == "" {
		return string(fault.ReasonUnexpected)
	}
	return reason
}

func showBuilt(p *v1alpha1.ProjectSync, v domain.ProjectView) {
	switch {
	case v.Built():
		status.Set(p, v1alpha1.ConditionDistributionBuilt, metav1.ConditionTrue, v1alpha1.ReasonBuilt, v.DistributionRepo.FullName+" hands out "+strings.Join(v.Branches, ", "))
	case v.Problem.Reason != "":
		status.Set(p, v1alpha1.ConditionDistributionBuilt, metav1.ConditionFalse, v.Problem.Reason, v.Problem.Message)
	default:
		status.Set(p, v1alpha1.ConditionDistributionBuilt, metav1.ConditionFalse, v1alpha1.ReasonNotBuilt, "the distribution is not built yet")
	}
}

func showAhead(p *v1alpha1.ProjectSync, v domain.ProjectView) {
	if list, by := ahead(v); len(list) > 0 {
		what := by + " since the last sync"
		if by == "yes" {
			what = "pushed to since the last sync; how many commits is not known"
		}
		status.Set(p, v1alpha1.ConditionSourceAhead, metav1.ConditionTrue, v1alpha1.ReasonAhead, "the source was "+strings.TrimPrefix("pushed "+what, "pushed pushed "))
		return
	}
	status.Set(p, v1alpha1.ConditionSourceAhead, metav1.ConditionFalse, v1alpha1.ReasonUpToDate, "no push to the source since the last sync that was heard of")
}

// showSynced says whether everyone has what was last synced.
func showSynced(p *v1alpha1.ProjectSync, v domain.ProjectView) {
	set := func(s metav1.ConditionStatus, reason, message string) {
		status.Set(p, v1alpha1.ConditionSynced, s, reason, message)
	}
	switch c := v.Outcomes; {
	case v.ActivePass != nil:
		set(metav1.ConditionUnknown, v1alpha1.ReasonInProgress, fmt.Sprintf("%d of %d repositories done", v.Settled, v.Targets))
	case v.LastRequest != nil && v.LastRequest.Answer == domain.AnswerRefused:
		set(metav1.ConditionFalse, orWord(v.LastRequest.Reason), v.LastRequest.Message)
	case v.LastRequest != nil && v.LastRequest.Answer == domain.AnswerWaiting:
		set(metav1.ConditionUnknown, v1alpha1.ReasonSyncWaiting, strings.TrimSuffix("the request waits: "+v.LastRequest.Message, ": "))
	case v.LastPass == nil:
		set(metav1.ConditionUnknown, v1alpha1.ReasonNeverSynced, "no sync has ended yet")
	case c.Failed > 0:
		set(metav1.ConditionFalse, v1alpha1.ReasonSomeRepositoriesFailed, summary(v.Outcomes))
	case c.Held > 0:
		set(metav1.ConditionFalse, v1alpha1.ReasonHeld, summary(v.Outcomes))
	default:
		set(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, summary(v.Outcomes))
	}
}

func summary(c domain.Counts) string {
	return fmt.Sprintf("%d opened, %d updated, %d up to date, %d held, %d skipped, %d failed", c.Opened, c.Updated, c.UpToDate, c.Held, c.Skipped, c.Failed)
}

// showReady derives Ready, Reconciling and Stalled. Failed repositories leave
// a project Ready: one archived repository among thousands must not time out
// whoever waits for it.
func showReady(p *v1alpha1.ProjectSync, v domain.ProjectView) {
	problem := fault.New(fault.Class(v.Problem.Class), fault.Reason(v.Problem.Reason), "%s", v.Problem.Message)
	hasProblem := v.Problem.Reason != ""
	switch {
	case p.Spec.Stage == v1alpha1.StageArchived:
		status.Ready(p, v1alpha1.ReasonArchived, "archived: nothing is worked on")
	case p.Spec.Suspend:
		status.Ready(p, string(fault.ReasonSuspended), "suspended: outgoing work waits, events are still recorded")
	case hasProblem && v.Built() && !status.NeedsPerson(problem):
		status.Remove(p, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled)
		status.Set(p, v1alpha1.ConditionReady, metav1.ConditionFalse, v.Problem.Reason, v.Problem.Message)
	case hasProblem:
		status.Fault(p, problem)
	case !v.Built():
		status.Reconciling(p, metav1.ConditionFalse, v1alpha1.ReasonBuilding, "building the distribution "+v.Distribution)
	case v.ActivePass != nil:
		status.Reconciling(p, metav1.ConditionTrue, v1alpha1.ReasonInProgress, fmt.Sprintf("syncing: %d of %d repositories done", v.Settled, v.Targets))
	case v.LastRequest != nil && v.LastRequest.Answer == domain.AnswerWaiting && v.LastRequest.Reason == "":
		status.Reconciling(p, metav1.ConditionTrue, v1alpha1.ReasonInProgress, "bringing the distribution in step with the source")
	case p.Spec.Stage == v1alpha1.StagePublished && v.Repositories.Provisioned+v.Repositories.ProvisionFailed < v.Repositories.Total:
		status.Reconciling(p, metav1.ConditionTrue, v1alpha1.ReasonProvisioning, fmt.Sprintf("%d of %d repositories provisioned", v.Repositories.Provisioned, v.Repositories.Total))
	case v.Outcomes.Failed+v.Repositories.ProvisionFailed > 0:
		status.Ready(p, v1alpha1.ReasonSomeRepositoriesFailed, fmt.Sprintf("works; %d repositories failed to sync and %d to be provisioned: see status.failing and the RepoReconciles", v.Outcomes.Failed, v.Repositories.ProvisionFailed))
	case p.Spec.Stage == v1alpha1.StageDraft:
		status.Ready(p, v1alpha1.ReasonSucceeded, "draft: the distribution is built, and nothing is handed out yet")
	default:
		status.Ready(p, v1alpha1.ReasonSucceeded, fmt.Sprintf("hands out to %d repositories", v.Repositories.Live))
	}
}

// nextAction says in one sentence what happens next, or who has to act.
func nextAction(p *v1alpha1.ProjectSync, v domain.ProjectView) string {
	switch list, by := ahead(v); {
	case p.Spec.Stage == v1alpha1.StageArchived:
		return "none: the project is archived"
	case p.Spec.Suspend:
		return "set spec.suspend to false to go on"
	case v.Problem.Reason != "":
		text := v.Problem.Message
		if len(text) > 800 {
			text = text[:800] + "..."
		}
		if !v.Problem.RetryAt.IsZero() {
			text += "; tried again at " + v.Problem.RetryAt.UTC().Format(time.RFC3339)
		}
		return text
	case !v.Built():
		return "the distribution is being built"
	case v.ActivePass != nil:
		return "the sync under way goes on"
	case v.LastRequest != nil && v.LastRequest.Answer == domain.AnswerWaiting:
		return "the waiting request is taken up"
	case v.Outcomes.Failed > 0:
		return "mend the failing repositories, then set a new spec.sync.request: it reaches those that failed"
	case len(list) > 0:
		return "set a new spec.sync.request to hand out what was pushed (" + by + ")"
	case p.Spec.Stage == v1alpha1.StageDraft:
		return "set spec.stage to Published to hand out"
	}
	return "none: waiting for pushes to the source"
}
