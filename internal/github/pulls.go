// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	gh "github.com/google/go-github/v66/github"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func numbered(id int64, number int) string {
	return fmt.Sprintf("pull request #%d of %s", number, named(id))
}

// PullRequest returns a pull request by number; NotFound when there is none.
func (c *Client) PullRequest(ctx context.Context, id int64, number int) (domain.GitHubPullRequest, error) {
	return c.pullRequest(ctx, request{method: http.MethodGet, path: byID(id, fmt.Sprintf("/pulls/%d", number)), what: numbered(id, number)})
}

// pullRequest does a request that is answered by a pull request.
func (c *Client) pullRequest(ctx context.Context, r request) (domain.GitHubPullRequest, error) {
	var out gh.PullRequest
	r.out = &out
	if _, err := c.do(ctx, r); err != nil {
		return domain.GitHubPullRequest{}, err
	}
	if out.GetNumber() == 0 {
		return domain.GitHubPullRequest{}, c.app.classify(errNotGitHub, about{})
	}
	return pullRequest(&out), nil
}

// pullRequest translates. List entries have no merged field, so the time of
// the merge decides.
func pullRequest(r *gh.PullRequest) domain.GitHubPullRequest {
	state := domain.PullRequestOpen
	switch {
	case r.MergedAt != nil:
		state = domain.PullRequestMerged
	case r.GetState() == "closed":
		state = domain.PullRequestClosed
	}
	return domain.GitHubPullRequest{Number: r.GetNumber(), State: state, HeadRef: r.GetHead().GetRef(), HeadSHA: r.GetHead().GetSHA(),
		BaseRef: r.GetBase().GetRef(), URL: r.GetHTMLURL(), HeadRepositoryID: r.GetHead().GetRepo().GetID(),
		AuthorID: r.GetUser().GetID(), AuthorLogin: r.GetUser().GetLogin(), UpdatedAt: r.GetUpdatedAt().Time}
}

// FindOpenPullRequest returns the open pull request from branch head onto
// branch base of the same repository (R-PR-02). GitHub's filter is a hint: it
// has been seen to match other branches of the same commit, and is ignored
// when the owner's login is not today's, so every entry of every page is
// looked at.
func (c *Client) FindOpenPullRequest(ctx context.Context, repo domain.GitHubRepository, head, base string) (domain.GitHubPullRequest, bool, error) {
	query := url.Values{"state": {"open"}, "head": {repo.OwnerLogin + ":" + head}, "base": {base}, "per_page": {"100"}}
	for page := 1; page != 0; {
		query.Set("page", fmt.Sprint(page))
		var list []*gh.PullRequest
		resp, err := c.do(ctx, request{method: http.MethodGet, path: byID(repo.ID, "/pulls?"+query.Encode()), out: &list,
			what: fmt.Sprintf("the pull requests of %s", named(repo.ID))})
		if err != nil {
			return domain.GitHubPullRequest{}, false, err
		}
		for _, r := range list {
			pr := pullRequest(r)
			if pr.State == domain.PullRequestOpen && pr.HeadRef == head && pr.BaseRef == base && pr.HeadRepositoryID == repo.ID {
				return pr, true, nil
			}
		}
		page = resp.NextPage
	}
	return domain.GitHubPullRequest{}, false, nil
}

// CreatePullRequest opens a pull request between two branches of a repository.
// When one is open already, that one is returned (R-PR-01). Blocked with
// reason NoCommits when it would bring nothing, BranchMissing or
// UnrelatedHistories when it cannot be. Texts longer than GitHub takes are cut.
func (c *Client) CreatePullRequest(ctx context.Context, id int64, n domain.NewPullRequest) (domain.GitHubPullRequest, error) {
	body := map[string]any{"title": cutTitle(n.Title), "body": cutBody(n.Body), "head": n.Head, "base": n.Base, "draft": n.Draft}
	pr, err := c.pullRequest(ctx, request{method: http.MethodPost, path: byID(id, "/pulls"), body: body,
		what: fmt.Sprintf("a pull request from %s onto %s of %s", n.Head, n.Base, named(id))})
	var a *answer
	if !errors.As(err, &a) || a.status != http.StatusUnprocessableEntity {
		return pr, err
	}
	if a.says("A pull request already exists") {
		return c.existing(ctx, err, id, n)
	}
	return pr, notOpened(a, err, id, n)
}

