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
type ProjectSyncSpec struct {
	// AppRef names the GitHubApp that does the work. Immutable once the
	// distribution is built.
	AppRef AppReference `json:"appRef"`
	// Stage: Draft builds and syncs the distribution only; Published makes or
	// adopts the repositories too; Archived stops all new work. Never back to
	// Draft.
	// +kubebuilder:default=Draft
	// +kubebuilder:validation:XValidation:rule="self != 'Draft' || oldSelf == 'Draft'",message="stage never goes back to Draft: use Archived to stop work, or suspend"
	// +optional
	Stage Stage `json:"stage,omitempty"`
	// Suspend pauses outgoing work. Incoming events are still recorded.
	// +kubebuilder:default=false
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// DeletionPolicy: Retain marks the rows released, so that a project
	// proven the same can take them back; Purge deletes them. Neither calls
	// GitHub (R-CORE-07).
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// Source repository. Receivers never learn of it.
	Source Source `json:"source"`
	// Distribution repository: the private copy that receivers get pushes
	// from.
	// +optional
	Distribution *Distribution `json:"distribution,omitempty"`
	// Repositories downstream, and how they are made.
	// +optional
	Repositories *Repositories `json:"repositories,omitempty"`
	// Deadline of all repositories without one of their own.
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`
	// ProtectedFiles are restored when somebody changes them (R-PROT-01).
	// They have no effect yet.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	ProtectedFiles []FilePath `json:"protectedFiles,omitempty"`
	// Protection of the default branch. It has no effect yet.
	// +optional
	Protection *Protection `json:"protection,omitempty"`
	// Runs of CI. They have no effect yet.
	// +optional
	Runs *ProjectRuns `json:"runs,omitempty"`
	// Reconcile holds the defaults of all its repositories. It has no effect
	// yet.
	// +optional
	Reconcile *ReconcileSettings `json:"reconcile,omitempty"`
	// Notifications say who is told what. They have no effect yet.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=channel
	// +optional
	Notifications []Notification `json:"notifications,omitempty"`
	// PullRequest shapes the pull requests of a sync.
	// +kubebuilder:default={}
	// +optional
	PullRequest *PullRequest `json:"pullRequest,omitempty"`
	// Sync holds the wish to sync.
	// +optional
	Sync *Sync `json:"sync,omitempty"`
}

// Source is the repository handed out.
// +kubebuilder:validation:XValidation:rule="!(has(self.history) && self.history == 'Whole') || (!has(self.overlayDirectory) && !has(self.ignoreFile))",message="overlayDirectory and ignoreFile work with history Squash only: Whole hands the history out unchanged"
type Source struct {
	// Repository as owner/name. It may change only to another name of the
	// same repository.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+$`
	Repository string `json:"repository"`
	// Branches handed out; the first is the default branch. Immutable once
	// the distribution is built.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:XValidation:rule="self.all(b, self.exists_one(c, c == b))",message="each branch may be listed once"
	// +kubebuilder:default={"main"}
	// +listType=atomic
	// +optional
	Branches []Branch `json:"branches,omitempty"`
	// History: Squash hands each state out as one commit, without the
	// source's history; Whole hands the branches out with it (R-DIST-07).
	// Immutable once the distribution is built.
	// +kubebuilder:validation:Enum=Squash;Whole
	// +kubebuilder:default=Squash
	// +optional
	History string `json:"history,omitempty"`
	// Interval at which the heads are read for trigger OnPush. It has no
	// effect yet.
	// +kubebuilder:default="10m"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// OverlayDirectory is merged over the root of what is handed out, and
	// removed (R-DIST-08). Squash only.
	// +optional
	OverlayDirectory FilePath `json:"overlayDirectory,omitempty"`
	// IgnoreFile lists paths that are not handed out, one a line
	// (R-DIST-08). Squash only.
	// +optional
	IgnoreFile FilePath `json:"ignoreFile,omitempty"`
}

// Distribution is the private copy of what is handed out.
type Distribution struct {
	// Repository as owner/name. Default: the source's owner and
	// <metadata.name>-squashed (-dist under Whole), with a suffix when taken.
	// An explicit name never gets a suffix.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+$`
	// +optional
	Repository string `json:"repository,omitempty"`
	// TakeoverFrom names the installation whose claim on the distribution is
	// taken over. It has no effect yet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	TakeoverFrom string `json:"takeoverFrom,omitempty"`
}

