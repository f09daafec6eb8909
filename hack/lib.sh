# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Shared by the scripts of this folder; sourced, never run. A tool is built once
# per version into a cache outside the clone and linked into bin/, so a fresh
# clone costs nothing on a machine that has built it before.
# shellcheck shell=bash

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/sluice"

die() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# module_version GOMOD MODULE prints the version GOMOD requires of MODULE.
module_version() {
  local version
  version="$(awk -v m="$2" '($1 == m && $2 ~ /^v/) {print $2; exit}
    ($1 == "require" && $2 == m) {print $3; exit}' "$1")"
  [ -n "$version" ] || die "$1 does not require $2"
  echo "$version"
}

# with_lock NAME COMMAND... runs COMMAND while no other process holds NAME. The
# lock only saves double work: what is built appears by one rename, so without
# flock (macOS) two builds at once are slow and not wrong.
with_lock() {
  local name="$1"
  shift
  mkdir -p "$cache"
  if command -v flock >/dev/null 2>&1; then
    (
      exec 9>"$cache/.$name.lock"
      flock 9
      "$@" 9>&-
    )
  else
    "$@"
  fi
}

# build_cached MODULE_DIR PACKAGE OUT [GO_BUILD_FLAG...] builds PACKAGE of the
# tool module in MODULE_DIR to the file OUT, unless OUT is there already.
build_cached() {
  local name
  name="$(basename "$(dirname "$3")")-$(basename "$3")"
  [ -x "$3" ] || with_lock "$name" build_now "$@"
}

build_now() {
  local dir="$1" package="$2" out="$3" temporary
  shift 3
  [ ! -x "$out" ] || return 0
  command -v go >/dev/null 2>&1 || die "go is not installed: install Go $(awk '$1 == "go" {print $2}' "$root/go.mod") or newer from https://go.dev/dl"
  echo "Building $(basename "$out") into $(dirname "$out") (once for this version)" >&2
  mkdir -p "$(dirname "$out")"
  temporary="$out.tmp.$$"
  if ! (cd "$dir" && CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -buildvcs=false -trimpath "$@" -o "$temporary" "$package"); then
    rm -f "$temporary"
    die "building $package failed"
  fi
  mv -f "$temporary" "$out"
}

# link TARGET LINK makes LINK point to TARGET in one step.
link() {
  mkdir -p "$(dirname "$2")"
  [ "$(readlink "$2" 2>/dev/null || true)" != "$1" ] || return 0
  ln -sfn "$1" "$2.tmp.$$"
  # Renamed within its folder: mv would follow a link to a folder.
  mv -f "$2.tmp.$$" "$2"
}
