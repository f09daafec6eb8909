// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RepoReconcileSpec is one downstream repository. Nothing about the source is
// in it (R-PRIV-01).
// +kubebuilder:validation:XValidation:rule="has(self.projectRef) == has(oldSelf.projectRef)",message="projectRef is immutable: make another RepoReconcile"
type RepoReconcileSpec struct {
	// ProjectRef names the ProjectSync in the same namespace that the
	// repository belongs to. Default none. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="projectRef is immutable: make another RepoReconcile"
	// +optional
	ProjectRef *ProjectReference `json:"projectRef,omitempty"`
	// AppRef names the GitHubApp that does the work. Immutable.
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="appRef is immutable: make another RepoReconcile"
	AppRef AppReference `json:"appRef"`
	// Repository on GitHub, by id or by owner and name. A name that turns out
	// to be another repository than the one learnt stalls the object
	// (RepositoryChanged).
	Repository RepositoryIdentity `json:"repository"`
	// Recipient's key in the project's list.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Recipient string `json:"recipient,omitempty"`
	// Members who work in the repository. They are recorded; no effect yet:
	// invitations are not sent in this version.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=login
	// +optional
	Members []Member `json:"members,omitempty"`
	// Permission of invited members, never more than Push (R-PRIV-05). No
	// effect yet.
	// +kubebuilder:validation:Enum=Pull;Triage;Push
	// +optional
	Permission string `json:"permission,omitempty"`
	// Provision is true when the project makes the repository, false when it
	// must exist. Default false.
	// +optional
	Provision bool `json:"provision,omitempty"`
	// Deadline of this repository alone. Left out, the list entry's counts,
	// else the project's. No effect yet on this object: set it in the
	// project's list.
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`
	// Lock is staff's hand on the repository's lock (R-DL-13). No effect yet.
	// +optional
	Lock *Lock `json:"lock,omitempty"`
	// Protection of the default branch. No effect yet.
	// +optional
	Protection *RepoProtection `json:"protection,omitempty"`
	// ProtectedFiles are restored when somebody changes them (R-PROT-01), as
	// exact paths. No effect yet.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	ProtectedFiles []FilePath `json:"protectedFiles,omitempty"`
	// Runs of CI that staff has a word on. No effect yet.
	// +optional
	Runs *RepoRuns `json:"runs,omitempty"`
	// Invite asks for the invitation to be sent again. No effect yet.
	// +optional
	Invite *Invite `json:"invite,omitempty"`
	// Reconcile settings of this repository. Left out, the project's. No
	// effect yet.
	// +optional
	Reconcile *ReconcileSettings `json:"reconcile,omitempty"`
	// Suspend pauses pushes and pull requests to this repository. Incoming
	// events are still recorded. Default false.
	// +kubebuilder:default=false
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// ProjectReference names a ProjectSync in the same namespace.
type ProjectReference struct {
	// Name of the ProjectSync.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// RepositoryIdentity is a repository by name or by id.
// +kubebuilder:validation:XValidation:rule="has(self.id) != (has(self.owner) && has(self.name))",message="name the repository either by id or by owner and name"
// +kubebuilder:validation:XValidation:rule="has(self.owner) == has(self.name)",message="owner and name go together"
type RepositoryIdentity struct {
	// Owner's login. Goes with name.
	// +optional
	Owner Login `json:"owner,omitempty"`
	// Name of the repository. Goes with owner.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^[A-Za-z0-9._-]+$') && !self.matches(r'(?i)(^[.]{1,2}|[.]git)$')`,message="write the repository's name alone: letters, digits, . _ - and no .git at the end"
	// +optional
	Name string `json:"name,omitempty"`
	// ID is GitHub's numeric id, which stays through renames (R-CORE-08).
	// Immutable.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740991
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="repository.id is immutable: make another RepoReconcile for another repository"
	// +optional
	ID int64 `json:"id,omitempty"`
}