// Repositories says who receives the project, and how their repositories are
// made.
type Repositories struct {
	// Organization in which repositories are made. Default: the source's
	// owner. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="organization is immutable: make another ProjectSync for another organization"
	// +optional
	Organization Login `json:"organization,omitempty"`
	// Provision says how missing repositories are made. Absent: only
	// existing ones are adopted.
	// +optional
	Provision *Provision `json:"provision,omitempty"`
	// Unrelated says what to do with a repository that shares no history with
	// the distribution: Refuse fails it; Overlay lays the files over its own.
	// Overlay has no effect yet.
	// +kubebuilder:validation:Enum=Refuse;Overlay
	// +kubebuilder:default=Refuse
	// +optional
	Unrelated string `json:"unrelated,omitempty"`
	// OnRemoval says what becomes of a repository that leaves: Keep leaves
	// GitHub alone, Revoke takes the access away. Revoke has no effect yet.
	// +kubebuilder:validation:Enum=Keep;Revoke
	// +kubebuilder:default=Keep
	// +optional
	OnRemoval string `json:"onRemoval,omitempty"`
	// ConfirmRemoval confirms that this many repositories leave at once. It
	// has no effect yet.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ConfirmRemoval *int32 `json:"confirmRemoval,omitempty"`
	// Objects bounds how many RepoReconciles are made.
	// +optional
	Objects *Objects `json:"objects,omitempty"`
	// List of recipients, at most 1,000.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=recipient
	// +optional
	List []Recipient `json:"list,omitempty"`
	// ListFrom reads more recipients from ConfigMaps (CSV). It has no effect
	// yet.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	ListFrom []ListSource `json:"listFrom,omitempty"`
	// Selector adopts existing repositories by what they are. It has no
	// effect yet.
	// +optional
	Selector *RepositorySelector `json:"selector,omitempty"`
}

// Provision says how a missing repository is made.
type Provision struct {
	// NameTemplate makes the repository's name: {{ .recipient }} and
	// {{ .project }} are known.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.contains('.recipient')",message="nameTemplate must contain {{ .recipient }}, or all repositories would have one name"
	NameTemplate string `json:"nameTemplate"`
	// Visibility of made repositories.
	// +kubebuilder:validation:Enum=Private;Internal
	// +kubebuilder:default=Private
	// +optional
	Visibility string `json:"visibility,omitempty"`
	// Permission of invited members (R-PRIV-05). It has no effect yet.
	// +kubebuilder:validation:Enum=Pull;Triage;Push
	// +kubebuilder:default=Push
	// +optional
	Permission string `json:"permission,omitempty"`
}

// Objects bounds how many RepoReconciles a project makes.
type Objects struct {
	// Limit of RepoReconciles. Repositories beyond it are worked on all the
	// same; the limit stops creation only.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5000
	// +kubebuilder:default=1000
	// +optional
	Limit *int32 `json:"limit,omitempty"`
}

