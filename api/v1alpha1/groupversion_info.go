// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the sluice.dev API group: GitHubApp,
// ProjectSync and RepoReconcile.
// +kubebuilder:object:generate=true
// +groupName=sluice.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of these kinds.
	GroupVersion = schema.GroupVersion{Group: "sluice.dev", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
		s.AddKnownTypes(GroupVersion,
			&GitHubApp{}, &GitHubAppList{},
			&ProjectSync{}, &ProjectSyncList{},
			&RepoReconcile{}, &RepoReconcileList{},
		)
		metav1.AddToGroupVersion(s, GroupVersion)
		return nil
	})

	// AddToScheme adds these kinds to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)
