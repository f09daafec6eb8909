// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package movable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

const (
	patience = 10 * time.Second
	moment   = 50 * time.Millisecond
)

func TestNowAndSinceFollowTheOffset(t *testing.T) {
	g := NewWithT(t)
	c := &Clock{}
	start := c.Now()
	g.Expect(start).To(BeTemporally("~", time.Now(), time.Minute))
	c.Move(48 * time.Hour)
	g.Expect(c.Now()).To(BeTemporally("~", time.Now().Add(48*time.Hour), time.Minute))
	g.Expect(c.Since(start)).To(BeNumerically("~", 48*time.Hour, time.Minute))
	c.Move(-time.Hour)
	g.Expect(c.Since(start)).To(BeNumerically("~", -time.Hour, time.Minute))
	g.Expect(c.Offset()).To(Equal(-time.Hour))
}

func TestTimerFiresOnceWhenItsTimeHasCome(t *testing.T) {
	g := NewWithT(t)
	c := &Clock{}
	timer := c.NewTimer(time.Hour)
	c.Move(59 * time.Minute)
	g.Consistently(timer.C()).WithTimeout(moment).ShouldNot(Receive())
	c.Move(61 * time.Minute)
	var at time.Time
	g.Eventually(timer.C()).WithTimeout(patience).Should(Receive(&at))
	g.Expect(at).To(BeTemporally("~", time.Now().Add(61*time.Minute), time.Minute))
	c.Move(1000 * time.Hour)
	g.Consistently(timer.C()).WithTimeout(moment).ShouldNot(Receive())
	g.Expect(timer.Stop()).To(BeFalse())
	g.Expect(c.alarms).To(BeEmpty())
}

func TestTimerRunsAtTheMachinesPace(t *testing.T) {
	g := NewWithT(t)
	c := &Clock{}
	for name, wait := range map[string]<-chan time.Time{
		"short": c.NewTimer(time.Millisecond).C(), "zero": c.After(0), "past": c.After(-time.Hour),
	} {
		g.Eventually(wait).WithTimeout(patience).Should(Receive(), name)
	}
	c.Sleep(time.Millisecond)
}

func TestClockPutBackMakesTimersWaitLonger(t *testing.T) {
	g := NewWithT(t)
	c := &Clock{}
	c.Move(time.Hour)
	timer := c.NewTimer(20 * time.Millisecond)
	c.Move(0)
	g.Consistently(timer.C()).WithTimeout(2 * moment).ShouldNot(Receive())
	c.Move(2 * time.Hour)
	g.Eventually(timer.C()).WithTimeout(patience).Should(Receive())
}

func TestStoppedTimerDoesNotFire(t *testing.T) {
	g := NewWithT(t)
	c := &Clock{}
	waiting := c.NewTimer(time.Hour)
	g.Expect(waiting.Stop()).To(BeTrue())
	fired := c.NewTimer(0).(*alarm)
	g.Eventually(fired.c).WithTimeout(patience).Should(HaveLen(1))
	g.Expect(fired.Stop()).To(BeFalse())
	c.Move(2 * time.Hour)
	g.Consistently(waiting.C()).WithTimeout(moment).ShouldNot(Receive())
	g.Expect(fired.C()).NotTo(Receive())
}

func TestResetTimerFiresAtItsNewTime(t *testing.T) {
	g := NewWithT(t)
	c := &Clock{}
	timer := c.NewTimer(time.Hour)
	g.Expect(timer.Reset(3 * time.Hour)).To(BeTrue())
	c.Move(2 * time.Hour)
	g.Consistently(timer.C()).WithTimeout(moment).ShouldNot(Receive())
	c.Move(4 * time.Hour)
	g.Eventually(timer.C()).WithTimeout(patience).Should(Receive())
	g.Expect(timer.Reset(time.Hour)).To(BeFalse())
	c.Move(6 * time.Hour)
	g.Eventually(timer.C()).WithTimeout(patience).Should(Receive())
}

func TestTickerTicksOncePerLeapAndGoesOn(t *testing.T) {
	g := NewWithT(t)
	c := &Clock{}
	ticks := c.NewTicker(time.Hour)
	for _, offset := range []time.Duration{90 * time.Minute, 10*time.Hour + time.Minute, 11*time.Hour + time.Minute} {
		c.Move(offset)
		g.Eventually(ticks.C()).WithTimeout(patience).Should(Receive(), offset.String())
		g.Consistently(ticks.C()).WithTimeout(moment).ShouldNot(Receive(), offset.String())
	}
	ticks.Stop()
	c.Move(100 * time.Hour)
	g.Consistently(ticks.C()).WithTimeout(moment).ShouldNot(Receive())
}

func TestTickerNeedsAPositiveInterval(t *testing.T) {
	g := NewWithT(t)
	c := &Clock{}
	g.Expect(func() { c.NewTicker(0) }).To(Panic())
	g.Expect(c.Tick(0)).To(BeNil())
	g.Eventually(c.Tick(time.Millisecond)).WithTimeout(patience).Should(Receive())
}

func TestAlarmPutOffWhileItRings(t *testing.T) {
	g := NewWithT(t)
	c := &Clock{}
	a := c.NewTimer(time.Hour).(*alarm)
	a.ring() // as a real timer does that fired just before it was put off
	g.Expect(a.c).To(BeEmpty())
	g.Expect(c.alarms).To(HaveKey(a))
	a.Stop()
	a.ring()
	g.Expect(a.c).To(BeEmpty())
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestFollowMovesWithTheFile(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "clock")
	write(t, path, "36h\n")
	reports := make(chan error, 10)
	c, err := Follow(t.Context(), path, func(err error) { reports <- err })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Offset()).To(Equal(36 * time.Hour))
	timer := c.NewTimer(time.Hour)

	write(t, path, "soon")
	g.Eventually(reports).WithTimeout(patience).Should(Receive(MatchError(ContainSubstring("holds no duration such as 36h"))))
	g.Expect(c.Offset()).To(Equal(36 * time.Hour))

	write(t, path, "40h")
	g.Eventually(timer.C()).WithTimeout(patience).Should(Receive())
	g.Expect(c.Offset()).To(Equal(40 * time.Hour))
}

func TestFollowRefuses(t *testing.T) {
	g := NewWithT(t)
	never := func(err error) { t.Error(err) }
	_, err := Follow(t.Context(), filepath.Join(t.TempDir(), "absent"), never)
	g.Expect(errors.Is(err, os.ErrNotExist)).To(BeTrue())
	_, err = Follow(t.Context(), filepath.Join(t.TempDir(), "absent", "clock"), never)
	g.Expect(err).To(MatchError(ContainSubstring("following the clock file")))
	path := filepath.Join(t.TempDir(), "clock")
	write(t, path, "")
	_, err = Follow(t.Context(), path, never)
	g.Expect(err).To(MatchError(ContainSubstring("holds no duration")))
}
