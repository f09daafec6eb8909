// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "slices"

// Reason documents one reason: a CamelCase word that conditions, outcomes,
// events, answers and the sample of failing repositories carry.
type Reason struct {
	// Name is the word.
	Name string
	// Group is the heading it stands under in docs/conditions.md.
	Group string
	// Means says when it appears.
	Means string
	// Mend says what a person does about it.
	Mend string
}

// Reasons returns every reason, grouped, in the order of docs/conditions.md.
// The caller owns the slice.
func Reasons() []Reason { return slices.Clone(reasons) }

// Reasons of the group "Going well".
const (
	// ReasonSucceeded: all is as wanted.
	ReasonSucceeded = "Succeeded"
	// ReasonBuilt: the distribution is there.
	ReasonBuilt = "Built"
	// ReasonUpToDate: nothing was pushed to the source since the last sync; or the
	// repository lacks nothing.
	ReasonUpToDate = "UpToDate"
	// ReasonOpened: the last sync opened a pull request in the repository.
	ReasonOpened = "Opened"
	// ReasonUpdated: the last sync reached the repository's open pull request.
	ReasonUpdated = "Updated"
	// ReasonAdopted: the repository existed before the project and was adopted.
	ReasonAdopted = "Adopted"
	// ReasonUnlocked: nothing locks the repository.
	ReasonUnlocked = "Unlocked"
	// ReasonSecretsPresent: every webhook secret is there, so deliveries can be
	// verified.
	ReasonSecretsPresent = "SecretsPresent"
	// ReasonSyncRequested: a request for a sync was accepted (event).
	ReasonSyncRequested = "SyncRequested"
	// ReasonSyncCompleted: a pass over the repositories ended (event).
	ReasonSyncCompleted = "SyncCompleted"
)

// Reasons of the group "Under way".
const (
	// ReasonBuilding: the distribution is being built.
	ReasonBuilding = "Building"
	// ReasonNotBuilt: the distribution is not there yet.
	ReasonNotBuilt = "NotBuilt"
	// ReasonInProgress: a pass is under way.
	ReasonInProgress = "InProgress"
	// ReasonPullRequestsQueued: all pushes are done; pull requests wait for
	// GitHub's content limits.
	ReasonPullRequestsQueued = "PullRequestsQueued"
	// ReasonProvisioning: repositories are being made or adopted.
	ReasonProvisioning = "Provisioning"
	// ReasonNeverSynced: no pass has ended yet.
	ReasonNeverSynced = "NeverSynced"
	// ReasonAhead: the source was pushed to since the last sync.
	ReasonAhead = "Ahead"
	// ReasonSyncWaiting: the last request waits for something that passes by
	// itself.
	ReasonSyncWaiting = "SyncWaiting"
	// ReasonProgressingWithRetry: something failed that is tried again with
	// growing pauses.
	ReasonProgressingWithRetry = "ProgressingWithRetry"
	// ReasonInterrupted: the process stopped; the work is taken up again by the
	// next leader.
	ReasonInterrupted = "Interrupted"
)

// Reasons of the group "Wanted so".
const (
	// ReasonSuspended: spec.suspend of this object, its project or its App is
	// true, or the entry is excluded in the list.
	ReasonSuspended = "Suspended"
	// ReasonArchived: the project's stage is Archived.
	ReasonArchived = "Archived"
	// ReasonNoEffectYet: fields are set that have no effect in this version; the
	// message lists them.
	ReasonNoEffectYet = "NoEffectYet"
	// ReasonNotSupportedYet: the object asks for something that this version
	// cannot do and that must not be passed over.
	ReasonNotSupportedYet = "NotSupportedYet"
	// ReasonReleased: the row was given up: its entry left the list, or its object
	// was deleted.
	ReasonReleased = "Released"
)

