// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package domain is the vocabulary of the product and every decision that
// needs no I/O: what a repository's turn in a pass comes to, whether a push
// leaves the source ahead, which name a distribution gets, when a mark is
// cleared. It imports nothing of the product, so that each rule can be read
// and tested alone. Rule ids (R-SYNC-04) refer to docs/rules.md.
package domain

import "errors"

// ErrNotFound is what stores return for a row that does not exist.
var ErrNotFound = errors.New("no such row")
