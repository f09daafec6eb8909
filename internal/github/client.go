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
	"strings"

	"github.com/bradleyfalzon/ghinstallation/v2"
	gh "github.com/google/go-github/v66/github"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Client acts as one installation of an App.
type Client struct {
	app    *App
	login  string
	tokens *ghinstallation.Transport
	rest   *gh.Client
}

// Token returns an installation token that is valid now.
func (c *Client) Token(ctx context.Context) (string, error) {
	token, err := c.tokens.Token(ctx)
	return token, c.fault(err)
}

// fault classifies an error. What says that the installation changed, or that
// its token no longer is taken, drops the client, so that the next caller
// looks it up anew.
func (c *Client) fault(err error) error {
	err = classify(err, c.app.now(), c.login)
	if fault.Is(err, fault.ReasonAppNotInstalled) || fault.Is(err, fault.ReasonAppSuspended) || fault.Is(err, fault.ReasonCredentialsRefused) {
		c.app.Forget(c.login)
	}
	return err
}

// do sends one request and reads its answer into out, which may be nil.
func (c *Client) do(ctx context.Context, method, path string, body, out any) (*gh.Response, error) {
	req, err := c.rest.NewRequest(method, path, body)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	resp, err := c.rest.Do(ctx, req, out)
	return resp, c.fault(err)
}

func byID(id int64, rest string, args ...any) string {
	return fmt.Sprintf("repositories/%d", id) + fmt.Sprintf(rest, args...)
}

// Repository returns a repository by id. NotFound is no proof that it is gone.
func (c *Client) Repository(ctx context.Context, id int64) (domain.GitHubRepository, error) {
	var r gh.Repository
	_, err := c.do(ctx, http.MethodGet, byID(id, ""), nil, &r)
	return repository(&r), err
}

// RepositoryByName returns the repository that has, or once had, that name:
// compare the id, for a redirect may lead to it.
func (c *Client) RepositoryByName(ctx context.Context, fullName string) (domain.GitHubRepository, error) {
	var r gh.Repository
	_, err := c.do(ctx, http.MethodGet, "repos/"+fullName, nil, &r)
	return repository(&r), err
}

func repository(r *gh.Repository) domain.GitHubRepository {
	return domain.GitHubRepository{ID: r.GetID(), NodeID: r.GetNodeID(), FullName: r.GetFullName(), DefaultBranch: r.GetDefaultBranch(),
		Private: r.GetPrivate(), Archived: r.GetArchived(), Fork: r.GetFork(), OwnerID: r.GetOwner().GetID(), OwnerLogin: r.GetOwner().GetLogin()}
}

// CreateRepository makes an empty repository in an organization: without
// issues, wiki, projects or a first commit. A taken name is Blocked with
// reason RepositoryNameTaken.
func (c *Client) CreateRepository(ctx context.Context, org string, n domain.NewRepository) (domain.GitHubRepository, error) {
	body := map[string]any{"name": n.Name, "visibility": n.Visibility, "private": true,
		"has_issues": false, "has_projects": false, "has_wiki": false, "auto_init": false}
	var r gh.Repository
	_, err := c.do(ctx, http.MethodPost, "orgs/"+url.PathEscape(org)+"/repos", body, &r)
	var answer *gh.ErrorResponse
	if errors.As(err, &answer) && strings.Contains(texts(answer), "already exists") {
		return domain.GitHubRepository{}, fault.Wrap(err, fault.Blocked, fault.ReasonRepositoryNameTaken, "repository %q already exists", org+"/"+n.Name)
	}
	return repository(&r), err
}

// IsEmpty reports whether a repository has no commit: its commit list answers
// 409 (R-DIST-05).
func (c *Client) IsEmpty(ctx context.Context, id int64) (bool, error) {
	var commits []json.RawMessage
	_, err := c.do(ctx, http.MethodGet, byID(id, "/commits?per_page=1"), nil, &commits)
	if fault.Is(err, fault.ReasonRepositoryEmpty) {
		return true, nil
	}
	return false, err
}

