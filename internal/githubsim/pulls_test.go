// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v66/github"
	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/githubsim"
)

const lab = "acme/lab"

// opened makes a repository with a pull request from sync/main into main, and
// returns the first commit of main and the pull request's head.
func (s *sim) opened() (base, head string) {
	s.t.Helper()
	_, base = s.repository(lab)
	head = s.commit(lab, "sync/main", map[string]string{"a.txt": "1\n"})
	s.open("sync/main", "main")
	return base, head
}

func (s *sim) open(head, base string) answer {
	s.t.Helper()
	return s.ok(201, s.token(), "POST", "/repos/"+lab+"/pulls", map[string]string{"title": "Update", "head": head, "base": base, "body": "please"})
}

func (s *sim) move(branch, to string) {
	s.t.Helper()
	_, err := s.MoveBranch(s.ctx, lab, branch, to, "ada")
	s.Expect(err).NotTo(HaveOccurred())
}

// reopen asks for the pull request to be open and returns the message of the
// refusal, "" when it was not refused.
func (s *sim) reopen() string {
	s.t.Helper()
	a := s.call(s.token(), "PATCH", "/repos/"+lab+"/pulls/1", map[string]string{"state": "open"})
	if a.status == 422 {
		return a.text("errors", 0, "message")
	}
	s.Expect(a.status).To(Equal(200), "%s", a.raw)
	return ""
}

