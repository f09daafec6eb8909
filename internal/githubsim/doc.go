// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package githubsim is a simulator of GitHub for tests, demos and rehearsals:
// App authentication that is really verified, the REST calls the operator
// makes, smart-HTTP git on real bare repositories, and signed webhooks really
// delivered. Every REST answer is validated against GitHub's own OpenAPI
// description. A control interface below /_sim, outside GitHub's paths, acts
// as a person and makes faults.
package githubsim
