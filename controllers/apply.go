// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// applyObject turns an object into one for server-side apply: without status
// and without the empty fields that a Go type would claim.
func applyObject(o runtime.Object) (*unstructured.Unstructured, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("preparing an object to apply: %w", err)
	}
	delete(m, "status")
	if metadata, isMap := m["metadata"].(map[string]any); isMap {
		delete(metadata, "creationTimestamp")
	}
	return &unstructured.Unstructured{Object: m}, nil
}
