// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Names that other programs write or read on these kinds.
const (
	// SyncRequestedAtAnnotation is the imperative twin of spec.sync.request:
	// any new value asks for one sync.
	SyncRequestedAtAnnotation = "sluice.dev/sync-requested-at"
	// SyncCancelledAtAnnotation stops a running pass within one repository.
	// It has no effect yet.
	SyncCancelledAtAnnotation = "sluice.dev/sync-cancelled-at"
	// AbandonRowsAnnotation, set to the object's UID, lets an object be
	// deleted although its rows cannot be reached: for a database that is
	// gone for good.
	AbandonRowsAnnotation = "sluice.dev/abandon-rows"
	// LedgerFinalizer keeps an object until its rows are released or purged.
	LedgerFinalizer = "sluice.dev/ledger"
	// ProjectLabel names the ProjectSync that generated a RepoReconcile.
	ProjectLabel = "sluice.dev/project"
)

// SecretKeyReference names one key of a Secret in the operator's resource
// namespace.
type SecretKeyReference struct {
	// Name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key within the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// AppReference names the GitHubApp that an object uses.
type AppReference struct {
	// Kind is always GitHubApp.
	// +kubebuilder:validation:Enum=GitHubApp
	// +kubebuilder:default=GitHubApp
	// +optional
	Kind string `json:"kind,omitempty"`
	// Name of the GitHubApp.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Branch is a branch name without refs/heads/.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=200
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._][A-Za-z0-9._/+-]*$`
type Branch string

// Login is a GitHub account's login.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_-]*$`
type Login string

// Member is a person who works in a downstream repository.
type Member struct {
	// Login of the person's GitHub account. Recorded; invitations are not
	// sent yet.
	Login Login `json:"login"`
}

// FilePath is a path within a repository, without a leading slash.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.endsWith('/')",message="write the path relative to the repository's root, without a slash at either end"
type FilePath string

// Deadline is when work in a repository ends.
// +structType=atomic
type Deadline struct {
	// At is the moment the deadline is reached. Syncs leave repositories past
	// their effective deadline alone (R-SYNC-03).
	// +optional
	At *metav1.Time `json:"at,omitempty"`
	// Grace is how long after the deadline runs on commits received in time
	// still count (R-DL-02). It has no effect yet.
	// +kubebuilder:default="30m"
	// +optional
	Grace *metav1.Duration `json:"grace,omitempty"`
	// Strategy is what happens at the deadline: Lock forbids pushes, Commit
	// adds an empty commit, None does neither (R-DL-04). It has no effect yet.
	// +kubebuilder:validation:Enum=Lock;Commit;None
	// +kubebuilder:default=None
	// +optional
	Strategy DeadlineStrategy `json:"strategy,omitempty"`
}

// DeadlineStrategy is what happens to a repository at its deadline.
type DeadlineStrategy string

// Deadline strategies.
const (
	DeadlineLock   DeadlineStrategy = "Lock"
	DeadlineCommit DeadlineStrategy = "Commit"
	DeadlineNone   DeadlineStrategy = "None"
)

// ReconcileSettings say how often what webhooks may have missed is looked for.
// They have no effect yet.
type ReconcileSettings struct {
	// Interval between two looks at a repository (R-REC-01).
	// +kubebuilder:default="24h"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// RunsInterval between two looks at a quiet repository's runs (R-REC-01).
	// +kubebuilder:default="15m"
	// +optional
	RunsInterval *metav1.Duration `json:"runsInterval,omitempty"`
	// Quiet is how long nothing must have happened before runs are looked
	// for (R-REC-03).
	// +kubebuilder:default="30m"
	// +optional
	Quiet *metav1.Duration `json:"quiet,omitempty"`
	// Request asks for one look now: any new value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Request string `json:"request,omitempty"`
}

// Event is the last outside event about an object. The receiver writes it, as
// a wake-up; what the event said is in the database.
type Event struct {
	// ID of the delivery.
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`
	// Event and action, in GitHub's words: pull_request.closed.
	// +kubebuilder:validation:MaxLength=100
	Event string `json:"event"`
	// ReceivedAt is when the receiver stored it.
	ReceivedAt metav1.Time `json:"receivedAt"`
}
