// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import "slices"

// requiredPermissions are what the product needs of an App's installation to
// hand out repositories and open pull requests.
var requiredPermissions = map[string]string{
	"administration": "write", // make repositories
	"contents":       "write", // push
	"metadata":       "read",
	"pull_requests":  "write",
	"issues":         "write", // comments and labels
	"workflows":      "write", // hand out workflow files
}

var accessRank = map[string]int{"read": 1, "write": 2, "admin": 3}

// MissingPermissions returns what an installation does not give and the
// product needs, as permission=access, sorted.
func MissingPermissions(granted map[string]string) []string {
	var missing []string
	for name, need := range requiredPermissions {
		if accessRank[granted[name]] < accessRank[need] {
			missing = append(missing, name+"="+need)
		}
	}
	slices.Sort(missing)
	return missing
}