// Recipient is one entry of the list: who receives, in which repository.
type Recipient struct {
	// Recipient is the entry's key: a person's or group's short name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`
	Recipient string `json:"recipient"`
	// Members who work in the repository. Recorded; invitations are not sent
	// yet.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=login
	// +optional
	Members []Member `json:"members,omitempty"`
	// Repository that exists already, as owner/name: it is adopted. Without
	// it, one is made by provision.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+$`
	// +optional
	Repository string `json:"repository,omitempty"`
	// Deadline of this repository alone.
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`
	// Exclude keeps the entry and does no work on its repository.
	// +optional
	Exclude bool `json:"exclude,omitempty"`
	// Test marks a repository of the staff's own, left out of counts
	// (R-PROV-11). It has no effect yet.
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

// RepositorySelector adopts existing repositories by what they are.
type RepositorySelector struct {
	// Names as patterns with *.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=100
	// +listType=set
	// +optional
	Names []string `json:"names,omitempty"`
	// Topics a repository must have, all of them.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=50
	// +listType=set
	// +optional
	Topics []string `json:"topics,omitempty"`
	// Properties are custom properties a repository must have.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Properties []Property `json:"properties,omitempty"`
	// ExcludeNames as patterns with *.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MaxLength=100
	// +listType=set
	// +optional
	ExcludeNames []string `json:"excludeNames,omitempty"`
	// IncludeForks too.
	// +optional
	IncludeForks bool `json:"includeForks,omitempty"`
	// MaxRepositories the selector may match; above it nothing is touched.
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
	// Mode: Ruleset forbids force pushes and deletion (R-PROV-10), None does
	// nothing.
	// +kubebuilder:validation:Enum=Ruleset;None
	// +kubebuilder:default=None
	// +optional
	Mode string `json:"mode,omitempty"`
}

// ProjectRuns say which CI runs count.
type ProjectRuns struct {
	// GradedWorkflow is the file name of the workflow whose runs count.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:MinLength=1
	// +optional
	GradedWorkflow string `json:"gradedWorkflow,omitempty"`
	// FinalReview is dispatched at the definitive freeze when Enabled
	// (R-DISP-01).
	// +kubebuilder:validation:Enum=Enabled;Disabled
	// +kubebuilder:default=Disabled
	// +optional
	FinalReview string `json:"finalReview,omitempty"`
}

// Notification says what a channel is told.
type Notification struct {
	// Channel of the GitHubApp.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Channel string `json:"channel"`
	// On which occasions.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	On []NotificationOccasion `json:"on"`
}

// NotificationOccasion is something worth telling.
// +kubebuilder:validation:Enum=PassEnded;Held;Failed
type NotificationOccasion string

// PullRequest shapes the pull requests of a sync.
type PullRequest struct {
	// BranchPrefix of the branch that a pull request comes from: sync/main
	// onto main. Immutable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*/$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="branchPrefix is immutable: open pull requests come from branches named by it"
	// +kubebuilder:default="sync/"
	// +optional
	BranchPrefix string `json:"branchPrefix,omitempty"`
	// Title template: {{ .branch }}, {{ .sha }} and {{ .project }} are known.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +optional
	Title string `json:"title,omitempty"`
	// Body template: the title's fields, {{ .files }} and {{ .count }}.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10000
	// +optional
	Body string `json:"body,omitempty"`
	// Labels put on new pull requests.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=50
	// +listType=set
	// +optional
	Labels []string `json:"labels,omitempty"`
	// Reviewers asked. They have no effect yet.
	// +kubebuilder:validation:MaxItems=15
	// +listType=set
	// +optional
	Reviewers []Login `json:"reviewers,omitempty"`
	// Assignees of new pull requests. They have no effect yet.
	// +kubebuilder:validation:MaxItems=10
	// +listType=set
	// +optional
	Assignees []Login `json:"assignees,omitempty"`
	// Draft pull requests. Private repositories on GitHub Free refuse them.
	// +optional
	Draft bool `json:"draft,omitempty"`
	// Announce an update of an open pull request with a comment (R-PR-03).
	// +kubebuilder:validation:Enum=Comment;None
	// +kubebuilder:default=Comment
	// +optional
	Announce string `json:"announce,omitempty"`
	// WhenEmpty says what becomes of a pull request that no longer brings
	// anything: Close or Leave. It has no effect yet.
	// +kubebuilder:validation:Enum=Close;Leave
	// +kubebuilder:default=Close
	// +optional
	WhenEmpty string `json:"whenEmpty,omitempty"`
}

// Sync holds the wish to sync.
type Sync struct {
	// Request asks for one sync: any new value; the same value never runs
	// twice. A date does well.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Request string `json:"request,omitempty"`
	// RequestedBy is recorded as claimed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
	// Trigger of syncs that nobody asks for. Only Manual has an effect yet.
	// +optional
	Trigger *Trigger `json:"trigger,omitempty"`
	// Concurrency is how many repositories are in API work at once
	// (R-SYNC-02).
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +kubebuilder:default=4
	// +optional
	Concurrency int32 `json:"concurrency,omitempty"`
	// Force lets that exact head of a repository's sync branch be
	// overwritten. It has no effect yet.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=repository
	// +optional
	Force []ForcedHead `json:"force,omitempty"`
	// Waves bring a sync out in parts. They have no effect yet.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Waves []Wave `json:"waves,omitempty"`
	// MaxFailures ends a pass early: a number or a percentage. It has no
	// effect yet.
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
}

// Trigger starts syncs by itself.
// +union
// +kubebuilder:validation:XValidation:rule="self.type == 'OnPush' || !has(self.onPush)",message="onPush goes with type OnPush only"
// +kubebuilder:validation:XValidation:rule="self.type == 'Schedule' ? has(self.schedule) : !has(self.schedule)",message="set schedule exactly when type is Schedule"
type Trigger struct {
	// Type: Manual, OnPush or Schedule.
	// +kubebuilder:validation:Enum=Manual;OnPush;Schedule
	// +kubebuilder:default=Manual
	// +unionDiscriminator
	Type string `json:"type"`
	// OnPush settings.
	// +optional
	OnPush *OnPushTrigger `json:"onPush,omitempty"`
	// Schedule settings.
	// +optional
	Schedule *ScheduleTrigger `json:"schedule,omitempty"`
}

// OnPushTrigger syncs after a push to the source.
type OnPushTrigger struct {
	// QuietPeriod without another push before a sync starts.
	// +kubebuilder:default="10m"
	// +optional
	QuietPeriod *metav1.Duration `json:"quietPeriod,omitempty"`
}

// ScheduleTrigger syncs at set times.
type ScheduleTrigger struct {
	// Cron expression of five fields.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=100
	Cron string `json:"cron"`
	// TimeZone of the expression, as in the tz database.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:default=UTC
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// StartingDeadline after which a missed slot is dropped.
	// +kubebuilder:default="1h"
	// +optional
	StartingDeadline *metav1.Duration `json:"startingDeadline,omitempty"`
}

// ForcedHead lets one head of a sync branch be overwritten.
type ForcedHead struct {
	// Repository as owner/name.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=200
	Repository string `json:"repository"`
	// Head that may be overwritten: a full object id.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40,64}$`
	// +kubebuilder:validation:MaxLength=64
	Head string `json:"head"`
}

