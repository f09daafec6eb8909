// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"os"
	"testing"

	"github.com/sluice-dev/sluice/internal/testenv"
)

// The schemas are tested on a real API server: only it knows the cost limits
// of CEL, how defaults and transition rules work together, and what a person
// reads when a manifest is refused.
func TestMain(m *testing.M) {
	os.Exit(testenv.Run(m, testenv.Options{CRDPaths: []string{"config/crd/bases"}}))
}
