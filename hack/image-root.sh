#!/usr/bin/env bash
# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0
#
# image-root.sh DIR collects into DIR what the operator needs around its binary,
# from the Debian it runs on: git with its https transport, their libraries, the
# certificate authorities, time zones, and an ordinary user. No shell and no
# package manager come along. The Dockerfile makes the final image from it.
set -euo pipefail

[ $# = 1 ] || {
  echo "usage: $0 DIR" >&2
  exit 2
}
target="$1"
mkdir -p "$target"

# copy FILE puts a file at its own path below the target, following links.
copy() {
  [ -e "$target$1" ] && return 0
  mkdir -p "$target$(dirname "$1")"
  cp -L --preserve=mode "$1" "$target$1"
}

# program FILE copies a program with the libraries that it is linked with.
program() {
  local library
  copy "$1"
  while IFS= read -r library; do
    copy "$library"
  done < <(ldd "$1" | awk '$2 == "=>" && $3 ~ "^/" {print $3} $1 ~ "^/" {print $1}')
}

core="$(git --exec-path)"
program "$(command -v git)"
# git runs itself and its helpers from there.
mkdir -p "$target$core"
ln -sfn "$(command -v git)" "$target$core/git"
for helper in git-remote-http git-remote-https; do
  program "$core/$helper"
done
copy /usr/share/git-core/templates/description
copy /etc/ssl/certs/ca-certificates.crt
if [ -d /usr/share/zoneinfo ]; then
  mkdir -p "$target/usr/share"
  cp -RL /usr/share/zoneinfo "$target/usr/share/"
fi

# Names are looked up by these.
for library in /lib/*-linux-gnu*/libnss_dns.so.2 /lib/*-linux-gnu*/libnss_files.so.2 /lib/*-linux-gnu*/libresolv.so.2; do
  [ ! -e "$library" ] || copy "$library"
done
mkdir -p "$target/etc" "$target/tmp" "$target/var/lib/sluice"
printf 'hosts: files dns\n' >"$target/etc/nsswitch.conf"
printf 'root:x:0:0:root:/:/sbin/nologin\nsluice:x:65532:65532:sluice:/tmp:/sbin/nologin\n' >"$target/etc/passwd"
printf 'root:x:0:\nsluice:x:65532:\n' >"$target/etc/group"
chmod 1777 "$target/tmp"
chown 65532:65532 "$target/var/lib/sluice"

# What is collected has to work by itself. A plain file stands in for the device
# that every container has.
mkdir -p "$target/dev"
: >"$target/dev/null"
chroot "$target" "$(command -v git)" --version
chroot "$target" "$(command -v git)" init -q --bare /tmp/probe
answer="$(chroot "$target" "$(command -v git)" ls-remote https://127.0.0.1:1/probe.git 2>&1 || true)"
case "$answer" in
  *"Failed to connect"* | *"Could not connect"* | *"Connection refused"*) ;;
  *)
    echo "$0: git's https transport does not work: $answer" >&2
    exit 1
    ;;
esac
rm -rf "${target:?}/tmp/probe" "${target:?}/dev"
