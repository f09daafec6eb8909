// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Stage is how far a project has come.
// +kubebuilder:validation:Enum=Draft;Published;Archived
type Stage string

// Stages of a project.
const (
	StageDraft     Stage = "Draft"
	StagePublished Stage = "Published"
	StageArchived  Stage = "Archived"
)

// DeletionPolicy says what becomes of a deleted project's rows.
// +kubebuilder:validation:Enum=Retain;Purge
type DeletionPolicy string

// Deletion policies. Neither calls GitHub.
const (
	DeletionRetain DeletionPolicy = "Retain"
	DeletionPurge  DeletionPolicy = "Purge"
)

// ProjectSyncSpec is one project: a source, its distribution, who receives it,
// and the wish to sync.
// +kubebuilder:validation:XValidation:rule="!has(self.pullRequest) || !has(self.pullRequest.branchPrefix) || self.source.branches.all(b, !b.startsWith(self.pullRequest.branchPrefix) && !self.pullRequest.branchPrefix.startsWith(b + '/'))",message="a branch of source.branches collides with pullRequest.branchPrefix, whose branches are overwritten by syncs: choose another branchPrefix"
// +kubebuilder:validation:XValidation:rule="!has(self.distribution) || !has(self.distribution.repository) || self.distribution.repository.lowerAscii() != self.source.repository.lowerAscii()",message="distribution.repository must be another repository than source.repository: receivers never learn of the source"
// +kubebuilder:validation:XValidation:rule="!has(self.repositories) || !has(self.repositories.list) || self.repositories.list.all(r, !has(r.repository) || r.repository.lowerAscii() != self.source.repository.lowerAscii())",message="repositories.list names the source as somebody's repository: remove that entry"
// +kubebuilder:validation:XValidation:rule="!has(self.repositories) || !has(self.repositories.list) || !has(self.distribution) || !has(self.distribution.repository) || self.repositories.list.all(r, !has(r.repository) || r.repository.lowerAscii() != self.distribution.repository.lowerAscii())",message="repositories.list names the distribution as somebody's repository: remove that entry"
// +kubebuilder:validation:XValidation:rule="(!has(self.repositories) || !has(self.repositories.organization)) && (!has(oldSelf.repositories) || !has(oldSelf.repositories.organization)) || (has(self.repositories) && has(self.repositories.organization) ? self.repositories.organization : self.source.repository.split('/')[0]).lowerAscii() == (has(oldSelf.repositories) && has(oldSelf.repositories.organization) ? oldSelf.repositories.organization : oldSelf.source.repository.split('/')[0]).lowerAscii()",message="repositories.organization is immutable (left out it is the source's owner): make another ProjectSync for another organization"
type ProjectSyncSpec struct {
	// AppRef names the GitHubApp that does the work. One of its grants must
	// allow this namespace the source, the organizations and the repositories.
	// Immutable once the distribution is built.
	AppRef AppReference `json:"appRef"`
	// Stage: Draft builds and syncs the distribution only; Published makes or
	// adopts the repositories too; Archived stops all new work (R-DIST-14).
	// Never back to Draft. Default Draft.
	// +kubebuilder:default=Draft
	// +kubebuilder:validation:XValidation:rule="self != 'Draft' || oldSelf == 'Draft'",message="stage never goes back to Draft: use Archived to stop work, or suspend"
	// +optional
	Stage Stage `json:"stage,omitempty"`
	// Suspend pauses outgoing work: pushes and pull requests wait, a running
	// pass stops within one repository. Incoming events are still recorded.
	// Default false.
	// +kubebuilder:default=false
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// DeletionPolicy: Retain marks the rows released, so that a project
	// proven the same can take them back, and deletes them after 90 days;
	// Purge deletes them at once. Neither calls GitHub (R-CORE-07, R-DIST-13).
	// Default Retain.
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// Source repository. Receivers never learn of it.
	Source Source `json:"source"`
	// Distribution repository: the private copy that receivers get pushes
	// from. It is never deleted (R-CORE-07).
	// +optional
	Distribution *Distribution `json:"distribution,omitempty"`
	// Repositories downstream, and how they are made.
	// +optional
	Repositories *Repositories `json:"repositories,omitempty"`
	// Deadline of all repositories without one of their own (R-DL-01). Default
	// none.
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`
	// ProtectedFiles are restored when somebody changes them (R-PROT-01), as
	// exact paths. No effect yet.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	ProtectedFiles []FilePath `json:"protectedFiles,omitempty"`
	// Protection of the default branch. No effect yet.
	// +optional
	Protection *Protection `json:"protection,omitempty"`
	// Runs of CI that count. No effect yet.
	// +optional
	Runs *ProjectRuns `json:"runs,omitempty"`
	// Reconcile holds the defaults of all its repositories. No effect yet.
	// +optional
	Reconcile *ReconcileSettings `json:"reconcile,omitempty"`
	// Notifications say which channel of the GitHubApp is told what. No effect
	// yet.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=channel
	// +optional
	Notifications []Notification `json:"notifications,omitempty"`
	// PullRequest shapes the pull requests of a sync.
	// +kubebuilder:default={}
	// +optional
	PullRequest *PullRequest `json:"pullRequest,omitempty"`
	// Sync holds the wish to sync, and how it is carried out.
	// +optional
	Sync *Sync `json:"sync,omitempty"`
}

// Source is the repository handed out.
// +kubebuilder:validation:XValidation:rule="!(has(self.history) && self.history == 'Whole') || (!has(self.overlayDirectory) && !has(self.ignoreFile))",message="overlayDirectory and ignoreFile work with history Squash only: Whole hands the history out unchanged"
type Source struct {
	// Repository as owner/name. It may change only to another name of the
	// same repository: to follow a rename. A distribution is never a source
	// (R-DIST-03).
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]{1,100}$') && !self.matches(r'(?i)(/[.]{1,2}|[.]git)$')`,message="write the repository as owner/name: without https://, without .git"
	Repository string `json:"repository"`
	// Branches handed out, in this order; the first is the default branch.
	// Immutable once the distribution is built (R-DIST-11). Default [main].
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="self.all(b, self.exists_one(c, c == b))",message="each branch may be listed once"
	// +kubebuilder:default={"main"}
	// +listType=atomic
	// +optional
	Branches []Branch `json:"branches,omitempty"`
	// History: Squash hands each state out as one commit, without the
	// source's history; Whole hands the branches out with it (R-DIST-07).
	// Immutable once the distribution is built (R-DIST-11). Default Squash.
	// +kubebuilder:validation:Enum=Squash;Whole
	// +kubebuilder:default=Squash
	// +optional
	History string `json:"history,omitempty"`
	// Interval at which the heads are read for trigger OnPush, as a duration
	// of at least 1m. Default 10m. No effect yet.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m')`,message="write a duration of at least 1m, such as 10m"
	// +kubebuilder:default="10m"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// OverlayDirectory is merged over the root of what is handed out, and
	// removed (R-DIST-08), such as handout. Default none. Squash only.
	// +optional
	OverlayDirectory FilePath `json:"overlayDirectory,omitempty"`
	// IgnoreFile names the file that lists paths which are not handed out, one
	// a line (R-DIST-08), such as .handoutignore. Default none. Squash only.
	// +optional
	IgnoreFile FilePath `json:"ignoreFile,omitempty"`
}

