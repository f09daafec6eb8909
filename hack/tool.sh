#!/usr/bin/env bash
# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0
#
# tool.sh NAME... makes bin/NAME from the tool module hack/tools/NAME, whose
# go.mod pins its version.
set -euo pipefail
# shellcheck source=hack/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ $# -gt 0 ] || die "name at least one of: $(ls "$root/hack/tools" | tr '\n' ' ')"

for name in "$@"; do
  dir="$root/hack/tools/$name"
  [ -f "$dir/go.mod" ] || die "there is no tool module hack/tools/$name"
  package="$(awk '$1 == "tool" {print $2; exit}' "$dir/go.mod")"
  [ -n "$package" ] || die "hack/tools/$name/go.mod has no tool line"
  # The module that holds the package is the required one with the longest
  # matching path.
  module="$(awk -v p="$package" '
    {m = ($1 == "require") ? $2 : $1}
    (m != "" && (p == m || index(p, m "/") == 1) && length(m) > length(best)) {best = m}
    END {print best}' "$dir/go.mod")"
  version="$(module_version "$dir/go.mod" "$module")"
  out="$cache/$name-$version/$name"
  build_cached "$dir" "$package" "$out" -ldflags '-s -w'
  link "$out" "$root/bin/$name"
done
