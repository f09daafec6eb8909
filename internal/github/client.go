// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	gh "github.com/google/go-github/v66/github"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Client acts as one installation of an App. It is safe for concurrent use.
type Client struct {
	app     *App
	account string
	tokens  *tokens
	gate    gate
}

// Token returns an installation token that is valid for ten minutes at least.
// Never keep it: ask again.
func (c *Client) Token(ctx context.Context) (string, error) {
	m, err := c.tokens.get(ctx)
	if err != nil {
		return "", c.fault(err, about{account: c.account})
	}
	return m.text, nil
}

// byID returns the path of a repository, or of something below it.
func byID(id int64, rest string) string { return fmt.Sprintf("repositories/%d%s", id, rest) }

func named(id int64) string { return fmt.Sprintf("repository %d", id) }

// Repository returns a repository by id. A 404 is Blocked with reason
// NotFound, which is no proof that the repository is gone.
func (c *Client) Repository(ctx context.Context, id int64) (domain.GitHubRepository, error) {
	return c.repository(ctx, request{method: http.MethodGet, path: byID(id, ""), what: named(id)})
}

// fullNames are owner/name. Everything else could lead to another path.
var fullNames = regexp.MustCompile(`^[A-Za-z0-9_-]+/[A-Za-z0-9._-]+$`)

// RepositoryByName returns the repository that has that name, or once had it:
// compare the id or the name, for a redirect may lead to it.
func (c *Client) RepositoryByName(ctx context.Context, fullName string) (domain.GitHubRepository, error) {
	if !fullNames.MatchString(fullName) || strings.HasSuffix(fullName, "/.") || strings.HasSuffix(fullName, "/..") {
		return domain.GitHubRepository{}, fault.New(fault.Blocked, fault.ReasonNotFound, "%q is no name of a repository: write owner/name", fullName)
	}
	return c.repository(ctx, request{method: http.MethodGet, path: "repos/" + fullName, what: fmt.Sprintf("repository %q", fullName)})
}

// repository does a request that is answered by a repository.
func (c *Client) repository(ctx context.Context, r request) (domain.GitHubRepository, error) {
	var out gh.Repository
	r.out = &out
	if _, err := c.do(ctx, r); err != nil {
		return domain.GitHubRepository{}, err
	}
	if out.GetID() == 0 {
		return domain.GitHubRepository{}, c.app.classify(errNotGitHub, about{})
	}
	return domain.GitHubRepository{ID: out.GetID(), NodeID: out.GetNodeID(), FullName: out.GetFullName(), DefaultBranch: out.GetDefaultBranch(),
		Private: out.GetPrivate(), Archived: out.GetArchived(), Fork: out.GetFork(), OwnerID: out.GetOwner().GetID(), OwnerLogin: out.GetOwner().GetLogin()}, nil
}

// CreateRepository makes an empty repository in an organization: without
// issues, wiki, projects or a first commit, so that a push fills it. A taken
// name is Blocked with reason RepositoryNameTaken.
func (c *Client) CreateRepository(ctx context.Context, org string, n domain.NewRepository) (domain.GitHubRepository, error) {
	fullName := org + "/" + n.Name
	body := map[string]any{"name": n.Name, "visibility": n.Visibility, "private": true,
		"has_issues": false, "has_projects": false, "has_wiki": false, "auto_init": false}
	created, err := c.repository(ctx, request{method: http.MethodPost, path: "orgs/" + url.PathEscape(org) + "/repos", body: body,
		what: fmt.Sprintf("making repository %q", fullName)})
	var a *answer
	if errors.As(err, &a) && a.status == http.StatusUnprocessableEntity && a.says("already exists") {
		return created, fault.Wrap(err, fault.Blocked, fault.ReasonRepositoryNameTaken, "repository %q already exists: choose another name, or rename that one", fullName)
	}
	return created, err
}

// SetDefaultBranch makes a branch that exists the repository's default one.
func (c *Client) SetDefaultBranch(ctx context.Context, id int64, branch string) error {
	_, err := c.do(ctx, request{method: http.MethodPatch, path: byID(id, ""), body: map[string]any{"default_branch": branch},
		what: fmt.Sprintf("the default branch of %s", named(id))})
	return err
}