// The rows of the table of what pushes do to pull requests.
func TestPushesMovePullRequests(t *testing.T) {
	t.Run("open, head gets new commits: synchronize", func(t *testing.T) {
		s := newSim(t)
		s.opened()
		now := s.commit(lab, "sync/main", map[string]string{"b.txt": "2\n"})
		s.Expect(s.pull(lab).State).To(Equal("open"))
		s.Expect(s.pull(lab).HeadSHA).To(Equal(now))
		s.Expect(s.ok(200, s.token(), "GET", "/repos/"+lab+"/pulls/1", nil).at("commits")).To(BeEquivalentTo(2))
	})
	t.Run("open, the base comes to hold the head: merged", func(t *testing.T) {
		s := newSim(t)
		_, head := s.opened()
		s.move("main", head)
		p := s.pull(lab)
		s.Expect(p.State).To(Equal("merged"))
		s.Expect(p.MergedBy).To(Equal("ada"))
		s.Expect(p.MergeSHA).To(Equal(head))
		a := s.ok(200, s.token(), "GET", "/repos/"+lab+"/pulls/1", nil)
		s.Expect(a.at("merged")).To(BeTrue())
		s.Expect(a.at("changed_files")).To(BeEquivalentTo(1), "the sizes stay as they were")
	})
	t.Run("closed, the base then comes to hold the head: reopening refused", func(t *testing.T) {
		s := newSim(t)
		_, head := s.opened()
		s.Expect(s.SetState(s.ctx, lab, 1, "closed", "ada")).To(Succeed())
		s.move("main", head)
		s.Expect(s.pull(lab).State).To(Equal("closed"))
		s.Expect(s.reopen()).To(Equal("state cannot be changed. There are no new commits on the sync/main branch."))
	})
	t.Run("open, forced so that no commit remains: closed, reopening refused", func(t *testing.T) {
		s := newSim(t)
		base, _ := s.opened()
		s.move("sync/main", base)
		s.Expect(s.pull(lab).State).To(Equal("closed"))
		s.Expect(s.reopen()).To(Equal("state cannot be changed. There are no new commits on the sync/main branch."))
	})
	t.Run("closed, head moved to a non-descendant: reopening refused", func(t *testing.T) {
		s := newSim(t)
		base, _ := s.opened()
		s.Expect(s.SetState(s.ctx, lab, 1, "closed", "ada")).To(Succeed())
		s.move("sync/main", base)
		s.commit(lab, "sync/main", map[string]string{"other.txt": "x\n"})
		s.Expect(s.pull(lab).State).To(Equal("closed"))
		s.Expect(s.reopen()).To(Equal("state cannot be changed. The sync/main branch was force-pushed or recreated."))
		s.Expect(s.SetState(s.ctx, lab, 1, "open", "ada")).To(MatchError(ContainSubstring("force-pushed or recreated")))
	})
	t.Run("closed, head moved to a descendant: may be reopened", func(t *testing.T) {
		s := newSim(t)
		s.opened()
		s.Expect(s.SetState(s.ctx, lab, 1, "closed", "ada")).To(Succeed())
		now := s.commit(lab, "sync/main", map[string]string{"b.txt": "2\n"})
		s.Expect(s.reopen()).To(BeEmpty())
		s.Expect(s.pull(lab).State).To(Equal("open"))
		s.Expect(s.pull(lab).HeadSHA).To(Equal(now))
	})
	t.Run("head branch deleted: closed, reopening refused until it is back", func(t *testing.T) {
		s := newSim(t)
		_, head := s.opened()
		s.Expect(s.DeleteBranch(s.ctx, lab, "sync/main", "ada")).To(Succeed())
		s.Expect(s.pull(lab).State).To(Equal("closed"))
		s.Expect(s.reopen()).To(Equal("state cannot be changed. The sync/main branch was deleted."))
		s.move("sync/main", head)
		s.Expect(s.reopen()).To(BeEmpty())
	})
	t.Run("base branch deleted: closed", func(t *testing.T) {
		s := newSim(t)
		_, head := s.opened()
		s.move("stable", "main")
		s.commit(lab, "topic", map[string]string{"t.txt": "t\n"})
		s.open("topic", "stable")
		s.Expect(s.DeleteBranch(s.ctx, lab, "stable", "ada")).To(Succeed())
		look, err := s.Look(s.ctx, lab)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(look.Pulls[1].State).To(Equal("closed"))
		s.Expect(look.Pulls[0].HeadSHA).To(Equal(head))
	})
	t.Run("merged, head pushed again: nothing", func(t *testing.T) {
		s := newSim(t)
		_, head := s.opened()
		_, err := s.Merge(s.ctx, lab, 1, "merge", "ada")
		s.Expect(err).NotTo(HaveOccurred())
		s.commit(lab, "sync/main", map[string]string{"b.txt": "2\n"})
		s.Expect(s.pull(lab).State).To(Equal("merged"))
		s.Expect(s.pull(lab).HeadSHA).To(Equal(head))
		s.Expect(s.reopen()).To(Equal("state cannot be changed. The pull request was merged."))
		s.Expect(s.open("sync/main", "main").at("number")).To(BeEquivalentTo(2), "a new one is needed")
	})
	t.Run("one push moves base and head together", func(t *testing.T) {
		s := newSim(t)
		s.opened()
		dir := s.clone(lab, s.writer("ada"))
		s.mustGit(dir, "checkout", "-q", "sync/main")
		s.write(dir, "c.txt", "3\n")
		s.mustGit(dir, "push", "-q", "--atomic", "origin", "HEAD:main", "HEAD:sync/main")
		s.Expect(s.pull(lab).State).To(Equal("merged"))
	})
}

