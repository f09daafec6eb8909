#!/usr/bin/env bash
# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0
#
# verify.sh regenerates what is generated, formats, lints, and checks licences,
# go.mod and the manifests. It fails when anything is wrong, and when the tree
# then differs from the last commit. `make verify` runs it with the tools built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

step() { echo "== $*" >&2; }

step "Regenerating"
make --no-print-directory generate manifests

step "Formatting"
bin/golangci-lint fmt

step "Linting"
bin/golangci-lint run ./...
# The files that only test binaries contain.
bin/golangci-lint run --build-tags sluicetest ./internal/clock/...
while IFS= read -r script; do
  bash -n "$script"
done < <(git ls-files '*.sh' .ci/run)

step "Checking licences"
hack/licence-check.sh

step "Checking go.mod"
go mod tidy -diff || {
  echo "go.mod or go.sum is not tidy: run  go mod tidy  and commit both" >&2
  exit 1
}

step "Building the manifests"
for folder in config/crd config/default; do
  bin/kustomize build "$folder" >/dev/null
done

step "Comparing with the last commit"
if [ -n "$(git status --porcelain)" ]; then
  git status --short >&2
  git --no-pager diff HEAD >&2
  echo "The tree differs from the last commit: commit the files above (what is generated is committed too)" >&2
  exit 1
fi
