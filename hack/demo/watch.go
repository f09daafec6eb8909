// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/sluice-dev/sluice/api/v1alpha1"
)

// patience is how long the story waits for what must happen next.
const patience = 90 * time.Second

// seen is what GitOps tools computed of the ProjectSync at one moment.
type seen struct {
	status status.Status
	// reason is Reconciling's, empty when the object does not say so.
	reason string
}

// watch follows the product's objects from before they exist.
type watch struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	app      v1alpha1.GitHubApp
	project  v1alpha1.ProjectSync
	children map[string]v1alpha1.RepoReconcile // by recipient
	history  []seen                            // of the ProjectSync, without repetitions
	broken   error
	// stop ends watching and returns when it has ended.
	stop func()
}

// newWatch watches all three kinds until ctx ends or it is stopped.
func newWatch(ctx context.Context, config *rest.Config) (*watch, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	w := &watch{changed: make(chan struct{}), children: map[string]v1alpha1.RepoReconcile{}, stop: func() { cancel(); factory.Shutdown() }}
	for _, resource := range []string{"githubapps", "projectsyncs", "reporeconciles"} {
		informer := factory.ForResource(v1alpha1.GroupVersion.WithResource(resource)).Informer()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: w.take, UpdateFunc: func(_, o any) { w.take(o) }}); err != nil {
			w.stop()
			return nil, err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return w, context.Cause(ctx)
}

// take remembers an object as it is now.
func (w *watch) take(o any) {
	u, isObject := o.(*unstructured.Unstructured)
	if !isObject {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.remember(u); err != nil {
		w.broken = err
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *watch) remember(u *unstructured.Unstructured) error {
	convert := func(into any) error { return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into) }
	switch u.GetKind() {
	case "GitHubApp":
		w.app = v1alpha1.GitHubApp{}
		return convert(&w.app)
	case "RepoReconcile":
		var r v1alpha1.RepoReconcile
		err := convert(&r)
		w.children[r.Spec.Recipient] = r
		return err
	}
	w.project = v1alpha1.ProjectSync{}
	if err := convert(&w.project); err != nil {
		return err
	}
	result, err := status.Compute(u)
	if err != nil {
		return fmt.Errorf("kstatus cannot be computed: %w", err)
	}
	now := seen{status: result.Status}
	if c := meta.FindStatusCondition(w.project.Status.Conditions, v1alpha1.ConditionReconciling); c != nil {
		now.reason = c.Reason
	}
	if len(w.history) == 0 || w.history[len(w.history)-1] != now {
		w.history = append(w.history, now)
	}
	return nil
}

// await waits until done is true of what the watch saw last. done is called
// with the watch locked.
func (w *watch) await(ctx context.Context, what string, done func() bool) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		w.mu.Lock()
		reached, broken, changed := done(), w.broken, w.changed
		w.mu.Unlock()
		switch {
		case broken != nil:
			return broken
		case reached:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return fmt.Errorf("waited %s in vain for: %s\n%s", patience, what, w.explain())
		}
	}
}

// explain says how the objects are.
func (w *watch) explain() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := "next action of the ProjectSync: " + w.project.Status.NextAction
	for _, o := range []struct {
		name       string
		conditions []string
	}{
		{"GitHubApp", sayConditions(&w.app)},
		{"ProjectSync", sayConditions(&w.project)},
	} {
		for _, c := range o.conditions {
			text += "\n  " + o.name + " " + c
		}
	}
	for _, recipient := range slices.Sorted(maps.Keys(w.children)) {
		r := w.children[recipient]
		for _, c := range sayConditions(&r) {
			text += "\n  RepoReconcile of " + recipient + " " + c
		}
	}
	return text
}

// at returns how often the ProjectSync's kstatus changed so far.
func (w *watch) at() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.history)
}

// sawInProgress reports whether, since a moment that at returned, kstatus was
// InProgress because the object said that it reconciles.
func (w *watch) sawInProgress(since int) (reason string, found bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.history[since:] {
		if s.status == status.InProgressStatus && s.reason != "" {
			return s.reason, true
		}
	}
	return "", false
}

// current reports whether kstatus is Current. The watch must be locked.
func (w *watch) current() bool {
	return len(w.history) > 0 && w.history[len(w.history)-1].status == status.CurrentStatus
}
