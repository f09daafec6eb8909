// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operations lists the GitHub operations that the simulator serves, by
// the operationId of GitHub's OpenAPI description. The description is trimmed
// to this list (hack/openapi), and every answer is validated by it.
package operations

// IDs are the operationIds served, sorted.
var IDs = []string{
	"apps/create-installation-access-token",
	"apps/get-authenticated",
	"apps/get-installation",
	"apps/get-org-installation",
	"apps/get-user-installation",
	"apps/list-installations",
	"apps/list-webhook-deliveries",
	"git/get-ref",
	"issues/add-labels",
	"issues/create-comment",
	"issues/list-comments",
	"pulls/create",
	"pulls/get",
	"pulls/list",
	"pulls/update",
	"repos/compare-commits",
	"repos/create-in-org",
	"repos/get",
	"repos/get-commit",
	"repos/list-commits",
	"repos/update",
	"users/get-by-username",
}
