// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestClockStandsStillUntilMoved(t *testing.T) {
	g := NewWithT(t)
	start := time.Date(2026, 10, 5, 8, 0, 0, 0, time.UTC)
	c := NewClock(start)
	timer := c.NewTimer(time.Hour)
	g.Expect(c.Now()).To(Equal(start))
	c.Step(59 * time.Minute)
	g.Expect(timer.C()).NotTo(Receive())
	c.Step(time.Minute)
	g.Expect(timer.C()).To(Receive(Equal(start.Add(time.Hour))))
}

func TestClockFiresTimersOfThePastAtOnce(t *testing.T) {
	g := NewWithT(t)
	c := NewClock(time.Unix(0, 0))
	g.Expect(c.After(0)).To(Receive())
	g.Expect(c.NewTimer(-time.Second).C()).To(Receive())
}

func TestClockSleepWaitsForTheTest(t *testing.T) {
	g := NewWithT(t)
	c := NewClock(time.Unix(0, 0))
	woke := make(chan struct{})
	go func() {
		c.Sleep(time.Hour)
		close(woke)
	}()
	g.Eventually(c.HasWaiters).Should(BeTrue())
	g.Expect(c.Now()).To(Equal(time.Unix(0, 0)))
	c.Step(time.Hour)
	g.Eventually(woke).Should(BeClosed())
}

func TestClockFileHoldsTheOffset(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "clock")
	f, err := NewClockFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Env()).To(Equal("SLUICE_TEST_CLOCK=" + path))
	content := func() string {
		b, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		return string(b)
	}
	g.Expect(content()).To(Equal("0s\n"))
	g.Expect(f.Set(36 * time.Hour)).To(Succeed())
	g.Expect(f.Advance(time.Hour)).To(Succeed())
	g.Expect(content()).To(Equal("37h0m0s\n"))
	_, err = NewClockFile(filepath.Join(path, "below-a-file"))
	g.Expect(err).To(MatchError(ContainSubstring("moving the clock")))
}
