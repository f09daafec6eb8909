// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers holds the three reconcilers, their watches and the
// projection of rows to status. A Reconcile looks at the object and its rows,
// records what is wanted, and shows what is; the work itself is done from rows
// by the packages whose interfaces are declared here.
package controllers
