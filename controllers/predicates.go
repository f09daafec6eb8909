// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/status"
)

// onUpdate passes an update for which changed holds, and every creation and
// deletion.
func onUpdate(changed func(before, after client.Object) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld != nil && e.ObjectNew != nil && changed(e.ObjectOld, e.ObjectNew)
	}}
}

// annotationChanged passes when the annotations that ask for something did.
func annotationChanged() predicate.Predicate {
	return onUpdate(func(before, after client.Object) bool {
		for _, a := range []string{v1alpha1.SyncRequestedAtAnnotation, v1alpha1.SyncCancelledAtAnnotation, v1alpha1.AbandonRowsAnnotation} {
			if before.GetAnnotations()[a] != after.GetAnnotations()[a] {
				return true
			}
		}
		return before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero()
	})
}

// projectEvent passes when the receiver says that something happened.
func projectEvent() predicate.Predicate {
	return onUpdate(func(before, after client.Object) bool {
		a, okA := before.(*v1alpha1.ProjectSync)
		b, okB := after.(*v1alpha1.ProjectSync)
		return okA && okB && eventID(a.Status.LastEvent) != eventID(b.Status.LastEvent)
	})
}

func repositoryEvent() predicate.Predicate {
	return onUpdate(func(before, after client.Object) bool {
		a, okA := before.(*v1alpha1.RepoReconcile)
		b, okB := after.(*v1alpha1.RepoReconcile)
		return okA && okB && eventID(a.Status.LastEvent) != eventID(b.Status.LastEvent)
	})
}

func eventID(e *v1alpha1.Event) string {
	if e == nil {
		return ""
	}
	return e.ID
}

// childChanged passes when a child's Ready condition or spec did: what its
// project's summary and its ownership depend on.
func childChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, onUpdate(readyChanged))
}

// appChanged passes when a GitHubApp's spec or Ready condition did.
func appChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, onUpdate(readyChanged))
}

func readyChanged(before, after client.Object) bool {
	a, okA := before.(status.Object)
	b, okB := after.(status.Object)
	if !okA || !okB {
		return false
	}
	was := meta.FindStatusCondition(a.GetConditions(), v1alpha1.ConditionReady)
	is := meta.FindStatusCondition(b.GetConditions(), v1alpha1.ConditionReady)
	return (was == nil) != (is == nil) || (was != nil && is != nil && (was.Status != is.Status || was.Reason != is.Reason))
}