// Distribution is the private copy of what is handed out.
type Distribution struct {
	// Repository as owner/name. Default: the source's owner and
	// <metadata.name>-squashed (-dist under Whole), with a suffix -2 to -20
	// when taken (R-DIST-05). A name written here never gets a suffix.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]{1,100}$') && !self.matches(r'(?i)(/[.]{1,2}|[.]git)$')`,message="write the repository as owner/name: without https://, without .git"
	// +optional
	Repository string `json:"repository,omitempty"`
	// TakeoverFrom is the id of the installation of this operator whose claim
	// on the distribution is taken over. No effect yet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	TakeoverFrom string `json:"takeoverFrom,omitempty"`
}

// Repositories says who receives the project, and how their repositories are
// made.
// +kubebuilder:validation:XValidation:rule="has(self.provision) || !has(self.list) || self.list.all(r, has(r.repository) || (has(r.exclude) && r.exclude))",message="an entry of list without repository needs provision, which says how its repository is made: write the entry's repository, or provision.nameTemplate"
type Repositories struct {
	// Organization in which repositories are made, as a login. Default: the
	// source's owner. Immutable.
	// +optional
	Organization Login `json:"organization,omitempty"`
	// Provision says how missing repositories are made. Absent: only
	// existing ones are adopted.
	// +optional
	Provision *Provision `json:"provision,omitempty"`
	// Unrelated says what to do with a repository that shares no history with
	// the distribution: Refuse fails it, reason UnrelatedHistories; Overlay
	// lays the files over its own. Default Refuse. Overlay has no effect yet.
	// +kubebuilder:validation:Enum=Refuse;Overlay
	// +kubebuilder:default=Refuse
	// +optional
	Unrelated string `json:"unrelated,omitempty"`
	// OnRemoval says what becomes of a repository that leaves the list: Keep
	// leaves GitHub alone, Revoke takes its members' access away (R-INV-04).
	// Default Keep. Revoke has no effect yet.
	// +kubebuilder:validation:Enum=Keep;Revoke
	// +kubebuilder:default=Keep
	// +optional
	OnRemoval string `json:"onRemoval,omitempty"`
	// ConfirmRemoval confirms that this many repositories leave at once, where
	// RemovalNeedsConfirmation asks for it. No effect yet.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	ConfirmRemoval *int32 `json:"confirmRemoval,omitempty"`
	// Objects says how many RepoReconciles are made.
	// +optional
	Objects *Objects `json:"objects,omitempty"`
	// List of recipients, at most 1,000, keyed by recipient. That no two name
	// the same repository is checked at run time (DuplicateRepositories).
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=recipient
	// +optional
	List []Recipient `json:"list,omitempty"`
	// ListFrom reads more recipients from ConfigMaps, as CSV with the columns
	// of list. No effect yet.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	ListFrom []ListSource `json:"listFrom,omitempty"`
	// Selector adopts existing repositories by what they are. No effect yet.
	// +optional
	Selector *RepositorySelector `json:"selector,omitempty"`
}

