// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ignored collects the paths of fields that are set and have no effect yet.
type ignored []string

func (i *ignored) when(set bool, path string) {
	if set && !slices.Contains(*i, path) {
		*i = append(*i, path)
	}
}

func otherDuration(d *metav1.Duration, byDefault time.Duration) bool {
	return d != nil && d.Duration != byDefault
}

func (i *ignored) deadline(d *Deadline, path string) {
	if d != nil {
		i.when(otherDuration(d.Grace, 30*time.Minute), path+".grace")
		i.when(d.Strategy != "" && d.Strategy != DeadlineNone, path+".strategy")
	}
}

func (i *ignored) reconcile(r *ReconcileSettings) {
	if r != nil {
		i.when(otherDuration(r.Interval, 24*time.Hour), "spec.reconcile.interval")
		i.when(otherDuration(r.RunsInterval, 15*time.Minute), "spec.reconcile.runsInterval")
		i.when(otherDuration(r.Quiet, 30*time.Minute), "spec.reconcile.quiet")
		i.when(r.Request != "", "spec.reconcile.request")
	}
}

// IgnoredFields returns the paths of the fields that are set and have no
// effect in this version, in order. A field that carries its default is not
// set.
func (in *GitHubApp) IgnoredFields() []string {
	var i ignored
	i.when(len(in.Spec.Channels) > 0, "spec.channels")
	if b := in.Spec.Budget; b != nil {
		i.when(b.ContentPerMinute != 0 && b.ContentPerMinute != 60, "spec.budget.contentPerMinute")
		i.when(b.ContentPerHour != 0 && b.ContentPerHour != 450, "spec.budget.contentPerHour")
		i.when(b.ReservePercent != nil && *b.ReservePercent != 10, "spec.budget.reservePercent")
		i.when(otherDuration(b.WriteSpacing, time.Second), "spec.budget.writeSpacing")
		if p := b.Pushes; p != nil {
			i.when(p.Start != 0 && p.Start != 8, "spec.budget.pushes.start")
			i.when(p.Max != 0 && p.Max != 64, "spec.budget.pushes.max")
		}
	}
	if d := in.Spec.Deliveries; d != nil {
		i.when(otherDuration(d.Interval, 24*time.Hour), "spec.deliveries.interval")
	}
	return i
}

// IgnoredFields returns the paths of the fields that are set and have no
// effect in this version, in order. A field that carries its default is not
// set.
func (in *ProjectSync) IgnoredFields() []string {
	var i ignored
	s := in.Spec
	i.when(otherDuration(s.Source.Interval, 10*time.Minute), "spec.source.interval")
	i.when(s.Distribution != nil && s.Distribution.TakeoverFrom != "", "spec.distribution.takeoverFrom")
	i.repositories(s.Repositories)
	i.deadline(s.Deadline, "spec.deadline")
	i.when(len(s.ProtectedFiles) > 0, "spec.protectedFiles")
	i.when(s.Protection != nil && s.Protection.Mode == "Ruleset", "spec.protection.mode")
	i.when(s.Runs != nil && s.Runs.GradedWorkflow != "", "spec.runs.gradedWorkflow")
	i.when(s.Runs != nil && s.Runs.FinalReview == "Enabled", "spec.runs.finalReview")
	i.reconcile(s.Reconcile)
	i.when(len(s.Notifications) > 0, "spec.notifications")
	if p := s.PullRequest; p != nil {
		i.when(len(p.Reviewers) > 0, "spec.pullRequest.reviewers")
		i.when(len(p.Assignees) > 0, "spec.pullRequest.assignees")
		i.when(p.WhenEmpty == "Leave", "spec.pullRequest.whenEmpty")
	}
	if y := s.Sync; y != nil {
		if t := y.Trigger; t != nil {
			i.when((t.Type != "" && t.Type != "Manual") || t.OnPush != nil || t.Schedule != nil, "spec.sync.trigger")
		}
		i.when(len(y.Force) > 0, "spec.sync.force")
		i.when(len(y.Waves) > 0, "spec.sync.waves")
		i.when(y.MaxFailures != nil, "spec.sync.maxFailures")
	}
	_, cancelled := in.Annotations[SyncCancelledAtAnnotation]
	i.when(cancelled, "metadata.annotations["+SyncCancelledAtAnnotation+"]")
	return i
}

func (i *ignored) repositories(r *Repositories) {
	if r == nil {
		return
	}
	i.when(r.Provision != nil && r.Provision.Permission != "" && r.Provision.Permission != "Push", "spec.repositories.provision.permission")
	i.when(r.Unrelated == "Overlay", "spec.repositories.unrelated")
	i.when(r.OnRemoval == "Revoke", "spec.repositories.onRemoval")
	i.when(r.ConfirmRemoval != nil, "spec.repositories.confirmRemoval")
	i.when(len(r.ListFrom) > 0, "spec.repositories.listFrom")
	i.when(r.Selector != nil, "spec.repositories.selector")
	for _, e := range r.List {
		i.when(len(e.Members) > 0, "spec.repositories.list[].members")
		i.when(e.Test, "spec.repositories.list[].test")
		i.deadline(e.Deadline, "spec.repositories.list[].deadline")
	}
}

// IgnoredFields returns the paths of the fields that are set and have no
// effect in this version, in order. A field that carries its default is not
// set.
func (in *RepoReconcile) IgnoredFields() []string {
	var i ignored
	s := in.Spec
	i.when(len(s.Members) > 0, "spec.members")
	i.when(s.Permission != "" && s.Permission != "Push", "spec.permission")
	i.when(s.Deadline != nil, "spec.deadline")
	i.when(s.Lock != nil, "spec.lock")
	i.when(s.Protection != nil && s.Protection.Mode == "Ruleset", "spec.protection.mode")
	i.when(s.Protection != nil && s.Protection.Reenable != "", "spec.protection.reenable")
	i.when(len(s.ProtectedFiles) > 0, "spec.protectedFiles")
	i.when(s.Runs != nil && len(s.Runs.Accept) > 0, "spec.runs.accept")
	i.when(s.Invite != nil && s.Invite.Request != "", "spec.invite.request")
	i.reconcile(s.Reconcile)
	return i
}
