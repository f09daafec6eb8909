// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RepoReconcileSpec is one downstream repository. Nothing about the source is
// in it (R-PRIV-01).
type RepoReconcileSpec struct {
	// ProjectRef names the ProjectSync in the same namespace. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="projectRef is immutable: make another RepoReconcile"
	// +optional
	ProjectRef *ProjectReference `json:"projectRef,omitempty"`
	// AppRef names the GitHubApp. Immutable.
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="appRef is immutable: make another RepoReconcile"
	AppRef AppReference `json:"appRef"`
	// Repository on GitHub.
	Repository RepositoryIdentity `json:"repository"`
	// Recipient's key in the project's list.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Recipient string `json:"recipient,omitempty"`
	// Members who work in the repository. Recorded; invitations are not sent
	// yet.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=login
	// +optional
	Members []Member `json:"members,omitempty"`
	// Permission of invited members. It has no effect yet.
	// +kubebuilder:validation:Enum=Pull;Triage;Push
	// +optional
	Permission string `json:"permission,omitempty"`
	// Provision is true when the project makes the repository, false when it
	// must exist.
	// +optional
	Provision bool `json:"provision,omitempty"`
	// Deadline of this repository alone. It has no effect yet on an object:
	// set it in the project's list.
	// +optional
	Deadline *Deadline `json:"deadline,omitempty"`
	// Lock is staff's hand (R-DL-13). It has no effect yet.
	// +optional
	Lock *Lock `json:"lock,omitempty"`
	// Protection of the default branch. It has no effect yet.
	// +optional
	Protection *RepoProtection `json:"protection,omitempty"`
	// ProtectedFiles are restored when somebody changes them. They have no
	// effect yet.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	ProtectedFiles []FilePath `json:"protectedFiles,omitempty"`
	// Runs of CI. They have no effect yet.
	// +optional
	Runs *RepoRuns `json:"runs,omitempty"`
	// Invite asks for the invitation to be sent again. It has no effect yet.
	// +optional
	Invite *Invite `json:"invite,omitempty"`
	// Reconcile settings of this repository. They have no effect yet.
	// +optional
	Reconcile *ReconcileSettings `json:"reconcile,omitempty"`
	// Suspend pauses pushes and pull requests to this repository.
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
	// Owner's login.
	// +optional
	Owner Login `json:"owner,omitempty"`
	// Name of the repository.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+$`
	// +optional
	Name string `json:"name,omitempty"`
	// ID is GitHub's id.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ID int64 `json:"id,omitempty"`
}

// Lock is staff's hand on a repository's lock.
// +structType=atomic
type Lock struct {
	// State: Locked holds while present; Unlocked while at is not before the
	// effective deadline.
	// +kubebuilder:validation:Enum=Locked;Unlocked
	State string `json:"state"`
	// At is when the hand was laid on.
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// RepoProtection of the default branch, and re-enabling restores.
type RepoProtection struct {
	// Mode: Ruleset or None.
	// +kubebuilder:validation:Enum=Ruleset;None
	// +optional
	Mode string `json:"mode,omitempty"`
	// Reenable asks for suspended restores to go on: any new value
	// (R-PROT-10).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reenable string `json:"reenable,omitempty"`
}

// RepoRuns is staff's word on CI runs.
type RepoRuns struct {
	// Accept lists heads that were in time although their receipt says
	// otherwise.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:Pattern=`^[0-9a-f]{40,64}$`
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=set
	// +optional
	Accept []string `json:"accept,omitempty"`
}

// Invite asks for an invitation to be sent again.
type Invite struct {
	// Request: any new value (R-INV-02).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Request string `json:"request,omitempty"`
}

// RepoReconcileStatus is what is known of the repository.
type RepoReconcileStatus struct {
	// ObservedGeneration is the generation last acted on.
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
	// PullRequests of syncs, one per branch.
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
// +kubebuilder:printcolumn:name="PR",type=string,JSONPath=`.status.pullRequests[0].number`
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