func TestOpeningIsRefusedInGitHubsWords(t *testing.T) {
	s := newSim(t)
	base, _ := s.opened()
	s.move("behind", base)
	s.commit(lab, "main", map[string]string{"main.txt": "m\n"})
	_, err := s.MakeCommit(s.ctx, githubsim.CommitRequest{Repository: lab, Branch: "stranger", Orphan: true, Message: "root", Files: map[string]string{"z": "z\n"}})
	s.Expect(err).NotTo(HaveOccurred())
	for name, c := range map[string]struct {
		body                  map[string]any
		resource, field, code string
		message               string
	}{
		"no title":            {map[string]any{"head": "sync/main", "base": "main"}, "PullRequest", "title", "missing_field", ""},
		"no such head":        {map[string]any{"title": "t", "head": "nowhere", "base": "main"}, "PullRequest", "head", "invalid", ""},
		"no such base":        {map[string]any{"title": "t", "head": "sync/main", "base": "nowhere"}, "PullRequest", "base", "invalid", ""},
		"already open":        {map[string]any{"title": "t", "head": "sync/main", "base": "main"}, "PullRequest", "", "custom", "A pull request already exists for acme:sync/main."},
		"only behind":         {map[string]any{"title": "t", "head": "behind", "base": "main"}, "PullRequest", "", "custom", "No commits between main and behind"},
		"unrelated histories": {map[string]any{"title": "t", "head": "stranger", "base": "main"}, "PullRequest", "", "custom", "The stranger branch has no history in common with main"},
		"long body":           {map[string]any{"title": "t", "head": "sync/main", "base": "main", "body": strings.Repeat("ü", 65537)}, "Issue", "body", "custom", "body is too long (maximum is 65536 characters)"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := s.ok(422, s.token(), "POST", "/repos/"+lab+"/pulls", c.body)
			g.Expect(a.text("message")).To(Equal("Validation Failed"))
			g.Expect(a.text("errors", 0, "resource")).To(Equal(c.resource))
			g.Expect(a.text("errors", 0, "field")).To(Equal(c.field))
			g.Expect(a.text("errors", 0, "code")).To(Equal(c.code))
			g.Expect(a.text("errors", 0, "message")).To(Equal(c.message))
		})
	}
	t.Run("commits without a difference are accepted", func(t *testing.T) {
		s.commit(lab, "revert", map[string]string{"r.txt": "r\n"})
		s.commit(lab, "revert", map[string]string{"r.txt": ""})
		a := s.open("revert", "main")
		NewWithT(t).Expect(a.at("changed_files")).To(BeEquivalentTo(0))
		NewWithT(t).Expect(s.ok(200, s.token(), "GET", "/repos/"+lab+"/pulls/2", nil).at("mergeable")).To(BeTrue())
	})
	t.Run("drafts need a plan in private repositories", func(t *testing.T) {
		s.Expect(s.ConfigureOrganization(s.ctx, githubsim.AccountRequest{Login: "acme", Plan: "free"})).To(Succeed())
		s.commit(lab, "draft", map[string]string{"d.txt": "d\n"})
		s.ok(422, s.token(), "POST", "/repos/"+lab+"/pulls", map[string]any{"title": "t", "head": "draft", "base": "main", "draft": true})
	})
}

func TestListedPullRequestsAreFilteredAsGitHubDoes(t *testing.T) {
	s := newSim(t)
	s.opened()
	s.clock.Step(time.Minute)
	s.commit(lab, "other", map[string]string{"o.txt": "o\n"})
	s.open("other", "main")
	s.move("dev", "main")
	s.clock.Step(time.Minute)
	s.open("other", "dev")
	s.Expect(s.SetState(s.ctx, lab, 3, "closed", "ada")).To(Succeed())
	list := func(query string) []any {
		var numbers []any
		for _, p := range s.ok(200, s.token(), "GET", "/repos/"+lab+"/pulls"+query, nil).body.([]any) {
			numbers = append(numbers, p.(map[string]any)["number"])
		}
		return numbers
	}
	s.Expect(list("")).To(Equal([]any{2.0, 1.0}), "open ones, the newest first")
	s.Expect(list("?state=all")).To(HaveLen(3))
	s.Expect(list("?state=closed")).To(Equal([]any{3.0}))
	s.Expect(list("?head=acme:sync/main")).To(Equal([]any{1.0}))
	s.Expect(list("?head=sync/main")).To(HaveLen(2), "a head without its owner is ignored")
	s.Expect(list("?head=other:sync/main")).To(BeEmpty())
	s.Expect(list("?state=all&base=dev")).To(Equal([]any{3.0}))
	s.Expect(list("?state=all&sort=updated&direction=desc")).To(Equal([]any{3.0, 2.0, 1.0}))
	s.Expect(list("?state=all&direction=asc")).To(Equal([]any{1.0, 2.0, 3.0}))
}

