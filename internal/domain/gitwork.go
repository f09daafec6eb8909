// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"context"
	"fmt"
)

// Remote is a git repository reached over HTTPS (or a local path in tests).
type Remote struct {
	URL string
	// Token returns a currently valid token, asked for at every git command;
	// nil means anonymous. It reaches git through its environment only
	// (R-CORE-10).
	Token func(context.Context) (string, error)
}

// Signature is who a commit says made it. Its date is the clock's.
type Signature struct{ Name, Email string }

// HandOut holds the hand-out conventions of R-DIST-08; an empty field switches
// its convention off.
type HandOut struct{ OverlayDirectory, IgnoreFile string }

// DistributeRequest asks to bring a distribution in step with its source.
type DistributeRequest struct {
	// Key names the local mirror: one per project, e.g. its UID.
	Key                  string
	Source, Distribution Remote
	Branches             []string
	History              History
	HandOut              HandOut
	Author               Signature
	Message              string
}

// DistributeResult says what a distribution now holds.
type DistributeResult struct {
	// SourceHeads are the source's shas it was made from; Heads its own.
	SourceHeads, Heads Heads
	// Changed lists the branches whose head moved, in the request's order.
	Changed []string
}

// RefUpdate is one ref of a push.
type RefUpdate struct {
	// Ref is a full name: refs/heads/sync/main.
	Ref string
	New string
	// Old is the expected old value; empty means the ref must not exist.
	Old   string
	Force bool
}

// BotSignature returns the signature of an App's commits: GitHub attributes
// them to the App's bot account only under this address.
func BotSignature(a AppInfo) Signature {
	login := a.Slug + "[bot]"
	host := a.NoReplyHost
	if host == "" {
		host = "users.noreply.github.com"
	}
	return Signature{Name: login, Email: fmt.Sprintf("%d+%s@%s", a.BotUserID, login, host)}
}
