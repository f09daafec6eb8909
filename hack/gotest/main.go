// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gotest runs `go test` with the arguments it is given, prints one line
// per package and the output of what failed, and counts. It fails when a test
// fails, when one was skipped, and when none ran: a green run means that tests
// ran.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s := newSummary(out)
	readErr := s.read(events)
	ended := cmd.Wait()
	if readErr != nil {
		return readErr
	}
	return s.finish(ended)
}

// event is one line of `go test -json`, as `go doc test2json` describes it.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build output
	Test        string
	Output      string
	Elapsed     float64 // seconds
	FailedBuild string
}

// summary prints and counts what `go test` reports.
type summary struct {
	out                     io.Writer
	passed, failed, skipped int
	// output of tests and packages that have not ended, by package and test.
	output map[[2]string][]string
	builds map[string][]string
	bad    []string // names of what failed or was skipped
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, output: map[[2]string][]string{}, builds: map[string][]string{}}
}

func (s *summary) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			s.line(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading what go test reports: %w", err)
		}
	}
}

// line takes one line; one that is no event is shown as it is.
func (s *summary) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		s.print(string(line))
		return
	}
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "output":
		s.output[key] = append(s.output[key], e.Output)
	case "build-output":
		s.builds[e.ImportPath] = append(s.builds[e.ImportPath], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			s.endPackage(e)
		} else {
			s.endTest(e)
		}
		delete(s.output, key)
	}
}

func (s *summary) endTest(e event) {
	switch e.Action {
	case "pass":
		s.passed++
		return
	case "skip":
		s.skipped++
		s.bad = append(s.bad, "skipped "+e.Package+" "+e.Test)
	default:
		s.failed++
		s.bad = append(s.bad, "failed  "+e.Package+" "+e.Test)
	}
	s.print(s.output[[2]string{e.Package, e.Test}]...)
}

func (s *summary) endPackage(e event) {
	output := s.output[[2]string{e.Package, ""}]
	if e.Action != "fail" {
		// The last line says ok, whether the answer was cached, or that
		// there are no test files.
		if len(output) > 0 && !strings.Contains(output[len(output)-1], "[no test files]") {
			s.print(output[len(output)-1])
		}
		return
	}
	s.bad = append(s.bad, "failed  "+e.Package)
	s.print(s.builds[e.FailedBuild]...)
	// Tests that never ended, e.g. because the binary crashed or timed out.
	var open []string
	for key := range s.output {
		if key[0] == e.Package && key[1] != "" {
			open = append(open, key[1])
		}
	}
	slices.Sort(open)
	for _, test := range open {
		s.bad = append(s.bad, "unended "+e.Package+" "+test)
		s.print(s.output[[2]string{e.Package, test}]...)
		delete(s.output, [2]string{e.Package, test})
	}
	s.print(output...)
}

func (s *summary) print(lines ...string) {
	for _, line := range lines {
		_, _ = fmt.Fprint(s.out, line) // nobody to tell when standard output is gone
	}
}

// finish prints the counts and returns why the run is not a success.
func (s *summary) finish(ended error) error {
	for _, line := range s.bad {
		s.print(line + "\n")
	}
	s.print(fmt.Sprintf("%d tests passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped))
	switch {
	case ended != nil:
		return fmt.Errorf("go test: %w", ended)
	case len(s.bad) > s.skipped:
		return errors.New("tests failed")
	case s.skipped > 0:
		return errors.New("tests were skipped: a test that does not run proves nothing")
	case s.passed == 0:
		return errors.New("no test ran")
	}
	return nil
}
