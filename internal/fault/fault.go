// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fault classifies what went wrong, so that every layer agrees on what
// to do about it: adapters classify once, at their edge; reconcilers and the
// pass map the class to a condition, an outcome and a time to try again.
package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Class says who or what can end a fault.
type Class string

const (
	// Retryable faults pass by themselves: network, 5xx, a lost database.
	// It is the class of every error nobody classified.
	Retryable Class = "Retryable"
	// Waiting faults end when something already under way ends.
	Waiting Class = "Waiting"
	// RateLimited faults end at a time GitHub named (R-CORE-14).
	RateLimited Class = "RateLimited"
	// Blocked faults end when somebody changes something outside the object:
	// an App to install, a Secret to create, a permission to grant.
	Blocked Class = "Blocked"
	// Terminal faults end only when the object itself is changed.
	Terminal Class = "Terminal"
)

// Error is a classified fault. Its message is written for the person who reads
// a condition or an event: it names the field or object, the value and the
// mend, and holds no secret (R-CORE-10).
type Error struct {
	Class   Class
	Reason  Reason
	Message string
	// RetryAt is the earliest useful next attempt; zero when unknown.
	RetryAt time.Time

	cause error
}

// New returns a classified fault without a cause.
func New(class Class, reason Reason, format string, args ...any) *Error {
	return &Error{Class: class, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Wrap classifies cause. The cause stays reachable by errors.Is and errors.As
// but its text is not part of the message, so that a cause can never carry a
// secret into a condition.
func Wrap(cause error, class Class, reason Reason, format string, args ...any) *Error {
	e := New(class, reason, format, args...)
	e.cause = cause
	return e
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the classified cause, or nil.
func (e *Error) Unwrap() error { return e.cause }

// At returns a copy of the fault that asks for the next attempt at t.
func (e *Error) At(t time.Time) *Error {
	c := *e
	c.RetryAt = t
	return &c
}

// Of returns the fault in err's chain. An unclassified error becomes a
// Retryable one of reason Unexpected; nil stays nil. A cancelled context is
// Waiting: the process is stopping and the work is taken up again.
func Of(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, context.Canceled) {
		return Wrap(err, Waiting, ReasonInterrupted, "interrupted; it is taken up again")
	}
	return Wrap(err, Retryable, ReasonUnexpected, "%s", err.Error())
}

// Is reports whether err carries a fault of that reason.
func Is(err error, reason Reason) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason == reason
}
