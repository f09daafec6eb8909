// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testenv starts the real parts that tests and the demo run against: a
// Kubernetes control plane, and clocks that tests move. Postgres is in
// testenv/pgtest, other programs in testenv/proc. Nothing it starts outlives
// the process that started it, unless asked to.
//
// A package's tests share one control plane and tell themselves apart by
// namespace:
//
//	func TestMain(m *testing.M) {
//		os.Exit(testenv.Run(m, testenv.Options{CRDPaths: []string{"config/crd/bases"}}))
//	}
//
//	func TestSomething(t *testing.T) {
//		cluster, namespace := testenv.Cluster(t), testenv.Namespace(t)
//		...
//	}
package testenv
