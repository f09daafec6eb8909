// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

// AppInfo is a GitHub App as GitHub knows it.
type AppInfo struct {
	ID         int64
	Slug, Name string
	// BotUserID is the account id of slug[bot]; it is not the App's id.
	BotUserID   int64
	Permissions map[string]string // permission: read, write or admin
	Events      []string
	// NoReplyHost is the host of no-reply addresses; empty on github.com.
	NoReplyHost string
}

// Installation is an App's installation on an account.
type Installation struct {
	ID          int64
	Account     string
	AccountID   int64
	Suspended   bool
	Permissions map[string]string
}

// GitHubRepository is a repository as GitHub knows it.
type GitHubRepository struct {
	ID            int64
	NodeID        string
	FullName      string
	DefaultBranch string
	Private       bool
	Archived      bool
	Fork          bool
	OwnerID       int64
	OwnerLogin    string
}

// NewRepository asks for a repository without issues, wiki, projects or an
// initial commit.
type NewRepository struct {
	Name string
	// Visibility is private or internal.
	Visibility string
}

// Comparison is a three-dot comparison of two refs.
type Comparison struct {
	// Status is identical, ahead, behind or diverged.
	Status            string
	AheadBy, BehindBy int
	TotalCommits      int
	// Files changed since the merge base; at most 300.
	Files          []ChangedFile
	FilesTruncated bool
}

// GitHubPullRequest is a pull request as GitHub knows it.
type GitHubPullRequest struct {
	Number           int
	State            PullRequestState
	HeadRef, HeadSHA string
	BaseRef          string
	URL              string
	HeadRepositoryID int64
	AuthorID         int64
	AuthorLogin      string
	UpdatedAt        time.Time
}

// NewPullRequest asks for a pull request between branches of one repository.
type NewPullRequest struct {
	Title, Body string
	Head, Base  string
	Draft       bool
}
