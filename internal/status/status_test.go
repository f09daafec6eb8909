// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/status"
)

func object() *v1alpha1.ProjectSync {
	return &v1alpha1.ProjectSync{ObjectMeta: metav1.ObjectMeta{Namespace: "labs", Name: "lab1", Generation: 4}}
}

// Whatever comes after whatever: Reconciling and Stalled are there only while
// True, never both, and Ready is always there.
func TestConditionsNeverContradict(t *testing.T) {
	marks := map[string]func(status.Object){
		"Ready":       func(o status.Object) { status.Ready(o, "R", "m") },
		"Reconciling": func(o status.Object) { status.Reconciling(o, metav1.ConditionTrue, "R", "m") },
		"Stalled":     func(o status.Object) { status.Stalled(o, "R", "m") },
		"NotReady":    func(o status.Object) { status.NotReady(o, "R", "m") },
		"Fault":       func(o status.Object) { status.Fault(o, fault.New(fault.Retryable, "R", "m")) },
		"Terminal":    func(o status.Object) { status.Fault(o, fault.New(fault.Terminal, "R", "m")) },
	}
	for first, a := range marks {
		for second, b := range marks {
			t.Run(first+" then "+second, func(t *testing.T) {
				g := NewWithT(t)
				o := object()
				a(o)
				b(o)
				reconciling, stalled := meta.FindStatusCondition(o.GetConditions(), "Reconciling"), meta.FindStatusCondition(o.GetConditions(), "Stalled")
				g.Expect(reconciling != nil && stalled != nil).To(BeFalse())
				for _, c := range []*metav1.Condition{reconciling, stalled} {
					g.Expect(c == nil || c.Status == metav1.ConditionTrue).To(BeTrue())
				}
				ready := meta.FindStatusCondition(o.GetConditions(), "Ready")
				g.Expect(ready).NotTo(BeNil())
				g.Expect(ready.ObservedGeneration).To(BeEquivalentTo(4))
			})
		}
	}
}

func TestNeedsPerson(t *testing.T) {
	g := NewWithT(t)
	g.Expect(status.NeedsPerson(fault.New(fault.Terminal, "X", "m"))).To(BeTrue())
	g.Expect(status.NeedsPerson(fault.New(fault.Blocked, fault.ReasonNotGranted, "m"))).To(BeTrue())
	g.Expect(status.NeedsPerson(fault.New(fault.Blocked, fault.ReasonSecretNotFound, "m"))).To(BeFalse())
	g.Expect(status.NeedsPerson(fault.New(fault.Retryable, "X", "m"))).To(BeFalse())
}

func TestEventsOnTransitionsOnlyAndWarningsOnlyWhereSomebodyIsNeeded(t *testing.T) {
	for name, c := range map[string]struct {
		before, after func(status.Object)
		want          string // "" is no event
	}{
		"nothing changed":      {func(o status.Object) { status.Ready(o, "A", "m") }, func(o status.Object) { status.Ready(o, "A", "other words") }, ""},
		"it works":             {func(status.Object) {}, func(o status.Object) { status.Ready(o, "A", "m") }, corev1.EventTypeNormal},
		"work under way":       {func(status.Object) {}, func(o status.Object) { status.Reconciling(o, metav1.ConditionFalse, "Building", "m") }, corev1.EventTypeNormal},
		"something is missing": {func(status.Object) {}, func(o status.Object) { status.NotReady(o, "SecretNotFound", "m") }, corev1.EventTypeWarning},
		"stalled":              {func(o status.Object) { status.Ready(o, "A", "m") }, func(o status.Object) { status.Stalled(o, "NotGranted", "m") }, corev1.EventTypeWarning},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before, after := object(), object()
			c.before(before)
			after.SetConditions(before.GetConditions())
			c.after(after)
			r := events.NewFakeRecorder(10)
			status.RecordTransitions(r, before, after, v1alpha1.ConditionReady)
			if c.want == "" {
				g.Expect(r.Events).To(BeEmpty())
				return
			}
			g.Expect(r.Events).To(HaveLen(1))
			g.Expect(<-r.Events).To(HavePrefix(c.want))
		})
	}
}

func TestLongMessagesAreCutToWhatTheServerTakes(t *testing.T) {
	g := NewWithT(t)
	o := object()
	status.Ready(o, "A", strings.Repeat("x", 40000))
	g.Expect(len(meta.FindStatusCondition(o.GetConditions(), "Ready").Message)).To(BeNumerically("<=", 32768))
}
