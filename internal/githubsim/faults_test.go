// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/githubsim"
	"github.com/sluice-dev/sluice/internal/githubsim/simclient"
	"github.com/sluice-dev/sluice/internal/githubsim/simtest"
)

func TestFaultsMeetTheRequestsTheyName(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	token := s.token()
	s.Expect(s.Fault(s.ctx, githubsim.Fault{Method: "GET", Path: "^/repos/acme/lab$", Skip: 1, Times: 2, Status: 502, Body: `{"message":"Server Error"}`, Header: map[string]string{"Retry-After": "7"}})).To(Succeed())
	s.ok(200, token, "GET", "/repos/"+lab, nil)
	s.ok(200, token, "GET", "/repos/"+lab+"/branches", nil)
	s.ok(200, token, "PATCH", "/repos/"+lab, map[string]string{"description": "d"})
	for range 2 {
		a := s.ok(502, token, "GET", "/repos/"+lab, nil)
		s.Expect(a.text("message")).To(Equal("Server Error"))
		s.Expect(a.header.Get("Retry-After")).To(Equal("7"))
	}
	s.ok(200, token, "GET", "/repos/"+lab, nil)
	s.Expect(s.Fault(s.ctx, githubsim.Fault{Status: 503})).To(Succeed())
	s.ok(503, token, "GET", "/meta", nil)
	s.Expect(s.ClearFaults(s.ctx)).To(Succeed())
	s.ok(200, token, "GET", "/meta", nil)
	s.Expect(s.Fault(s.ctx, githubsim.Fault{Path: "("})).To(MatchError(ContainSubstring("no regular expression")))
}

func TestFaultsBeforeAndAfterTheEffect(t *testing.T) {
	for _, after := range []bool{false, true} {
		s := newSim(t)
		_, _ = s.repository(lab)
		s.commit(lab, "topic", map[string]string{"t": "t\n"})
		s.Expect(s.Fault(s.ctx, githubsim.Fault{Method: "POST", Path: "/pulls$", Times: 1, Status: 502, After: after})).To(Succeed())
		s.ok(502, s.token(), "POST", "/repos/"+lab+"/pulls", map[string]string{"title": "t", "head": "topic", "base": "main"})
		look, err := s.Look(s.ctx, lab)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(len(look.Pulls) == 1).To(Equal(after))
	}
}

func TestFaultsCutTheConnection(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	dir := s.clone(lab, s.writer("ada"))
	head := s.write(dir, "x", "x\n")
	s.Expect(s.Fault(s.ctx, githubsim.Fault{Path: "/git-receive-pack$", Times: 1, Drop: true, After: true})).To(Succeed())
	s.Expect(s.git(dir, "push", "origin", "HEAD:main").failed).To(BeTrue())
	look, err := s.Look(s.ctx, lab)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(look.Refs["refs/heads/main"]).To(Equal(head), "the push was done, the answer was lost")

	s.Expect(s.Fault(s.ctx, githubsim.Fault{Path: "^/meta$", Times: 1, Drop: true})).To(Succeed())
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.URL+"/meta", nil) // POST: the transport does not repeat it
	s.Expect(err).NotTo(HaveOccurred())
	_, err = http.DefaultClient.Do(req)
	s.Expect(err).To(HaveOccurred())
	requests, err := s.Requests(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(requests[len(requests)-1].Status).To(BeZero())
}

func TestFaultsDelay(t *testing.T) {
	s := newSim(t)
	s.Expect(s.Fault(s.ctx, githubsim.Fault{Path: "^/meta$", Delay: 50 * time.Millisecond})).To(Succeed())
	began := time.Now()
	s.ok(200, "", "GET", "/meta", nil)
	s.Expect(time.Since(began)).To(BeNumerically(">=", 50*time.Millisecond))
}

