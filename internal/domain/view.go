// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

// ProjectView is everything a ProjectSync's status is made from.
type ProjectView struct {
	Project
	// LastRequest is the newest judged or waiting request; nil before any.
	LastRequest *Request
	// ActivePass is the pass under way; nil when none is.
	ActivePass *Pass
	// Settled and Targets are the active pass's progress.
	Settled, Targets int
	// LastPass is the newest finished pass; nil before any.
	LastPass     *Pass
	Repositories RepositoryCounts
	// Outcomes are the repositories' LAST outcomes (R-SYNC-11).
	Outcomes Counts
	// Failing is a bounded sample (at most 20) of failed and held
	// repositories, ordered by full name.
	Failing []Repository
}

// RepositoryCounts are numbers of a project's listed repositories.
type RepositoryCounts struct {
	Total, Live, Locked, Deleted, Provisioned int
	// ProvisionFailed is how many provisionings failed and are retried.
	ProvisionFailed int
}

// RepositoryView is everything a RepoReconcile's status is made from.
type RepositoryView struct {
	Repository
	PullRequests []PullRequest // ordered by branch
}

// ObjectKind is a kind of custom resource.
type ObjectKind string

// Kinds.
const (
	KindGitHubApp     ObjectKind = "GitHubApp"
	KindProjectSync   ObjectKind = "ProjectSync"
	KindRepoReconcile ObjectKind = "RepoReconcile"
)

// ObjectRef names an object to look at again.
type ObjectRef struct {
	Kind ObjectKind
	ObjectKey
}