// Reasons of the group "GitHub and the database".
const (
	// ReasonUnexpected: an error nobody foresaw. It is retried with growing
	// pauses.
	ReasonUnexpected = "Unexpected"
	// ReasonDatabaseUnavailable: Postgres does not answer. Nothing is lost; work
	// goes on by itself once it does.
	ReasonDatabaseUnavailable = "DatabaseUnavailable"
	// ReasonDatabaseSchemaOld: the database's schema is older than this version
	// needs.
	ReasonDatabaseSchemaOld = "DatabaseSchemaOld"
	// ReasonDatabaseSchemaNew: the database was migrated by a newer version.
	ReasonDatabaseSchemaNew = "DatabaseSchemaNew"
	// ReasonDatabaseBoundElsewhere: the database serves another cluster's
	// installation.
	ReasonDatabaseBoundElsewhere = "DatabaseBoundElsewhere"
	// ReasonGitHubUnreachable: GitHub does not answer, or answers with a server
	// error.
	ReasonGitHubUnreachable = "GitHubUnreachable"
	// ReasonRateLimited: GitHub asked to wait; the message says until when.
	ReasonRateLimited = "RateLimited"
	// ReasonGitHubRefused: GitHub refused a request without a more telling reason.
	ReasonGitHubRefused = "GitHubRefused"
	// ReasonNotFound: GitHub answered 404: not there, or not to be seen by the
	// App. It is no proof of deletion.
	ReasonNotFound = "NotFound"
	// ReasonLeaseLost: another leader took the work over.
	ReasonLeaseLost = "LeaseLost"
)

// Reasons of the group "The App and its use".
const (
	// ReasonAppNotFound: the GitHubApp that spec.appRef names does not exist.
	ReasonAppNotFound = "AppNotFound"
	// ReasonAppNotReady: the GitHubApp is not Ready.
	ReasonAppNotReady = "AppNotReady"
	// ReasonAppNotInstalled: the App is not installed on that organization or
	// account.
	ReasonAppNotInstalled = "AppNotInstalled"
	// ReasonAppSuspended: the account suspends the App's installation.
	ReasonAppSuspended = "AppSuspended"
	// ReasonSecretNotFound: a Secret that the GitHubApp names is missing, or may
	// not be read.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretKeyNotFound: the Secret lacks the key that is looked for.
	ReasonSecretKeyNotFound = "SecretKeyNotFound"
	// ReasonInvalidPrivateKey: the private key is no RSA key in PEM form.
	ReasonInvalidPrivateKey = "InvalidPrivateKey"
	// ReasonInvalidBaseURL: spec.baseURL is no address of GitHub's REST API.
	ReasonInvalidBaseURL = "InvalidBaseURL"
	// ReasonCredentialsRefused: GitHub refuses the key for this App ID.
	ReasonCredentialsRefused = "CredentialsRefused"
	// ReasonDuplicateApp: an older GitHubApp has the same appID and baseURL.
	ReasonDuplicateApp = "DuplicateApp"
	// ReasonPermissionMissing: the App lacks a permission that GitHub names in the
	// message.
	ReasonPermissionMissing = "PermissionMissing"
	// ReasonNotGranted: no grant of the GitHubApp allows this namespace what the
	// object asks for.
	ReasonNotGranted = "NotGranted"
	// ReasonNoWebhookSecret: the GitHubApp names no webhook secret, so every
	// delivery is refused.
	ReasonNoWebhookSecret = "NoWebhookSecret"
	// ReasonWebhookElsewhere: the App's webhook goes to another address than this
	// installation's.
	ReasonWebhookElsewhere = "WebhookElsewhere"
)

