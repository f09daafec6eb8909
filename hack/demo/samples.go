// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// samplesDir holds what a user applies, from the module's root.
const samplesDir = "config/samples"

// readSample returns the objects of one of the samples.
func readSample(root, file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(filepath.Join(root, samplesDir, file))
	if err != nil {
		return nil, err
	}
	var list []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 1<<12)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading %s/%s: %w", samplesDir, file, err)
		}
		if len(u.Object) > 0 {
			list = append(list, u)
		}
	}
}

// set sets a field of an object.
func set(u *unstructured.Unstructured, value any, fields ...string) error {
	return unstructured.SetNestedField(u.Object, value, fields...)
}

// applySample applies one sample, changed by edit where the demo's world is
// another, and shows what kubectl said.
func (s *story) applySample(ctx context.Context, file, changed string, edit func(*unstructured.Unstructured) error) error {
	list, err := readSample(s.root, file)
	if err != nil {
		return err
	}
	for _, u := range list {
		if edit != nil {
			if err := edit(u); err != nil {
				return fmt.Errorf("changing %s/%s: %w", samplesDir, file, err)
			}
		}
		text, err := u.MarshalJSON()
		if err != nil {
			return err
		}
		// create keeps no copy of a Secret's values in an annotation.
		answer, err := s.cluster.KubectlInput(ctx, bytes.NewReader(text), "create", "--save-config=false", "-f", "-")
		if err != nil {
			return err
		}
		s.show("kubectl create -f "+samplesDir+"/"+file+changed, answer)
	}
	return nil
}
