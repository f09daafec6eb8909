// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

// EventSource is the way an event came in. Both ways build the same values
// and end in the same function (R-CORE-02).
type EventSource string

// Ways in.
const (
	FromWebhook EventSource = "webhook"
	FromPoll    EventSource = "poll"
)

// Sender is who caused an event (section 0 of the rules).
type Sender string

// Senders: the App itself, a workflow's own token, or anybody else.
const (
	SenderApp      Sender = "app"
	SenderWorkflow Sender = "workflow"
	SenderPerson   Sender = "person"
)

// Change is a normalised event: an outside change about one repository. Just
// one of the pointers is set.
type Change struct {
	Source     EventSource
	App        string // GitHubApp name
	DeliveryID string // GUID; empty from a poll
	// Event and Action are GitHub's words, e.g. pull_request, closed.
	Event, Action string
	ReceivedAt    time.Time
	Repository    RepositoryRef
	Sender        Sender
	SenderLogin   string

	Push        *PushChange
	PullRequest *PullRequestChange
	Repo        *RepositoryChange
}

// PushChange is a push to one ref.
type PushChange struct {
	Ref             string // refs/heads/main
	Branch          string // empty for a tag or another ref
	Before, After   string // object ids; all zeros: none
	Created         bool
	Deleted, Forced bool
	Commits         int
	HeadCommitAt    time.Time // zero when unknown
}

// PullRequestChange is a pull request's state as told by an event.
type PullRequestChange struct {
	Number           int
	State            PullRequestState
	HeadRef, BaseRef string
	// HeadRepositoryID is the repository the head branch lives in.
	HeadRepositoryID int64
	// AuthorID is the author's account id; compare it with the App's bot.
	AuthorID    int64
	AuthorLogin string
	URL         string
	HeadSHA     string
}

// RepositoryChange is a rename, deletion, archive or move.
type RepositoryChange struct {
	Action      string // renamed, deleted, archived, unarchived, transferred, edited
	OldName     string // renamed: the old name part
	NewFullName string
}

// Receipt is the server's time of receiving a push: the only time that
// decides "before the deadline" (R-HOOK-05).
type Receipt struct {
	RepositoryID int64 // GitHub's
	Branch       string
	HeadSHA      string
	ReceivedAt   time.Time
	Bot          bool
	Forced       bool
	Commits      int
}

// Delivery is a stored webhook delivery.
type Delivery struct {
	App        string
	GUID       string
	Event      string
	Action     string
	Payload    []byte // raw body; nil once purged
	ReceivedAt time.Time
	Attempts   int
}
