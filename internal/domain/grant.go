// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"fmt"
	"path"
	"strings"
)

// Use is what a project wants to do with a repository or an organization.
type Use string

// Uses a grant of a GitHubApp can allow.
const (
	// UseOrganization: create and keep repositories in it.
	UseOrganization Use = "organization"
	// UseSource: read it as a source.
	UseSource Use = "source"
	// UseDownstream: push to it, open pull requests in it.
	UseDownstream Use = "downstream"
)

// Grant allows a set of namespaces some uses of a GitHubApp. Empty lists allow
// nothing.
type Grant struct {
	Name string
	// Covers reports whether the grant is for a namespace.
	Covers func(namespace string) bool
	// Organizations are logins; Sources and Downstream are patterns of full
	// names in which * matches any characters but a slash.
	Organizations, Sources, Downstream []string
}

// Allowed returns the name of the grant that allows namespace to use subject
// (a login, or a full name as resolved by id at the time of use). When none
// does, the error says which grant is missing and how to add it.
func Allowed(grants []Grant, app, namespace string, use Use, subject string) (string, error) {
	for _, g := range grants {
		if g.Covers != nil && g.Covers(namespace) && g.allows(use, subject) {
			return g.Name, nil
		}
	}
	field := map[Use]string{UseOrganization: "organizations", UseSource: "sources", UseDownstream: "downstream"}[use]
	return "", fmt.Errorf("no grant of GitHubApp %q lets namespace %q use %s %q: add it to spec.grants[].%s of a grant whose namespaces include %q",
		app, namespace, use, subject, field, namespace)
}

func (g Grant) allows(use Use, subject string) bool {
	patterns := g.Organizations
	switch use {
	case UseSource:
		patterns = g.Sources
	case UseDownstream:
		patterns = g.Downstream
	}
	for _, p := range patterns {
		if ok, err := path.Match(strings.ToLower(p), strings.ToLower(subject)); err == nil && ok {
			return true
		}
	}
	return false
}