// Provision says how a missing repository is made.
type Provision struct {
	// NameTemplate makes the repository's name, such as
	// lab1-{{ .recipient }}. It knows {{ .recipient }}, the entry's key, and
	// {{ .project }}, this object's name; the first must be there.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'[{][{] *[.]recipient *[}][}]')`,message="nameTemplate must hold {{ .recipient }}, or all repositories would have one name"
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([A-Za-z0-9._-]|[{][{] *[.](recipient|project) *[}][}])+$')`,message="nameTemplate may hold letters, digits, . _ - and the fields {{ .recipient }} and {{ .project }}, nothing else"
	NameTemplate string `json:"nameTemplate"`
	// Visibility of made repositories: Private, or Internal to the enterprise.
	// Default Private.
	// +kubebuilder:validation:Enum=Private;Internal
	// +kubebuilder:default=Private
	// +optional
	Visibility string `json:"visibility,omitempty"`
	// Permission of invited members, never more than Push (R-PRIV-05). Default
	// Push. No effect yet: invitations are not sent in this version.
	// +kubebuilder:validation:Enum=Pull;Triage;Push
	// +kubebuilder:default=Push
	// +optional
	Permission string `json:"permission,omitempty"`
}

// Objects bounds how many RepoReconciles a project makes.
type Objects struct {
	// Limit of RepoReconciles, in objects. Repositories beyond it are worked
	// on all the same; the limit stops creation only and deletes nothing.
	// Default 1000.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	// +kubebuilder:default=1000
	// +optional
	Limit *int32 `json:"limit,omitempty"`
}