// Reasons of the group "Source and distribution".
const (
	// ReasonSourceNotFound: the source does not exist, or the App cannot see it.
	ReasonSourceNotFound = "SourceNotFound"
	// ReasonSourceBranchMissing: the source lacks handed-out branches; the message
	// names them.
	ReasonSourceBranchMissing = "SourceBranchMissing"
	// ReasonSourceIsDistribution: the source is itself a distribution (R-DIST-03).
	ReasonSourceIsDistribution = "SourceIsDistribution"
	// ReasonSourceChanged: spec.source.repository names another repository than
	// the one learnt. Only a rename may be followed.
	ReasonSourceChanged = "SourceChanged"
	// ReasonSourceRewritten: with history Whole: the source's branches were
	// rewritten, so that the distribution cannot follow without force.
	ReasonSourceRewritten = "SourceRewritten"
	// ReasonSourceLeak: something to be handed out would tell receivers of the
	// source. Nothing was pushed.
	ReasonSourceLeak = "SourceLeak"
	// ReasonSourceCycle: the source of an OnPush project is downstream of itself.
	ReasonSourceCycle = "SourceCycle"
	// ReasonInvalidHandOut: the source's overlay directory or ignore file cannot
	// be used.
	ReasonInvalidHandOut = "InvalidHandOut"
	// ReasonDistributionNameTaken: the distribution's name belongs to a repository
	// that must not be adopted (R-DIST-05).
	ReasonDistributionNameTaken = "DistributionNameTaken"
	// ReasonDistributionMissing: the distribution is not built yet, or is gone.
	ReasonDistributionMissing = "DistributionMissing"
	// ReasonDistributionDiverged: somebody else pushed to the distribution.
	ReasonDistributionDiverged = "DistributionDiverged"
	// ReasonProjectArchived: a sync was asked of an archived project.
	ReasonProjectArchived = "ProjectArchived"
	// ReasonDuplicateRepositories: entries of the list lead to one repository; the
	// message names them.
	ReasonDuplicateRepositories = "DuplicateRepositories"
	// ReasonImmutableFieldChanged: a field differs that is fixed once the
	// distribution is built, as after a restore.
	ReasonImmutableFieldChanged = "ImmutableFieldChanged"
	// ReasonInvalidNameTemplate: a template makes no legal name, or holds unknown
	// fields.
	ReasonInvalidNameTemplate = "InvalidNameTemplate"
	// ReasonClaimedByOtherInstallation: another installation of the operator
	// claims the distribution.
	ReasonClaimedByOtherInstallation = "ClaimedByOtherInstallation"
	// ReasonTooManyRepositories: the selector matches more than maxRepositories.
	// Nothing was touched.
	ReasonTooManyRepositories = "TooManyRepositories"
	// ReasonRecipientsUnreadable: a ConfigMap of listFrom, or the selector, cannot
	// be read. Nobody leaves for it.
	ReasonRecipientsUnreadable = "RecipientsUnreadable"
	// ReasonRemovalNeedsConfirmation: many repositories would leave at once.
	ReasonRemovalNeedsConfirmation = "RemovalNeedsConfirmation"
)

// Reasons of the group "Requests and passes".
const (
	// ReasonSyncInProgress: a sync was asked for while another runs.
	ReasonSyncInProgress = "SyncInProgress"
	// ReasonSyncRefused: the last request was refused; status.sync.lastRequest
	// says why.
	ReasonSyncRefused = "SyncRefused"
	// ReasonExpired: a request waited 24 hours for something that did not pass.
	ReasonExpired = "Expired"
	// ReasonSomeRepositoriesFailed: a pass ended with failures; the others have
	// what was synced.
	ReasonSomeRepositoriesFailed = "SomeRepositoriesFailed"
	// ReasonHeld: in some repositories somebody's work is in the way. Nothing was
	// overwritten.
	ReasonHeld = "Held"
	// ReasonMaxFailuresReached: a pass ended early because more repositories
	// failed than spec.sync.maxFailures.
	ReasonMaxFailuresReached = "MaxFailuresReached"
	// ReasonNotAttempted: the pass ended before this repository's turn.
	ReasonNotAttempted = "NotAttempted"
)

