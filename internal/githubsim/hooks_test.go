// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-github/v66/github"
	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/githubsim"
)

const hookSecret = "a secret"

// receiver takes webhooks, checks their signature as go-github does, and keeps
// them.
type receiver struct {
	mu     sync.Mutex
	got    []received
	status int
	wait   chan struct{} // when set, answers come once it is closed
	url    string
}

type received struct {
	header http.Header
	event  any
	raw    map[string]any
}

func newReceiver(s *sim) *receiver {
	s.t.Helper()
	r := &receiver{status: http.StatusAccepted}
	server := httptest.NewServer(r)
	s.t.Cleanup(server.Close)
	r.url = server.URL + "/hook"
	s.Expect(s.Hook(s.ctx, s.AppID, r.url, hookSecret)).To(Succeed())
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	wait := r.wait
	r.mu.Unlock()
	if wait != nil {
		<-wait
	}
	payload, err := github.ValidatePayload(req, []byte(hookSecret))
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	}
	event, err := github.ParseWebHook(github.WebHookType(req), payload)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	one := received{header: req.Header, event: event}
	if err := json.Unmarshal(payload, &one.raw); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.got = append(r.got, one)
	w.WriteHeader(r.status)
	_, _ = io.WriteString(w, "taken")
}

// take returns what came since the last call, once all is delivered.
func (r *receiver) take(s *sim) []received {
	s.t.Helper()
	s.Expect(s.Flush(s.ctx)).To(Succeed())
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

// names returns the events as event/action.
func names(list []received) []string {
	var all []string
	for _, one := range list {
		action, _ := one.raw["action"].(string)
		all = append(all, strings.TrimSuffix(one.header.Get("X-GitHub-Event")+"/"+action, "/"))
	}
	return all
}

func TestWebhooksAreSignedAndCarryGitHubsHeaders(t *testing.T) {
	s := newSim(t)
	r := newReceiver(s)
	s.Expect(s.Ping(s.ctx, s.AppID)).To(Succeed())
	got := r.take(s)
	s.Expect(names(got)).To(Equal([]string{"ping"}))
	h := got[0].header
	s.Expect(h.Get("X-GitHub-Delivery")).To(MatchRegexp(`^[0-9a-f-]{36}$`))
	s.Expect(h.Get("X-Hub-Signature-256")).To(MatchRegexp(`^sha256=[0-9a-f]{64}$`))
	s.Expect(h.Get("X-Hub-Signature")).To(MatchRegexp(`^sha1=[0-9a-f]{40}$`))
	s.Expect(h.Get("X-GitHub-Hook-Installation-Target-ID")).To(Equal(fmt.Sprint(s.AppID)))
	s.Expect(h.Get("X-GitHub-Hook-Installation-Target-Type")).To(Equal("integration"))
	s.Expect(h.Get("X-GitHub-Hook-ID")).NotTo(BeEmpty())
	s.Expect(h.Get("User-Agent")).To(HavePrefix("GitHub-Hookshot/"))
	config := s.ok(200, s.jwt(nil), "GET", "/app/hook/config", nil)
	s.Expect([]any{config.text("url"), config.text("content_type"), config.text("secret")}).To(Equal([]any{r.url, "json", "********"}))
}

func TestPushesAreTold(t *testing.T) {
	s := newSim(t)
	r := newReceiver(s)
	id, first := s.repository(lab)
	s.Expect(names(r.take(s))).To(Equal([]string{"repository/created", "push", "create"}))

	second := s.commit(lab, "main", map[string]string{"README.md": "two\n", "new.txt": "n\n"})
	third := s.commit(lab, "main", map[string]string{"new.txt": ""})
	got := r.take(s)
	s.Expect(names(got)).To(Equal([]string{"push", "push"}), "in order")
	push := got[0].event.(*github.PushEvent)
	s.Expect(push.GetRef()).To(Equal("refs/heads/main"))
	s.Expect([]string{push.GetBefore(), push.GetAfter()}).To(Equal([]string{first, second}))
	s.Expect(push.GetForced()).To(BeFalse())
	s.Expect(push.GetRepo().GetID()).To(Equal(id))
	s.Expect(push.GetRepo().GetOwner().GetName()).To(Equal("acme"))
	s.Expect(push.GetSender().GetLogin()).To(Equal("ada"))
	s.Expect(push.GetInstallation().GetID()).To(Equal(s.installation()))
	s.Expect(push.GetOrganization().GetLogin()).To(Equal("acme"))
	s.Expect(push.Commits).To(HaveLen(1))
	s.Expect(push.Commits[0].Modified).To(Equal([]string{"README.md"}))
	s.Expect(push.Commits[0].Added).To(Equal([]string{"new.txt"}))
	s.Expect(push.Commits[0].GetAuthor().GetLogin()).To(Equal("ada"), "the address is linked to an account")
	s.Expect(push.GetHeadCommit().GetID()).To(Equal(second))
	s.Expect(got[0].raw["repository"].(map[string]any)["pushed_at"]).To(BeNumerically(">", 0), "epoch numbers, in push events only")
	s.Expect(got[1].event.(*github.PushEvent).Commits[0].Removed).To(Equal([]string{"new.txt"}))

	t.Run("forced, made and deleted", func(t *testing.T) {
		g := NewWithT(t)
		s.move("main", second)
		s.move("dev", third)
		s.Expect(s.DeleteBranch(s.ctx, lab, "dev", "ada")).To(Succeed())
		got := r.take(s)
		g.Expect(names(got)).To(Equal([]string{"push", "push", "create", "push", "delete"}))
		g.Expect(got[0].event.(*github.PushEvent).GetForced()).To(BeTrue())
		made := got[1].event.(*github.PushEvent)
		g.Expect(made.GetCreated()).To(BeTrue())
		g.Expect(made.GetBefore()).To(Equal(strings.Repeat("0", 40)))
		g.Expect(made.Commits).To(HaveLen(1), "only what the default branch lacks")
		gone := got[3].event.(*github.PushEvent)
		g.Expect(gone.GetDeleted()).To(BeTrue())
		g.Expect(gone.GetAfter()).To(Equal(strings.Repeat("0", 40)))
		g.Expect(gone.HeadCommit).To(BeNil())
	})
	t.Run("by the App's own token, from its bot", func(t *testing.T) {
		g := NewWithT(t)
		dir := s.clone(lab, s.token())
		s.write(dir, "x", "x\n")
		s.mustGit(dir, "push", "-q", "origin", "HEAD:main", "HEAD:refs/tags/v1")
		got := r.take(s)
		g.Expect(names(got)).To(ConsistOf("push", "push", "create"))
		sender := got[0].event.(*github.PushEvent).GetSender()
		g.Expect([]string{sender.GetLogin(), sender.GetType()}).To(Equal([]string{"demo[bot]", "Bot"}))
	})
}

func TestPullRequestsAreTold(t *testing.T) {
	s := newSim(t)
	r := newReceiver(s)
	s.opened()
	got := r.take(s)
	s.Expect(names(got)).To(HaveExactElements("repository/created", "push", "create", "push", "create", "pull_request/opened"))
	opened := got[5].event.(*github.PullRequestEvent)
	s.Expect(opened.GetNumber()).To(Equal(1))
	s.Expect(opened.GetPullRequest().GetUser().GetID()).To(Equal(s.BotUserID))
	s.Expect(opened.GetPullRequest().GetHead().GetRepo().GetFullName()).To(Equal(lab))

	before := s.pull(lab).HeadSHA
	now := s.commit(lab, "sync/main", map[string]string{"b.txt": "2\n"})
	s.ok(200, s.token(), "PATCH", "/repos/"+lab+"/pulls/1", map[string]string{"title": "New"})
	s.ok(200, s.token(), "POST", "/repos/"+lab+"/issues/1/labels", []string{"sync"})
	comment := s.ok(201, s.token(), "POST", "/repos/"+lab+"/issues/1/comments", map[string]string{"body": "hi"})
	s.ok(200, s.token(), "PATCH", fmt.Sprintf("/repos/%s/issues/comments/%.0f", lab, comment.at("id")), map[string]string{"body": "ho"})
	got = r.take(s)
	s.Expect(names(got)).To(Equal([]string{"push", "pull_request/synchronize", "pull_request/edited", "pull_request/labeled", "issue_comment/created", "issue_comment/edited"}))
	sync := got[1].event.(*github.PullRequestEvent)
	s.Expect([]string{sync.GetBefore(), sync.GetAfter()}).To(Equal([]string{before, now}))
	s.Expect(got[2].event.(*github.PullRequestEvent).GetChanges().GetTitle().GetFrom()).To(Equal("Update"))
	s.Expect(got[4].event.(*github.IssueCommentEvent).GetIssue().IsPullRequest()).To(BeTrue())

	s.Expect(s.SetState(s.ctx, lab, 1, "closed", "ada")).To(Succeed())
	s.Expect(s.SetState(s.ctx, lab, 1, "open", "ada")).To(Succeed())
	_, err := s.Merge(s.ctx, lab, 1, "squash", "ada")
	s.Expect(err).NotTo(HaveOccurred())
	got = r.take(s)
	s.Expect(names(got)).To(Equal([]string{"pull_request/closed", "pull_request/reopened", "pull_request/closed", "push"}))
	s.Expect(got[0].event.(*github.PullRequestEvent).GetPullRequest().GetMerged()).To(BeFalse())
	merged := got[2].event.(*github.PullRequestEvent).GetPullRequest()
	s.Expect(merged.GetMerged()).To(BeTrue())
	s.Expect(merged.GetMergedBy().GetLogin()).To(Equal("ada"))
	s.Expect(merged.GetMergeCommitSHA()).To(HaveLen(40))
	s.Expect(merged.GetChangedFiles()).To(Equal(2))
}

func TestRepositoriesInstallationsAndMembersAreTold(t *testing.T) {
	s := newSim(t)
	r := newReceiver(s)
	id, _ := s.repository(lab)
	s.repository("acme/other")
	r.take(s)

	s.Expect(s.Rename(s.ctx, lab, "lab2")).To(Succeed())
	s.Expect(s.Archive(s.ctx, "acme/lab2", true)).To(Succeed())
	s.Expect(s.Archive(s.ctx, "acme/lab2", false)).To(Succeed())
	s.Expect(s.SetPublic(s.ctx, "acme/lab2", true)).To(Succeed())
	s.Expect(s.SetPublic(s.ctx, "acme/lab2", false)).To(Succeed())
	s.commit("acme/lab2", "dev", map[string]string{"d": "d\n"})
	s.ok(200, s.token(), "PATCH", "/repos/acme/lab2", map[string]string{"default_branch": "dev"})
	got := r.take(s)
	s.Expect(names(got)).To(Equal([]string{"repository/renamed", "repository/archived", "repository/unarchived", "repository/publicized", "repository/privatized", "push", "create", "repository/edited"}))
	renamed := got[0].event.(*github.RepositoryEvent)
	s.Expect(renamed.GetChanges().GetRepo().GetName().GetFrom()).To(Equal("lab"))
	s.Expect(renamed.GetRepo().GetName()).To(Equal("lab2"))

	s.Expect(s.Organization(s.ctx, "elsewhere")).To(Succeed())
	s.Expect(s.Transfer(s.ctx, "acme/lab2", "elsewhere")).To(Succeed())
	s.Expect(r.take(s)).To(BeEmpty(), "only the new owner's installation hears of it")
	s.Expect(s.Install(s.ctx, s.AppID, "elsewhere")).To(Succeed())
	s.Expect(s.Transfer(s.ctx, "elsewhere/lab2", "acme")).To(Succeed())
	got = r.take(s)
	s.Expect(names(got)).To(Equal([]string{"installation/created", "repository/transferred"}))
	s.Expect(got[0].event.(*github.InstallationEvent).Repositories).To(HaveLen(1))
	s.Expect(got[1].event.(*github.RepositoryEvent).GetChanges().GetOwner().GetOwnerInfo().GetOrg().GetLogin()).To(Equal("elsewhere"))

	s.Expect(s.Select(s.ctx, s.AppID, "acme", "other")).To(Succeed())
	s.Expect(s.Select(s.ctx, s.AppID, "acme", "other", "lab2")).To(Succeed())
	s.Expect(s.Collaborator(s.ctx, "acme/lab2", "bob", "push")).To(Succeed())
	s.Expect(s.DeleteRepository(s.ctx, "acme/lab2")).To(Succeed())
	s.Expect(s.Suspend(s.ctx, s.AppID, "acme", true)).To(Succeed())
	s.commit("acme/other", "main", map[string]string{"x": "nobody hears of this\n"})
	s.Expect(s.Suspend(s.ctx, s.AppID, "acme", false)).To(Succeed())
	s.Expect(s.Uninstall(s.ctx, s.AppID, "acme")).To(Succeed())
	got = r.take(s)
	s.Expect(names(got)).To(Equal([]string{"installation_repositories/removed", "installation_repositories/added", "member/added", "repository/deleted",
		"installation_repositories/removed", "installation/suspend", "installation/unsuspend", "installation/deleted"}))
	removed := got[0].event.(*github.InstallationRepositoriesEvent)
	s.Expect(removed.RepositoriesRemoved).To(HaveLen(1))
	s.Expect(removed.RepositoriesRemoved[0].GetID()).To(Equal(id))
	s.Expect(removed.GetRepositorySelection()).To(Equal("selected"))
	s.Expect(got[2].event.(*github.MemberEvent).GetMember().GetLogin()).To(Equal("bob"))
}

func TestUnsubscribedEventsAreNotSent(t *testing.T) {
	s := newSim(t)
	quiet, err := s.App(s.ctx, githubsim.AppRequest{Slug: "quiet", Owner: "acme", HookURL: "http://127.0.0.1:9/", Events: []string{"pull_request"}, Permissions: map[string]string{"contents": "read"}})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.Install(s.ctx, quiet.ID, "acme")).To(Succeed())
	s.repository(lab)
	s.Expect(s.Flush(s.ctx)).To(Succeed())
	list, err := s.Deliveries(s.ctx, quiet.ID)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(events(list)).To(Equal([]string{"ping", "installation/created"}))
}

