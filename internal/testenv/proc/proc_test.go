// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// childVariable makes this test binary start a program, print its process id,
// and wait to be killed. Its value is where the log goes.
const childVariable = "SLUICE_PROC_CHILD"

func TestMain(m *testing.M) {
	if log := os.Getenv(childVariable); log != "" {
		p, err := Start(Options{Path: "sleep", Args: []string{"600"}, LogFile: log})
		if err != nil {
			fmt.Println("error:", err)
			return
		}
		fmt.Println(p.PID())
		select {}
	}
	os.Exit(m.Run())
}

func shell(t *testing.T, script string, o Options) (*Process, error) {
	t.Helper()
	o.Path, o.Args = "/bin/sh", []string{"-c", script}
	if o.LogFile == "" {
		o.LogFile = filepath.Join(t.TempDir(), "log")
	}
	p, err := Start(o)
	if err == nil {
		t.Cleanup(func() { p.Stop(0) })
	}
	return p, err
}

func TestOutputGoesToTheFileAndToTheLogByLines(t *testing.T) {
	g := NewWithT(t)
	var log bytes.Buffer
	p, err := shell(t, "echo one; echo two >&2; printf three", Options{Name: "speaker", Log: &log})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(p.Exited()).WithTimeout(10 * time.Second).Should(BeClosed())
	g.Expect(p.Err()).NotTo(HaveOccurred())
	g.Expect(log.String()).To(Equal("speaker: one\nspeaker: two\nspeaker: three\n"))
	g.Expect(p.Tail()).To(Equal("one\ntwo\nthree"))
}

func TestErrQuotesTheEndOfTheLog(t *testing.T) {
	g := NewWithT(t)
	p, err := shell(t, "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; exit 3", Options{Name: "failing"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(p.Exited()).WithTimeout(20 * time.Second).Should(BeClosed())
	g.Expect(p.Err()).To(MatchError(And(HavePrefix("failing ended: exit status 3"), HaveSuffix("line 1999"), Not(ContainSubstring("line 1\n")))))
}

func TestErrIsNilWhileItRuns(t *testing.T) {
	g := NewWithT(t)
	p, err := shell(t, "exec sleep 600", Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.Err()).NotTo(HaveOccurred())
	g.Expect(gone(p.PID())).To(BeFalse())
}

func TestStopEndsWhatItStartedToo(t *testing.T) {
	g := NewWithT(t)
	p, err := shell(t, "sleep 600 & echo $!; trap '' TERM; wait", Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(p.Tail).WithTimeout(10 * time.Second).ShouldNot(BeEmpty())
	grandchild, err := strconv.Atoi(p.Tail())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(gone(grandchild)).To(BeFalse())

	p.Stop(0)
	g.Expect(gone(p.PID())).To(BeTrue())
	g.Eventually(func() bool { return gone(grandchild) }).WithTimeout(10 * time.Second).Should(BeTrue())
	p.Stop(0)
}

func TestStopWithGraceLetsItEndInOrder(t *testing.T) {
	g := NewWithT(t)
	p, err := shell(t, "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done", Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(p.Tail).WithTimeout(10 * time.Second).Should(Equal("ready"))
	p.Stop(10 * time.Second)
	g.Expect(p.Err()).NotTo(HaveOccurred())
	g.Expect(p.Tail()).To(HavePrefix("ready"))
	g.Expect(p.Tail()).To(ContainSubstring("bye"))
}

func TestStopKillsWhoeverIgnoresTheGrace(t *testing.T) {
	g := NewWithT(t)
	p, err := shell(t, "trap '' TERM; echo ready; while :; do sleep 0.05; done", Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(p.Tail).WithTimeout(10 * time.Second).Should(Equal("ready"))
	p.Stop(100 * time.Millisecond)
	g.Expect(p.Err()).To(MatchError(ContainSubstring("killed")))
}

func TestStartRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		options Options
		want    string
	}{
		{"a program that is not there", Options{Path: "/nowhere/prog", LogFile: "log"}, "starting prog: fork/exec /nowhere/prog: no such file or directory"},
		{"no log file", Options{Path: "/bin/sh"}, "no log file is named"},
		{"a detached program with a log", Options{Path: "/bin/sh", LogFile: "log", Log: &bytes.Buffer{}, Detached: true}, "logs to its file only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			_, err := Start(c.options)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.want)))
		})
	}
}

func TestKilledBinaryLeavesNothing(t *testing.T) {
	g := NewWithT(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+filepath.Join(t.TempDir(), "log"))
	out, err := child.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(child.Start()).To(Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	g.Expect(err).NotTo(HaveOccurred(), line)
	g.Expect(gone(pid)).To(BeFalse())

	g.Expect(child.Process.Kill()).To(Succeed())
	_ = child.Wait() // killed, as asked
	g.Eventually(func() bool { return gone(pid) }).WithTimeout(20 * time.Second).Should(BeTrue())
}

func TestDetachedProgramHasNoDeathSignal(t *testing.T) {
	g := NewWithT(t)
	attached, err := shell(t, "exec sleep 600", Options{})
	g.Expect(err).NotTo(HaveOccurred())
	detached, err := shell(t, "exec sleep 600", Options{Detached: true})
	g.Expect(err).NotTo(HaveOccurred())
	want := &syscall.SysProcAttr{Setpgid: true}
	g.Expect(detached.cmd.SysProcAttr).To(Equal(want))
	dieWithParent(want)
	g.Expect(attached.cmd.SysProcAttr).To(Equal(want))
}

// gone reports whether a process has ended; one that nobody waited for yet has.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist) || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}