// Reasons of the group "One downstream repository".
const (
	// ReasonFailed: the last sync failed on the repository.
	ReasonFailed = "Failed"
	// ReasonSkipped: the last sync left the repository alone.
	ReasonSkipped = "Skipped"
	// ReasonNotProvisioned: the repository is not made or adopted yet.
	ReasonNotProvisioned = "NotProvisioned"
	// ReasonRepositoryNameTaken: the name belongs to a repository that this
	// project did not make (R-PROV-05). It was left alone.
	ReasonRepositoryNameTaken = "RepositoryNameTaken"
	// ReasonRepositoryClaimed: another project works on this repository. The first
	// claim stands.
	ReasonRepositoryClaimed = "RepositoryClaimed"
	// ReasonRepositoryChanged: the name is now another repository than the one
	// learnt. Nothing is written to it.
	ReasonRepositoryChanged = "RepositoryChanged"
	// ReasonRepositoryNotFound: the repository to adopt does not exist, or the App
	// cannot see it.
	ReasonRepositoryNotFound = "RepositoryNotFound"
	// ReasonRepositoryArchived: the repository is archived and takes no pushes.
	ReasonRepositoryArchived = "RepositoryArchived"
	// ReasonRepositoryEmpty: the repository has no commit, so that no pull request
	// can be opened.
	ReasonRepositoryEmpty = "RepositoryEmpty"
	// ReasonRepositoryBlocked: GitHub disabled the repository.
	ReasonRepositoryBlocked = "RepositoryBlocked"
	// ReasonUnrelatedHistories: the repository shares no history with the
	// distribution.
	ReasonUnrelatedHistories = "UnrelatedHistories"
	// ReasonBranchMissing: the repository lacks a branch that is handed out.
	ReasonBranchMissing = "BranchMissing"
	// ReasonNotLive: the repository no longer belongs to the project.
	ReasonNotLive = "NotLive"
	// ReasonDeadlinePassed: the effective deadline is reached, so that syncs leave
	// the repository alone (R-SYNC-03).
	ReasonDeadlinePassed = "DeadlinePassed"
	// ReasonLocked: the repository is locked.
	ReasonLocked = "Locked"
	// ReasonNotFoundOnce: GitHub answered 404 for the repository once. A second
	// time it counts as gone.
	ReasonNotFoundOnce = "NotFoundOnce"
	// ReasonGone: the repository was deleted at GitHub.
	ReasonGone = "Gone"
	// ReasonHumanCommits: the sync branch holds a person's commits. Nothing was
	// overwritten.
	ReasonHumanCommits = "HumanCommits"
	// ReasonClosedByPerson: a person closed the sync's pull request. It is left so
	// until there is something new.
	ReasonClosedByPerson = "ClosedByPerson"
	// ReasonNoCommits: a pull request would bring nothing.
	ReasonNoCommits = "NoCommits"
	// ReasonConversationLocked: the pull request takes no comments.
	ReasonConversationLocked = "ConversationLocked"
)

// Reasons of the group "Why a push was refused".
const (
	// ReasonPushDenied: the App may not push to the repository.
	ReasonPushDenied = "PushDenied"
	// ReasonWorkflowsPermission: the update changes workflow files, which the App
	// may not.
	ReasonWorkflowsPermission = "WorkflowsPermissionMissing"
	// ReasonRulesetViolation: a ruleset of the repository or organization forbids
	// the push; the message names it.
	ReasonRulesetViolation = "RulesetViolation"
	// ReasonBranchProtected: a branch protection rule forbids the push.
	ReasonBranchProtected = "BranchProtected"
	// ReasonPushProtection: GitHub found a secret in what was pushed.
	ReasonPushProtection = "PushProtection"
	// ReasonFileTooLarge: a file is above GitHub's limit of 100 MB.
	ReasonFileTooLarge = "FileTooLarge"
	// ReasonHiddenRef: the ref belongs to GitHub itself.
	ReasonHiddenRef = "HiddenRef"
	// ReasonStaleRef: the branch moved while it was being pushed. Nothing was
	// overwritten.
	ReasonStaleRef = "StaleRef"
	// ReasonPushRejected: GitHub refused the push without a more telling reason.
	ReasonPushRejected = "PushRejected"
)

