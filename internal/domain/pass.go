// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

// TokenSource says where a sync request came from.
type TokenSource string

// Sources of a token; UNIQUE is (project, source, token).
const (
	TokenSpec       TokenSource = "spec"
	TokenAnnotation TokenSource = "annotation"
	TokenPush       TokenSource = "push"
	TokenSchedule   TokenSource = "schedule"
)

// Answer is what became of a request (the seeds' HTTP answers).
type Answer string

// Answers.
const (
	AnswerAccepted   Answer = "Accepted"
	AnswerWaiting    Answer = "Waiting"
	AnswerRefused    Answer = "Refused"
	AnswerSuperseded Answer = "Superseded"
	AnswerCancelled  Answer = "Cancelled"
	// AnswerRecovered: status already answers it, the database did not know.
	AnswerRecovered Answer = "Recovered"
	// AnswerBuilt: present at first creation, answered by the build.
	AnswerBuilt Answer = "Built"
)

// Token asks for one sync. The same value never runs twice.
type Token struct {
	Source      TokenSource
	Value       string
	RequestedBy string
}

// Request is a token's row.
type Request struct {
	ID        int64
	ProjectID int64
	Token
	Answer     Answer
	Reason     string
	Message    string
	CreatedAt  time.Time
	AnsweredAt time.Time
	// RetryAt is when a waiting request is judged again; zero: at once.
	RetryAt  time.Time
	Attempts int
}

// Phase is how far a pass has come.
type Phase string

// Phases of a pass.
const (
	PhasePushing Phase = "Pushing"
	PhaseDone    Phase = "Done"
)

// Pass is one pass over a project's repositories: every one of them receives
// the same heads (R-SYNC-01).
type Pass struct {
	ID        int64
	ProjectID int64
	RequestID int64
	Token     Token
	// Heads are the distribution's; SourceHeads the source's shas they were
	// made from, as the pass read them at its start (R-CLEAR-01).
	Heads       Heads
	SourceHeads Heads
	// Changed lists the branches the request moved in the distribution.
	Changed    []string
	Phase      Phase
	StartedAt  time.Time
	FinishedAt *time.Time
	Counts     Counts
}

// PassStart is what starts a pass: the request it answers and what the
// distribution was brought to for it.
type PassStart struct {
	RequestID          int64
	Heads, SourceHeads Heads
	Changed            []string
	// Actor asked for the sync, for the audit log.
	Actor string
}

// Outcome is what a repository's turn came to.
type Outcome string

// Outcomes (section 9 of the rules).
const (
	OutcomeOpened   Outcome = "Opened"
	OutcomeUpdated  Outcome = "Updated"
	OutcomeUpToDate Outcome = "UpToDate"
	OutcomeHeld     Outcome = "Held"
	OutcomeSkipped  Outcome = "Skipped"
	OutcomeFailed   Outcome = "Failed"
)

// Counts are numbers of repositories by outcome.
type Counts struct {
	Opened   int `json:"opened"`
	Updated  int `json:"updated"`
	UpToDate int `json:"upToDate"`
	Held     int `json:"held"`
	Skipped  int `json:"skipped"`
	Failed   int `json:"failed"`
}

// Total returns how many repositories were counted.
func (c Counts) Total() int {
	return c.Opened + c.Updated + c.UpToDate + c.Held + c.Skipped + c.Failed
}

// Target is one repository of a pass.
type Target struct {
	PassID       int64
	RepositoryID int64
	// Outcome is empty while the target is pending.
	Outcome   Outcome
	Reason    string
	Message   string
	SettledAt *time.Time
}

// Settlement is what a target's turn came to, to be recorded.
type Settlement struct {
	Outcome Outcome
	Reason  string
	Message string
}

// AuditEntry is one append-only line of what happened (R-CORE-12).
type AuditEntry struct {
	// Actor is "system" or who asked, as claimed.
	Actor     string
	Action    string // e.g. project.synced
	ProjectID int64
	// Subject is "<type>/<id>", e.g. repository/42.
	Subject string
	Payload map[string]any
	At      time.Time
}
