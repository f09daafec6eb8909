#!/usr/bin/env bash
# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Regenerates what is made from the Go types in api/v1alpha1: their deep copies,
# the CustomResourceDefinitions in config/crd/bases, and the reference tables in
# docs/kinds.md and docs/conditions.md. Running it twice changes nothing.
#
#   hack/generate.sh          regenerate
#   hack/generate.sh --tool   only build controller-gen and link it into bin/

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

module=hack/tools/controller-gen
version=$(awk '$1 == "sigs.k8s.io/controller-tools" { print $2 }
  $1 == "require" && $2 == "sigs.k8s.io/controller-tools" { print $3 }' "$module/go.mod")
if [ -z "$version" ]; then
  echo "hack/generate.sh: $module/go.mod does not require sigs.k8s.io/controller-tools" >&2
  exit 1
fi

# Built once per version outside the clone. The rename is atomic, so two builds
# at the same time do no harm.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/sluice/controller-gen-$version
tool=$cache/controller-gen
if [ ! -x "$tool" ]; then
  echo "Building controller-gen $version" >&2
  mkdir -p "$cache"
  built=$(mktemp "$cache/.build.XXXXXX")
  trap 'rm -f "$built"' EXIT
  (cd "$module" && GOFLAGS=-mod=readonly go build -o "$built" sigs.k8s.io/controller-tools/cmd/controller-gen)
  chmod 0755 "$built"
  mv -f "$built" "$tool"
  trap - EXIT
fi
mkdir -p bin
ln -sfn "$tool" bin/controller-gen
[ "${1:-}" = "--tool" ] && exit 0

"$root/bin/controller-gen" object:headerFile=hack/boilerplate.go.txt paths=./api/...
"$root/bin/controller-gen" crd paths=./api/... output:crd:artifacts:config=config/crd/bases

{
  echo "apiVersion: kustomize.config.k8s.io/v1beta1"
  echo "kind: Kustomization"
  echo "resources:"
  for base in config/crd/bases/*.yaml; do
    echo "- bases/$(basename "$base")"
  done
} > config/crd/kustomization.yaml

go test ./api/v1alpha1 -count=1 -run '^TestReference' -args -update