// Recipient is one entry of the list: who receives, in which repository.
type Recipient struct {
	// Recipient is the entry's key: a person's or group's short name.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$')`,message="write a recipient with letters, digits and . _ - between them: repository names and labels are made from it"
	Recipient string `json:"recipient"`
	// Members who work in the repository. They are recorded; no effect yet:
	// invitations are not sent in this version.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=login
	// +optional
	Members []Member `json:"members,omitempty"`
	// Repository that exists already, as owner/name: it is adopted, never
	// made. Left out, one is made by provision.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]{1,100}$') && !self.matches(r'(?i)(/[.]{1,2}|[.]git)$')`,message="write the repository as owner/name: without https://, without .git"
	// +optional
	Repository string `json:"repository,omitempty"`
	// Deadline of this repository alone, instead of the project's (R-DL-12).
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`
	// Exclude keeps the entry and does no work on its repository. Default
	// false.
	// +optional
	Exclude bool `json:"exclude,omitempty"`
	// Test marks a repository of the staff's own, left out of counts
	// (R-PROV-11). Default false. No effect yet.
	// +optional
	Test bool `json:"test,omitempty"`
}

// ListSource names a ConfigMap key with recipients as CSV.
type ListSource struct {
	// ConfigMapRef in the project's namespace.
	ConfigMapRef ConfigMapKeyReference `json:"configMapRef"`
}

// ConfigMapKeyReference names one key of a ConfigMap in the same namespace.
type ConfigMapKeyReference struct {
	// Name of the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key within the ConfigMap.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// RepositorySelector adopts existing repositories by what they are. It never
// yields a source, a distribution or an archived repository.
// +kubebuilder:validation:XValidation:rule="(has(self.names) && size(self.names) > 0) || (has(self.topics) && size(self.topics) > 0) || (has(self.properties) && size(self.properties) > 0)",message="a selector must choose by names, topics or properties: for every repository of the organization write names: [\"*\"]"
type RepositorySelector struct {
	// Names as patterns with *, such as svc-*: one of them must match. No
	// effect yet.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9._*-]+$`
	// +listType=set
	// +optional
	Names []string `json:"names,omitempty"`
	// Topics a repository must have, all of them. No effect yet.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=50
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9][a-z0-9-]*$`
	// +listType=set
	// +optional
	Topics []string `json:"topics,omitempty"`
	// Properties are custom properties a repository must have, all of them. No
	// effect yet.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Properties []Property `json:"properties,omitempty"`
	// ExcludeNames as patterns with *: none of them may match. No effect yet.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9._*-]+$`
	// +listType=set
	// +optional
	ExcludeNames []string `json:"excludeNames,omitempty"`
	// IncludeForks too. Default false. No effect yet.
	// +optional
	IncludeForks bool `json:"includeForks,omitempty"`
	// MaxRepositories the selector may match; above it nothing is touched
	// (TooManyRepositories). No effect yet.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxRepositories int32 `json:"maxRepositories"`
}

// Property is a custom property of a repository.
type Property struct {
	// Name of the property.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=75
	Name string `json:"name"`
	// Value it must have.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Value string `json:"value"`
}

// Protection of a repository's default branch.
type Protection struct {
	// Mode: Ruleset forbids force pushes and deletion of the default branch
	// (R-PROV-10), None does nothing. Default None. Ruleset has no effect yet.
	// +kubebuilder:validation:Enum=Ruleset;None
	// +kubebuilder:default=None
	// +optional
	Mode string `json:"mode,omitempty"`
}

// ProjectRuns say which CI runs count.
type ProjectRuns struct {
	// GradedWorkflow is the file name of the workflow whose runs count, such
	// as grading.yml. No effect yet.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:MinLength=1
	// +optional
	GradedWorkflow string `json:"gradedWorkflow,omitempty"`
	// FinalReview is dispatched at the definitive freeze when Enabled
	// (R-DISP-01). Default Disabled. No effect yet.
	// +kubebuilder:validation:Enum=Enabled;Disabled
	// +kubebuilder:default=Disabled
	// +optional
	FinalReview string `json:"finalReview,omitempty"`
}

// Notification says what a channel is told.
type Notification struct {
	// Channel of the GitHubApp, by name. No effect yet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Channel string `json:"channel"`
	// Events that it is told: PassEnded, Held, Failed. No effect yet.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	Events []NotificationEvent `json:"events"`
}

// NotificationEvent is something worth telling.
// +kubebuilder:validation:Enum=PassEnded;Held;Failed
type NotificationEvent string

// Events worth telling.
const (
	// NotifyPassEnded: a pass ended, with its counts.
	NotifyPassEnded NotificationEvent = "PassEnded"
	// NotifyHeld: a repository is held for the first time.
	NotifyHeld NotificationEvent = "Held"
	// NotifyFailed: a repository failed for the first time.
	NotifyFailed NotificationEvent = "Failed"
)

