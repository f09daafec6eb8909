// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/status"
)

// GitHubAppReconciler checks the credentials of GitHubApps and shows whether
// they work. The rest of the product reaches GitHub through the Apps it
// registers.
type GitHubAppReconciler struct {
	client.Client
	// Secrets reads Secrets uncached: their values are nowhere else.
	Secrets           client.Reader
	Apps              Apps
	Recorder          events.EventRecorder
	Clock             clock.Clock
	ResourceNamespace string
	ControllerName    string
}

// +kubebuilder:rbac:groups=sluice.dev,resources=githubapps,verbs=get;list;watch
// +kubebuilder:rbac:groups=sluice.dev,resources=githubapps/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// SetupWithManager registers the controller, or says what it lacks.
func (r *GitHubAppReconciler) SetupWithManager(mgr ctrl.Manager, w *Waker) error {
	if r.Client == nil || r.Secrets == nil || r.Apps == nil || r.Recorder == nil || r.Clock == nil || r.ResourceNamespace == "" {
		return errors.New("controllers: GitHubAppReconciler lacks a dependency")
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.GitHubApp{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(w.source(domain.KindGitHubApp)).
		Complete(r)
}

// Reconcile brings one GitHubApp's registration and status in step.
func (r *GitHubAppReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var app v1alpha1.GitHubApp
	if err := r.Get(ctx, req.NamespacedName, &app); err != nil {
		if apierrors.IsNotFound(err) {
			r.Apps.Unregister(req.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if app.Spec.ControllerName != r.ControllerName || !app.DeletionTimestamp.IsZero() {
		r.Apps.Unregister(app.Name)
		return ctrl.Result{}, nil
	}
	patcher := status.NewPatcher(r.Client, &app)
	fault := r.check(ctx, &app)
	if fault != nil {
		r.Apps.Unregister(app.Name)
		status.Fault(&app, fault)
	}
	app.Status.ObservedGeneration = app.Generation
	showIgnored(&app, app.IgnoredFields())
	if _, err := patcher.Patch(ctx, &app); err != nil {
		return ctrl.Result{}, err
	}
	status.RecordTransitions(r.Recorder, patcher.Before(), &app, v1alpha1.ConditionReady)
	return requeue(fault, r.Clock)
}

// check connects as the App and fills the status in. It returns what stands in
// the way.
func (r *GitHubAppReconciler) check(ctx context.Context, app *v1alpha1.GitHubApp) error {
	if err := r.refuseDuplicate(ctx, app); err != nil {
		return err
	}
	r.checkWebhookSecrets(ctx, app)
	key, err := r.secret(ctx, app.Spec.PrivateKeyRef, "spec.privateKeyRef", "privateKey", "githubAppPrivateKey")
	if err != nil {
		return err
	}
	connection, err := r.Apps.Connect(app.Name, app.Spec.AppID, app.Spec.BaseURL, key)
	if err != nil {
		return err
	}
	info, err := connection.Self(ctx)
	if err != nil {
		return err
	}
	installations, err := connection.Installations(ctx)
	if err != nil {
		return err
	}
	app.Status.Slug, app.Status.BotUserID = info.Slug, info.BotUserID
	app.Status.Installations = installationsStatus(installations)
	if app.Spec.Suspend {
		r.Apps.Unregister(app.Name)
		status.Ready(app, string(fault.ReasonSuspended), "suspended: spec.suspend is true, and nothing is done with this App")
		return nil
	}
	r.Apps.Register(app.Name, info)
	status.Ready(app, v1alpha1.ReasonSucceeded, fmt.Sprintf("acts as %s[bot] on %s", info.Slug, countedAccounts(installations)))
	return nil
}

func countedAccounts(list []domain.Installation) string {
	if len(list) == 1 {
		return "1 account"
	}
	return fmt.Sprintf("%d accounts", len(list))
}

// refuseDuplicate stalls a second object for the same App on the same server:
// the older one stays.
func (r *GitHubAppReconciler) refuseDuplicate(ctx context.Context, app *v1alpha1.GitHubApp) error {
	var all v1alpha1.GitHubAppList
	if err := r.List(ctx, &all); err != nil {
		return fmt.Errorf("listing GitHubApps: %w", err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		if other.UID != app.UID && other.Spec.AppID == app.Spec.AppID && strings.TrimSuffix(other.Spec.BaseURL, "/") == strings.TrimSuffix(app.Spec.BaseURL, "/") && older(other, app) {
			return fault.New(fault.Terminal, fault.ReasonDuplicateApp, "GitHubApp %q already is App %d on %s: delete one of the two", other.Name, app.Spec.AppID, app.Spec.BaseURL)
		}
	}
	return nil
}

func older(a, b *v1alpha1.GitHubApp) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// secret reads one key of a Secret of the resource namespace. Without a key in
// the reference the known ones are tried.
func (r *GitHubAppReconciler) secret(ctx context.Context, ref v1alpha1.SecretKeyReference, field string, known ...string) ([]byte, error) {
	var s corev1.Secret
	if err := r.Secrets.Get(ctx, client.ObjectKey{Namespace: r.ResourceNamespace, Name: ref.Name}, &s); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fault.Wrap(err, fault.Blocked, fault.ReasonSecretNotFound, "Secret %q does not exist in namespace %q: create it, or correct %s.name", ref.Name, r.ResourceNamespace, field)
		}
		if apierrors.IsForbidden(err) {
			return nil, fault.Wrap(err, fault.Blocked, fault.ReasonSecretNotFound, "the operator may not read Secret %q in namespace %q: add its name to the operator's Role", ref.Name, r.ResourceNamespace)
		}
		return nil, fmt.Errorf("reading Secret %s: %w", ref.Name, err)
	}
	keys := known
	if ref.Key != "" {
		keys = []string{ref.Key}
	}
	for _, k := range keys {
		if v := s.Data[k]; len(v) > 0 {
			return v, nil
		}
	}
	return nil, fault.New(fault.Blocked, fault.ReasonSecretKeyNotFound, "Secret %q in namespace %q has no key %q with a value: add it, or correct %s.key", ref.Name, r.ResourceNamespace, strings.Join(keys, `" or "`), field)
}

// checkWebhookSecrets says whether deliveries can be verified. It never keeps
// the App from working: polls need no webhook.
func (r *GitHubAppReconciler) checkWebhookSecrets(ctx context.Context, app *v1alpha1.GitHubApp) {
	if len(app.Spec.WebhookSecretRefs) == 0 {
		status.Set(app, v1alpha1.ConditionWebhookHealthy, "False", v1alpha1.ReasonNoWebhookSecret, "spec.webhookSecretRefs is empty: every delivery is refused with 401")
		return
	}
	for i, ref := range app.Spec.WebhookSecretRefs {
		if _, err := r.secret(ctx, v1alpha1.SecretKeyReference(ref), fmt.Sprintf("spec.webhookSecretRefs[%d]", i), "webhookSecret"); err != nil {
			f := fault.Of(err)
			status.Set(app, v1alpha1.ConditionWebhookHealthy, "False", string(f.Reason), f.Message)
			return
		}
	}
	status.Set(app, v1alpha1.ConditionWebhookHealthy, "True", v1alpha1.ReasonSecretsPresent, "deliveries to /webhooks/"+app.Name+" can be verified")
}

// maxSample bounds the installations shown.
const maxSample = 20

func installationsStatus(list []domain.Installation) *v1alpha1.InstallationsStatus {
	s := &v1alpha1.InstallationsStatus{Total: int32(len(list))} //nolint:gosec // a count
	slices.SortFunc(list, func(a, b domain.Installation) int { return cmp.Compare(a.Account, b.Account) })
	for i, in := range list {
		if in.Suspended {
			s.Suspended++
		}
		if i < maxSample {
			s.Sample = append(s.Sample, v1alpha1.InstallationStatus{Account: in.Account, Suspended: in.Suspended, PermissionsMissing: domain.MissingPermissions(in.Permissions)})
		}
	}
	return s
}

// showIgnored sets or removes the condition that lists fields without effect.
func showIgnored(o status.Object, fields []string) {
	if len(fields) == 0 {
		status.Remove(o, v1alpha1.ConditionFieldsIgnored)
		return
	}
	status.Set(o, v1alpha1.ConditionFieldsIgnored, "True", v1alpha1.ReasonNoEffectYet, "set, but without effect in this release: "+strings.Join(fields, ", "))
}
