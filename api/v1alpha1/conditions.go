// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

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
	// release; the message lists them.
	ConditionFieldsIgnored = "FieldsIgnored"

	// ConditionWebhookHealthy (GitHubApp): deliveries can be verified.
	ConditionWebhookHealthy = "WebhookHealthy"

	// ConditionDistributionBuilt (ProjectSync): the distribution is there.
	ConditionDistributionBuilt = "DistributionBuilt"
	// ConditionSourceAhead (ProjectSync): the source holds pushes that were
	// not synced yet.
	ConditionSourceAhead = "SourceAhead"
	// ConditionSynced: everyone has what was last synced.
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

// Reasons that only conditions have. The reasons of faults are in
// internal/fault; docs/conditions.md says what to do about all of them.
const (
	// ReasonSucceeded: all is as wanted.
	ReasonSucceeded = "Succeeded"
	// ReasonBuilding: the distribution is being built.
	ReasonBuilding = "Building"
	// ReasonBuilt: the distribution is there.
	ReasonBuilt = "Built"
	// ReasonNotBuilt: the distribution is not there yet.
	ReasonNotBuilt = "NotBuilt"
	// ReasonInProgress: a pass is under way.
	ReasonInProgress = "InProgress"
	// ReasonNeverSynced: no pass has ended yet.
	ReasonNeverSynced = "NeverSynced"
	// ReasonSyncWaiting: a request waits for something to pass.
	ReasonSyncWaiting = "SyncWaiting"
	// ReasonSyncRefused: the last request was refused.
	ReasonSyncRefused = "SyncRefused"
	// ReasonSomeRepositoriesFailed: a pass ended with failures.
	ReasonSomeRepositoriesFailed = "SomeRepositoriesFailed"
	// ReasonHeld: somebody's work is in the way in some repositories.
	ReasonHeld = "Held"
	// ReasonProvisioning: repositories are being made.
	ReasonProvisioning = "Provisioning"
	// ReasonProgressingWithRetry: something failed that is tried again.
	ReasonProgressingWithRetry = "ProgressingWithRetry"
	// ReasonArchived: the project is archived.
	ReasonArchived = "Archived"
	// ReasonSyncRequested: a request was accepted (event).
	ReasonSyncRequested = "SyncRequested"
	// ReasonSyncCompleted: a pass ended (event).
	ReasonSyncCompleted = "SyncCompleted"
	// ReasonAhead: the source was pushed to since the last sync.
	ReasonAhead = "Ahead"
	// ReasonUpToDate: nothing was pushed since the last sync.
	ReasonUpToDate = "UpToDate"
	// ReasonAdopted: the repository existed and was adopted.
	ReasonAdopted = "Adopted"
	// ReasonUnlocked: nothing locks the repository.
	ReasonUnlocked = "Unlocked"
	// ReasonNoEffectYet: the field behind the condition has no effect in this
	// release.
	ReasonNoEffectYet = "NoEffectYet"
	// ReasonSecretsPresent: every webhook secret is there.
	ReasonSecretsPresent = "SecretsPresent"
	// ReasonNoWebhookSecret: no webhook secret is named; every delivery is
	// refused.
	ReasonNoWebhookSecret = "NoWebhookSecret"
	// ReasonWebhookElsewhere: the App's webhook goes to another address.
	ReasonWebhookElsewhere = "WebhookElsewhere"
	// ReasonPullRequestsQueued: pushes are done, pull requests still open.
	ReasonPullRequestsQueued = "PullRequestsQueued"
)