// PullRequest shapes the pull requests of a sync.
type PullRequest struct {
	// BranchPrefix of the branch that a pull request comes from: sync/main
	// onto main. Syncs overwrite branches with this prefix (R-SYNC-05).
	// Immutable. Default sync/.
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([A-Za-z0-9_][A-Za-z0-9._-]*/)+$') && !self.matches(r'[.][.]|[.]/|[.]lock/') && !self.startsWith('refs/')`,message="write branchPrefix as the start of a branch name that ends in a slash, such as sync/"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="branchPrefix is immutable: open pull requests come from branches named by it"
	// +kubebuilder:default="sync/"
	// +optional
	BranchPrefix string `json:"branchPrefix,omitempty"`
	// Title template. It knows {{ .branch }}, {{ .sha }}, which is the
	// distribution's short one (R-PR-04), and {{ .project }}. Default
	// "Update {{ .branch }} to {{ .sha }}".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule=`self.findAll(r'[{][{]|[}][}]').size() == 2 * self.findAll(r'[{][{] *[.](branch|sha|project) *[}][}]').size()`,message="title knows {{ .branch }}, {{ .sha }} and {{ .project }} only: write no other {{ or }}"
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\x00-\x1f]')`,message="title must be one line"
	// +optional
	Title string `json:"title,omitempty"`
	// Body template. It knows the title's fields, {{ .files }}, a list of at
	// most 50 changed files, and {{ .count }}, their number in words. Default:
	// a short text that says what to do with the pull request.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10000
	// +kubebuilder:validation:XValidation:rule=`self.findAll(r'[{][{]|[}][}]').size() == 2 * self.findAll(r'[{][{] *[.](branch|sha|project|files|count) *[}][}]').size()`,message="body knows {{ .branch }}, {{ .sha }}, {{ .project }}, {{ .files }} and {{ .count }} only: write no other {{ or }}"
	// +optional
	Body string `json:"body,omitempty"`
	// Labels put on new pull requests. GitHub makes those that are missing.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=50
	// +listType=set
	// +optional
	Labels []string `json:"labels,omitempty"`
	// Reviewers asked on new pull requests, as logins. No effect yet.
	// +kubebuilder:validation:MaxItems=15
	// +listType=set
	// +optional
	Reviewers []Login `json:"reviewers,omitempty"`
	// Assignees of new pull requests, as logins. No effect yet.
	// +kubebuilder:validation:MaxItems=10
	// +listType=set
	// +optional
	Assignees []Login `json:"assignees,omitempty"`
	// Draft pull requests. Private repositories on GitHub Free refuse them.
	// Default false.
	// +optional
	Draft bool `json:"draft,omitempty"`
	// Announce says how an update of an open pull request is told: Comment on
	// it (R-PR-03), or None. Default Comment.
	// +kubebuilder:validation:Enum=Comment;None
	// +kubebuilder:default=Comment
	// +optional
	Announce string `json:"announce,omitempty"`
	// WhenEmpty says what becomes of a pull request that no longer brings
	// anything: Close or Leave. Default Close. No effect yet: it is left open.
	// +kubebuilder:validation:Enum=Close;Leave
	// +kubebuilder:default=Close
	// +optional
	WhenEmpty string `json:"whenEmpty,omitempty"`
}

// Sync holds the wish to sync.
type Sync struct {
	// Request asks for one sync: any new value; the same value never runs
	// twice. A date does well. The annotation sluice.dev/sync-requested-at
	// does the same.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]+$`
	// +optional
	Request string `json:"request,omitempty"`
	// RequestedBy says who asks. It is recorded as claimed, not checked.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]+$`
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
	// Trigger of syncs that nobody asks for (R-REQ-08). Default Manual. OnPush
	// and Schedule have no effect yet.
	// +optional
	Trigger *Trigger `json:"trigger,omitempty"`
	// Concurrency is how many repositories are in API work at once
	// (R-SYNC-02). Default 4.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +kubebuilder:default=4
	// +optional
	Concurrency int32 `json:"concurrency,omitempty"`
	// Force lets that exact head of a repository's sync branch be
	// overwritten; any other stays held. No effect yet.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=repository
	// +optional
	Force []ForcedHead `json:"force,omitempty"`
	// Waves bring a sync out in parts, cumulatively over the repositories
	// fixed at its start. No effect yet.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Waves []Wave `json:"waves,omitempty"`
	// MaxFailures ends a pass early when more repositories failed: a number,
	// or a percentage such as 10%. Left out, a pass goes on (R-CORE-15). No
	// effect yet.
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule=`type(self) == string ? string(self).matches(r'^(100|[1-9]?[0-9])%$') : (int(self) >= 0 && int(self) <= 100000)`,message="write maxFailures as a number from 0 to 100000, or as a percentage such as 10%"
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
}

