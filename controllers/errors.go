// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/fault"
)

const (
	// blockedRetry is how soon something outside an object is looked at
	// again that somebody has to change.
	blockedRetry = 15 * time.Second
	// settledRetry is how often an object is looked at that is as wanted.
	settledRetry = 10 * time.Minute
)

// requeue says when an object with that fault is looked at again. A fault that
// has a time of its own keeps it; what may pass at any moment is retried with
// the queue's backoff, and what somebody has to change after a fixed time.
func requeue(err error, clk clock.Clock) (ctrl.Result, error) {
	if err == nil {
		return ctrl.Result{RequeueAfter: settledRetry}, nil
	}
	if errors.Is(err, context.Canceled) {
		return ctrl.Result{}, nil
	}
	f := fault.Of(err)
	switch {
	case !f.RetryAt.IsZero():
		return ctrl.Result{RequeueAfter: max(f.RetryAt.Sub(clk.Now()), time.Second)}, nil
	case f.Class == fault.Retryable && f.Reason == fault.ReasonUnexpected:
		return ctrl.Result{}, err
	case f.Class == fault.Retryable:
		return ctrl.Result{RequeueAfter: 5 * time.Second}, nil
	}
	return ctrl.Result{RequeueAfter: blockedRetry}, nil
}

// requeueNow goes on with an object that was just written. Somebody else's
// write in the same moment is no fault: the object is read again.
func requeueNow(err error) (ctrl.Result, error) {
	if err != nil && !apierrors.IsConflict(err) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{RequeueAfter: time.Millisecond}, nil
}