func TestRequestLogTellsWhoAskedWhat(t *testing.T) {
	s := newSim(t)
	id, _ := s.repository(lab)
	token := s.token()
	_, err := s.TakeRequests(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())
	s.ok(200, token, "GET", "/repos/"+lab+"/commits?per_page=1", nil)
	s.ok(404, "", "GET", "/nothing/here", nil)
	s.mustGit(s.t.TempDir(), "ls-remote", s.GitURL(lab, token))
	kept, err := s.Requests(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())
	requests, err := s.TakeRequests(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(requests).To(Equal(kept))
	installation := s.installation()
	s.Expect(requests[0]).To(Equal(githubsim.Request{Time: start, Method: "GET", Path: "/repos/acme/lab/commits", Query: "per_page=1", Operation: "repos/list-commits",
		Status: 200, Actor: "installation/" + strings.TrimPrefix(requests[0].Actor, "installation/"), Installation: installation, Repository: id}))
	s.Expect(requests[1].Status).To(Equal(404))
	s.Expect(requests[len(requests)-1].Operation).To(Equal("git"))
	s.Expect(requests[len(requests)-1].Installation).To(Equal(installation))
	none, err := s.TakeRequests(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(none).To(HaveLen(1), "only the look-up of the installation above")
}

func TestClockCanBeSetAndMoved(t *testing.T) {
	s := newSim(t)
	s.Expect(s.Advance(s.ctx, time.Hour)).To(Succeed())
	s.Expect(s.Now(s.ctx)).To(Equal(start.Add(time.Hour)))
	s.Expect(s.SetClock(s.ctx, start.Add(48*time.Hour))).To(Succeed())
	s.clock.Step(time.Minute)
	s.Expect(s.Now(s.ctx)).To(Equal(start.Add(48*time.Hour + time.Minute)))
}

func TestControlRefusesWhatItCannotDo(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	s.repository("acme/taken")
	for want, err := range map[string]error{
		"an owner that exists":  do(s.App(s.ctx, githubsim.AppRequest{Slug: "x", Owner: "nobody"})),
		`the slug "demo"`:       do(s.App(s.ctx, githubsim.AppRequest{Slug: "demo", Owner: "acme"})),
		"the public key":        do(s.App(s.ctx, githubsim.AppRequest{Slug: "y", Owner: "acme", PublicKey: "x"})),
		"no App 1":              s.Hook(s.ctx, 1, "x", "y"),
		"no repository":         s.Select(s.ctx, s.AppID, "acme", "absent"),
		"not installed":         s.Suspend(s.ctx, s.AppID, "nobody", true),
		`"acme/lab" exists`:     do(s.Repository(s.ctx, lab)),
		"no owner/name":         do(s.Repository(s.ctx, "lab")),
		`no account "x"`:        do(s.Repository(s.ctx, "x/y")),
		"exists already":        s.Rename(s.ctx, lab, "taken"),
		"no name for":           s.Rename(s.ctx, lab, "not a name"),
		`no account "nobody"`:   s.Transfer(s.ctx, lab, "nobody"),
		`no branch "x"`:         s.DeleteBranch(s.ctx, lab, "x", ""),
		"no branch or commit":   do(s.MoveBranch(s.ctx, lab, "b", "nowhere", "")),
		"the current branch":    s.DeleteBranch(s.ctx, lab, "main", ""),
		"no pull request 7":     do(s.Merge(s.ctx, lab, 7, "merge", "")),
		`role "king"`:           s.Member(s.ctx, "acme", "bob", "king"),
		`no organization "bob"`: s.Member(s.ctx, "bob", "bob", "member"),
		`base permission "x"`:   s.ConfigureOrganization(s.ctx, githubsim.AccountRequest{Login: "acme", BasePermission: "x"}),
		"belongs to a User":     s.Organization(s.ctx, "web-flow"),
		"belongs to a Bot":      do(s.User(s.ctx, "demo[bot]")),
		`permission "x"`:        s.Collaborator(s.ctx, lab, "bob", "x"),
		"to start from":         do(s.MakeCommit(s.ctx, githubsim.CommitRequest{Repository: lab, Branch: "b", From: "nowhere"})),
	} {
		s.Expect(err).To(MatchError(ContainSubstring(want)))
	}
	a := s.call("", "POST", "/_sim/nonsense", "{}")
	s.Expect(a.status).To(Equal(404))
	s.Expect(s.call("", "POST", "/_sim/user", `{"nickname":"x"}`).status).To(Equal(400))
	s.Expect(simclient.New("http://127.0.0.1:9").Organization(s.ctx, "x")).To(MatchError(ContainSubstring("simulator: organization")))
}

func do[T any](_ T, err error) error { return err }

func TestWrongAnswersAreFound(t *testing.T) {
	s := newSim(t)
	var mu sync.Mutex
	var found []error
	c, _ := simtest.StartServer(t, githubsim.Options{
		Validate:  func(string, *http.Request, int, http.Header, []byte) error { return errors.New("not as GitHub has it") },
		OnInvalid: func(err error) { mu.Lock(); defer mu.Unlock(); found = append(found, err) },
	})
	a := s.call("", "GET", c.URL+"/meta", nil)
	s.Expect(a.status).To(Equal(500))
	s.Expect(string(a.raw)).To(ContainSubstring("not as GitHub has it"))
	mu.Lock()
	defer mu.Unlock()
	s.Expect(found).To(HaveLen(1))
	requests, err := c.Requests(s.ctx)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(requests[0].Problem).To(ContainSubstring("not as GitHub has it"))
}

func TestWrongRequestsAreFoundWhenTheyAreAccepted(t *testing.T) {
	s := newSim(t)
	var mu sync.Mutex
	var found []error
	c, _ := simtest.StartServer(t, githubsim.Options{OnInvalid: func(err error) { mu.Lock(); defer mu.Unlock(); found = append(found, err) }})
	f := simtest.NewFixture(t, c, "acme", "other")
	_, err := f.Repository(s.ctx, lab)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(f.Member(s.ctx, "acme", "ada", "admin")).To(Succeed())
	token, err := f.User(s.ctx, "ada")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.call(token, "PATCH", c.URL+"/repos/"+lab, map[string]any{"description": 7}).status).To(Equal(500))
	mu.Lock()
	defer mu.Unlock()
	s.Expect(found).To(HaveLen(1))
	s.Expect(found[0]).To(MatchError(ContainSubstring("/description")))
}
