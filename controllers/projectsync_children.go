// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/domain"
)

// fieldManager owns what a project generates on its children.
const fieldManager = "sluice-controller"

// makeChildren makes or renews the RepoReconcile of every listed repository,
// up to the limit in order of row id. The limit stops creation only; nothing is
// deleted here.
func (r *ProjectSyncReconciler) makeChildren(ctx context.Context, p *v1alpha1.ProjectSync, rows []domain.Repository) error {
	limit := v1alpha1.DefaultObjectLimit
	if o := p.Spec.Repositories; o != nil && o.Objects != nil && o.Objects.Limit != nil {
		limit = int(*o.Objects.Limit)
	}
	present, err := r.children(ctx, p)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !row.Listed {
			continue
		}
		name := childName(p.Name, row.Recipient)
		have, exists := present[name]
		if !exists && len(present) >= limit {
			continue
		}
		key := domain.ObjectKey{Namespace: p.Namespace, Name: name}
		if row.Object != key {
			if err := r.Ledger.SetObject(ctx, row.ID, key); err != nil {
				return err
			}
		}
		want := child(p, row, name)
		if exists && sameChild(have, want) {
			continue
		}
		present[name] = want
		if err := r.apply(ctx, p, want); err != nil {
			return err
		}
	}
	return nil
}

// +kubebuilder:rbac:groups=sluice.dev,resources=reporeconciles,verbs=get;list;watch;create;update;patch

func (r *ProjectSyncReconciler) children(ctx context.Context, p *v1alpha1.ProjectSync) (map[string]*v1alpha1.RepoReconcile, error) {
	var list v1alpha1.RepoReconcileList
	if err := r.List(ctx, &list, client.InNamespace(p.Namespace), client.MatchingLabels{v1alpha1.ProjectLabel: p.Name}); err != nil {
		return nil, fmt.Errorf("listing the project's RepoReconciles: %w", err)
	}
	m := map[string]*v1alpha1.RepoReconcile{}
	for i := range list.Items {
		m[list.Items[i].Name] = &list.Items[i]
	}
	return m, nil
}

// child is what a project generates for a repository: nothing about the source
// is in it (R-PRIV-01), and no field that people set by hand.
func child(p *v1alpha1.ProjectSync, row domain.Repository, name string) *v1alpha1.RepoReconcile {
	c := &v1alpha1.RepoReconcile{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RepoReconcile"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name, Labels: map[string]string{v1alpha1.ProjectLabel: p.Name}},
	}
	c.Spec.ProjectRef = &v1alpha1.ProjectReference{Name: p.Name}
	c.Spec.AppRef = p.Spec.AppRef
	c.Spec.Repository = v1alpha1.RepositoryIdentity{Owner: v1alpha1.Login(domain.Owner(row.WantedName)), Name: domain.Name(row.WantedName)}
	c.Spec.Recipient = row.Recipient
	c.Spec.Provision = !row.Adopt
	for _, m := range row.Members {
		c.Spec.Members = append(c.Spec.Members, v1alpha1.Member{Login: v1alpha1.Login(m)})
	}
	return c
}

// sameChild reports whether what the project owns on a child is as wanted.
func sameChild(have, want *v1alpha1.RepoReconcile) bool {
	if have.Spec.Repository != want.Spec.Repository || have.Spec.Recipient != want.Spec.Recipient || have.Spec.Provision != want.Spec.Provision ||
		have.Spec.AppRef.Name != want.Spec.AppRef.Name || len(have.Spec.Members) != len(want.Spec.Members) || len(have.OwnerReferences) == 0 {
		return false
	}
	for i := range have.Spec.Members {
		if have.Spec.Members[i] != want.Spec.Members[i] {
			return false
		}
	}
	return true
}

// apply writes a child by server-side apply: what people own on it stays.
func (r *ProjectSyncReconciler) apply(ctx context.Context, p *v1alpha1.ProjectSync, c *v1alpha1.RepoReconcile) error {
	if err := controllerutil.SetControllerReference(p, c, r.Scheme()); err != nil {
		return fmt.Errorf("owning RepoReconcile %s: %w", c.Name, err)
	}
	u, err := applyObject(c)
	if err != nil {
		return err
	}
	if err := r.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying RepoReconcile %s: %w", c.Name, err)
	}
	return nil
}

// maxChildName is the longest name of a child: it is a label's value too.
const maxChildName = 63

// childName is the project's name, cut, and a hash of what makes the
// repository's row one: the same entry always has the same object.
func childName(project, recipient string) string {
	sum := sha256.Sum256([]byte(project + "\x00" + recipient))
	suffix := "-" + hex.EncodeToString(sum[:5])
	readable := project + "-" + strings.ToLower(strings.NewReplacer("_", "-", ".", "-").Replace(recipient))
	if len(readable) > maxChildName-len(suffix) {
		readable = strings.TrimRight(readable[:maxChildName-len(suffix)], "-.")
	}
	return readable + suffix
}
