// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
)

// FieldManager is the receiver's name in managedFields. It owns
// status.lastEvent and nothing else.
const FieldManager = "sluice-receiver"

// KubeOptions of a Kube.
type KubeOptions struct {
	// ControllerName says which GitHubApps are this installation's; default
	// v1alpha1.DefaultControllerName. Those of others are unknown here.
	ControllerName string
	Clock          clock.Clock
	Logger         logr.Logger
}

// Kube reads webhook secrets from the API server and wakes objects through it.
type Kube struct {
	client     client.Client
	namespace  string
	controller string
	clock      clock.Clock
	log        logr.Logger

	flight singleflight.Group
	// first bounds look-ups of names never asked for before: anybody may
	// invent them.
	first *rate.Limiter
	mu    sync.Mutex
	known map[string]appSecrets
}

// appSecrets is what was last read about a GitHubApp.
type appSecrets struct {
	secrets [][]byte
	exists  bool
	readAt  time.Time
	// askedAt is the last attempt to read, successful or not.
	askedAt time.Time
}

const (
	// secretsFor is how long secrets are kept, so also how long one that was
	// taken out still works.
	secretsFor = 10 * time.Second
	// secretsWithoutServer is how long they are kept while the API server
	// does not answer.
	secretsWithoutServer = 5 * time.Minute
	lookupTimeout        = 3 * time.Second
	maxKnownNames        = 1000
	firstPerSecond       = 10
	firstBurst           = 50
	defaultSecretKey     = "webhookSecret"
)

// NewKube returns a Kube. The client must read from the API server itself: a
// cache would hold every Secret it may see. Its scheme holds core/v1 and
// sluice.dev/v1alpha1. Secrets are read in the operator's resource namespace
// only.
func NewKube(c client.Client, resourceNamespace string, o KubeOptions) (*Kube, error) {
	if c == nil || resourceNamespace == "" || o.Clock == nil {
		return nil, errors.New("receiver: a client, a resource namespace and a clock are required")
	}
	if o.ControllerName == "" {
		o.ControllerName = v1alpha1.DefaultControllerName
	}
	return &Kube{
		client: c, namespace: resourceNamespace, controller: o.ControllerName, clock: o.Clock, log: o.Logger,
		first: rate.NewLimiter(firstPerSecond, firstBurst),
		known: map[string]appSecrets{},
	}, nil
}

// WebhookSecrets returns the secrets that spec.webhookSecretRefs of a GitHubApp
// name, and known=false when there is no such GitHubApp. A Secret or key that
// is missing gives none and is logged: without any, every delivery is refused.
// Answers are kept for ten seconds, for longer while the API server is away.
func (k *Kube) WebhookSecrets(ctx context.Context, app string) (secrets [][]byte, known bool, err error) {
	if len(validation.IsDNS1123Subdomain(app)) > 0 {
		return nil, false, nil
	}
	now := k.clock.Now()
	last, asked := k.recall(app)
	if asked && now.Sub(last.askedAt) < secretsFor {
		return last.secrets, last.exists, nil
	}
	if !asked && !k.first.AllowN(now, 1) {
		return nil, false, errors.New("too many unknown GitHubApps are asked for")
	}
	fresh, err := k.lookUp(ctx, app)
	if err == nil {
		return fresh.secrets, fresh.exists, nil
	}
	if asked && last.exists && now.Sub(last.readAt) < secretsWithoutServer {
		k.log.Info("The API server does not answer; the webhook secrets read before are used", "app", app, "detail", err.Error())
		last.askedAt = now
		k.keep(app, last)
		return last.secrets, true, nil
	}
	return nil, false, err
}

func (k *Kube) recall(app string) (appSecrets, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.known[app]
	return s, ok
}

// lookUp reads an App's secrets once for all who ask meanwhile, and keeps the
// answer.
func (k *Kube) lookUp(ctx context.Context, app string) (appSecrets, error) {
	v, err, _ := k.flight.Do(app, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
		defer cancel()
		s, err := k.read(ctx, app)
		if err != nil {
			return appSecrets{}, err
		}
		k.keep(app, s)
		return s, nil
	})
	if err != nil {
		return appSecrets{}, err
	}
	s, _ := v.(appSecrets)
	return s, nil
}

// keep remembers an answer. Names that do not exist make room first.
func (k *Kube) keep(app string, s appSecrets) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxKnownNames {
		for name, old := range k.known {
			if !old.exists {
				delete(k.known, name)
			}
		}
	}
	k.known[app] = s
}

func (k *Kube) read(ctx context.Context, app string) (appSecrets, error) {
	now := k.clock.Now()
	s := appSecrets{readAt: now, askedAt: now}
	var object v1alpha1.GitHubApp
	err := k.client.Get(ctx, client.ObjectKey{Name: app}, &object)
	switch {
	case apierrors.IsNotFound(err):
		return s, nil
	case err != nil:
		return s, fmt.Errorf("reading GitHubApp %q: %w", app, err)
	}
	controller := object.Spec.ControllerName
	if controller == "" {
		controller = v1alpha1.DefaultControllerName
	}
	if controller != k.controller {
		return s, nil
	}
	s.exists = true
	for _, ref := range object.Spec.WebhookSecretRefs {
		secret, err := k.readSecret(ctx, app, ref)
		if err != nil {
			return s, err
		}
		if len(secret) > 0 {
			s.secrets = append(s.secrets, secret)
		}
	}
	if len(s.secrets) == 0 {
		k.log.Info("No webhook secret: every delivery is refused until spec.webhookSecretRefs names one that is there", "app", app)
	}
	return s, nil
}

// readSecret returns a Secret's value, empty when it is not there. A newline at
// its end is dropped: no secret typed at GitHub has one, many files do.
func (k *Kube) readSecret(ctx context.Context, app string, ref v1alpha1.WebhookSecretReference) ([]byte, error) {
	key := ref.Key
	if key == "" {
		key = defaultSecretKey
	}
	log := k.log.WithValues("app", app, "secret", k.namespace+"/"+ref.Name, "key", key)
	var secret corev1.Secret
	err := k.client.Get(ctx, client.ObjectKey{Namespace: k.namespace, Name: ref.Name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		log.Info("The webhook Secret is missing: create it")
		return nil, nil
	case apierrors.IsForbidden(err):
		log.Info("The webhook Secret may not be read: name it in the receiver's Role")
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Secret %q: %w", ref.Name, err)
	}
	value := bytes.TrimRight(secret.Data[key], "\r\n")
	if len(value) == 0 {
		log.Info("The webhook Secret has no such key, or it is empty: fill it in")
	}
	return value, nil
}

// Wake writes an event to status.lastEvent of an object, and nothing else, by
// server-side apply. An object that is gone is no error.
func (k *Kube) Wake(ctx context.Context, ref domain.ObjectRef, e domain.Event) error {
	err := k.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(lastEvent(ref, e)), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err := client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("writing status.lastEvent of %s %s: %w", ref.Kind, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, err)
	}
	return nil
}

// lastEvent returns the smallest object that says what is applied.
func lastEvent(ref domain.ObjectRef, e domain.Event) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"status": map[string]any{"lastEvent": map[string]any{
			"id": e.ID, "event": e.Event, "receivedAt": e.ReceivedAt.UTC().Format(time.RFC3339),
		}},
	}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(string(ref.Kind)))
	u.SetNamespace(ref.Namespace)
	u.SetName(ref.Name)
	return u
}
