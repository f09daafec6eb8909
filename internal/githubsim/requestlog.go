// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import "time"

// Request is one request the simulator answered.
type Request struct {
	// Time is when it came, by the simulator's clock.
	Time   time.Time `json:"time"`
	Method string    `json:"method"`
	Path   string    `json:"path"`
	Query  string    `json:"query,omitempty"`
	// Operation is the operationId; "git" for git's requests.
	Operation string `json:"operation,omitempty"`
	// Status is the answer's; 0 means that the connection was cut.
	Status int `json:"status"`
	// Actor is who asked: app/<id>, installation/<id>, user/<login> or "".
	Actor string `json:"actor,omitempty"`
	// Installation is the id of the token's installation, 0 for none.
	Installation int64 `json:"installation,omitempty"`
	// Repository is the id of the repository it was about, 0 for none.
	Repository int64 `json:"repository,omitempty"`
	// Problem says how the request or its answer differs from GitHub's
	// description; empty when they do not.
	Problem string `json:"problem,omitempty"`
}

// maxRequests bounds the request log; the oldest go first.
const maxRequests = 200_000

// requestLog keeps the newest requests.
type requestLog struct {
	entries []Request
	dropped int
}

func (l *requestLog) add(r Request) {
	if len(l.entries) >= maxRequests {
		half := len(l.entries) / 2
		l.dropped += half
		l.entries = append(l.entries[:0], l.entries[half:]...)
	}
	l.entries = append(l.entries, r)
}
