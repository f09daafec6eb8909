// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

// Heads maps a branch name to the object id at its tip. Object ids are opaque
// strings.
type Heads map[string]string

// ObjectKey names a namespaced object.
type ObjectKey struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Stage is how far a project has come.
type Stage string

// Stages. A project never returns to Draft.
const (
	StageDraft     Stage = "Draft"
	StagePublished Stage = "Published"
	StageArchived  Stage = "Archived"
)

// History is what a distribution carries of the source's history.
type History string

// Histories (R-DIST-07).
const (
	HistorySquash History = "Squash"
	HistoryWhole  History = "Whole"
)

// RepositoryRef is a repository on GitHub. The id is its identity (R-CORE-08);
// the full name is for display and changes with renames.
type RepositoryRef struct {
	ID       int64  `json:"id,omitempty"`
	FullName string `json:"fullName,omitempty"`
}

// ProjectSpec is what a ProjectSync asks for, as the engine needs it.
type ProjectSpec struct {
	// UID is the ProjectSync's metadata.uid: one row per UID.
	UID    string
	Object ObjectKey
	// App is the name of the GitHubApp.
	App       string
	Stage     Stage
	Suspended bool
	// Source is the full name as written in the spec.
	Source   string
	Branches []string
	History  History
	// OverlayDirectory and IgnoreFile are the hand-out conventions of
	// R-DIST-08; empty means the convention is off.
	OverlayDirectory string
	IgnoreFile       string
	// Distribution is the full name asked for. When DistributionFixed is
	// false the name may step to a suffix (R-DIST-05).
	Distribution      string
	DistributionFixed bool
	// Organization is where downstream repositories live.
	Organization string
	// Provision is nil when repositories are only adopted.
	Provision *Provision
	// DeadlineAt is the project's deadline; nil is none.
	DeadlineAt  *time.Time
	PullRequest PullRequestSettings
	// Concurrency is how many repositories are in API work at once (R-SYNC-02).
	Concurrency int
}

// Provision says how missing repositories are made.
type Provision struct {
	Visibility string `json:"visibility"` // Private or Internal
	Permission string `json:"permission"` // Pull, Triage or Push
}

// PullRequestSettings shape a sync's pull requests.
type PullRequestSettings struct {
	BranchPrefix string   `json:"branchPrefix"` // "sync/"
	Title        string   `json:"title,omitempty"`
	Body         string   `json:"body,omitempty"`
	Labels       []string `json:"labels,omitempty"`
	Draft        bool     `json:"draft,omitempty"`
	// Announce is Comment or None (R-PR-03).
	Announce string `json:"announce,omitempty"`
}

// SyncBranch returns the head branch of the pull request onto branch.
func (p PullRequestSettings) SyncBranch(branch string) string { return p.BranchPrefix + branch }

// Project is a project's row: the spec last seen and what was recorded.
type Project struct {
	ID int64
	ProjectSpec

	// SourceRepo and DistributionRepo hold the learnt identities. The
	// distribution's ID is set when claimed, before any push (R-DIST-06); its
	// FullName when built (R-DIST-01).
	SourceRepo       RepositoryRef
	DistributionRepo RepositoryRef
	BuiltAt          *time.Time
	// DistributionHeads are the distribution's heads as last pushed.
	DistributionHeads Heads
	// SourceHeads are the handed-out shas; nil when unknown (imported).
	SourceHeads Heads
	// AheadSHA, PushedAt and Ahead are the mark of R-AHEAD-01.
	AheadSHA string
	PushedAt *time.Time
	Ahead    map[string]AheadBranch
	SyncedAt *time.Time
	Lease    Lease
	// Problem is what stands in the way of the build or of a request; zero
	// when nothing does.
	Problem   Problem
	LastEvent Event
}

// Built reports whether the distribution is there (R-DIST-10).
func (p Project) Built() bool { return p.DistributionRepo.FullName != "" }

// AheadBranch is one branch's part of the ahead mark.
type AheadBranch struct {
	SHA      string    `json:"sha"`
	PushedAt time.Time `json:"pushedAt"`
	// Commits past the handed-out sha; nil when GitHub could not tell
	// (R-AHEAD-02).
	Commits *int `json:"commits,omitempty"`
}

// Problem is an obstacle as recorded for display.
type Problem struct {
	// Class is a fault class word; Reason a CamelCase word.
	Class, Reason, Message string
	At                     time.Time
	// RetryAt is when it is tried again; zero when only a change ends it.
	RetryAt time.Time
}

// Lease is the right to do a project's sync work. Token grows with each claim
// and fences every write (R-LEASE-02..06).
type Lease struct {
	ProjectID int64
	Token     int64
	Holder    string
	RenewedAt time.Time // zero: free
}

// LeaseDuration is how long a lease lives without renewal (R-LEASE-02).
const LeaseDuration = 10 * time.Minute

// Recipient is one entry of a project's list.
type Recipient struct {
	Name     string   // the list's key
	Members  []string // logins
	FullName string   // wanted or existing repository, owner/name
	// Adopt is true when the entry names its repository: it must exist.
	Adopt      bool
	DeadlineAt *time.Time
	Exclude    bool
	Test       bool
}
