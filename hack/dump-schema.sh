#!/usr/bin/env bash
# Copyright The Sluice Authors.
# SPDX-License-Identifier: Apache-2.0

# Dumps a database at the newest schema version, with the rows of
# internal/ledger/testdata/sample.sql, to internal/ledger/testdata/schema-NNNN.sql,
# and adds the newest migration to checksums.txt there. Run it once for each new
# migration; a dump that was made is never made again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec go run ./hack/dumpschema
