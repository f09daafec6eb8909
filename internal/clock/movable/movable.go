// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package movable is a clock that runs at the pace of the machine's but can be
// put ahead or back while timers wait. Only binaries built with the tag
// sluicetest contain it: tests and the demo move the time of processes that
// they start.
package movable

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Clock is the machine's clock plus an offset. The zero value has none.
type Clock struct {
	mu     sync.Mutex
	offset time.Duration
	alarms map[*alarm]struct{} // those that wait
}

var _ clock.WithTicker = (*Clock)(nil)

// Move changes the offset. Timers and tickers whose time has come thereby fire
// at once.
func (c *Clock) Move(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if offset == c.offset {
		return
	}
	c.offset = offset
	now := c.now()
	for a := range c.alarms {
		a.real.Reset(a.at.Sub(now))
	}
}

// Offset returns how far the clock is ahead of the machine's.
func (c *Clock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// Now returns the machine's time plus the offset.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now()
}

func (c *Clock) now() time.Time { return time.Now().Add(c.offset) }

// Since returns the time elapsed since t by this clock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// NewTimer returns a timer that fires once, when this clock has moved on by d.
func (c *Clock) NewTimer(d time.Duration) clock.Timer { return c.newAlarm(d, 0) }

// After returns the channel of a new timer.
func (c *Clock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

// Sleep returns when this clock has moved on by d.
func (c *Clock) Sleep(d time.Duration) { <-c.After(d) }

// NewTicker returns a ticker that fires every d by this clock. Ticks that
// nobody took are dropped, as are those that a move leaps over. It panics when
// d is not positive, as time.NewTicker does.
func (c *Clock) NewTicker(d time.Duration) clock.Ticker {
	if d <= 0 {
		panic("movable: a ticker needs a positive interval")
	}
	return ticker{c.newAlarm(d, d)}
}

// Tick returns the channel of a new ticker; nil when d is not positive.
func (c *Clock) Tick(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return c.NewTicker(d).C()
}

func (c *Clock) newAlarm(d, period time.Duration) *alarm {
	a := &alarm{clock: c, period: period, c: make(chan time.Time, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	a.arm(d)
	return a
}

// alarm is a timer, or a ticker's inside. Its clock's mutex guards it.
type alarm struct {
	clock  *Clock
	at     time.Time
	period time.Duration // 0 for a timer
	c      chan time.Time
	real   *time.Timer
}

// C returns the channel on which the alarm fires.
func (a *alarm) C() <-chan time.Time { return a.c }

// Stop keeps the alarm from firing and reports whether it was going to. Nothing
// is left in its channel.
func (a *alarm) Stop() bool {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	return a.disarm()
}

// Reset makes the alarm fire after d from now, and reports whether it was
// going to fire before.
func (a *alarm) Reset(d time.Duration) bool {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	waited := a.disarm()
	a.arm(d)
	return waited
}

func (a *alarm) arm(d time.Duration) {
	a.at = a.clock.now().Add(d)
	if a.clock.alarms == nil {
		a.clock.alarms = map[*alarm]struct{}{}
	}
	a.clock.alarms[a] = struct{}{}
	if a.real == nil {
		a.real = time.AfterFunc(d, a.ring)
		return
	}
	a.real.Reset(d)
}

func (a *alarm) disarm() bool {
	_, waited := a.clock.alarms[a]
	delete(a.clock.alarms, a)
	a.real.Stop()
	select {
	case <-a.c:
	default:
	}
	return waited
}

// ring fires the alarm, unless it was stopped or put off just before.
func (a *alarm) ring() {
	a.clock.mu.Lock()
	defer a.clock.mu.Unlock()
	if _, waits := a.clock.alarms[a]; !waits {
		return
	}
	now := a.clock.now()
	if now.Before(a.at) {
		a.real.Reset(a.at.Sub(now))
		return
	}
	select {
	case a.c <- now:
	default:
	}
	if a.period == 0 {
		delete(a.clock.alarms, a)
		return
	}
	late := now.Sub(a.at)
	a.at = now.Add(a.period - late%a.period)
	a.real.Reset(a.at.Sub(now))
}

type ticker struct{ *alarm }

// Stop ends the ticks.
func (t ticker) Stop() { t.alarm.Stop() }