// Wave is a part of a sync's repositories, counted from the first wave on.
type Wave struct {
	// UpTo so many repositories, as a number or a percentage.
	UpTo intstr.IntOrString `json:"upTo"`
	// Then what the next wave waits for.
	Then Gate `json:"then"`
}

// Gate is what the next wave waits for.
// +union
// +kubebuilder:validation:XValidation:rule="self.type == 'Pause' ? has(self.pause) : !has(self.pause)",message="set pause exactly when type is Pause"
type Gate struct {
	// Type: Pause waits a time, Merged for the pull requests, Approval for a
	// person.
	// +kubebuilder:validation:Enum=Pause;Merged;Approval
	// +unionDiscriminator
	Type string `json:"type"`
	// Pause before the next wave.
	// +optional
	Pause *metav1.Duration `json:"pause,omitempty"`
}

// ProjectSyncStatus is what is known of the project.
type ProjectSyncStatus struct {
	// ObservedGeneration is the generation last acted on.
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
	// AheadBy sums the commits up, when all are known.
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
	// Failing is a sample of at most 20 failed or held repositories.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=repository
	// +optional
	Failing []FailingRepository `json:"failing,omitempty"`
	// NextAction says what happens next, or what somebody has to do.
	// +kubebuilder:validation:MaxLength=1024
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
	// RepositoryID is GitHub's id.
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
	// +kubebuilder:validation:MaxLength=1024
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
	// +kubebuilder:validation:MaxLength=1024
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
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.outcomes.held`,priority=1
// +kubebuilder:printcolumn:name="Skipped",type=integer,JSONPath=`.status.outcomes.skipped`,priority=1
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.outcomes.failed`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.sync.progress`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextAction`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must have at most 63 characters: repository and object names are made from it"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.distribution) || self.spec.source.branches == oldSelf.spec.source.branches",message="spec.source.branches is immutable once the distribution is claimed: make another ProjectSync for other branches"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.distribution) || self.spec.source.history == oldSelf.spec.source.history",message="spec.source.history is immutable once the distribution is claimed: make another ProjectSync"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.distribution) || self.spec.appRef.name == oldSelf.spec.appRef.name",message="spec.appRef is immutable once the distribution is claimed: make another ProjectSync for another App"
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
