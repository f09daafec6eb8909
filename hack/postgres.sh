#!/usr/bin/env bash
# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0
#
# postgres.sh sees to it that Postgres' programs are on the machine; tests and
# the demo run servers of their own from them. Where they are missing they are
# installed, if this is root on a machine with apt-get.
set -euo pipefail
# shellcheck source=hack/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# found prints the newest initdb that has its server beside it.
found() {
  local candidate
  for candidate in "$(readlink -f "$(command -v initdb || true)" || true)" \
    $(ls -d /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sort -rV); do
    if [ -x "$candidate" ] && [ -x "$(dirname "$candidate")/postgres" ]; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}

if ! found >/dev/null; then
  command -v apt-get >/dev/null 2>&1 ||
    die "Postgres is not installed: install it (its initdb and postgres programs) and run this again"
  [ "$(id -u)" = 0 ] ||
    die "Postgres is not installed: run  sudo apt-get install postgresql  and run this again"
  echo "Installing Postgres" >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  # Its programs are wanted, not a server that runs all the time.
  apt-get install -q -y --no-install-recommends postgresql-common
  mkdir -p /etc/postgresql-common
  if ! grep -qs '^create_main_cluster' /etc/postgresql-common/createcluster.conf; then
    echo 'create_main_cluster = false' >>/etc/postgresql-common/createcluster.conf
  fi
  apt-get install -q -y --no-install-recommends postgresql
  found >/dev/null || die "Postgres was installed, but no initdb is in PATH nor in /usr/lib/postgresql/*/bin"
fi

"$(found)" --version | sed 's/^initdb/Postgres/'