// Lock is staff's hand on a repository's lock.
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="self.state != 'Unlocked' || has(self.at)",message="state Unlocked needs at, the moment it was decided: it holds only until the deadline moves past it"
type Lock struct {
	// State: Locked holds while present; Unlocked while at is not before the
	// effective deadline (R-DL-13). No effect yet.
	// +kubebuilder:validation:Enum=Locked;Unlocked
	State string `json:"state"`
	// At is when it was decided, with its offset or Z. No effect yet.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// RepoProtection of the default branch, and re-enabling restores.
type RepoProtection struct {
	// Mode: Ruleset forbids force pushes and deletion of the default branch
	// (R-PROV-10), None does nothing. Left out, the project's. No effect yet.
	// +kubebuilder:validation:Enum=Ruleset;None
	// +optional
	Mode string `json:"mode,omitempty"`
	// Reenable asks for suspended restores to go on: any new value
	// (R-PROT-10). No effect yet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]+$`
	// +optional
	Reenable string `json:"reenable,omitempty"`
}

// RepoRuns is staff's word on CI runs.
type RepoRuns struct {
	// Accept lists heads, as full object ids, that were in time although
	// their receipt says otherwise. No effect yet.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:Pattern=`^[0-9a-f]{40,64}$`
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=set
	// +optional
	Accept []string `json:"accept,omitempty"`
}

// Invite asks for an invitation to be sent again.
type Invite struct {
	// Request: any new value (R-INV-02). No effect yet.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f]+$`
	// +optional
	Request string `json:"request,omitempty"`
}

// RepoReconcileStatus is what is known of the repository.
type RepoReconcileStatus struct {
	// ObservedGeneration is the generation last acted on; -1 before the first
	// look.
	// +kubebuilder:default=-1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Ready, Reconciling, Stalled, Provisioned, Accessible,
	// Protected, Locked, Synced, FieldsIgnored.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// RepositoryID is GitHub's id.
	// +optional
	RepositoryID int64 `json:"repositoryID,omitempty"`
	// FullName of the repository today.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	FullName string `json:"fullName,omitempty"`
	// Members and their invitations.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=login
	// +optional
	Members []MemberStatus `json:"members,omitempty"`
	// Lock in force.
	// +optional
	Lock *LockStatus `json:"lock,omitempty"`
	// EffectiveDeadline of the repository.
	// +optional
	EffectiveDeadline *metav1.Time `json:"effectiveDeadline,omitempty"`
	// FrozenAt is when results were frozen for good.
	// +optional
	FrozenAt *metav1.Time `json:"frozenAt,omitempty"`
	// Head is the recipient's last commit.
	// +optional
	Head *HeadStatus `json:"head,omitempty"`
	// Run that counts.
	// +optional
	Run *RunStatus `json:"run,omitempty"`
	// PullRequests of syncs, one per branch (R-PR-01). The default branch's
	// comes first: the columns show it (R-PR-08).
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=branch
	// +optional
	PullRequests []PullRequestStatus `json:"pullRequests,omitempty"`
	// Outcome of the last pass.
	// +optional
	Outcome *OutcomeStatus `json:"outcome,omitempty"`
	// LastEvent about the repository.
	// +optional
	LastEvent *Event `json:"lastEvent,omitempty"`
	// LastReconciledAt is when GitHub was last read.
	// +optional
	LastReconciledAt *metav1.Time `json:"lastReconciledAt,omitempty"`
	// NextReconcileAt is when GitHub is read next.
	// +optional
	NextReconcileAt *metav1.Time `json:"nextReconcileAt,omitempty"`
}

// MemberStatus is a member's access.
type MemberStatus struct {
	// Login as listed.
	// +kubebuilder:validation:MaxLength=64
	Login string `json:"login"`
	// AccountID is GitHub's id.
	// +optional
	AccountID int64 `json:"accountID,omitempty"`
	// Invitation: None, Pending or Accepted.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Invitation string `json:"invitation,omitempty"`
}

// LockStatus is the lock in force.
type LockStatus struct {
	// Effective: Locked or Unlocked.
	// +kubebuilder:validation:MaxLength=32
	Effective string `json:"effective"`
	// By: Staff, Deadline or None.
	// +kubebuilder:validation:MaxLength=32
	By string `json:"by"`
}

// HeadStatus is a commit on a branch.
type HeadStatus struct {
	// Branch name.
	// +kubebuilder:validation:MaxLength=200
	// +optional
	Branch string `json:"branch,omitempty"`
	// SHA of the commit.
	// +kubebuilder:validation:MaxLength=64
	SHA string `json:"sha"`
	// At is when its push was received.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// RunStatus is the CI run that counts.
type RunStatus struct {
	// ID of the run.
	ID int64 `json:"id"`
	// Conclusion in GitHub's word.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Conclusion string `json:"conclusion,omitempty"`
	// Late is true when its head came after the deadline.
	// +optional
	Late bool `json:"late,omitempty"`
	// URL of the run.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	URL string `json:"url,omitempty"`
}

// PullRequestStatus is a sync's pull request.
type PullRequestStatus struct {
	// Branch it goes onto.
	// +kubebuilder:validation:MaxLength=200
	Branch string `json:"branch"`
	// Number of the pull request.
	Number int32 `json:"number"`
	// State: Open, Merged or Closed.
	// +kubebuilder:validation:MaxLength=32
	State string `json:"state"`
	// URL of the pull request.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	URL string `json:"url,omitempty"`
}

// OutcomeStatus is what the last pass came to.
type OutcomeStatus struct {
	// Value: Opened, Updated, UpToDate, Held, Skipped or Failed.
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value"`
	// Reason in one word.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message for people.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Message string `json:"message,omitempty"`
	// At is when it was settled.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// RepoReconcile is one downstream repository: who it is, and what became of
// what was wanted for it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=rrec,categories=sluice
// +kubebuilder:printcolumn:name="Recipient",type=string,JSONPath=`.spec.recipient`
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.status.fullName`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Outcome",type=string,JSONPath=`.status.outcome.value`
// +kubebuilder:printcolumn:name="PR",type=integer,JSONPath=`.status.pullRequests[0].number`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.pullRequests[0].state`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.outcome.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Deadline",type=string,JSONPath=`.status.effectiveDeadline`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type RepoReconcile struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// Spec is what is wanted.
	Spec RepoReconcileSpec `json:"spec"`
	// Status is what is.
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status RepoReconcileStatus `json:"status,omitempty"`
}

// GetConditions returns the object's conditions.
func (in *RepoReconcile) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the object's conditions.
func (in *RepoReconcile) SetConditions(c []metav1.Condition) { in.Status.Conditions = c }

// RepoReconcileList is a list of RepoReconciles.
// +kubebuilder:object:root=true
type RepoReconcileList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RepoReconcile `json:"items"`
}