// Trigger starts syncs by itself.
// +union
// +kubebuilder:validation:XValidation:rule="self.type == 'OnPush' || !has(self.onPush)",message="onPush goes with type OnPush only"
// +kubebuilder:validation:XValidation:rule="self.type == 'Schedule' ? has(self.schedule) : !has(self.schedule)",message="set schedule exactly when type is Schedule"
type Trigger struct {
	// Type: Manual waits to be asked, OnPush syncs after a push to the source,
	// Schedule at set times. Default Manual.
	// +kubebuilder:validation:Enum=Manual;OnPush;Schedule
	// +kubebuilder:default=Manual
	// +unionDiscriminator
	Type string `json:"type"`
	// OnPush settings, with type OnPush only. No effect yet.
	// +optional
	OnPush *OnPushTrigger `json:"onPush,omitempty"`
	// Schedule settings, with type Schedule only. No effect yet.
	// +optional
	Schedule *ScheduleTrigger `json:"schedule,omitempty"`
}

// OnPushTrigger syncs after a push to the source.
type OnPushTrigger struct {
	// QuietPeriod without another push before a sync starts, as a duration.
	// Default 10m. No effect yet.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,4}$')`,message="write a duration such as 10m"
	// +kubebuilder:default="10m"
	// +optional
	QuietPeriod *metav1.Duration `json:"quietPeriod,omitempty"`
}

// ScheduleTrigger syncs at set times.
type ScheduleTrigger struct {
	// Cron expression of five fields: minute, hour, day of the month, month,
	// day of the week. No effect yet.
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[0-9A-Za-z*,/?-]+( +[0-9A-Za-z*,/?-]+){4}$')`,message="write cron as five fields, such as 0 6 * * 1 for Mondays at six"
	Cron string `json:"cron"`
	// TimeZone of the expression, as in the tz database, such as
	// Europe/Zurich. Default UTC. No effect yet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`
	// +kubebuilder:default=UTC
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// StartingDeadline after which a missed slot is dropped, as a duration.
	// Default 1h. No effect yet.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,4}$')`,message="write a duration such as 1h"
	// +kubebuilder:default="1h"
	// +optional
	StartingDeadline *metav1.Duration `json:"startingDeadline,omitempty"`
}

// ForcedHead lets one head of a sync branch be overwritten.
type ForcedHead struct {
	// Repository as owner/name. No effect yet.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]{1,100}$') && !self.matches(r'(?i)(/[.]{1,2}|[.]git)$')`,message="write the repository as owner/name: without https://, without .git"
	Repository string `json:"repository"`
	// Head that may be overwritten: a full object id. No effect yet.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40,64}$`
	// +kubebuilder:validation:MaxLength=64
	Head string `json:"head"`
}

// Wave is a part of a sync's repositories, counted from the first wave on.
type Wave struct {
	// UpTo so many repositories, as a number or as a percentage such as 25%.
	// No effect yet.
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule=`type(self) == string ? string(self).matches(r'^(100|[1-9][0-9]?)%$') : (int(self) >= 1 && int(self) <= 100000)`,message="write upTo as a number from 1 to 100000, or as a percentage such as 25%"
	UpTo intstr.IntOrString `json:"upTo"`
	// Then says what the next wave waits for. No effect yet.
	Then Gate `json:"then"`
}

// Gate is what the next wave waits for.
// +union
// +kubebuilder:validation:XValidation:rule="self.type == 'Pause' ? has(self.pause) : !has(self.pause)",message="set pause exactly when type is Pause"
type Gate struct {
	// Type: Pause waits a time, Merged for the wave's pull requests to be
	// merged, Approval for a person. No effect yet.
	// +kubebuilder:validation:Enum=Pause;Merged;Approval
	// +unionDiscriminator
	Type string `json:"type"`
	// Pause before the next wave, as a duration; with type Pause only. No
	// effect yet.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^([0-9]{1,5}([.][0-9]{1,9})?(ms|s|m|h)){1,4}$')`,message="write a duration such as 1h"
	// +optional
	Pause *metav1.Duration `json:"pause,omitempty"`
}

