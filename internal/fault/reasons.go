// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package fault

// Reason is a CamelCase word for programs; conditions, outcomes, events and
// refusals carry it. docs/conditions.md says what to do about each.
type Reason string

// Reasons of the world around an object.
const (
	// ReasonUnexpected: an error nobody foresaw; retried with backoff.
	ReasonUnexpected Reason = "Unexpected"
	// ReasonInterrupted: the process stops; the work is taken up again.
	ReasonInterrupted Reason = "Interrupted"
	// ReasonDatabaseUnavailable: Postgres does not answer.
	ReasonDatabaseUnavailable Reason = "DatabaseUnavailable"
	// ReasonDatabaseSchemaOld: run "sluice migrate" first.
	ReasonDatabaseSchemaOld Reason = "DatabaseSchemaOld"
	// ReasonDatabaseSchemaNew: the database was migrated by a newer release.
	ReasonDatabaseSchemaNew Reason = "DatabaseSchemaNew"
	// ReasonGitHubUnreachable: no answer from GitHub, or a 5xx.
	ReasonGitHubUnreachable Reason = "GitHubUnreachable"
	// ReasonRateLimited: GitHub asked to wait.
	ReasonRateLimited Reason = "RateLimited"
	// ReasonGitHubRefused: a 4xx without a more telling reason.
	ReasonGitHubRefused Reason = "GitHubRefused"
	// ReasonNotFound: GitHub answered 404, which is not proof of deletion.
	ReasonNotFound Reason = "NotFound"
)

// Reasons about the App and its credentials.
const (
	ReasonAppNotFound       Reason = "AppNotFound"
	ReasonAppNotReady       Reason = "AppNotReady"
	ReasonAppNotInstalled   Reason = "AppNotInstalled"
	ReasonAppSuspended      Reason = "AppSuspended"
	ReasonSecretNotFound    Reason = "SecretNotFound"
	ReasonSecretKeyNotFound Reason = "SecretKeyNotFound"
	ReasonInvalidPrivateKey Reason = "InvalidPrivateKey"
	// ReasonInvalidBaseURL: spec.baseURL is no address of a REST API.
	ReasonInvalidBaseURL Reason = "InvalidBaseURL"
	// ReasonCredentialsRefused: the key does not belong to the App ID.
	ReasonCredentialsRefused Reason = "CredentialsRefused"
	// ReasonDuplicateApp: another GitHubApp has the same App ID and base URL.
	ReasonDuplicateApp Reason = "DuplicateApp"
	// ReasonPermissionMissing: the App lacks a permission that GitHub named.
	ReasonPermissionMissing Reason = "PermissionMissing"
	// ReasonNotGranted: no grant of the GitHubApp allows this use.
	ReasonNotGranted Reason = "NotGranted"
)

// Reasons about the source and the distribution.
const (
	ReasonSourceNotFound        Reason = "SourceNotFound"
	ReasonSourceBranchMissing   Reason = "SourceBranchMissing"
	ReasonSourceIsDistribution  Reason = "SourceIsDistribution"
	ReasonSourceChanged         Reason = "SourceChanged"
	ReasonSourceRewritten       Reason = "SourceRewritten"
	ReasonDistributionNameTaken Reason = "DistributionNameTaken"
	ReasonDistributionMissing   Reason = "DistributionMissing"
	ReasonDistributionDiverged  Reason = "DistributionDiverged"
	ReasonProjectArchived       Reason = "ProjectArchived"
	ReasonSuspended             Reason = "Suspended"
	ReasonSyncInProgress        Reason = "SyncInProgress"
	ReasonDuplicateRepositories Reason = "DuplicateRepositories"
	ReasonImmutableFieldChanged Reason = "ImmutableFieldChanged"
	ReasonInvalidNameTemplate   Reason = "InvalidNameTemplate"
	ReasonFieldNotSupportedYet  Reason = "NotSupportedYet"
	ReasonLeaseLost             Reason = "LeaseLost"
	// ReasonInvalidHandOut: the source's ignore file cannot be read as one.
	ReasonInvalidHandOut Reason = "InvalidHandOut"
)

// Reasons about one downstream repository.
const (
	ReasonRepositoryNameTaken Reason = "RepositoryNameTaken"
	ReasonRepositoryClaimed   Reason = "RepositoryClaimed"
	ReasonRepositoryChanged   Reason = "RepositoryChanged"
	ReasonRepositoryNotFound  Reason = "RepositoryNotFound"
	ReasonRepositoryArchived  Reason = "RepositoryArchived"
	ReasonRepositoryEmpty     Reason = "RepositoryEmpty"
	ReasonRepositoryBlocked   Reason = "RepositoryBlocked"
	ReasonNotProvisioned      Reason = "NotProvisioned"
	ReasonUnrelatedHistories  Reason = "UnrelatedHistories"
	ReasonBranchMissing       Reason = "BranchMissing"
	ReasonHumanCommits        Reason = "HumanCommits"
	ReasonClosedByPerson      Reason = "ClosedByPerson"
	ReasonDeadlinePassed      Reason = "DeadlinePassed"
	ReasonLocked              Reason = "Locked"
	ReasonNotLive             Reason = "NotLive"
	ReasonNotFoundOnce        Reason = "NotFoundOnce"
	ReasonGone                Reason = "Gone"
	ReasonNotAttempted        Reason = "NotAttempted"
	// ReasonConversationLocked: the pull request takes no comments.
	ReasonConversationLocked Reason = "ConversationLocked"
	// ReasonNoCommits: a pull request would bring nothing.
	ReasonNoCommits Reason = "NoCommits"
	// ReasonExpired: a request waited too long for a passing fault.
	ReasonExpired    Reason = "Expired"
	ReasonSourceLeak Reason = "SourceLeak"
)

// Reasons a push was refused (github-facts of git over HTTPS).
const (
	ReasonPushDenied          Reason = "PushDenied"
	ReasonWorkflowsPermission Reason = "WorkflowsPermissionMissing"
	ReasonRulesetViolation    Reason = "RulesetViolation"
	ReasonBranchProtected     Reason = "BranchProtected"
	ReasonPushProtection      Reason = "PushProtection"
	ReasonFileTooLarge        Reason = "FileTooLarge"
	ReasonHiddenRef           Reason = "HiddenRef"
	// ReasonStaleRef: the ref did not have the expected old value.
	ReasonStaleRef     Reason = "StaleRef"
	ReasonPushRejected Reason = "PushRejected"
)