func TestDeliveriesAreLoggedAndSentAgain(t *testing.T) {
	s := newSim(t)
	r := newReceiver(s)
	s.repository(lab) // repository, push, create
	r.take(s)
	r.mu.Lock()
	r.status = http.StatusInternalServerError
	r.mu.Unlock()
	s.commit(lab, "main", map[string]string{"x": "x\n"})
	failed := r.take(s)
	s.Expect(failed).To(HaveLen(1))
	r.mu.Lock()
	r.status = http.StatusOK
	r.mu.Unlock()

	s.clock.SetTime(start.Add(3 * 24 * time.Hour))
	s.Expect(s.ok(200, s.jwt(nil), "GET", "/app/hook/deliveries", nil).body).To(BeEmpty(), "kept for three days")
	s.clock.SetTime(start.Add(time.Hour))
	list := s.ok(200, s.jwt(nil), "GET", "/app/hook/deliveries", nil)
	s.Expect(list.body).To(HaveLen(4))
	s.Expect([]any{list.text(0, "event"), list.text(0, "status"), list.at(0, "status_code"), list.at(0, "redelivery")}).To(Equal([]any{"push", "Invalid HTTP Response: 500", 500.0, false}), "newest first")
	s.Expect(list.text(0, "guid")).To(Equal(failed[0].header.Get("X-GitHub-Delivery")))
	s.Expect(list.text(3, "status")).To(Equal("OK"))
	s.Expect(s.ok(200, s.jwt(nil), "GET", "/app/hook/deliveries?status=failure", nil).body).To(HaveLen(1))
	s.Expect(s.ok(200, s.jwt(nil), "GET", "/app/hook/deliveries?status=success", nil).body).To(HaveLen(3))

	one := fmt.Sprintf("/app/hook/deliveries/%.0f", list.at(0, "id"))
	detail := s.ok(200, s.jwt(nil), "GET", one, nil)
	s.Expect(detail.text("request", "payload", "ref")).To(Equal("refs/heads/main"))
	s.Expect(detail.text("response", "payload")).To(Equal("taken"))
	s.Expect(s.ok(202, s.jwt(nil), "POST", one+"/attempts", nil).body).To(Equal(map[string]any{}))
	again := r.take(s)
	s.Expect(again).To(HaveLen(1))
	s.Expect(again[0].header.Get("X-GitHub-Delivery")).To(Equal(failed[0].header.Get("X-GitHub-Delivery")), "the same GUID")
	s.Expect(again[0].raw).To(Equal(failed[0].raw))
	list = s.ok(200, s.jwt(nil), "GET", "/app/hook/deliveries", nil)
	s.Expect(list.body).To(HaveLen(5), "the failed attempt stays")
	s.Expect([]any{list.at(0, "redelivery"), list.text(0, "status")}).To(Equal([]any{true, "OK"}))
	s.ok(404, s.jwt(nil), "GET", "/app/hook/deliveries/1", nil)
	s.ok(404, s.jwt(nil), "POST", "/app/hook/deliveries/1/attempts", nil)

	t.Run("in pages by cursor", func(t *testing.T) {
		g := NewWithT(t)
		var ids []any
		next := "/app/hook/deliveries?per_page=2"
		for next != "" {
			a := s.ok(200, s.jwt(nil), "GET", next, nil)
			for _, d := range a.body.([]any) {
				ids = append(ids, d.(map[string]any)["id"])
			}
			link := a.header.Get("Link")
			next = ""
			if link != "" {
				g.Expect(link).To(HaveSuffix(`>; rel="next"`))
				next = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
			}
		}
		g.Expect(ids).To(HaveLen(5))
		s.ok(400, s.jwt(nil), "GET", "/app/hook/deliveries?cursor=x", nil)
	})
}

