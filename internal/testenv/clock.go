// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/sluice-dev/sluice/internal/clock/movable"
)

// Clock stands still until a test moves it with Step or SetTime. HasWaiters and
// Waiters tell whether the code under test has come to wait for it.
type Clock struct{ *clocktesting.FakeClock }

var _ clock.WithTicker = (*Clock)(nil)

// NewClock returns a clock that shows start.
func NewClock(start time.Time) *Clock { return &Clock{clocktesting.NewFakeClock(start)} }

// NewTimer returns a timer that fires when the clock was moved on by d; at once
// when d is not positive, as real timers do.
func (c *Clock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	if d <= 0 {
		c.Step(0)
	}
	return timer
}

// After returns the channel of a new timer.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Sleep returns when the clock was moved on by d. Unlike FakeClock's it does
// not move the clock itself: only the test does.
func (c *Clock) Sleep(d time.Duration) { <-c.After(d) }

// ClockFile moves the clocks of processes that a test started, provided their
// binaries were built with the tag sluicetest.
type ClockFile struct {
	path string

	mu     sync.Mutex
	offset time.Duration
}

// NewClockFile makes the file, with no offset.
func NewClockFile(path string) (*ClockFile, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("testenv: %w", err)
	}
	f := &ClockFile{path: absolute}
	return f, f.Set(0)
}

// Env returns the entry for a process's environment that makes its clock follow
// this file.
func (f *ClockFile) Env() string { return movable.Variable + "=" + f.path }

// Set puts the processes' clocks ahead of the machine's by offset. They follow
// within milliseconds; wait for what they then do.
func (f *ClockFile) Set(offset time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.set(offset)
}

// Advance moves the processes' clocks on by d.
func (f *ClockFile) Advance(d time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.set(f.offset + d)
}

// Now returns the time that the processes' clocks show.
func (f *ClockFile) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Now().Add(f.offset)
}

func (f *ClockFile) set(offset time.Duration) error {
	// Replaced, not rewritten: nobody reads half of it.
	temporary := f.path + ".new"
	if err := os.WriteFile(temporary, []byte(offset.String()+"\n"), 0o600); err != nil {
		return fmt.Errorf("testenv: moving the clock: %w", err)
	}
	if err := os.Rename(temporary, f.path); err != nil {
		return fmt.Errorf("testenv: moving the clock: %w", err)
	}
	f.offset = offset
	return nil
}
