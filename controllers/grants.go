// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Grants judges the grants of GitHubApps at the time of use.
type Grants struct {
	client.Reader
}

// Authorize returns nil when a grant of the GitHubApp lets the namespace use
// the subject (a login, or a full name as resolved by id); else a Blocked
// fault with reason NotGranted that says which grant is missing.
func (g Grants) Authorize(ctx context.Context, app, namespace string, use domain.Use, subject string) error {
	var a v1alpha1.GitHubApp
	if err := g.Get(ctx, client.ObjectKey{Name: app}, &a); err != nil {
		if apierrors.IsNotFound(err) {
			return appNotFound(app)
		}
		return fmt.Errorf("reading GitHubApp %s: %w", app, err)
	}
	var ns corev1.Namespace
	if err := g.Get(ctx, client.ObjectKey{Name: namespace}, &ns); err != nil {
		return fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	if _, err := domain.Allowed(grants(a.Spec.Grants, ns.Labels), app, namespace, use, subject); err != nil {
		return fault.Wrap(err, fault.Blocked, fault.ReasonNotGranted, "%s", err.Error())
	}
	return nil
}

func appNotFound(name string) *fault.Error {
	return fault.New(fault.Blocked, fault.ReasonAppNotFound, "GitHubApp %q does not exist: create it, or correct spec.appRef.name", name)
}

// grants turns the spec's grants into ones that know a namespace's labels.
func grants(list []v1alpha1.Grant, namespaceLabels map[string]string) []domain.Grant {
	out := make([]domain.Grant, 0, len(list))
	for _, g := range list {
		covered := covers(g.Namespaces, namespaceLabels)
		out = append(out, domain.Grant{Name: g.Name, Covers: func(string) bool { return covered },
			Organizations: g.Organizations, Sources: g.Sources, Downstream: g.Downstream})
	}
	return out
}

func covers(s v1alpha1.NamespaceSelection, namespaceLabels map[string]string) bool {
	if s.From == v1alpha1.NamespacesAll {
		return true
	}
	selector, err := s.Selector.AsSelector()
	// A selector that cannot be read covers nothing.
	return err == nil && selector.Matches(labels.Set(namespaceLabels))
}