// Ref returns the object id of a ref such as heads/sync/main; found is false
// when the ref, or everything, is missing.
func (c *Client) Ref(ctx context.Context, id int64, ref string) (sha string, found bool, err error) {
	var r gh.Reference
	_, err = c.do(ctx, http.MethodGet, byID(id, "/git/ref/%s", escapePath(ref)), nil, &r)
	if fault.Is(err, fault.ReasonNotFound) || fault.Is(err, fault.ReasonRepositoryEmpty) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	return r.GetObject().GetSHA(), r.GetRef() == "refs/"+ref, nil
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

// Compare compares base...head. One commit a page keeps the answer small; the
// files are those of the whole comparison.
func (c *Client) Compare(ctx context.Context, id int64, base, head string) (domain.Comparison, error) {
	var r gh.CommitsComparison
	_, err := c.do(ctx, http.MethodGet, byID(id, "/compare/%s...%s?per_page=1&page=1", url.PathEscape(base), url.PathEscape(head)), nil, &r)
	if fault.Is(err, fault.ReasonNotFound) {
		return domain.Comparison{}, fault.Wrap(err, fault.Blocked, fault.ReasonBranchMissing,
			"branch %q does not exist: push it again, or exclude the repository", base)
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

// PullRequest returns a pull request by number.
func (c *Client) PullRequest(ctx context.Context, id int64, number int) (domain.GitHubPullRequest, error) {
	var r gh.PullRequest
	_, err := c.do(ctx, http.MethodGet, byID(id, "/pulls/%d", number), nil, &r)
	return pullRequest(&r), err
}

func pullRequest(r *gh.PullRequest) domain.GitHubPullRequest {
	state := domain.PullRequestOpen
	switch {
	case r.MergedAt != nil:
		state = domain.PullRequestMerged
	case r.GetState() == "closed":
		state = domain.PullRequestClosed
	}
	return domain.GitHubPullRequest{Number: r.GetNumber(), State: state, HeadRef: r.GetHead().GetRef(), HeadSHA: r.GetHead().GetSHA(), BaseRef: r.GetBase().GetRef(),
		URL: r.GetHTMLURL(), HeadRepositoryID: r.GetHead().GetRepo().GetID(), AuthorID: r.GetUser().GetID(), AuthorLogin: r.GetUser().GetLogin(), UpdatedAt: r.GetUpdatedAt().Time}
}

// FindOpenPullRequest returns the open pull request from head onto base within
// a repository. GitHub's filter has been seen to match too much, so every
// answer is looked at.
func (c *Client) FindOpenPullRequest(ctx context.Context, repo domain.GitHubRepository, head, base string) (domain.GitHubPullRequest, bool, error) {
	query := url.Values{"state": {"open"}, "head": {repo.OwnerLogin + ":" + head}, "base": {base}, "per_page": {"100"}}
	var list []*gh.PullRequest
	if _, err := c.do(ctx, http.MethodGet, byID(repo.ID, "/pulls?%s", query.Encode()), nil, &list); err != nil {
		return domain.GitHubPullRequest{}, false, err
	}
	for _, r := range list {
		pr := pullRequest(r)
		if pr.HeadRef == head && pr.BaseRef == base && pr.HeadRepositoryID == repo.ID && pr.State == domain.PullRequestOpen {
			return pr, true, nil
		}
	}
	return domain.GitHubPullRequest{}, false, nil
}

// CreatePullRequest opens a pull request. When GitHub says that one is open
// already, that one is returned; NoCommits when it would bring nothing.
func (c *Client) CreatePullRequest(ctx context.Context, id int64, n domain.NewPullRequest) (domain.GitHubPullRequest, error) {
	body := map[string]any{"title": cut(n.Title, maxTitle), "body": cut(n.Body, maxBody), "head": n.Head, "base": n.Base, "draft": n.Draft}
	var r gh.PullRequest
	_, err := c.do(ctx, http.MethodPost, byID(id, "/pulls"), body, &r)
	var answer *gh.ErrorResponse
	if errors.As(err, &answer) && strings.Contains(texts(answer), "A pull request already exists") {
		repo, rerr := c.Repository(ctx, id)
		if rerr != nil {
			return domain.GitHubPullRequest{}, rerr
		}
		if pr, found, ferr := c.FindOpenPullRequest(ctx, repo, n.Head, n.Base); ferr != nil || found {
			return pr, ferr
		}
	}
	return pullRequest(&r), err
}

// Lengths that GitHub takes, in characters.
const (
	maxTitle = 256
	maxBody  = 65536
)

// cut shortens text to at most n characters and says so.
func cut(text string, n int) string {
	const more = "…"
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n-len([]rune(more))]) + more
}

// Comment adds a comment to a pull request's conversation.
func (c *Client) Comment(ctx context.Context, id int64, number int, body string) error {
	_, err := c.do(ctx, http.MethodPost, byID(id, "/issues/%d/comments", number), map[string]any{"body": cut(body, maxBody)}, nil)
	return err
}

// AddLabels adds labels to a pull request; labels that do not exist are made
// by GitHub.
func (c *Client) AddLabels(ctx context.Context, id int64, number int, labels []string) error {
	_, err := c.do(ctx, http.MethodPost, byID(id, "/issues/%d/labels", number), map[string]any{"labels": labels}, nil)
	return err
}

// SetDefaultBranch makes a branch the repository's default one.
func (c *Client) SetDefaultBranch(ctx context.Context, id int64, branch string) error {
	_, err := c.do(ctx, http.MethodPatch, byID(id, ""), map[string]any{"default_branch": branch}, nil)
	return err
}
