// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"fmt"
	"regexp"
	"strings"
)

// MaxNameSuffix is the last suffix tried for a taken distribution name
// (R-DIST-05).
const MaxNameSuffix = 20

// DefaultDistributionName returns the repository name of a project's
// distribution when the spec names none.
func DefaultDistributionName(project string, h History) string {
	if h == HistoryWhole {
		return project + "-dist"
	}
	return project + "-squashed"
}

// DistributionCandidates returns the full names to try in order for a
// distribution: the name asked for, then -2 to -20. A name the spec fixes
// never steps to a suffix.
func DistributionCandidates(fullName string, fixed bool) []string {
	if fixed {
		return []string{fullName}
	}
	names := make([]string, 0, MaxNameSuffix)
	names = append(names, fullName)
	for n := 2; n <= MaxNameSuffix; n++ {
		names = append(names, fmt.Sprintf("%s-%d", fullName, n))
	}
	return names
}

var distributionName = regexp.MustCompile(`-squashed(-[0-9]+)?$`)

// NamedLikeDistribution reports whether a repository's name says that it is a
// distribution; such a one is never a source (R-DIST-03).
func NamedLikeDistribution(fullName string) bool { return distributionName.MatchString(fullName) }

// Owner returns the owner part of owner/name.
func Owner(fullName string) string {
	owner, _, _ := strings.Cut(fullName, "/")
	return owner
}

// Name returns the name part of owner/name.
func Name(fullName string) string {
	_, name, _ := strings.Cut(fullName, "/")
	return name
}

// SameName reports whether two full names are the same repository name to
// GitHub, which compares them without case.
func SameName(a, b string) bool { return strings.EqualFold(a, b) }

// ShortSHA returns the seven first digits of an object id.
func ShortSHA(sha string) string {
	if len(sha) > 7 {
		return sha[:7]
	}
	return sha
}

var legalName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// LegalRepositoryName returns an error that says what is wrong with a
// repository name, nil when GitHub takes it as it is.
func LegalRepositoryName(name string) error {
	switch {
	case !legalName.MatchString(name):
		return fmt.Errorf("%q is not a legal repository name: use 1 to 100 of A-Z a-z 0-9 . _ -", name)
	case name == "." || name == "..":
		return fmt.Errorf("%q is reserved as a repository name", name)
	case strings.HasSuffix(strings.ToLower(name), ".git"):
		return fmt.Errorf("%q is not a legal repository name: GitHub drops a trailing .git", name)
	}
	return nil
}
