#!/usr/bin/env bash
# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0
#
# controlplane.sh puts a Kubernetes control plane for tests and the demo into
# bin/k8s: etcd, kube-apiserver, kube-controller-manager (garbage collection
# needs it) and kubectl. Versions are pinned in hack/controlplane/go.mod and
# hack/etcd/go.mod. They are built from source once per version, about 7 minutes
# on 2 cores.
#
# SLUICE_CONTROLPLANE_URL=<address> fetches the Kubernetes binaries instead of
# building them, from an address laid out as Kubernetes' own releases are
# (<address>/<version>/bin/<os>/<arch>/<binary> with a .sha256 beside each); what
# cannot be fetched is built.
set -euo pipefail
# shellcheck source=hack/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

kubernetes="$(module_version "$root/hack/controlplane/go.mod" k8s.io/kubernetes)"
etcd="$(module_version "$root/hack/etcd/go.mod" go.etcd.io/etcd/server/v3)"

# fetch BINARY OUT downloads and checks one binary; false when it cannot.
fetch() {
  local binary="$1" out="$2" address temporary want got
  address="${SLUICE_CONTROLPLANE_URL%/}/$kubernetes/bin/$(go env GOOS)/$(go env GOARCH)/$binary"
  temporary="$out.tmp.$$"
  mkdir -p "$(dirname "$out")"
  echo "Fetching $address" >&2
  if ! want="$(curl -fsSL --connect-timeout 5 --retry 2 "$address.sha256")" ||
    ! curl -fsSL --connect-timeout 5 --retry 2 -o "$temporary" "$address"; then
    rm -f "$temporary"
    echo "Not to be had there; building $binary instead" >&2
    return 1
  fi
  got="$(sha256 "$temporary")"
  if [ "$got" != "${want%% *}" ]; then
    rm -f "$temporary"
    die "$address has the SHA-256 $got, its .sha256 file says ${want%% *}: nothing was installed"
  fi
  chmod 0755 "$temporary"
  mv -f "$temporary" "$out"
}

sha256() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1"
  else
    shasum -a 256 "$1"
  fi | awk '{print $1}'
}

for binary in kube-apiserver kube-controller-manager kubectl; do
  out="$cache/controlplane-$kubernetes/$binary"
  if [ ! -x "$out" ] && [ -n "${SLUICE_CONTROLPLANE_URL:-}" ]; then
    fetch "$binary" "$out" || true
  fi
  # Without a version kubectl refuses the server, and the server itself.
  minor="${kubernetes#v*.}"
  build_cached "$root/hack/controlplane" "k8s.io/kubernetes/cmd/$binary" "$out" -ldflags "-s -w \
    -X k8s.io/component-base/version.gitVersion=$kubernetes \
    -X k8s.io/component-base/version.gitMajor=1 \
    -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
  link "$out" "$root/bin/k8s/$binary"
done

out="$cache/etcd-$etcd/etcd"
build_cached "$root/hack/etcd" go.etcd.io/etcd/server/v3 "$out" -ldflags '-s -w'
link "$out" "$root/bin/k8s/etcd"

echo "Control plane $kubernetes with etcd $etcd: $root/bin/k8s"