func TestEditingAPullRequest(t *testing.T) {
	s := newSim(t)
	s.opened()
	s.move("dev", "main")
	path := "/repos/" + lab + "/pulls/1"
	a := s.ok(200, s.token(), "PATCH", path, map[string]string{"title": "New", "body": "words", "base": "dev"})
	s.Expect(a.text("title")).To(Equal("New"))
	s.Expect(a.text("base", "ref")).To(Equal("dev"))
	s.ok(422, s.token(), "PATCH", path, map[string]string{"base": "nowhere"})
	s.ok(422, s.token(), "PATCH", path, map[string]string{"body": strings.Repeat("x", 65537)})
	s.ok(422, s.token(), "PATCH", path, map[string]string{"state": "odd"})
	s.Expect(s.ok(200, s.token(), "PATCH", path, map[string]string{"state": "closed"}).text("state")).To(Equal("closed"))
	s.ok(404, s.token(), "PATCH", "/repos/"+lab+"/pulls/9", map[string]string{"title": "x"})
	s.Expect(s.pull(lab).Author).To(Equal("demo[bot]"))
	s.Expect(a.at("user", "id")).To(BeEquivalentTo(s.BotUserID))
}

func TestMergingMakesTheCommitsOfEachMethod(t *testing.T) {
	parents := func(s *sim, sha string) []string {
		var list []string
		for _, p := range s.ok(200, s.token(), "GET", "/repos/"+lab+"/git/commits/"+sha, nil).at("parents").([]any) {
			list = append(list, p.(map[string]any)["sha"].(string))
		}
		return list
	}
	t.Run("merge", func(t *testing.T) {
		s := newSim(t)
		base, head := s.opened()
		sha, err := s.Merge(s.ctx, lab, 1, "merge", "ada")
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(parents(s, sha)).To(Equal([]string{base, head}))
		c := s.ok(200, s.token(), "GET", "/repos/"+lab+"/commits/"+sha, nil)
		s.Expect(c.text("commit", "message")).To(Equal("Merge pull request #1 from acme/sync/main\n\nUpdate"))
		s.Expect(c.text("author", "login")).To(Equal("ada"))
		s.Expect(c.text("committer", "login")).To(Equal("web-flow"))
	})
	t.Run("squash", func(t *testing.T) {
		s := newSim(t)
		base, _ := s.opened()
		s.commit(lab, "sync/main", map[string]string{"b.txt": "2\n"})
		sha, err := s.Merge(s.ctx, lab, 1, "squash", "ada")
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(parents(s, sha)).To(Equal([]string{base}))
		c := s.ok(200, s.token(), "GET", "/repos/"+lab+"/commits/"+sha, nil)
		s.Expect(c.text("commit", "message")).To(Equal("Update (#1)\n\n* change sync/main\n\n* change sync/main"))
		s.Expect(c.at("files")).To(HaveLen(2))
		cmp := s.ok(200, s.token(), "GET", "/repos/"+lab+"/compare/main...sync%2Fmain", nil)
		s.Expect(cmp.at("ahead_by")).To(BeEquivalentTo(2))
		s.Expect(cmp.at("files")).To(HaveLen(2), "three-dot goes on listing what was squashed")
	})
	t.Run("rebase", func(t *testing.T) {
		s := newSim(t)
		s.opened()
		s.commit(lab, "sync/main", map[string]string{"b.txt": "2\n"})
		base := s.commit(lab, "main", map[string]string{"mine.txt": "mine\n"})
		sha, err := s.Merge(s.ctx, lab, 1, "rebase", "ada")
		s.Expect(err).NotTo(HaveOccurred())
		first := parents(s, sha)
		s.Expect(first).To(HaveLen(1))
		s.Expect(parents(s, first[0])).To(Equal([]string{base}))
		tree := s.ok(200, s.token(), "GET", "/repos/"+lab+"/git/trees/main", nil)
		s.Expect(tree.at("tree")).To(HaveLen(4))
	})
	t.Run("a conflict is refused", func(t *testing.T) {
		s := newSim(t)
		s.opened()
		s.commit(lab, "main", map[string]string{"a.txt": "theirs\n"})
		for _, method := range []string{"merge", "squash", "rebase"} {
			_, err := s.Merge(s.ctx, lab, 1, method, "ada")
			s.Expect(err).To(MatchError(ContainSubstring("conflict")), method)
		}
		a := s.ok(200, s.token(), "GET", "/repos/"+lab+"/pulls/1", nil)
		s.Expect(a.at("mergeable")).To(BeFalse())
		s.Expect(a.text("mergeable_state")).To(Equal("dirty"))
		s.ok(405, s.token(), "PUT", "/repos/"+lab+"/pulls/1/merge", nil)
		_, err := s.Merge(s.ctx, lab, 1, "octopus", "ada")
		s.Expect(err).To(MatchError(ContainSubstring(`"octopus" is not known`)))
	})
	t.Run("by API, once, at the expected head", func(t *testing.T) {
		s := newSim(t)
		_, head := s.opened()
		s.Expect(s.ok(409, s.token(), "PUT", "/repos/"+lab+"/pulls/1/merge", map[string]string{"sha": strings.Repeat("1", 40)}).text("message")).To(ContainSubstring("Head branch was modified"))
		a := s.ok(200, s.token(), "PUT", "/repos/"+lab+"/pulls/1/merge", map[string]string{"sha": head, "merge_method": "squash", "commit_title": "Mine"})
		s.Expect(a.at("merged")).To(BeTrue())
		s.ok(405, s.token(), "PUT", "/repos/"+lab+"/pulls/1/merge", nil)
	})
	t.Run("deletes the branch when the repository wants it", func(t *testing.T) {
		s := newSim(t)
		s.opened()
		s.ok(200, s.token(), "PATCH", "/repos/"+lab, map[string]bool{"delete_branch_on_merge": true})
		_, err := s.Merge(s.ctx, lab, 1, "merge", "ada")
		s.Expect(err).NotTo(HaveOccurred())
		look, err := s.Look(s.ctx, lab)
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(look.Refs).NotTo(HaveKey("refs/heads/sync/main"))
		s.Expect(look.Pulls[0].State).To(Equal("merged"))
	})
}