var reasons = []Reason{
	{ReasonSucceeded, "Going well",
		"All is as wanted.",
		"Nothing."},
	{ReasonBuilt, "Going well",
		"The distribution is there.",
		"Nothing."},
	{ReasonUpToDate, "Going well",
		"Nothing was pushed to the source since the last sync; or the repository lacks nothing.",
		"Nothing."},
	{ReasonOpened, "Going well",
		"The last sync opened a pull request in the repository.",
		"Merge it when it suits."},
	{ReasonUpdated, "Going well",
		"The last sync reached the repository's open pull request.",
		"Merge it when it suits."},
	{ReasonAdopted, "Going well",
		"The repository existed before the project and was adopted.",
		"Nothing."},
	{ReasonUnlocked, "Going well",
		"Nothing locks the repository.",
		"Nothing."},
	{ReasonSecretsPresent, "Going well",
		"Every webhook secret is there, so deliveries can be verified.",
		"Nothing."},
	{ReasonSyncRequested, "Going well",
		"A request for a sync was accepted (event).",
		"Nothing: Synced tells when everyone has it."},
	{ReasonSyncCompleted, "Going well",
		"A pass over the repositories ended (event).",
		"Look at the counts in its message."},
	{ReasonBuilding, "Under way",
		"The distribution is being built.",
		"Wait."},
	{ReasonNotBuilt, "Under way",
		"The distribution is not there yet.",
		"Look at Ready, which says what it waits for."},
	{ReasonInProgress, "Under way",
		"A pass is under way.",
		"Wait; status.sync.progress says how far it is."},
	{ReasonPullRequestsQueued, "Under way",
		"All pushes are done; pull requests wait for GitHub's content limits.",
		"Wait; the message says until when."},
	{ReasonProvisioning, "Under way",
		"Repositories are being made or adopted.",
		"Wait."},
	{ReasonNeverSynced, "Under way",
		"No pass has ended yet.",
		"Ask for one: write a new value to spec.sync.request."},
	{ReasonAhead, "Under way",
		"The source was pushed to since the last sync.",
		"Sync when it suits you: write a new value to spec.sync.request."},
	{ReasonSyncWaiting, "Under way",
		"The last request waits for something that passes by itself.",
		"Look at status.sync.lastRequest; it is given up after 24 hours."},
	{ReasonProgressingWithRetry, "Under way",
		"Something failed that is tried again with growing pauses.",
		"Look at Ready, which names it."},
	{ReasonInterrupted, "Under way",
		"The process stopped; the work is taken up again by the next leader.",
		"Nothing."},
	{ReasonSuspended, "Wanted so",
		"spec.suspend of this object, its project or its App is true, or the entry is excluded in the list.",
		"Set suspend or exclude to false to go on."},
	{ReasonArchived, "Wanted so",
		"The project's stage is Archived.",
		"Set stage to Published to take work up again."},
	{ReasonNoEffectYet, "Wanted so",
		"Fields are set that have no effect in this version; the message lists them.",
		"Remove them, or leave them for a later version: they do no harm."},
	{ReasonNotSupportedYet, "Wanted so",
		"The object asks for something that this version cannot do and that must not be passed over.",
		"Remove what the message names."},
	{ReasonReleased, "Wanted so",
		"The row was given up: its entry left the list, or its object was deleted.",
		"Nothing; apply the entry again to take the repository back."},
	{ReasonUnexpected, "GitHub and the database",
		"An error nobody foresaw. It is retried with growing pauses.",
		"If it stays, report it with the message and the controller's log."},
	{ReasonDatabaseUnavailable, "GitHub and the database",
		"Postgres does not answer. Nothing is lost; work goes on by itself once it does.",
		"Look at the database and the connection the operator is given."},
	{ReasonDatabaseSchemaOld, "GitHub and the database",
		"The database's schema is older than this version needs.",
		"Run sluice migrate of this version."},
	{ReasonDatabaseSchemaNew, "GitHub and the database",
		"The database was migrated by a newer version.",
		"Run that version, or restore the database."},
	{ReasonDatabaseBoundElsewhere, "GitHub and the database",
		"The database serves another cluster's installation.",
		"Give this installation a database of its own, or move it here with sluice migrate --rebind."},
	{ReasonGitHubUnreachable, "GitHub and the database",
		"GitHub does not answer, or answers with a server error.",
		"Look at GitHub's status page and the cluster's way out; it is retried."},
	{ReasonRateLimited, "GitHub and the database",
		"GitHub asked to wait; the message says until when.",
		"Wait. If it happens often, lower spec.sync.concurrency or spread syncs out."},
	{ReasonGitHubRefused, "GitHub and the database",
		"GitHub refused a request without a more telling reason.",
		"Read GitHub's words in the message."},
	{ReasonNotFound, "GitHub and the database",
		"GitHub answered 404: not there, or not to be seen by the App. It is no proof of deletion.",
		"Check the name, and that the App's installation includes the repository."},
	{ReasonLeaseLost, "GitHub and the database",
		"Another leader took the work over.",
		"Nothing: the other one goes on."},
	{ReasonAppNotFound, "The App and its use",
		"The GitHubApp that spec.appRef names does not exist.",
		"Create it, or correct spec.appRef.name."},
	{ReasonAppNotReady, "The App and its use",
		"The GitHubApp is not Ready.",
		"Look at its conditions: kubectl describe ghapp."},
	{ReasonAppNotInstalled, "The App and its use",
		"The App is not installed on that organization or account.",
		"Install it there, from the App's public page."},
	{ReasonAppSuspended, "The App and its use",
		"The account suspends the App's installation.",
		"Unsuspend it in the account's settings, under installed GitHub Apps."},
	{ReasonSecretNotFound, "The App and its use",
		"A Secret that the GitHubApp names is missing, or may not be read.",
		"Create it in the operator's resource namespace, or correct the reference. It is noticed by itself."},
	{ReasonSecretKeyNotFound, "The App and its use",
		"The Secret lacks the key that is looked for.",
		"Add the key, or correct the reference."},
	{ReasonInvalidPrivateKey, "The App and its use",
		"The private key is no RSA key in PEM form.",
		"Store the file that GitHub gave when the key was made, unchanged."},
	{ReasonInvalidBaseURL, "The App and its use",
		"spec.baseURL is no address of GitHub's REST API.",
		"Write https://api.github.com, or https://HOST/api/v3."},
	{ReasonCredentialsRefused, "The App and its use",
		"GitHub refuses the key for this App ID.",
		"Check that appID and key belong together, that the key was not deleted at GitHub, and the cluster's clock."},
	{ReasonDuplicateApp, "The App and its use",
		"An older GitHubApp has the same appID and baseURL.",
		"Delete one of the two."},
	{ReasonPermissionMissing, "The App and its use",
		"The App lacks a permission that GitHub names in the message.",
		"Grant it in the App's settings, then have each account accept the change."},
	{ReasonNotGranted, "The App and its use",
		"No grant of the GitHubApp allows this namespace what the object asks for.",
		"Have a platform admin add it to spec.grants of the GitHubApp; the message says to which list."},
	{ReasonNoWebhookSecret, "The App and its use",
		"The GitHubApp names no webhook secret, so every delivery is refused.",
		"Write spec.webhookSecretRefs."},
	{ReasonWebhookElsewhere, "The App and its use",
		"The App's webhook goes to another address than this installation's.",
		"Set the webhook URL in the App's settings to the receiver's /webhooks/ path with the GitHubApp's name. Not reported yet."},
	{ReasonSourceNotFound, "Source and distribution",
		"The source does not exist, or the App cannot see it.",
		"Correct spec.source.repository, or add the repository to the App's installation."},
	{ReasonSourceBranchMissing, "Source and distribution",
		"The source lacks handed-out branches; the message names them.",
		"Push them, or correct spec.source.branches while the distribution is not built."},
	{ReasonSourceIsDistribution, "Source and distribution",
		"The source is itself a distribution (R-DIST-03).",
		"Name the repository that the distribution was made from."},
	{ReasonSourceChanged, "Source and distribution",
		"spec.source.repository names another repository than the one learnt. Only a rename may be followed.",
		"Write the old repository's present name, or make another ProjectSync."},
	{ReasonSourceRewritten, "Source and distribution",
		"With history Whole: the source's branches were rewritten, so that the distribution cannot follow without force.",
		"Restore the branches, or make another ProjectSync."},
	{ReasonSourceLeak, "Source and distribution",
		"Something to be handed out would tell receivers of the source. Nothing was pushed.",
		"Remove what the message names from the source or the template."},
	{ReasonSourceCycle, "Source and distribution",
		"The source of an OnPush project is downstream of itself.",
		"Sync by hand, or break the cycle. Not reported yet."},
	{ReasonInvalidHandOut, "Source and distribution",
		"The source's overlay directory or ignore file cannot be used.",
		"Mend the file that the message names."},
	{ReasonDistributionNameTaken, "Source and distribution",
		"The distribution's name belongs to a repository that must not be adopted (R-DIST-05).",
		"Choose another spec.distribution.repository, or empty that repository out and make it private."},
	{ReasonDistributionMissing, "Source and distribution",
		"The distribution is not built yet, or is gone.",
		"Look at DistributionBuilt; a deleted one has to be restored at GitHub."},
	{ReasonDistributionDiverged, "Source and distribution",
		"Somebody else pushed to the distribution.",
		"Nothing: it is looked at again. Keep people from pushing there."},
	{ReasonProjectArchived, "Source and distribution",
		"A sync was asked of an archived project.",
		"Set stage to Published first."},
	{ReasonDuplicateRepositories, "Source and distribution",
		"Entries of the list lead to one repository; the message names them.",
		"Give each its own repository, or exclude all but one."},
	{ReasonImmutableFieldChanged, "Source and distribution",
		"A field differs that is fixed once the distribution is built, as after a restore.",
		"Write the old value back, or make another ProjectSync."},
	{ReasonInvalidNameTemplate, "Source and distribution",
		"A template makes no legal name, or holds unknown fields.",
		"Correct spec.repositories.provision.nameTemplate."},
	{ReasonClaimedByOtherInstallation, "Source and distribution",
		"Another installation of the operator claims the distribution.",
		"Stop that one, or name it in spec.distribution.takeoverFrom. Not reported yet."},
	{ReasonTooManyRepositories, "Source and distribution",
		"The selector matches more than maxRepositories. Nothing was touched.",
		"Narrow it, or raise maxRepositories. Not reported yet."},
	{ReasonRecipientsUnreadable, "Source and distribution",
		"A ConfigMap of listFrom, or the selector, cannot be read. Nobody leaves for it.",
		"Mend what the message names. Not reported yet."},
	{ReasonRemovalNeedsConfirmation, "Source and distribution",
		"Many repositories would leave at once.",
		"Put them back, or write their number to spec.repositories.confirmRemoval. Not reported yet."},
	{ReasonSyncInProgress, "Requests and passes",
		"A sync was asked for while another runs.",
		"Nothing: the newest request is taken up when the pass ends."},
	{ReasonSyncRefused, "Requests and passes",
		"The last request was refused; status.sync.lastRequest says why.",
		"Mend that, then write a new value to spec.sync.request."},
	{ReasonExpired, "Requests and passes",
		"A request waited 24 hours for something that did not pass.",
		"Mend what lastRequest names, then write a new value to spec.sync.request."},
	{ReasonSomeRepositoriesFailed, "Requests and passes",
		"A pass ended with failures; the others have what was synced.",
		"Look at status.failing, then sync again: it reaches those that failed."},
	{ReasonHeld, "Requests and passes",
		"In some repositories somebody's work is in the way. Nothing was overwritten.",
		"Look at status.failing."},
	{ReasonMaxFailuresReached, "Requests and passes",
		"A pass ended early because more repositories failed than spec.sync.maxFailures.",
		"Mend what status.failing names, then sync again. Not reported yet."},
	{ReasonNotAttempted, "Requests and passes",
		"The pass ended before this repository's turn.",
		"Sync again."},
	{ReasonFailed, "One downstream repository",
		"The last sync failed on the repository.",
		"Read the message, then sync again."},
	{ReasonSkipped, "One downstream repository",
		"The last sync left the repository alone.",
		"Read the message."},
	{ReasonNotProvisioned, "One downstream repository",
		"The repository is not made or adopted yet.",
		"Look at Provisioned."},
	{ReasonRepositoryNameTaken, "One downstream repository",
		"The name belongs to a repository that this project did not make (R-PROV-05). It was left alone.",
		"To adopt it, write it as the entry's repository; else rename one of the two."},
	{ReasonRepositoryClaimed, "One downstream repository",
		"Another project works on this repository. The first claim stands.",
		"Remove it from one of the two."},
	{ReasonRepositoryChanged, "One downstream repository",
		"The name is now another repository than the one learnt. Nothing is written to it.",
		"Write the repository's present name, or remove the entry."},
	{ReasonRepositoryNotFound, "One downstream repository",
		"The repository to adopt does not exist, or the App cannot see it.",
		"Correct the entry's repository, or add it to the App's installation."},
	{ReasonRepositoryArchived, "One downstream repository",
		"The repository is archived and takes no pushes.",
		"Unarchive it, or exclude the entry."},
	{ReasonRepositoryEmpty, "One downstream repository",
		"The repository has no commit, so that no pull request can be opened.",
		"Push a first commit to it."},
	{ReasonRepositoryBlocked, "One downstream repository",
		"GitHub disabled the repository.",
		"Ask its owner to settle this with GitHub."},
	{ReasonUnrelatedHistories, "One downstream repository",
		"The repository shares no history with the distribution.",
		"Merge the distribution's branch into it once by hand, or exclude the entry."},
	{ReasonBranchMissing, "One downstream repository",
		"The repository lacks a branch that is handed out.",
		"Create the branch from the distribution's."},
	{ReasonNotLive, "One downstream repository",
		"The repository no longer belongs to the project.",
		"Put its entry back into the list if it should."},
	{ReasonDeadlinePassed, "One downstream repository",
		"The effective deadline is reached, so that syncs leave the repository alone (R-SYNC-03).",
		"Move the deadline if the update must still arrive."},
	{ReasonLocked, "One downstream repository",
		"The repository is locked.",
		"Unlock it if the update must still arrive."},
	{ReasonNotFoundOnce, "One downstream repository",
		"GitHub answered 404 for the repository once. A second time it counts as gone.",
		"If it still exists, add it to the App's installation."},
	{ReasonGone, "One downstream repository",
		"The repository was deleted at GitHub.",
		"Restore it there within 90 days, or remove the entry."},
	{ReasonHumanCommits, "One downstream repository",
		"The sync branch holds a person's commits. Nothing was overwritten.",
		"Merge or delete that branch, then sync again."},
	{ReasonClosedByPerson, "One downstream repository",
		"A person closed the sync's pull request. It is left so until there is something new.",
		"Reopen it to take the update after all."},
	{ReasonNoCommits, "One downstream repository",
		"A pull request would bring nothing.",
		"Nothing."},
	{ReasonConversationLocked, "One downstream repository",
		"The pull request takes no comments.",
		"Unlock its conversation, or set spec.pullRequest.announce to None."},
	{ReasonPushDenied, "Why a push was refused",
		"The App may not push to the repository.",
		"Include the repository in the App's installation, with permission Contents: write."},
	{ReasonWorkflowsPermission, "Why a push was refused",
		"The update changes workflow files, which the App may not.",
		"Grant the App the permission Workflows: write."},
	{ReasonRulesetViolation, "Why a push was refused",
		"A ruleset of the repository or organization forbids the push; the message names it.",
		"Add the App to the ruleset's bypass list."},
	{ReasonBranchProtected, "Why a push was refused",
		"A branch protection rule forbids the push.",
		"Let the App push to branches with the prefix, or narrow the rule."},
	{ReasonPushProtection, "Why a push was refused",
		"GitHub found a secret in what was pushed.",
		"Remove it from the source's history, or allow it at GitHub."},
	{ReasonFileTooLarge, "Why a push was refused",
		"A file is above GitHub's limit of 100 MB.",
		"Remove it from the source, or keep it with Git LFS."},
	{ReasonHiddenRef, "Why a push was refused",
		"The ref belongs to GitHub itself.",
		"Choose another branch or branchPrefix."},
	{ReasonStaleRef, "Why a push was refused",
		"The branch moved while it was being pushed. Nothing was overwritten.",
		"Nothing: the next sync looks again."},
	{ReasonPushRejected, "Why a push was refused",
		"GitHub refused the push without a more telling reason.",
		"Read GitHub's words in the message."},
}