// existing returns the pull request that stands in the way of a new one. Its
// owner's login is asked for, because the filter takes today's only.
func (c *Client) existing(ctx context.Context, cause error, id int64, n domain.NewPullRequest) (domain.GitHubPullRequest, error) {
	repo, err := c.Repository(ctx, id)
	if err != nil {
		return domain.GitHubPullRequest{}, err
	}
	pr, found, err := c.FindOpenPullRequest(ctx, repo, n.Head, n.Base)
	if err == nil && !found {
		err = fault.Wrap(cause, fault.Retryable, fault.ReasonGitHubRefused,
			"GitHub says that a pull request from %s onto %s of %s is open, but does not list it yet", n.Head, n.Base, named(id))
	}
	return pr, err
}

// notOpened says what a 422 for a new pull request means.
func notOpened(a *answer, err error, id int64, n domain.NewPullRequest) error {
	switch {
	case a.says("No commits between"):
		return fault.Wrap(err, fault.Blocked, fault.ReasonNoCommits, "%s of %s holds nothing that %s lacks", n.Head, named(id), n.Base)
	case a.says("no history in common"):
		return unrelated(err, id)
	case a.says("Draft pull requests are not supported"):
		return fault.Wrap(err, fault.Blocked, fault.ReasonGitHubRefused,
			"%s cannot have draft pull requests, its plan lacks them: set spec.pullRequest.draft to false", named(id))
	}
	for _, d := range a.details {
		switch {
		case d.Code != "invalid":
		case d.Field == "base":
			return branchMissing(err, id, n.Base)
		case d.Field == "head":
			return branchMissing(err, id, n.Head)
		}
	}
	return err
}

// Comment adds a comment to a pull request's conversation; a text longer than
// GitHub takes is cut. A locked conversation is Blocked with reason
// ConversationLocked.
func (c *Client) Comment(ctx context.Context, id int64, number int, body string) error {
	_, err := c.do(ctx, request{method: http.MethodPost, path: byID(id, fmt.Sprintf("/issues/%d/comments", number)),
		body: map[string]any{"body": cutBody(body)}, what: numbered(id, number)})
	return err
}

// AddLabels adds labels to a pull request; GitHub makes those that do not
// exist. Without labels it asks nothing.
func (c *Client) AddLabels(ctx context.Context, id int64, number int, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	_, err := c.do(ctx, request{method: http.MethodPost, path: byID(id, fmt.Sprintf("/issues/%d/labels", number)),
		body: map[string]any{"labels": labels}, what: numbered(id, number)})
	return err
}

// Lengths that GitHub takes, in characters. A repeated refusal for length
// counts as abuse, so texts are cut before they are sent.
const (
	maxTitle = 256
	maxBody  = 65536
)

func cutTitle(title string) string { return cut(title, maxTitle, "…") }

func cutBody(body string) string {
	return cut(body, maxBody, "\n\n*The rest was left out: it is longer than GitHub takes.*")
}

// cut shortens a text of more than limit characters and ends it with notice. A
// text of several lines is cut at the end of one.
func cut(text string, limit int, notice string) string {
	if fits(text, limit) == len(text) {
		return text
	}
	kept := text[:fits(text, limit-utf8.RuneCountInString(notice))]
	if i := strings.LastIndexByte(kept, '\n'); i > len(kept)/2 {
		kept = kept[:i]
	}
	return strings.TrimRight(kept, " \n") + notice
}

// fits returns how many bytes of a text fit into limit characters. Those
// outside the basic plane count twice, the stricter of the ways to count.
func fits(text string, limit int) int {
	for i, r := range text {
		width := 1
		if r > 0xFFFF {
			width = 2
		}
		if limit -= width; limit < 0 {
			return i
		}
	}
	return len(text)
}
