// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// bodiesInMemory is how many bodies of the largest size are held at once. The
// sender of a body is known only once all of it was read, so memory is bounded
// for everybody.
const bodiesInMemory = 4

// errBusy: too many bytes of other deliveries are held at the moment.
var errBusy = errors.New("too many deliveries at once")

// budget is memory shared by all requests, in bytes.
type budget struct{ left atomic.Int64 }

func newBudget(n int64) *budget {
	b := &budget{}
	b.left.Store(n)
	return b
}

func (b *budget) take(n int64) bool {
	if b.left.Add(-n) < 0 {
		b.left.Add(n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.left.Add(n) }

// metered counts what was really read against a budget: a sender who only
// promises a large body takes nothing from the others.
type metered struct {
	io.Reader
	budget *budget
	taken  int64
}

// Read reads and counts. It fails with errBusy when the budget is used up.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if n > 0 {
		if !m.budget.take(int64(n)) {
			return 0, errBusy
		}
		m.taken += int64(n)
	}
	return n, err
}

// readBody returns the raw body of at most limit bytes, and a function that
// gives its memory back. Errors are *http.MaxBytesError, errBusy, or the
// connection's.
func readBody(w http.ResponseWriter, req *http.Request, limit int64, b *budget) (body []byte, release func(), err error) {
	none := func() {}
	if req.ContentLength > limit {
		return nil, none, &http.MaxBytesError{Limit: limit}
	}
	m := &metered{Reader: http.MaxBytesReader(w, req.Body, limit), budget: b}
	body, err = io.ReadAll(m)
	if err != nil {
		b.give(m.taken)
		return nil, none, err
	}
	return body, func() { b.give(m.taken) }, nil
}
