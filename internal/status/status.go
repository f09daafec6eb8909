// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status writes conditions the way kstatus reads them: Ready is always
// there; Reconciling and Stalled are there only while True, and never both.
// A status is patched once at the end of a reconcile and only when it changed,
// and an event is recorded only on a transition.
package status

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-dev/sluice/internal/fault"
)

// Condition types shared by all kinds.
const (
	ready       = "Ready"
	reconciling = "Reconciling"
	stalled     = "Stalled"
)

// Object is a kind with conditions.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
}

// maxMessage is the longest message the API server takes in a condition.
const maxMessage = 32768

// Set puts a condition on the object with its generation.
func Set(o Object, conditionType string, s metav1.ConditionStatus, reason, message string) {
	if len(message) > maxMessage {
		message = message[:maxMessage-3] + "..."
	}
	conditions := o.GetConditions()
	meta.SetStatusCondition(&conditions, metav1.Condition{
		Type: conditionType, Status: s, Reason: reason, Message: message, ObservedGeneration: o.GetGeneration(),
	})
	o.SetConditions(conditions)
}

// Remove takes conditions off the object.
func Remove(o Object, types ...string) {
	conditions := o.GetConditions()
	for _, t := range types {
		meta.RemoveStatusCondition(&conditions, t)
	}
	o.SetConditions(conditions)
}

// Ready marks the object as able to do its work.
func Ready(o Object, reason, message string) {
	Remove(o, reconciling, stalled)
	Set(o, ready, metav1.ConditionTrue, reason, message)
}

// Reconciling marks work under way that ends by itself. Ready keeps the given
// status: an object that is being updated may still be able to do its work.
func Reconciling(o Object, r metav1.ConditionStatus, reason, message string) {
	Remove(o, stalled)
	Set(o, reconciling, metav1.ConditionTrue, reason, message)
	Set(o, ready, r, reason, message)
}

// Stalled marks what only a person mends.
func Stalled(o Object, reason, message string) {
	Remove(o, reconciling)
	Set(o, stalled, metav1.ConditionTrue, reason, message)
	Set(o, ready, metav1.ConditionFalse, reason, message)
}

// NotReady marks an object that something outside it keeps from its work, and
// that recovers by itself once that is mended.
func NotReady(o Object, reason, message string) {
	Remove(o, stalled)
	Set(o, reconciling, metav1.ConditionTrue, "ProgressingWithRetry", message)
	Set(o, ready, metav1.ConditionFalse, reason, message)
}

// Fault marks the object with what stands in its way, by the fault's class:
// terminal faults and missing grants stall it, everything else is retried.
func Fault(o Object, err error) {
	f := fault.Of(err)
	if NeedsPerson(f) {
		Stalled(o, string(f.Reason), f.Message)
		return
	}
	NotReady(o, string(f.Reason), f.Message)
}

// NeedsPerson reports whether a fault is one that waiting does not end: the
// object's own spec is at fault, or no grant allows what it asks for.
func NeedsPerson(f *fault.Error) bool {
	return f.Class == fault.Terminal || f.Reason == fault.ReasonNotGranted
}

// Patcher writes an object's status once, if it changed.
type Patcher struct {
	client client.Client
	before Object
}

// NewPatcher remembers the object as it is now.
func NewPatcher(c client.Client, o Object) *Patcher {
	return &Patcher{client: c, before: o.DeepCopyObject().(Object)}
}

// Before returns the object as it was when the Patcher was made.
func (p *Patcher) Before() Object { return p.before }

// Patch writes the status of o if it differs from what it was. An object that
// is gone is no error. It reports whether anything was written.
func (p *Patcher) Patch(ctx context.Context, o Object) (bool, error) {
	if equality.Semantic.DeepEqual(p.before, o) {
		return false, nil
	}
	patch := client.MergeFrom(p.before)
	if err := p.client.Status().Patch(ctx, o.DeepCopyObject().(Object), patch); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return true, nil
}

// RecordTransitions records one event for each of the named conditions whose
// status or reason changed. What keeps an object from its work is a warning;
// work that goes on by itself is not.
func RecordTransitions(r events.EventRecorder, before, after Object, types ...string) {
	for _, t := range types {
		was := meta.FindStatusCondition(before.GetConditions(), t)
		is := meta.FindStatusCondition(after.GetConditions(), t)
		if is == nil || is.Status == metav1.ConditionUnknown || (was != nil && was.Status == is.Status && was.Reason == is.Reason) {
			continue
		}
		r.Eventf(after, nil, severity(after, is), is.Reason, t, "%s", note(is.Message))
	}
}

// severity is a warning for what is False, unless the object is making
// progress under the very same reason.
func severity(o Object, c *metav1.Condition) string {
	if c.Status != metav1.ConditionFalse {
		return corev1.EventTypeNormal
	}
	progress := meta.FindStatusCondition(o.GetConditions(), reconciling)
	if progress != nil && progress.Reason == c.Reason {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// maxNote is the longest note the API server takes in an event.
const maxNote = 1024

func note(message string) string {
	if len(message) > maxNote {
		return message[:maxNote-3] + "..."
	}
	return message
}
