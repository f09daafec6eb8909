// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests holds the tests of the manifests in config/: that a cluster
// takes them, that their pods meet the restricted standard, and that each
// service account may do what it must and nothing beyond.
package manifests