func TestReceiversThatDoNotAnswerAreNotAskedAgain(t *testing.T) {
	s := newSim(t, func(o *githubsim.Options) { o.HookTimeout = 100 * time.Millisecond })
	r := newReceiver(s)
	r.wait = make(chan struct{})
	s.repository(lab)
	s.Expect(s.Flush(s.ctx)).To(Succeed())
	close(r.wait)
	s.Expect(s.Hook(s.ctx, s.AppID, "http://127.0.0.1:9/", hookSecret)).To(Succeed())
	s.commit(lab, "main", map[string]string{"x": "x\n"})
	s.Expect(s.Flush(s.ctx)).To(Succeed())
	list, err := s.Deliveries(s.ctx, s.AppID)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(list).To(HaveLen(4))
	s.Expect([]any{list[0].Status, list[0].StatusCode}).To(Equal([]any{"timed out", 0}))
	s.Expect([]any{list[3].Status, list[3].StatusCode}).To(Equal([]any{"failed to connect to host", 0}))
}

func TestWebhooksCanBeHeldBackOrLost(t *testing.T) {
	s := newSim(t)
	r := newReceiver(s)
	s.Expect(s.HoldHooks(s.ctx, s.AppID)).To(Succeed())
	s.repository(lab)
	lost, err := s.ReleaseHooks(s.ctx, s.AppID, true)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(lost).To(Equal(3))
	s.Expect(r.take(s)).To(BeEmpty())
	s.Expect(s.HoldHooks(s.ctx, s.AppID)).To(Succeed())
	s.commit(lab, "main", map[string]string{"x": "x\n"})
	lost, err = s.ReleaseHooks(s.ctx, s.AppID, false)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(lost).To(BeZero())
	s.Expect(names(r.take(s))).To(Equal([]string{"push"}))
}
