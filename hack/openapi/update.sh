#!/usr/bin/env bash
# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0

# Renews internal/githubsim/openapi/github.json and its licence from GitHub's
# OpenAPI description, which npm carries as @octokit/openapi. Needs npm and Go.
#
#   hack/openapi/update.sh            fetch the package with npm
#   hack/openapi/update.sh FILE.tgz   use a package fetched before
#
# To move to a newer description change version and integrity below (the latter
# is what `npm view @octokit/openapi@VERSION dist.integrity` prints).
set -euo pipefail

version=23.0.2
integrity=sha512-pV8M7L9GY23AybNvTmo2nyjmpmnt6+2sRE/tqr0ZLQcPS4lnw7u5eZGNmwRNkBC3D7gZXbFx5AHzLUVRBXGDhg==

if [ $# -gt 1 ]; then
  echo "usage: $0 [FILE.tgz]" >&2
  exit 2
fi

package=
if [ $# -eq 1 ]; then
  package=$(realpath "$1")
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=internal/githubsim/openapi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if [ -z "$package" ]; then
  npm pack --silent --pack-destination "$scratch" "@octokit/openapi@$version" >/dev/null
  package=$scratch/octokit-openapi-$version.tgz
fi

found=sha512-$(openssl dgst -sha512 -binary "$package" | openssl base64 -A)
if [ "$found" != "$integrity" ]; then
  echo "update.sh: the package is not @octokit/openapi $version as pinned here" >&2
  echo "  expected $integrity" >&2
  echo "  found    $found" >&2
  exit 1
fi

tar -xzf "$package" -C "$scratch" package/LICENSE package/generated/api.github.com.json
go run ./hack/openapi -in "$scratch/package/generated/api.github.com.json" -out "$scratch/github.json"
# Only a complete result replaces what is there.
mv "$scratch/github.json" "$target/github.json"
cp "$scratch/package/LICENSE" "$target/LICENSE.octokit-openapi"
chmod 0644 "$target/github.json" "$target/LICENSE.octokit-openapi"
echo "wrote $target/github.json ($(wc -c <"$target/github.json") bytes, version $version)"
