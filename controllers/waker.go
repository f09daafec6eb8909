// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/sluice-dev/sluice/internal/domain"
)

// Waker puts objects on their controllers' queues: how the pass, the inbox and
// the timers say "look again". A wake-up never blocks, is merged with others
// for the same object, and never carries what happened.
type Waker struct {
	mu     sync.Mutex
	queues map[domain.ObjectKind]workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// NewWaker returns a Waker without any queue; wake-ups are dropped until a
// controller starts, whose first list covers them.
func NewWaker() *Waker {
	return &Waker{queues: map[domain.ObjectKind]workqueue.TypedRateLimitingInterface[reconcile.Request]{}}
}

// Wake makes the object's controller look at it.
func (w *Waker) Wake(ref domain.ObjectRef) {
	w.mu.Lock()
	queue := w.queues[ref.Kind]
	w.mu.Unlock()
	if queue != nil && ref.Name != "" {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}})
	}
}

// source returns the watch source that hands a kind's queue to the Waker.
func (w *Waker) source(kind domain.ObjectKind) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queues[kind] = queue
		return nil
	})
}
