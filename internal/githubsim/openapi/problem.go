// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problem is one place where a body differs from the description.
type Problem struct {
	// Pointer is the JSON pointer (RFC 6901) of the place, "" for the whole.
	// For a key that is missing it names the key.
	Pointer string
	// Text says what is wrong and what was expected. It holds no value of the
	// body, which may be a secret.
	Text string
	// rule is the keyword of the schema that was broken, "" when none was.
	rule string
}

// problem returns a Problem that no keyword of a schema stands for.
func problem(at, format string, arguments ...any) Problem {
	return Problem{Pointer: at, Text: fmt.Sprintf(format, arguments...)}
}

// Error tells how an answer or a request differs from the description.
type Error struct {
	// Operation is the operationId.
	Operation string
	// Subject is what was judged: "answer 200" or "request".
	Subject string
	// Version is the version of the description.
	Version string
	// Problems are sorted by pointer and are never empty.
	Problems []Problem
}

// shownProblems bounds the length of an error's text.
const shownProblems = 25

// Error names every problem by its JSON pointer, one a line.
func (e *Error) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "openapi: %s, %s: not as GitHub's description %s has it:", e.Operation, e.Subject, e.Version)
	for i, p := range e.Problems {
		if i == shownProblems {
			fmt.Fprintf(&text, "\n\tand %d more", len(e.Problems)-i)
			break
		}
		place := p.Pointer
		if place == "" {
			place = "(whole)"
		}
		fmt.Fprintf(&text, "\n\t%s: %s", place, p.Text)
	}
	return text.String()
}

// problems returns an Error, or nil without any problem.
func (v *Validator) problems(o *operation, subject string, list []Problem) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b Problem) int {
		if c := strings.Compare(a.Pointer, b.Pointer); c != 0 {
			return c
		}
		return strings.Compare(a.Text, b.Text)
	})
	return &Error{Operation: o.id, Subject: subject, Version: v.version, Problems: slices.CompactFunc(list, sameProblem)}
}

func sameProblem(a, b Problem) bool { return a.Pointer == b.Pointer && a.Text == b.Text }

// pointer is a JSON pointer that grows and shrinks while a body is walked; it
// becomes text only when there is something to report.
type pointer struct{ steps []step }

// step is a key, or an index when isIndex is set.
type step struct {
	key     string
	index   int
	isIndex bool
}

func (p *pointer) push(key string) *pointer {
	p.steps = append(p.steps, step{key: key})
	return p
}

func (p *pointer) pushIndex(i int) *pointer {
	p.steps = append(p.steps, step{index: i, isIndex: true})
	return p
}

func (p *pointer) pop() { p.steps = p.steps[:len(p.steps)-1] }

// with returns the text of the pointer with one more key.
func (p *pointer) with(key string) string {
	var text strings.Builder
	for _, s := range p.steps {
		if s.isIndex {
			text.WriteString(token(strconv.Itoa(s.index)))
		} else {
			text.WriteString(token(s.key))
		}
	}
	text.WriteString(token(key))
	return text.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// token returns a step of a JSON pointer, escaped (RFC 6901).
func token(step string) string { return "/" + pointerEscapes.Replace(step) }
