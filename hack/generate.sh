#!/usr/bin/env bash
# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Regenerates what is made from the Go types in api/v1alpha1: their deep copies,
# the CustomResourceDefinitions in config/crd, and the reference tables in
# docs/kinds.md and docs/conditions.md. Running it twice changes nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/tool.sh controller-gen
bin/controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
bin/controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases

{
  echo "apiVersion: kustomize.config.k8s.io/v1beta1"
  echo "kind: Kustomization"
  echo "resources:"
  for base in config/crd/bases/*.yaml; do
    echo "- bases/$(basename "$base")"
  done
} > config/crd/kustomization.yaml

go test ./api/v1alpha1 -count=1 -run '^TestReference' -args -update
