// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proc runs other programs beside a test or the demo, and sees to it
// that none of them outlives who started it.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// tailBytes is how much of a program's log an error quotes.
const tailBytes = 4 << 10

// Options of a Process.
type Options struct {
	// Name is what errors and log lines call it; default: the program's.
	Name string
	// Path of the program.
	Path string
	Args []string
	// Env is its whole environment; nil means this process's own.
	Env []string
	// Dir is where it runs; default: this process's own.
	Dir string
	// LogFile receives what it prints; it is started anew. Required.
	LogFile string
	// Log receives the same, as "name: line"; nil for the file only.
	Log io.Writer
	// Detached programs outlive this process, unless stopped. They cannot
	// have a Log.
	Detached bool
}

// Process is a running program. Its methods may be called from several
// goroutines.
type Process struct {
	name    string
	logFile string
	cmd     *exec.Cmd
	exited  chan struct{}
	err     error // of cmd.Wait; read it once exited is closed
}

// Start runs a program until it ends or is stopped. Unless detached, it is
// killed by the kernel when this process ends, however it ends (on Linux).
func Start(o Options) (*Process, error) {
	if o.Name == "" {
		o.Name = filepath.Base(o.Path)
	}
	if o.LogFile == "" {
		return nil, fmt.Errorf("starting %s: no log file is named", o.Name)
	}
	if o.Detached && o.Log != nil {
		return nil, fmt.Errorf("starting %s: a detached program logs to its file only", o.Name)
	}
	file, err := os.OpenFile(o.LogFile, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Name, err)
	}
	cmd := exec.Command(o.Path, o.Args...)
	cmd.Env, cmd.Dir = o.Env, o.Dir
	// One group for it and what it starts: all of them are stopped together,
	// and Ctrl-C in a terminal reaches only us, who then stop it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !o.Detached {
		dieWithParent(cmd.SysProcAttr)
	}
	var lines *lineWriter
	cmd.Stdout = file
	if o.Log != nil {
		lines = &lineWriter{prefix: o.Name + ": ", to: o.Log}
		cmd.Stdout = io.MultiWriter(file, lines)
		// What it started may keep the pipe open after it was killed.
		cmd.WaitDelay = time.Second
	}
	cmd.Stderr = cmd.Stdout

	p := &Process{name: o.Name, logFile: o.LogFile, cmd: cmd, exited: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel watches the thread that started the program, not the
		// process: the thread has to live as long as the program does.
		runtime.LockOSThread()
		defer close(p.exited)
		defer func() { _ = file.Close() }() // written by the program, not by us
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		if lines != nil {
			lines.flush()
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", o.Name, err)
	}
	return p, nil
}

// PID returns the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited returns a channel that is closed once the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err returns how the program ended and the end of its log; nil while it runs
// and when it ended with success.
func (p *Process) Err() error {
	select {
	case <-p.exited:
	default:
		return nil
	}
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("%s ended: %w; the end of %s:\n%s", p.name, p.err, p.logFile, p.Tail())
}

// Tail returns the end of the program's log.
func (p *Process) Tail() string {
	file, err := os.Open(p.logFile)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }() // only read
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := file.Seek(-tailBytes, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	b, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

// Stop asks the program and all it started to end, kills what is left after
// the grace, and returns when the program is gone. Without a grace it is killed
// at once. Stopping it again does nothing.
func (p *Process) Stop(grace time.Duration) {
	if grace > 0 {
		p.Signal(syscall.SIGTERM)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.exited:
		case <-timer.C:
		}
	}
	// Also when the program itself is gone: what it started may not be. The
	// group's id is not reused while a member lives.
	p.Signal(syscall.SIGKILL)
	<-p.exited
}

// Signal sends a signal to the program and all it started.
func (p *Process) Signal(sig syscall.Signal) {
	err := syscall.Kill(-p.cmd.Process.Pid, sig)
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		_ = p.cmd.Process.Signal(sig) // the group cannot be reached: the program at least
	}
}

// lineWriter passes whole lines on, each with a prefix.
type lineWriter struct {
	prefix string
	to     io.Writer
	rest   []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		w.print(w.rest[:i])
		w.rest = w.rest[i+1:]
	}
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.print(w.rest)
		w.rest = nil
	}
}

// print ignores errors: a log that cannot be written stops nothing.
func (w *lineWriter) print(line []byte) { _, _ = fmt.Fprintf(w.to, "%s%s\n", w.prefix, line) }
