// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

// ProvisionStatus is how far a repository's provisioning came.
type ProvisionStatus string

// Provisioning states (R-PROV-03, R-PROV-06).
const (
	ProvisionPending ProvisionStatus = "Pending"
	ProvisionOK      ProvisionStatus = "OK"
	ProvisionFailed  ProvisionStatus = "Failed"
)

// Repository is a downstream repository's row.
type Repository struct {
	ID int64
	// ProjectID is zero for a hand-made RepoReconcile without a project.
	ProjectID int64
	Recipient string
	Members   []string
	// Object is the RepoReconcile that shows this row; Name is empty beyond
	// the object limit.
	Object ObjectKey
	// WantedName is owner/name as listed or made from the template.
	WantedName string
	Adopt      bool
	// Listed is false once the entry has left the list.
	Listed   bool
	Excluded bool
	Test     bool

	Repo             RepositoryRef // learnt; ID 0 until provisioned or adopted
	NodeID           string
	DefaultBranch    string
	Provision        ProvisionStatus
	ProvisionProblem Problem
	// Adopted is true when the repository existed before the project.
	Adopted   bool
	ClaimedAt *time.Time

	DeadlineAt        *time.Time // own deadline; nil: the project's
	DeadlineAppliedAt *time.Time
	FrozenAt          *time.Time
	LockedAt          *time.Time
	ArchivedAt        *time.Time
	DeletedAt         *time.Time
	ReleasedAt        *time.Time
	// Suspended is spec.suspend of its RepoReconcile: pushes and pull
	// requests wait.
	Suspended bool

	LastCommitSHA string
	LastCommitAt  *time.Time

	Outcome   Outcome // of the last pass; empty before any
	OutcomeAt *time.Time
	Reason    string // why, for every outcome but the good ones
	Message   string
	LastEvent Event
}

// Live reports whether work may be done on the repository at all (section 0
// of the rules: provisioned, known, not deleted).
func (r Repository) Live() bool {
	return r.Provision == ProvisionOK && r.Repo.ID != 0 && r.Repo.FullName != "" &&
		r.DeletedAt == nil && r.ReleasedAt == nil
}

// PullRequestState is GitHub's word for a pull request.
type PullRequestState string

// Pull request states (R-PR-06).
const (
	PullRequestOpen   PullRequestState = "Open"
	PullRequestMerged PullRequestState = "Merged"
	PullRequestClosed PullRequestState = "Closed"
)

// PullRequest is the one row per (repository, branch) (R-PR-01).
type PullRequest struct {
	RepositoryID int64
	Branch       string
	Number       int
	State        PullRequestState
	URL          string
	// UpdatedAt orders facts about the same number: an older receipt never
	// undoes a newer one (R-PR-07).
	UpdatedAt time.Time
}

// BotCommitKind says why the App or a workflow made a commit.
type BotCommitKind string

// Bot commit kinds. The first kind recorded for a commit stands.
const (
	BotCommitRevert   BotCommitKind = "revert"
	BotCommitDeadline BotCommitKind = "deadline"
	BotCommitSync     BotCommitKind = "sync"
	BotCommitGrader   BotCommitKind = "grader"
)

// Event is the last outside event about an object.
type Event struct {
	ID         string
	Event      string
	ReceivedAt time.Time
}

// HandMade is a RepoReconcile that a person wrote, without a ProjectSync that
// generated it.
type HandMade struct {
	Object    ObjectKey
	ObjectUID string
	App       string
	// Project is zero when the object names none.
	Project   ObjectKey
	Recipient string
	// FullName or RepoID says which repository.
	FullName string
	RepoID   int64
	Members  []string
}
