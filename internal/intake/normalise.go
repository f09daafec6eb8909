// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// BotIdentity is who an App's own pushes and pull requests come from.
type BotIdentity struct {
	// UserID is the account id of slug[bot]; it is not the App's id.
	UserID int64
	Slug   string
}

const (
	botSuffix     = "[bot]"
	workflowLogin = "github-actions" + botSuffix
	branchPrefix  = "refs/heads/"
)

// Sender says who an account is to the App (section 0 of the rules): the App,
// a workflow, or a person, which is everybody else.
func (b BotIdentity) Sender(id int64, login string) domain.Sender {
	switch {
	case b.UserID != 0 && id == b.UserID, b.Slug != "" && strings.EqualFold(login, b.Slug+botSuffix):
		return domain.SenderApp
	case strings.EqualFold(login, workflowLogin):
		return domain.SenderWorkflow
	}
	return domain.SenderPerson
}

type account struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
}

type repository struct {
	ID       int64  `json:"id"`
	FullName string `json:"full_name"`
}

// payload is what all events read here have in common.
type payload struct {
	Action     string     `json:"action"`
	Repository repository `json:"repository"`
	Sender     account    `json:"sender"`
}

type pushPayload struct {
	payload
	Ref     string `json:"ref"`
	Before  string `json:"before"`
	After   string `json:"after"`
	Created bool   `json:"created"`
	Deleted bool   `json:"deleted"`
	Forced  bool   `json:"forced"`
	// Commits are only counted.
	Commits    []struct{} `json:"commits"`
	HeadCommit *struct {
		Timestamp time.Time `json:"timestamp"`
	} `json:"head_commit"`
}

type pullRequestPayload struct {
	payload
	PullRequest struct {
		Number  int     `json:"number"`
		State   string  `json:"state"`
		Merged  bool    `json:"merged"`
		HTMLURL string  `json:"html_url"`
		User    account `json:"user"`
		Head    struct {
			Ref string `json:"ref"`
			SHA string `json:"sha"`
			// Repo is null once a fork was deleted.
			Repo *repository `json:"repo"`
		} `json:"head"`
		Base struct {
			Ref string `json:"ref"`
		} `json:"base"`
	} `json:"pull_request"`
}

type repositoryPayload struct {
	payload
	Changes struct {
		Repository struct {
			Name struct {
				From string `json:"from"`
			} `json:"name"`
		} `json:"repository"`
	} `json:"changes"`
}

// Normalise returns what a delivery says, in the words that polls use too
// (R-CORE-02): at most one change, none for an event that nobody handles. bot
// tells the App's own doings apart. A payload in another shape than GitHub
// documents is a Terminal fault.
func Normalise(d domain.Delivery, bot BotIdentity) ([]domain.Change, error) {
	var change domain.Change
	var err error
	switch d.Event {
	case "push":
		change, err = normalisePush(d, bot)
	case "pull_request":
		change, err = normalisePullRequest(d, bot)
	case "repository":
		change, err = normaliseRepository(d, bot)
	default:
		return nil, nil
	}
	if err != nil {
		// The cause may quote the payload: it is dropped.
		return nil, fault.New(fault.Terminal, fault.ReasonUnexpected, "the payload of this %s event is not as GitHub documents it", d.Event)
	}
	if change.Repository.ID == 0 {
		return nil, nil // about no repository, e.g. sent by hand
	}
	return []domain.Change{change}, nil
}

// change returns what is the same for all events.
func (p payload) change(d domain.Delivery, bot BotIdentity) domain.Change {
	return domain.Change{
		Source: domain.FromWebhook, App: d.App, DeliveryID: d.GUID, Event: d.Event, Action: p.Action, ReceivedAt: d.ReceivedAt,
		Repository: domain.RepositoryRef{ID: p.Repository.ID, FullName: p.Repository.FullName},
		Sender:     bot.Sender(p.Sender.ID, p.Sender.Login), SenderLogin: p.Sender.Login,
	}
}

func normalisePush(d domain.Delivery, bot BotIdentity) (domain.Change, error) {
	var p pushPayload
	if err := json.Unmarshal(d.Payload, &p); err != nil {
		return domain.Change{}, err
	}
	c := p.change(d, bot)
	push := &domain.PushChange{
		Ref: p.Ref, Before: p.Before, After: p.After,
		Created: p.Created, Deleted: p.Deleted, Forced: p.Forced, Commits: len(p.Commits),
	}
	if branch, ok := strings.CutPrefix(p.Ref, branchPrefix); ok {
		push.Branch = branch
	}
	if p.HeadCommit != nil {
		push.HeadCommitAt = p.HeadCommit.Timestamp.UTC()
	}
	c.Push = push
	return c, nil
}

func normalisePullRequest(d domain.Delivery, bot BotIdentity) (domain.Change, error) {
	var p pullRequestPayload
	if err := json.Unmarshal(d.Payload, &p); err != nil {
		return domain.Change{}, err
	}
	c, pr := p.change(d, bot), p.PullRequest
	c.PullRequest = &domain.PullRequestChange{
		Number: pr.Number, State: pullRequestState(pr.State, pr.Merged),
		HeadRef: pr.Head.Ref, HeadSHA: pr.Head.SHA, BaseRef: pr.Base.Ref,
		AuthorID: pr.User.ID, AuthorLogin: pr.User.Login, URL: pr.HTMLURL,
	}
	if pr.Head.Repo != nil {
		c.PullRequest.HeadRepositoryID = pr.Head.Repo.ID
	}
	return c, nil
}

// pullRequestState reads GitHub's two words as one (R-PR-06).
func pullRequestState(state string, merged bool) domain.PullRequestState {
	switch {
	case state != "closed":
		return domain.PullRequestOpen
	case merged:
		return domain.PullRequestMerged
	}
	return domain.PullRequestClosed
}

func normaliseRepository(d domain.Delivery, bot BotIdentity) (domain.Change, error) {
	var p repositoryPayload
	if err := json.Unmarshal(d.Payload, &p); err != nil {
		return domain.Change{}, err
	}
	c := p.change(d, bot)
	c.Repo = &domain.RepositoryChange{Action: p.Action, OldName: p.Changes.Repository.Name.From, NewFullName: p.Repository.FullName}
	return c, nil
}
