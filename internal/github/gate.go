// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"sync"
	"time"
)

// maxStreak caps how often a wait is doubled: 16 times what GitHub asked for,
// an hour at most unless it asked for more.
const maxStreak = 4

// gate keeps an installation from asking while GitHub told it to wait: going
// on can get an App banned. It goes by our clock alone, unlike go-github's own
// gates, which are therefore never met: every request has its own client.
type gate struct {
	mu     sync.Mutex
	until  time.Time
	limit  limit
	streak int // secondary refusals in a row
}

// closed reports whether the gate is closed at now, till when and why.
func (g *gate) closed(now time.Time) (until time.Time, l limit, closed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until, g.limit, now.Before(g.until)
}

// refused closes the gate for a request sent at sent and refused at now, and
// returns till when. Each further secondary refusal in a row doubles the wait;
// refusals of requests sent side by side are one.
func (g *gate) refused(sent, now time.Time, l limit) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := l.wait
	if l.kind == slowDown {
		if !sent.Before(g.until) {
			g.streak++
		}
		doubled := wait << min(max(g.streak-1, 0), maxStreak)
		wait = max(wait, min(doubled, quotaWindow))
	}
	if until := now.Add(wait); until.After(g.until) {
		g.until, g.limit = until, l
	}
	return g.until
}

// passed ends a row of refusals: a request sent after the gate opened got
// through.
func (g *gate) passed(sent time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !sent.Before(g.until) {
		g.streak = 0
	}
}
