// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "slices"

// Condition types. Ready is always there; Reconciling, Stalled and
// FieldsIgnored are there only while True, and Reconciling and Stalled never
// together.
const (
	// ConditionReady: the object can do its work.
	ConditionReady = "Ready"
	// ConditionReconciling: work is under way that ends by itself.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: only a person can mend this.
	ConditionStalled = "Stalled"
	// ConditionFieldsIgnored: fields are set that have no effect in this
	// version; the message lists them.
	ConditionFieldsIgnored = "FieldsIgnored"

	// ConditionWebhookHealthy (GitHubApp): deliveries can be verified.
	ConditionWebhookHealthy = "WebhookHealthy"

	// ConditionDistributionBuilt (ProjectSync): the distribution is there.
	ConditionDistributionBuilt = "DistributionBuilt"
	// ConditionSourceAhead (ProjectSync): the source holds pushes that were
	// not synced yet.
	ConditionSourceAhead = "SourceAhead"
	// ConditionSynced (ProjectSync, RepoReconcile): everyone, or this
	// repository, has what was last synced.
	ConditionSynced = "Synced"

	// ConditionProvisioned (RepoReconcile): the repository is there.
	ConditionProvisioned = "Provisioned"
	// ConditionAccessible (RepoReconcile): its members have access.
	ConditionAccessible = "Accessible"
	// ConditionProtected (RepoReconcile): its default branch is protected.
	ConditionProtected = "Protected"
	// ConditionLocked (RepoReconcile): pushes to it are forbidden.
	ConditionLocked = "Locked"
)

// ConditionType documents one type of condition.
type ConditionType struct {
	// Name is the type.
	Name string
	// Kinds that carry it.
	Kinds []string
	// OnlyWhileTrue is true when the condition is absent otherwise.
	OnlyWhileTrue bool
	// Means says what True, and where it helps what else, tells.
	Means string
}

// ConditionTypes returns every type of condition, in the order of
// docs/conditions.md. The caller owns the slice.
func ConditionTypes() []ConditionType { return slices.Clone(conditionTypes) }

var (
	allKinds = []string{"GitHubApp", "ProjectSync", "RepoReconcile"}
	appOnly  = []string{"GitHubApp"}
	project  = []string{"ProjectSync"}
	oneRepo  = []string{"RepoReconcile"}
)

var conditionTypes = []ConditionType{
	{ConditionReady, allKinds, false,
		"The object can do its work. Some failed repositories leave a project Ready: look at Synced and the Failed column."},
	{ConditionReconciling, allKinds, true,
		"Work is under way that ends by itself. A waiting request, a quota or queued pull requests never set it."},
	{ConditionStalled, allKinds, true,
		"Only a person can mend this; the message says how. Nothing is tried until the object, or what it names, changes."},
	{ConditionFieldsIgnored, allKinds, true,
		"Fields are set that have no effect in this version; the message lists their paths."},
	{ConditionWebhookHealthy, appOnly, false,
		"Deliveries of webhooks can be verified. False does not stop work, but what happens at GitHub is then noticed late."},
	{ConditionDistributionBuilt, project, false,
		"The distribution is there, and can be handed out from."},
	{ConditionSourceAhead, project, false,
		"The source holds pushes that were not synced yet. status.ahead says how many commits on which branch."},
	{ConditionSynced, []string{"ProjectSync", "RepoReconcile"}, false,
		"Everyone has what was last synced: as an open pull request, merged, or because nothing was missing. Unknown while a pass is under way; False when a repository failed or is held, or the last request was refused."},
	{ConditionProvisioned, oneRepo, false,
		"The repository is there and is the one meant."},
	{ConditionAccessible, oneRepo, false,
		"Its members have access. Reason NoEffectYet as long as invitations are not sent."},
	{ConditionProtected, oneRepo, false,
		"Its default branch is protected. Reason NoEffectYet as long as protection is not done."},
	{ConditionLocked, oneRepo, false,
		"Pushes to the repository are forbidden, by its deadline or by staff."},
}
