// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// ProjectSyncReconciler records what ProjectSyncs want, makes their
// RepoReconciles, and shows what the rows say. The work itself is the engine's.
type ProjectSyncReconciler struct {
	client.Client
	Ledger   Ledger
	Engine   Engine
	Grants   Grants
	Recorder events.EventRecorder
	Clock    clock.Clock

	// said is what was last said of an object in an event, by UID and topic.
	said sync.Map
}

// +kubebuilder:rbac:groups=sluice.dev,resources=projectsyncs,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=projectsyncs/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=sluice.dev,resources=projectsyncs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// SetupWithManager registers the controller, or says what it lacks.
func (r *ProjectSyncReconciler) SetupWithManager(mgr ctrl.Manager, w *Waker) error {
	if r.Client == nil || r.Ledger == nil || r.Engine == nil || r.Recorder == nil || r.Clock == nil {
		return errors.New("controllers: ProjectSyncReconciler lacks a dependency")
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.ProjectSync{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, annotationChanged(), projectEvent()))).
		Owns(&v1alpha1.RepoReconcile{}, builder.WithPredicates(childChanged())).
		Watches(&v1alpha1.GitHubApp{}, handler.EnqueueRequestsFromMapFunc(r.projectsOfApp), builder.WithPredicates(appChanged())).
		WatchesRawSource(w.source(domain.KindProjectSync)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(r)
}

// projectsOfApp returns the ProjectSyncs that use a GitHubApp.
func (r *ProjectSyncReconciler) projectsOfApp(ctx context.Context, app client.Object) []reconcile.Request {
	var list v1alpha1.ProjectSyncList
	if err := r.List(ctx, &list); err != nil {
		return nil // each of them is looked at again by itself
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if list.Items[i].Spec.AppRef.Name == app.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// Reconcile brings one ProjectSync's rows and status in step.
func (r *ProjectSyncReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var p v1alpha1.ProjectSync
	if err := r.Get(ctx, req.NamespacedName, &p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !p.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, &p)
	}
	if controllerutil.AddFinalizer(&p, v1alpha1.LedgerFinalizer) {
		// The finalizer is there before the first row.
		return requeueNow(r.Update(ctx, &p))
	}
	patcher := status.NewPatcher(r.Client, &p)
	err := r.reconcile(ctx, &p)
	if err != nil {
		p.Status.ObservedGeneration = p.Generation
		showIgnored(&p, p.IgnoredFields())
		showUnknown(&p)
		status.Fault(&p, err)
		f := fault.Of(err)
		p.Status.NextAction = v1alpha1.ShortenMessage(f.Message)
	}
	if _, perr := patcher.Patch(ctx, &p); perr != nil {
		return ctrl.Result{}, perr
	}
	status.RecordTransitions(r.Recorder, patcher.Before(), &p, v1alpha1.ConditionReady)
	r.recordSync(patcher.Before(), &p)
	return requeue(err, r.Clock)
}

// showUnknown adds the conditions that could not be computed for want of rows.
func showUnknown(p *v1alpha1.ProjectSync) {
	for _, t := range []string{v1alpha1.ConditionDistributionBuilt, v1alpha1.ConditionSynced} {
		if len(p.Status.Conditions) == 0 || !hasCondition(p, t) {
			status.Set(p, t, "Unknown", v1alpha1.ReasonNotBuilt, "not known yet: see Ready")
		}
	}
}

func hasCondition(o status.Object, t string) bool {
	for _, c := range o.GetConditions() {
		if c.Type == t {
			return true
		}
	}
	return false
}

// reconcile records the spec, its recipients and its tokens, makes the
// children, wakes the engine and projects the rows to the status.
func (r *ProjectSyncReconciler) reconcile(ctx context.Context, p *v1alpha1.ProjectSync) error {
	if err := validate(p); err != nil {
		return err
	}
	app, err := r.checkApp(ctx, p)
	if err != nil {
		return err
	}
	project, err := r.Ledger.UpsertProject(ctx, projectSpec(p), r.Clock.Now())
	if err != nil {
		return err
	}
	if r.mayBeMended(p, app, project.Problem) {
		if err := r.Ledger.ClearProblem(ctx, project.ID); err != nil {
			return err
		}
	}
	if p.Spec.Stage == v1alpha1.StagePublished {
		rows, err := r.Ledger.SetRecipients(ctx, project.ID, recipients(p), r.Clock.Now())
		if err != nil {
			return err
		}
		if err := r.makeChildren(ctx, p, rows); err != nil {
			return err
		}
	}
	if err := r.recordTokens(ctx, p); err != nil {
		return err
	}
	r.Engine.Wake()
	view, err := r.Ledger.ProjectView(ctx, string(p.UID))
	if err != nil {
		return err
	}
	projectStatus(p, view)
	return nil
}

// mayBeMended reports whether what stood in the way may just have been changed,
// so that the engine need not wait for its next try: the object's spec, or the
// App it waited for.
func (r *ProjectSyncReconciler) mayBeMended(p *v1alpha1.ProjectSync, app *v1alpha1.GitHubApp, problem domain.Problem) bool {
	switch {
	case problem.Reason == "":
		return false
	case p.Generation != p.Status.ObservedGeneration:
		return true
	case problem.Reason != string(fault.ReasonAppNotReady):
		return false
	}
	// A new leader may see the App's old status before it has connected
	// itself: a problem just recorded stays for a moment.
	return meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.ConditionReady) && r.Clock.Since(problem.At) > time.Second
}