// ProjectSyncStatus is what is known of the project.
type ProjectSyncStatus struct {
	// ObservedGeneration is the generation last acted on; -1 before the first
	// look.
	// +kubebuilder:default=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Ready, Reconciling, Stalled, DistributionBuilt,
	// SourceAhead, Synced, FieldsIgnored.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Stage last acted on.
	// +optional
	Stage Stage `json:"stage,omitempty"`
	// Source as learnt.
	// +optional
	Source *SourceStatus `json:"source,omitempty"`
	// Ahead lists the branches on which the source is ahead of what was
	// handed out.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=branch
	// +optional
	Ahead []AheadStatus `json:"ahead,omitempty"`
	// AheadBy sums the commits up in one string for the column, such as
	// "12 commits"; "yes" where a branch's number is unknown (R-AHEAD-05).
	// +kubebuilder:validation:MaxLength=64
	// +optional
	AheadBy string `json:"aheadBy,omitempty"`
	// Distribution as built.
	// +optional
	Distribution *DistributionStatus `json:"distribution,omitempty"`
	// Sync requests and passes.
	// +optional
	Sync *SyncStatus `json:"sync,omitempty"`
	// Repositories by state.
	// +optional
	Repositories *RepositoriesStatus `json:"repositories,omitempty"`
	// Outcomes are the repositories' last ones (R-SYNC-11).
	// +optional
	Outcomes *Outcomes `json:"outcomes,omitempty"`
	// Failing is a sample of at most 20 failed or held repositories, each
	// listed once.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=repository
	// +optional
	Failing []FailingRepository `json:"failing,omitempty"`
	// NextAction says what happens next, or what somebody has to do.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	NextAction string `json:"nextAction,omitempty"`
	// LastEvent about the source or the distribution.
	// +optional
	LastEvent *Event `json:"lastEvent,omitempty"`
}

// Head is a branch's tip.
type Head struct {
	// Branch name.
	// +kubebuilder:validation:MaxLength=200
	Branch string `json:"branch"`
	// SHA at its tip.
	// +kubebuilder:validation:MaxLength=64
	SHA string `json:"sha"`
}

// SourceStatus is the source as learnt.
type SourceStatus struct {
	// RepositoryID is GitHub's id.
	RepositoryID int64 `json:"repositoryID"`
	// Heads handed out.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=branch
	// +optional
	Heads []Head `json:"heads,omitempty"`
}

// AheadStatus says how far the source is ahead on one branch.
type AheadStatus struct {
	// Branch name.
	// +kubebuilder:validation:MaxLength=200
	Branch string `json:"branch"`
	// SHA pushed last.
	// +kubebuilder:validation:MaxLength=64
	SHA string `json:"sha"`
	// PushedAt is when the push was received.
	PushedAt metav1.Time `json:"pushedAt"`
	// Commits past what was handed out; absent when unknown (R-AHEAD-02).
	// +optional
	Commits *int32 `json:"commits,omitempty"`
}

// DistributionStatus is the distribution as built.
type DistributionStatus struct {
	// RepositoryID is GitHub's id, written once the repository is claimed
	// (R-DIST-06). From then on branches, history and appRef are fixed.
	RepositoryID int64 `json:"repositoryID"`
	// Repository as owner/name.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	Repository string `json:"repository,omitempty"`
	// Heads of its branches.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=branch
	// +optional
	Heads []Head `json:"heads,omitempty"`
}

// SyncStatus is where requests and passes are.
type SyncStatus struct {
	// LastRequest and what became of it.
	// +optional
	LastRequest *RequestStatus `json:"lastRequest,omitempty"`
	// InProgress is the pass under way.
	// +optional
	InProgress *PassStatus `json:"inProgress,omitempty"`
	// Progress in one string, e.g. "3/6".
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Progress string `json:"progress,omitempty"`
	// LastCompleted is the last pass that ended.
	// +optional
	LastCompleted *CompletedPass `json:"lastCompleted,omitempty"`
}

// RequestStatus is a token and its answer.
type RequestStatus struct {
	// Token asked with.
	// +kubebuilder:validation:MaxLength=300
	Token string `json:"token"`
	// Source of the token: spec, annotation, push or schedule.
	// +kubebuilder:validation:MaxLength=32
	Source string `json:"source"`
	// Answer: Accepted, Waiting, Refused, Superseded, Cancelled, Recovered or
	// Built.
	// +kubebuilder:validation:MaxLength=32
	Answer string `json:"answer"`
	// Reason of the answer, where there is one.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message for people.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Message string `json:"message,omitempty"`
	// Time of the answer.
	Time metav1.Time `json:"time"`
}

