// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func TestRegistry(t *testing.T) {
	g := NewWithT(t)
	r := NewRegistry()
	_, _, err := r.Get("main")
	expectFault(t, err, fault.Waiting, fault.ReasonAppNotReady, `GitHubApp "main"`)

	a := &App{id: 1}
	r.Set("main", a, domain.AppInfo{ID: 1, Slug: "one"})
	got, info, err := r.Get("main")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(BeIdenticalTo(a))
	g.Expect(info.Slug).To(Equal("one"))

	r.Set("main", &App{id: 2}, domain.AppInfo{ID: 2})
	_, info, err = r.Get("main")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.ID).To(BeEquivalentTo(2))

	r.Remove("main")
	_, _, err = r.Get("main")
	expectFault(t, err, fault.Waiting, fault.ReasonAppNotReady)
}

func TestRegistry_IsUsedByMany(t *testing.T) {
	r := NewRegistry()
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			name := fmt.Sprint(i % 4)
			r.Set(name, &App{}, domain.AppInfo{ID: int64(i)})
			if _, _, err := r.Get(name); err != nil && !fault.Is(err, fault.ReasonAppNotReady) {
				t.Errorf("getting %s: %v", name, err)
			}
			r.Remove(name)
		})
	}
	group.Wait()
	if _, _, err := r.Get("0"); !fault.Is(err, fault.ReasonAppNotReady) {
		t.Errorf("got %v after all were removed", err)
	}
}