// checkApp returns the GitHubApp. It makes sure that the GitHubApp is there and that its grants allow
// what the spec names, before anything is recorded or asked of GitHub. The
// engine judges again on names as resolved by id.
func (r *ProjectSyncReconciler) checkApp(ctx context.Context, p *v1alpha1.ProjectSync) (*v1alpha1.GitHubApp, error) {
	var app v1alpha1.GitHubApp
	if err := r.Get(ctx, client.ObjectKey{Name: p.Spec.AppRef.Name}, &app); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, appNotFound(p.Spec.AppRef.Name)
		}
		return nil, fmt.Errorf("reading GitHubApp %s: %w", p.Spec.AppRef.Name, err)
	}
	uses := []struct {
		use     domain.Use
		subject string
	}{
		{domain.UseOrganization, organization(p)},
		{domain.UseOrganization, domain.Owner(projectSpec(p).Distribution)},
		{domain.UseSource, p.Spec.Source.Repository},
	}
	if p.Spec.Stage == v1alpha1.StagePublished {
		for _, e := range recipients(p) {
			uses = append(uses, struct {
				use     domain.Use
				subject string
			}{domain.UseDownstream, e.FullName})
		}
	}
	for _, u := range uses {
		if err := r.Grants.Authorize(ctx, p.Spec.AppRef.Name, p.Namespace, u.use, u.subject); err != nil {
			return nil, err
		}
	}
	return &app, nil
}

// recordTokens records the sync requests the object carries. One that is known
// already stays as it was answered.
func (r *ProjectSyncReconciler) recordTokens(ctx context.Context, p *v1alpha1.ProjectSync) error {
	for _, t := range tokens(p) {
		view, err := r.Ledger.ProjectView(ctx, string(p.UID))
		if err != nil {
			return err
		}
		answer, reason, message := firstAnswer(p, view, t)
		if _, _, err := r.Ledger.RecordRequest(ctx, view.ID, t, answer, reason, message, r.Clock.Now()); err != nil {
			return err
		}
	}
	return nil
}

// recordSync records the events of a sync, once each: that a request was
// accepted, that a pass ended. The object read may be older than what was said
// last, so that is remembered.
func (r *ProjectSyncReconciler) recordSync(before status.Object, p *v1alpha1.ProjectSync) {
	was, isProject := before.(*v1alpha1.ProjectSync)
	if !isProject || p.Status.Sync == nil {
		return
	}
	old := v1alpha1.SyncStatus{}
	if was.Status.Sync != nil {
		old = *was.Status.Sync
	}
	now := p.Status.Sync
	if l := now.LastRequest; l != nil && l.Answer == string(domain.AnswerAccepted) && !equality.Semantic.DeepEqual(old.LastRequest, l) && r.firstTime(p, "request", l.Source+l.Token) {
		r.Recorder.Eventf(p, nil, corev1.EventTypeNormal, v1alpha1.ReasonSyncRequested, "Sync", "sync %q accepted", l.Token)
	}
	if l := now.LastRequest; l != nil && l.Answer == string(domain.AnswerRefused) && !equality.Semantic.DeepEqual(old.LastRequest, l) && r.firstTime(p, "request", l.Source+l.Token) {
		r.Recorder.Eventf(p, nil, corev1.EventTypeWarning, v1alpha1.ReasonSyncRefused, "Sync", "sync %q refused: %s: %s", l.Token, l.Reason, l.Message)
	}
	if l := now.LastCompleted; l != nil && !equality.Semantic.DeepEqual(old.LastCompleted, l) && r.firstTime(p, "pass", l.Token+l.Time.String()) {
		kind := corev1.EventTypeNormal
		if l.Counts.Failed > 0 || l.Counts.Held > 0 {
			kind = corev1.EventTypeWarning
		}
		r.Recorder.Eventf(p, nil, kind, v1alpha1.ReasonSyncCompleted, "Sync", "sync %q ended: %s", l.Token, summary(domain.Counts{Opened: int(l.Counts.Opened), Updated: int(l.Counts.Updated),
			UpToDate: int(l.Counts.UpToDate), Held: int(l.Counts.Held), Skipped: int(l.Counts.Skipped), Failed: int(l.Counts.Failed)}))
	}
}

// firstTime reports whether this is the first time that something is said of
// an object.
func (r *ProjectSyncReconciler) firstTime(p *v1alpha1.ProjectSync, topic, what string) bool {
	previous, found := r.said.Swap(string(p.UID)+"/"+topic, what)
	return !found || previous != what
}

// finalize lets a deleted object go once its rows are released or purged. It
// calls nothing on GitHub (R-CORE-07, R-DIST-13).
func (r *ProjectSyncReconciler) finalize(ctx context.Context, p *v1alpha1.ProjectSync) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(p, v1alpha1.LedgerFinalizer) {
		return ctrl.Result{}, nil
	}
	if p.Annotations[v1alpha1.AbandonRowsAnnotation] != string(p.UID) {
		if err := r.release(ctx, p); err != nil {
			f := fault.Of(err)
			r.Recorder.Eventf(p, nil, "Warning", string(f.Reason), "Delete", "%s", f.Message)
			return requeue(err, r.Clock)
		}
	}
	r.said.Delete(string(p.UID) + "/request")
	r.said.Delete(string(p.UID) + "/pass")
	controllerutil.RemoveFinalizer(p, v1alpha1.LedgerFinalizer)
	return ctrl.Result{}, client.IgnoreNotFound(r.Update(ctx, p))
}

func (r *ProjectSyncReconciler) release(ctx context.Context, p *v1alpha1.ProjectSync) error {
	if p.Spec.DeletionPolicy == v1alpha1.DeletionPurge {
		_, err := r.Ledger.PurgeProject(ctx, string(p.UID), "unverified", r.Clock.Now())
		return err
	}
	return r.Ledger.ReleaseProject(ctx, string(p.UID), "unverified", r.Clock.Now())
}
