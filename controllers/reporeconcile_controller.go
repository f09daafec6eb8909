// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/status"
)

// RepoReconcileReconciler shows one downstream repository's row, and brings its
// provisioning to its end.
type RepoReconcileReconciler struct {
	client.Client
	Ledger      Ledger
	Provisioner Provisioner
	Recorder    events.EventRecorder
	Clock       clock.Clock
}

// +kubebuilder:rbac:groups=sluice.dev,resources=reporeconciles/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=reporeconciles/finalizers,verbs=update

// SetupWithManager registers the controller, or says what it lacks.
func (r *RepoReconcileReconciler) SetupWithManager(mgr ctrl.Manager, w *Waker) error {
	if r.Client == nil || r.Ledger == nil || r.Provisioner == nil || r.Recorder == nil || r.Clock == nil {
		return errors.New("controllers: RepoReconcileReconciler lacks a dependency")
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.RepoReconcile{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, annotationChanged(), repositoryEvent()))).
		Watches(&v1alpha1.ProjectSync{}, handler.EnqueueRequestsFromMapFunc(r.childrenOf), builder.WithPredicates(appChanged())).
		WatchesRawSource(w.source(domain.KindRepoReconcile)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}

// childrenOf returns the RepoReconciles of a ProjectSync that changed: they may
// have waited for it.
func (r *RepoReconcileReconciler) childrenOf(ctx context.Context, p client.Object) []reconcile.Request {
	var list v1alpha1.RepoReconcileList
	if err := r.List(ctx, &list, client.InNamespace(p.GetNamespace())); err != nil {
		return nil // each of them is looked at again by itself
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if ref := list.Items[i].Spec.ProjectRef; ref != nil && ref.Name == p.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// Reconcile brings one RepoReconcile's row and status in step.
func (r *RepoReconcileReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var o v1alpha1.RepoReconcile
	if err := r.Get(ctx, req.NamespacedName, &o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	generated := metav1.GetControllerOf(&o) != nil
	if !o.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, &o)
	}
	if !generated && controllerutil.AddFinalizer(&o, v1alpha1.LedgerFinalizer) {
		return requeueNow(r.Update(ctx, &o))
	}
	patcher := status.NewPatcher(r.Client, &o)
	err := r.reconcile(ctx, &o, generated)
	o.Status.ObservedGeneration = o.Generation
	showIgnored(&o, o.IgnoredFields())
	if err != nil {
		status.Fault(&o, err)
	}
	if _, perr := patcher.Patch(ctx, &o); perr != nil {
		return ctrl.Result{}, perr
	}
	status.RecordTransitions(r.Recorder, patcher.Before(), &o, v1alpha1.ConditionReady)
	return requeue(err, r.Clock)
}

// reconcile finds the object's row, provisions it, and projects it.
func (r *RepoReconcileReconciler) reconcile(ctx context.Context, o *v1alpha1.RepoReconcile, generated bool) error {
	row, err := r.row(ctx, o, generated)
	if err != nil {
		return err
	}
	if err := r.Ledger.SetSuspended(ctx, row.ID, o.Spec.Suspend); err != nil {
		return err
	}
	if o.Status.RepositoryID != 0 && row.Repo.ID != 0 && o.Status.RepositoryID != row.Repo.ID {
		return fault.New(fault.Terminal, fault.ReasonRepositoryChanged,
			"%s is another repository (id %d) than before (id %d): nothing is written to it; restore the name, or make another RepoReconcile", row.WantedName, row.Repo.ID, o.Status.RepositoryID)
	}
	stepErr := r.Provisioner.Step(ctx, row.ID)
	if stepErr != nil && !rowHolds(stepErr) {
		return stepErr
	}
	view, err := r.Ledger.RepositoryView(ctx, row.ID)
	if err != nil {
		return err
	}
	var project domain.Project
	if view.ProjectID != 0 {
		if project, err = r.Ledger.Project(ctx, view.ProjectID); err != nil {
			return err
		}
	}
	repositoryStatus(o, view, project, stepErr)
	return stepErr
}

// rowHolds reports whether a fault of a step is about the repository, so that
// the rest of its row can be shown with it.
func rowHolds(err error) bool {
	f := fault.Of(err)
	return f.Reason != fault.ReasonDatabaseUnavailable && f.Reason != fault.ReasonUnexpected && f.Reason != fault.ReasonInterrupted
}

// row returns the object's row: the one its project made for it, or one made
// for a hand-made object.
func (r *RepoReconcileReconciler) row(ctx context.Context, o *v1alpha1.RepoReconcile, generated bool) (domain.Repository, error) {
	key := domain.ObjectKey{Namespace: o.Namespace, Name: o.Name}
	if generated {
		row, err := r.Ledger.RepositoryByObject(ctx, key)
		if errors.Is(err, domain.ErrNotFound) {
			return row, fault.New(fault.Waiting, fault.ReasonNotProvisioned, "waiting for the project to record the repository")
		}
		return row, err
	}
	h := domain.HandMade{Object: key, ObjectUID: string(o.UID), App: o.Spec.AppRef.Name, Recipient: o.Spec.Recipient, RepoID: o.Spec.Repository.ID}
	if o.Spec.Repository.ID == 0 {
		h.FullName = fmt.Sprintf("%s/%s", o.Spec.Repository.Owner, o.Spec.Repository.Name)
	}
	if o.Spec.ProjectRef != nil {
		h.Project = domain.ObjectKey{Namespace: o.Namespace, Name: o.Spec.ProjectRef.Name}
	}
	for _, m := range o.Spec.Members {
		h.Members = append(h.Members, string(m.Login))
	}
	if h.FullName == "" || h.Project.Name == "" {
		return domain.Repository{}, fault.New(fault.Terminal, fault.ReasonFieldNotSupportedYet,
			"a hand-made RepoReconcile needs spec.projectRef, and spec.repository by owner and name, in this release")
	}
	return r.Ledger.UpsertHandMade(ctx, h, r.Clock.Now())
}

// finalize lets a deleted hand-made object go once its row is released. GitHub
// is left alone.
func (r *RepoReconcileReconciler) finalize(ctx context.Context, o *v1alpha1.RepoReconcile) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(o, v1alpha1.LedgerFinalizer) {
		return ctrl.Result{}, nil
	}
	if o.Annotations[v1alpha1.AbandonRowsAnnotation] != string(o.UID) {
		if err := r.Ledger.ReleaseHandMade(ctx, string(o.UID), r.Clock.Now()); err != nil {
			return requeue(err, r.Clock)
		}
	}
	controllerutil.RemoveFinalizer(o, v1alpha1.LedgerFinalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, o))
}
