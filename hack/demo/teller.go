// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// teller prints the story for a person to follow.
type teller struct {
	to      io.Writer
	started time.Time
	number  int
}

func newTeller(to io.Writer) *teller { return &teller{to: to, started: time.Now()} }

// line prints one line as it is. A terminal that is gone stops nothing.
func (t *teller) line(text string) { _, _ = fmt.Fprintln(t.to, text) }

// chapter announces the next part of the story.
func (t *teller) chapter(format string, args ...any) {
	t.number++
	t.line(fmt.Sprintf("\n%d. %s", t.number, fmt.Sprintf(format, args...)))
}

// say tells what happened, with the seconds since the start.
func (t *teller) say(format string, args ...any) {
	t.line(fmt.Sprintf("[%5.1fs] %s", time.Since(t.started).Seconds(), fmt.Sprintf(format, args...)))
}

// show prints a command and what it answered.
func (t *teller) show(command, answer string) {
	t.line("    $ " + command)
	for line := range strings.Lines(strings.TrimRight(answer, "\n") + "\n") {
		t.line("    " + strings.TrimRight(line, "\n"))
	}
}
