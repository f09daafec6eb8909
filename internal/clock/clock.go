// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clock is the time the product reads. Production uses the machine's
// clock corrected by the database's (see Corrected); tests move a fake one.
// Leader election stays on real time and does not use this package.
package clock

import (
	"time"

	"k8s.io/utils/clock"
)

// Clock tells the time and makes timers. k8s.io/utils/clock/testing.FakeClock
// is one that tests move.
type Clock = clock.WithTicker

// Real returns the machine's clock.
func Real() Clock { return clock.RealClock{} }

// Corrected is a clock that adds a measured offset to another one's readings.
// Timers and tickers are unchanged: a constant offset does not bend durations.
type Corrected struct {
	Clock
	// Offset returns what to add to the base clock, e.g. the database's
	// clock minus ours, as last measured.
	Offset func() time.Duration
}

// Now returns the base clock's time plus the offset.
func (c Corrected) Now() time.Time { return c.Clock.Now().Add(c.Offset()) }

// Since returns the time elapsed since t by this clock.
func (c Corrected) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