// IsEmpty reports whether a repository has no commit: its commit list answers
// 409 (R-DIST-05).
func (c *Client) IsEmpty(ctx context.Context, id int64) (bool, error) {
	var commits []json.RawMessage
	_, err := c.do(ctx, request{method: http.MethodGet, path: byID(id, "/commits?per_page=1"), out: &commits, what: named(id)})
	if fault.Is(err, fault.ReasonRepositoryEmpty) {
		return true, nil
	}
	return false, err
}

// Ref returns the object id of a ref such as heads/sync/main. found is false
// when GitHub answers 404 (R-SYNC-04) or the repository is empty; it is not
// asked again whether the repository itself is there, so read that first.
func (c *Client) Ref(ctx context.Context, id int64, ref string) (sha string, found bool, err error) {
	var r gh.Reference
	_, err = c.do(ctx, request{method: http.MethodGet, path: byID(id, "/git/ref/"+escapePath(ref)), out: &r,
		what: fmt.Sprintf("%s of %s", ref, named(id))})
	switch {
	case fault.Is(err, fault.ReasonNotFound), fault.Is(err, fault.ReasonRepositoryEmpty):
		return "", false, nil
	case err != nil:
		return "", false, err
	case r.GetRef() != "refs/"+ref:
		return "", false, nil // a longer ref that starts alike
	}
	return r.GetObject().GetSHA(), true, nil
}

// escapePath escapes each part of a path and keeps its slashes.
func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// maxFiles is how many files GitHub lists of one comparison.
const maxFiles = 300

// Compare returns the three-dot comparison of two branches or object ids.
// Branches without a common ancestor are Blocked with reason
// UnrelatedHistories, a missing one with BranchMissing, named in the message.
func (c *Client) Compare(ctx context.Context, id int64, base, head string) (domain.Comparison, error) {
	var r gh.CommitsComparison
	// One commit a page keeps the answer small; the files are on the first
	// page, those of the whole comparison.
	path := byID(id, "/compare/"+url.PathEscape(base)+"..."+url.PathEscape(head)+"?per_page=1&page=1")
	_, err := c.do(ctx, request{method: http.MethodGet, path: path, out: &r, what: fmt.Sprintf("%s...%s of %s", base, head, named(id))})
	if isStatus(err, http.StatusNotFound) {
		return domain.Comparison{}, c.incomparable(ctx, err, id, base, head)
	}
	if err != nil {
		return domain.Comparison{}, err
	}
	cmp := domain.Comparison{Status: r.GetStatus(), AheadBy: r.GetAheadBy(), BehindBy: r.GetBehindBy(), TotalCommits: r.GetTotalCommits(),
		FilesTruncated: len(r.Files) >= maxFiles}
	for _, f := range r.Files {
		cmp.Files = append(cmp.Files, domain.ChangedFile{Name: f.GetFilename(), PreviousName: f.GetPreviousFilename(), Status: f.GetStatus()})
	}
	return cmp, nil
}

var objectIDs = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// incomparable says which of its meanings a comparison's 404 has: no common
// ancestor, a missing branch, or the repository itself.
func (c *Client) incomparable(ctx context.Context, cause error, id int64, base, head string) error {
	var a *answer
	if errors.As(cause, &a) && a.says("No common ancestor") {
		return unrelated(cause, id)
	}
	if _, err := c.Repository(ctx, id); err != nil {
		return err
	}
	for _, branch := range []string{base, head} {
		if objectIDs.MatchString(branch) {
			continue
		}
		_, found, err := c.Ref(ctx, id, "heads/"+branch)
		if err != nil {
			return err
		}
		if !found {
			return branchMissing(cause, id, branch)
		}
	}
	return fault.Wrap(cause, fault.Blocked, fault.ReasonBranchMissing, "%s does not have both %s and %s any more", named(id), base, head)
}

func branchMissing(cause error, id int64, branch string) *fault.Error {
	return fault.Wrap(cause, fault.Blocked, fault.ReasonBranchMissing,
		"%s has no branch %q: push it, or exclude the repository from the project", named(id), branch)
}

func unrelated(cause error, id int64) *fault.Error {
	return fault.Wrap(cause, fault.Blocked, fault.ReasonUnrelatedHistories,
		"%s shares no history with what is handed out: it was not made from the distribution", named(id))
}
