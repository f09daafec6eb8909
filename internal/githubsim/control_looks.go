// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Look is what a repository holds.
type Look struct {
	ID            int64  `json:"id"`
	FullName      string `json:"fullName"`
	Private       bool   `json:"private"`
	Visibility    string `json:"visibility"`
	Archived      bool   `json:"archived"`
	DefaultBranch string `json:"defaultBranch"`
	// Refs holds branches and tags by full name.
	Refs  map[string]string `json:"refs"`
	Pulls []LookPull        `json:"pulls"`
	// Collaborators holds roles by login; Invitations those offered.
	Collaborators map[string]string `json:"collaborators"`
	Invitations   map[string]string `json:"invitations"`
	Rulesets      []string          `json:"rulesets"`
}

// LookPull is a pull request of a Look.
type LookPull struct {
	ID        int64     `json:"id"`
	Number    int       `json:"number"`
	State     string    `json:"state"` // open, closed or merged
	Draft     bool      `json:"draft"`
	Title     string    `json:"title"`
	Body      string    `json:"body"`
	Head      string    `json:"head"`
	Base      string    `json:"base"`
	HeadSHA   string    `json:"headSHA"`
	BaseSHA   string    `json:"baseSHA"`
	Author    string    `json:"author"`
	MergedBy  string    `json:"mergedBy,omitempty"`
	MergeSHA  string    `json:"mergeSHA,omitempty"`
	URL       string    `json:"url"`
	Comments  []string  `json:"comments"`
	Labels    []string  `json:"labels"`
	Assignees []string  `json:"assignees"`
	Reviewers []string  `json:"reviewers"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

func (s *Server) look(in RepositoryRequest) (Look, error) {
	return within(s, in.Repository, func(r *repo) (Look, error) { return s.lookAt(r), nil })
}

func (s *Server) lookAt(r *repo) Look {
	l := Look{ID: r.id, FullName: r.fullName(), Private: r.private(), Visibility: r.visibility, Archived: r.archived, DefaultBranch: r.defaultBranch,
		Refs: map[string]string{}, Collaborators: map[string]string{}, Invitations: map[string]string{}}
	for name, sha := range r.store.refs {
		if !strings.HasPrefix(name, hiddenRefs) {
			l.Refs[name] = sha
		}
	}
	for id, role := range r.collaborators {
		if a := s.accountByID(id); a != nil {
			l.Collaborators[a.login] = role.String()
		}
	}
	for _, i := range r.invitations {
		l.Invitations[i.invitee.login] = i.permission.String()
	}
	for _, rs := range r.rulesets {
		l.Rulesets = append(l.Rulesets, rs.name)
	}
	for _, p := range r.sortedPulls() {
		l.Pulls = append(l.Pulls, s.lookAtPull(p))
	}
	return l
}

func (s *Server) lookAtPull(p *pull) LookPull {
	l := LookPull{ID: p.id, Number: p.number, State: p.state(), Draft: p.draft, Title: p.title, Body: p.body, Head: p.head, Base: p.base, HeadSHA: p.headSHA,
		BaseSHA: p.baseSHA, Author: p.author.login, MergeSHA: p.mergeSHA, URL: s.api("/%s/pull/%d", p.repo.fullName(), p.number), CreatedAt: p.createdAt, UpdatedAt: p.updatedAt}
	if p.mergedBy != nil {
		l.MergedBy = p.mergedBy.login
	}
	for _, c := range p.comments {
		l.Comments = append(l.Comments, c.body)
	}
	for _, label := range p.labels {
		l.Labels = append(l.Labels, label.name)
	}
	for _, a := range p.assignees {
		l.Assignees = append(l.Assignees, a.login)
	}
	for _, a := range p.reviewers {
		l.Reviewers = append(l.Reviewers, a.login)
	}
	return l
}

// AccountFilter names an account, "" for all.
type AccountFilter struct {
	Owner string `json:"owner,omitempty"`
}

// RepositoryList holds full names.
type RepositoryList struct {
	Repositories []string `json:"repositories"`
}

// repositories lists the repositories of an account by id.
func (s *Server) repositories(in AccountFilter) (RepositoryList, error) {
	list := RepositoryList{Repositories: []string{}}
	for _, r := range sortedByID(s.repos) {
		if in.Owner == "" || key(r.owner.login) == key(in.Owner) {
			list.Repositories = append(list.Repositories, r.fullName())
		}
	}
	return list, nil
}

// RequestsQuery says whether the request log is emptied by reading it.
type RequestsQuery struct {
	Keep bool `json:"keep,omitempty"`
}

// requests returns the request log.
func (s *Server) requests(in RequestsQuery) ([]Request, error) {
	taken := append([]Request{}, s.log.entries...)
	if !in.Keep {
		s.log = requestLog{}
	}
	return taken, nil
}

// AppQuery names an App.
type AppQuery struct {
	App int64 `json:"app"`
	// Hold is for the holdhooks verb: keep deliveries back from now on, or send
	// those kept. Drop loses what is kept.
	Hold bool `json:"hold,omitempty"`
	Drop bool `json:"drop,omitempty"`
}

// Delivery is one attempt to send a webhook.
type Delivery struct {
	ID         int64  `json:"id"`
	GUID       string `json:"guid"`
	Event      string `json:"event"`
	Action     string `json:"action,omitempty"`
	Redelivery bool   `json:"redelivery,omitempty"`
	// Status is OK, or what went wrong; StatusCode is the receiver's.
	Status      string          `json:"status"`
	StatusCode  int             `json:"statusCode"`
	DeliveredAt time.Time       `json:"deliveredAt"`
	Payload     json.RawMessage `json:"payload"`
}

// deliveriesOf returns the deliveries of an App that were tried, oldest first.
func (s *Server) deliveriesOf(in AppQuery) ([]Delivery, error) {
	a := s.apps[in.App]
	if a == nil {
		return nil, fmt.Errorf("no App %d", in.App)
	}
	list := []Delivery{}
	recent := a.hooks.deliveries()
	for i := len(recent) - 1; i >= 0; i-- {
		d := recent[i]
		list = append(list, Delivery{ID: d.id, GUID: d.guid, Event: d.event, Action: d.action, Redelivery: d.redelivery, Status: d.status, StatusCode: d.statusCode,
			DeliveredAt: d.deliveredAt, Payload: d.body})
	}
	return list, nil
}

// HoldReply says how many deliveries were lost.
type HoldReply struct {
	Dropped int `json:"dropped"`
}

func (s *Server) holdHooks(in AppQuery) (HoldReply, error) {
	a := s.apps[in.App]
	if a == nil {
		return HoldReply{}, fmt.Errorf("no App %d", in.App)
	}
	reply := HoldReply{}
	if in.Drop {
		reply.Dropped = a.hooks.drop()
	}
	a.hooks.hold(in.Hold)
	return reply, nil
}
