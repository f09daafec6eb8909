#!/usr/bin/env bash
# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Checks that every source file starts with the two-line header of
# hack/boilerplate.go.txt, and that every module the binaries are made of has a
# licence file that is not one of the GNU family.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
complain() {
  echo "$*" >&2
  failed=1
}

copyright="Copyright The Sluice Authors."
identifier="SPDX-License-Identifier: Apache-2.0"

# Also files that are not added yet, so that nothing is found only after a push.
while IFS= read -r file; do
  [ -f "$file" ] || continue
  case "$file" in
    *.go) mark="//" ;;
    *.sql) mark="--" ;;
    *) mark="#" ;;
  esac
  # Below a build constraint or the interpreter's line at the latest.
  if ! awk -v first="$mark $copyright" -v second="$mark $identifier" '
    NR > 5 {exit} previous == first && $0 == second {found = 1} {previous = $0} END {exit !found}' "$file"; then
    complain "$file: the licence header is missing; it reads: $mark $copyright / $mark $identifier"
  fi
done < <(git ls-files --cached --others --exclude-standard -- \
  '*.go' '*.sh' '*.sql' '.ci/run' 'Makefile' 'Dockerfile')

modules="$(go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/... | sort -u)"
[ -n "$modules" ] || complain "go list named no module of the binaries"
while read -r module dir; do
  [ -n "$module" ] || continue
  licence="$(find "$dir" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' \) | head -n 1)"
  if [ -z "$licence" ]; then
    complain "$module has no licence file: find out under which terms it comes before using it"
  elif grep -Eq -e 'GNU (AFFERO |LESSER |LIBRARY )?GENERAL PUBLIC LICENSE' "$licence"; then
    complain "$module comes under a GNU licence, which these binaries cannot meet"
  fi
done <<<"$modules"

[ "$failed" = 0 ] || exit 1
echo "Licence headers, and licences of $(wc -l <<<"$modules") modules: ok"