func TestCommentsLabelsAssigneesAndReviewers(t *testing.T) {
	s := newSim(t)
	s.opened()
	s.clock.SetTime(time.Now())
	c := s.app()
	made, resp, err := c.Issues.CreateComment(s.ctx, "acme", "lab", 1, &github.IssueComment{Body: github.String("hello")})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(resp.Header.Get("Location")).To(Equal(made.GetURL()))
	edited, _, err := c.Issues.EditComment(s.ctx, "acme", "lab", made.GetID(), &github.IssueComment{Body: github.String("hello again")})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(edited.GetBody()).To(Equal("hello again"))
	list, _, err := c.Issues.ListComments(s.ctx, "acme", "lab", 1, nil)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(list).To(HaveLen(1))
	s.Expect(list[0].GetUser().GetLogin()).To(Equal("demo[bot]"))

	long := s.ok(422, s.token(), "POST", "/repos/"+lab+"/issues/1/comments", map[string]string{"body": strings.Repeat("x", 65537)})
	s.Expect(long.at("errors", 0)).To(Equal(map[string]any{"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is too long (maximum is 65536 characters)"}))
	s.ok(422, s.token(), "POST", "/repos/"+lab+"/issues/1/comments", map[string]string{"body": ""})
	s.ok(404, s.token(), "PATCH", "/repos/"+lab+"/issues/comments/1", map[string]string{"body": "x"})
	s.Expect(s.Lock(s.ctx, lab, 1, true)).To(Succeed())
	s.Expect(s.ok(403, s.token(), "POST", "/repos/"+lab+"/issues/1/comments", map[string]string{"body": "x"}).text("message")).To(Equal("Unable to create comment because issue is locked."))
	s.Expect(s.Lock(s.ctx, lab, 1, false)).To(Succeed())
	s.Expect(s.Comment(s.ctx, lab, 1, "me too", "bob")).To(Succeed())

	labels, _, err := c.Issues.AddLabelsToIssue(s.ctx, "acme", "lab", 1, []string{"sync", "Sync"})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(labels).To(HaveLen(1), "names differ by more than case")
	_, _, err = c.Issues.CreateLabel(s.ctx, "acme", "lab", &github.Label{Name: github.String("sync")})
	s.Expect(err).To(MatchError(ContainSubstring("already_exists")))
	_, _, err = c.Issues.CreateLabel(s.ctx, "acme", "lab", &github.Label{Name: github.String("more"), Color: github.String("ff0000")})
	s.Expect(err).NotTo(HaveOccurred())
	s.ok(200, s.token(), "POST", "/repos/"+lab+"/issues/1/labels", map[string]any{"labels": []string{"more"}})
	labels, _, err = c.Issues.ListLabelsByIssue(s.ctx, "acme", "lab", 1, nil)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(labels).To(HaveLen(2))

	s.Expect(s.Collaborator(s.ctx, lab, "bob", "push")).To(Succeed())
	issue, _, err := c.Issues.AddAssignees(s.ctx, "acme", "lab", 1, []string{"bob", "nobody"})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(issue.Assignees).To(HaveLen(1))
	_, _, err = c.PullRequests.RequestReviewers(s.ctx, "acme", "lab", 1, github.ReviewersRequest{Reviewers: []string{"bob"}})
	s.Expect(err).NotTo(HaveOccurred())
	_, _, err = c.PullRequests.RequestReviewers(s.ctx, "acme", "lab", 1, github.ReviewersRequest{Reviewers: []string{"nobody"}})
	s.Expect(err).To(MatchError(ContainSubstring("Reviews may only be requested from collaborators")))
	p := s.pull(lab)
	s.Expect(p.Comments).To(Equal([]string{"hello again", "me too"}))
	s.Expect(p.Labels).To(Equal([]string{"sync", "more"}))
	s.Expect(p.Assignees).To(Equal([]string{"bob"}))
	s.Expect(p.Reviewers).To(Equal([]string{"bob"}))
}

func TestPagesAreLinkedByID(t *testing.T) {
	s := newSim(t)
	id, _ := s.repository(lab)
	for i := range 5 {
		s.commit(lab, fmt.Sprintf("b%d", i), map[string]string{"f": fmt.Sprint(i, "\n")})
		s.open(fmt.Sprintf("b%d", i), "main")
	}
	a := s.ok(200, s.token(), "GET", "/repos/"+lab+"/pulls?per_page=2", nil)
	s.Expect(a.header.Get("Link")).To(Equal(fmt.Sprintf(`<%s/repositories/%d/pulls?page=2&per_page=2>; rel="next", <%s/repositories/%d/pulls?page=3&per_page=2>; rel="last"`, s.URL, id, s.URL, id)))
	next := s.ok(200, s.token(), "GET", fmt.Sprintf("/repositories/%d/pulls?page=3&per_page=2", id), nil)
	s.Expect(next.body).To(HaveLen(1))
	s.Expect(next.header.Get("Link")).To(ContainSubstring(`rel="prev"`))
	s.Expect(next.header.Get("Link")).NotTo(ContainSubstring(`rel="next"`))
}
