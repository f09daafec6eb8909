// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/testenv"
)

// build returns a binary of testdata/now.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "now")
	args := append(append([]string{"build", "-o", out}, flags...), "./testdata/now")
	if message, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, message)
	}
	return out
}

func clockFile(t *testing.T) *testenv.ClockFile {
	t.Helper()
	file, err := testenv.NewClockFile(filepath.Join(t.TempDir(), "clock"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestProductBinaryIgnoresTheTestClock(t *testing.T) {
	g := NewWithT(t)
	file := clockFile(t)
	g.Expect(file.Set(48 * time.Hour)).To(Succeed())
	cmd := exec.CommandContext(t.Context(), build(t), "once")
	cmd.Env = append(os.Environ(), file.Env())
	out, err := cmd.Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.TrimPrefix(strings.TrimSpace(string(out)), "-")).To(Equal("0"))
}

func TestTestBinaryFollowsTheTestClock(t *testing.T) {
	g := NewWithT(t)
	file := clockFile(t)
	g.Expect(file.Set(48 * time.Hour)).To(Succeed())
	cmd := exec.CommandContext(t.Context(), build(t, "-tags=sluicetest"))
	cmd.Env = append(os.Environ(), file.Env())
	stdout, err := cmd.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cmd.Start()).To(Succeed())
	lines := bufio.NewReader(stdout)
	g.Expect(lines.ReadString('\n')).To(Equal("48\n"))

	g.Expect(file.Advance(25 * time.Hour)).To(Succeed())
	g.Expect(file.Now()).To(BeTemporally("~", time.Now().Add(73*time.Hour), time.Minute))
	g.Expect(lines.ReadString('\n')).To(Equal("73\n"))
	_, err = lines.ReadByte()
	g.Expect(err).To(MatchError(io.EOF))
	g.Expect(cmd.Wait()).To(Succeed())
}

func TestTestBinaryNamesAClockFileItCannotRead(t *testing.T) {
	g := NewWithT(t)
	cmd := exec.CommandContext(t.Context(), build(t, "-tags=sluicetest"), "once")
	cmd.Env = append(os.Environ(), "SLUICE_TEST_CLOCK=/nowhere/clock")
	out, err := cmd.Output()
	g.Expect(err).To(HaveOccurred())
	g.Expect(string(out)).To(ContainSubstring("/nowhere/clock"))
}

func TestCorrectedAddsTheOffsetToReadingsOnly(t *testing.T) {
	g := NewWithT(t)
	base := testenv.NewClock(time.Date(2026, 10, 5, 8, 0, 0, 0, time.UTC))
	start := base.Now()
	c := clock.Corrected{Clock: base, Offset: func() time.Duration { return 3 * time.Second }}
	g.Expect(c.Now()).To(Equal(start.Add(3 * time.Second)))
	g.Expect(c.Since(start)).To(Equal(3 * time.Second))
	timer := c.NewTimer(time.Minute)
	base.Step(59 * time.Second)
	g.Expect(timer.C()).NotTo(Receive())
	base.Step(time.Second)
	g.Expect(timer.C()).To(Receive())
}