// PassStatus is the pass under way.
type PassStatus struct {
	// Phase of the pass.
	// +kubebuilder:validation:MaxLength=32
	Phase string `json:"phase"`
	// Settled repositories so far.
	Settled int32 `json:"settled"`
	// Pushed so far. Equal to settled until pushes run ahead of pull requests.
	// +optional
	Pushed int32 `json:"pushed,omitempty"`
	// Opened pull requests so far.
	// +optional
	Opened int32 `json:"opened,omitempty"`
	// Total repositories of the pass.
	Total int32 `json:"total"`
	// WaitingFor says what the pass waits for.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	WaitingFor string `json:"waitingFor,omitempty"`
	// ETA is when it should be done.
	// +optional
	ETA *metav1.Time `json:"eta,omitempty"`
	// StartedAt is when it began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
}

// CompletedPass is a pass that ended.
type CompletedPass struct {
	// Time it ended.
	Time metav1.Time `json:"time"`
	// Token it answered.
	// +kubebuilder:validation:MaxLength=300
	// +optional
	Token string `json:"token,omitempty"`
	// Counts of its repositories.
	Counts Outcomes `json:"counts"`
}

// Outcomes are numbers of repositories by outcome.
type Outcomes struct {
	// Opened: a new pull request.
	Opened int32 `json:"opened"`
	// Updated: an open pull request brings the update.
	Updated int32 `json:"updated"`
	// UpToDate: nothing to bring.
	UpToDate int32 `json:"upToDate"`
	// Held: somebody's work is in the way, nothing was overwritten.
	Held int32 `json:"held"`
	// Skipped: not provisioned, past its deadline, locked or gone.
	Skipped int32 `json:"skipped"`
	// Failed: the next sync tries again.
	Failed int32 `json:"failed"`
}

// RepositoriesStatus are numbers of repositories by state.
type RepositoriesStatus struct {
	// Total listed.
	Total int32 `json:"total"`
	// Live: provisioned and there.
	Live int32 `json:"live"`
	// Locked at their deadline or by hand.
	Locked int32 `json:"locked"`
	// Deleted on GitHub.
	Deleted int32 `json:"deleted"`
	// Provisioned so far.
	Provisioned int32 `json:"provisioned"`
}

// FailingRepository is one failed or held repository.
type FailingRepository struct {
	// Repository as owner/name.
	// +kubebuilder:validation:MaxLength=200
	Repository string `json:"repository"`
	// Outcome: Failed or Held.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Outcome string `json:"outcome,omitempty"`
	// Reason in one word.
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
	// Message for people.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Message string `json:"message,omitempty"`
	// Since when.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// ProjectSync hands one source repository out, through a private distribution,
// to many downstream repositories, and keeps them in step by one pull request
// per branch.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=psync,categories=sluice
// +kubebuilder:printcolumn:name="Stage",type=string,JSONPath=`.spec.stage`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ahead",type=string,JSONPath=`.status.aheadBy`
// +kubebuilder:printcolumn:name="Repos",type=integer,JSONPath=`.status.repositories.live`
// +kubebuilder:printcolumn:name="Opened",type=integer,JSONPath=`.status.outcomes.opened`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.outcomes.updated`
// +kubebuilder:printcolumn:name="UpToDate",type=integer,JSONPath=`.status.outcomes.upToDate`
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.outcomes.held`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.outcomes.failed`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.sync.progress`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Skipped",type=integer,JSONPath=`.status.outcomes.skipped`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextAction`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters: repository and object names are made from it"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.distribution) || self.status.distribution.repositoryID == 0 || self.spec.source.branches == oldSelf.spec.source.branches",message="spec.source.branches is immutable once the distribution is built (R-DIST-11): make another ProjectSync for other branches"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.distribution) || self.status.distribution.repositoryID == 0 || self.spec.source.history == oldSelf.spec.source.history",message="spec.source.history is immutable once the distribution is built (R-DIST-11): make another ProjectSync for the other history"
// +kubebuilder:validation:XValidation:rule="!has(self.status) || !has(self.status.distribution) || self.status.distribution.repositoryID == 0 || self.spec.appRef.name == oldSelf.spec.appRef.name",message="spec.appRef is immutable once the distribution is built: make another ProjectSync for another App"
type ProjectSync struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec ProjectSyncSpec `json:"spec"`
	// Status is what is.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status ProjectSyncStatus `json:"status,omitempty"`
}

// GetConditions returns the object's conditions.
func (in *ProjectSync) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the object's conditions.
func (in *ProjectSync) SetConditions(c []metav1.Condition) { in.Status.Conditions = c }

// ProjectSyncList is a list of ProjectSyncs.
// +kubebuilder:object:root=true
type ProjectSyncList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProjectSync `json:"items"`
}
