// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func TestRepository(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	answer := repositoryJSON(42, "Acme/lab")
	answer["archived"], answer["fork"] = true, true
	f.handle("GET /repositories/42", always(http.StatusOK, answer))
	f.handle("GET /repos/acme/lab", always(http.StatusOK, answer))
	c := f.client(t)
	want := domain.GitHubRepository{ID: 42, NodeID: "R_lab", FullName: "Acme/lab", DefaultBranch: "main", Private: true, Archived: true, Fork: true, OwnerID: 5, OwnerLogin: "Acme"}
	byID, err := c.Repository(background(t), 42)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(byID).To(Equal(want))
	byName, err := c.RepositoryByName(background(t), "acme/lab")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(byName).To(Equal(want))
}

func TestRepositoryByName_AsksNothingForWhatIsNoName(t *testing.T) {
	f := newFake(t)
	c := f.client(t)
	for _, name := range []string{"", "lab", "acme/", "/lab", "acme/lab/hooks", "acme/lab?x=1", "acme/..", "acme/.", "../app", "acme/l#b", "acme/l%2Fb"} {
		_, err := c.RepositoryByName(background(t), name)
		expectFault(t, err, fault.Blocked, fault.ReasonNotFound, "owner/name")
	}
	NewWithT(t).Expect(f.seen()).To(BeEmpty())
}

func TestCreateRepository(t *testing.T) {
	t.Run("makes an empty private one", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		f.handle("POST /orgs/acme/repos", always(http.StatusCreated, repositoryJSON(42, "acme/lab")))
		repo, err := f.client(t).CreateRepository(background(t), "acme", domain.NewRepository{Name: "lab", Visibility: "private"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(repo.ID).To(BeEquivalentTo(42))
		g.Expect(f.seen()[0].body).To(MatchJSON(`{"name":"lab","visibility":"private","private":true,"has_issues":false,"has_projects":false,"has_wiki":false,"auto_init":false}`))
	})
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		reason fault.Reason
		words  string
	}{
		"taken": {refusing(422, "Repository creation failed.", map[string]any{"resource": "Repository", "code": "custom", "field": "name", "message": "name already exists on this account"}),
			fault.ReasonRepositoryNameTaken, `"acme/lab" already exists`},
		"another refusal": {refusing(422, "Repository creation failed.", map[string]any{"resource": "Repository", "code": "custom", "field": "name", "message": "name is too long"}),
			fault.ReasonGitHubRefused, "name is too long"},
		"not allowed": {refusing(403, "You need admin access to the organization before adding a repository to it."), fault.ReasonPermissionMissing, "POST /orgs/{name}/repos"},
		"no such org": {refusing(404, "Not Found"), fault.ReasonNotFound, `making repository "acme/lab"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.handle("POST /orgs/acme/repos", c.answer)
			_, err := f.client(t).CreateRepository(background(t), "acme", domain.NewRepository{Name: "lab", Visibility: "private"})
			expectFault(t, err, fault.Blocked, c.reason, c.words)
		})
	}
}

func TestIsEmpty_R_DIST_05(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("GET /repositories/1/commits", refusing(409, "Git Repository is empty."))
	f.handle("GET /repositories/2/commits", always(http.StatusOK, []any{map[string]any{"sha": "a"}}))
	f.handle("GET /repositories/3/commits", refusing(404, "Not Found"))
	c := f.client(t)
	empty, err := c.IsEmpty(background(t), 1)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(empty).To(BeTrue())
	empty, err = c.IsEmpty(background(t), 2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(empty).To(BeFalse())
	empty, err = c.IsEmpty(background(t), 3)
	expectFault(t, err, fault.Blocked, fault.ReasonNotFound)
	g.Expect(empty).To(BeFalse())
}

func refJSON(ref, sha string) map[string]any {
	return map[string]any{"ref": ref, "object": map[string]any{"sha": sha, "type": "commit"}}
}

func TestRef_R_SYNC_04(t *testing.T) {
	f := newFake(t)
	f.handle("GET /repositories/1/git/ref/heads/sync/main", always(http.StatusOK, refJSON("refs/heads/sync/main", "abc")))
	f.handle("GET /repositories/1/git/ref/heads/what%3F", always(http.StatusOK, refJSON("refs/heads/what?", "def")))
	f.handle("GET /repositories/2/git/ref/heads/sync/main", refusing(404, "Not Found"))
	f.handle("GET /repositories/3/git/ref/heads/sync/main", refusing(409, "Git Repository is empty."))
	f.handle("GET /repositories/4/git/ref/heads/sync/main", always(http.StatusOK, refJSON("refs/heads/sync/main-2", "abc")))
	f.handle("GET /repositories/5/git/ref/heads/sync/main", refusing(500, "Server Error"))
	c := f.client(t)
	for name, want := range map[string]struct {
		id  int64
		ref string
		sha string
	}{
		"there":          {1, "heads/sync/main", "abc"},
		"odd characters": {1, "heads/what?", "def"},
		"never pushed":   {2, "heads/sync/main", ""},
		"empty":          {3, "heads/sync/main", ""},
		"a longer one":   {4, "heads/sync/main", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			sha, found, err := c.Ref(background(t), want.id, want.ref)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(sha).To(Equal(want.sha))
			g.Expect(found).To(Equal(want.sha != ""))
		})
	}
	t.Run("unknown is not missing", func(t *testing.T) {
		_, found, err := c.Ref(background(t), 5, "heads/sync/main")
		expectFault(t, err, fault.Retryable, fault.ReasonGitHubUnreachable)
		NewWithT(t).Expect(found).To(BeFalse())
	})
}

func TestCompare(t *testing.T) {
	files := func(n int) []any {
		var list []any
		for i := range n {
			list = append(list, map[string]any{"filename": fmt.Sprintf("f%d", i), "status": "added"})
		}
		return list
	}
	answer := func(files []any) http.HandlerFunc {
		return always(http.StatusOK, map[string]any{"status": "diverged", "ahead_by": 3, "behind_by": 1, "total_commits": 3, "files": files})
	}
	t.Run("reads counts and files", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		f.handle("GET /repositories/42/compare/{basehead}", answer([]any{
			map[string]any{"filename": "new.go", "previous_filename": "old.go", "status": "renamed"}, map[string]any{"filename": "a.go", "status": "modified"}}))
		cmp, err := f.client(t).Compare(background(t), 42, "main", "sync/main")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(cmp).To(Equal(domain.Comparison{Status: "diverged", AheadBy: 3, BehindBy: 1, TotalCommits: 3,
			Files: []domain.ChangedFile{{Name: "new.go", PreviousName: "old.go", Status: "renamed"}, {Name: "a.go", Status: "modified"}}}))
		g.Expect(f.seen()[0].path).To(Equal("/repositories/42/compare/main...sync%2Fmain"))
		g.Expect(f.seen()[0].query).To(Equal("per_page=1&page=1"))
	})
	t.Run("says when files may be missing", func(t *testing.T) {
		for n, truncated := range map[int]bool{299: false, 300: true} {
			f := newFake(t)
			f.handle("GET /repositories/42/compare/{basehead}", answer(files(n)))
			cmp, err := f.client(t).Compare(background(t), 42, "main", "sync/main")
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cmp.FilesTruncated).To(Equal(truncated))
		}
	})
}

func TestCompare_SaysWhichOfItsMeaningsA404Has(t *testing.T) {
	sha := "0123456789012345678901234567890123456789"
	for name, c := range map[string]struct {
		message    string
		repo       http.HandlerFunc
		missing    string
		base, head string
		reason     fault.Reason
		words      string
	}{
		"unrelated":    {"No common ancestor between main and sync/main.", nil, "", "main", "sync/main", fault.ReasonUnrelatedHistories, "shares no history"},
		"base missing": {"Not Found", nil, "main", "main", "sync/main", fault.ReasonBranchMissing, `no branch "main"`},
		"head missing": {"Not Found", nil, "sync/main", "main", "sync/main", fault.ReasonBranchMissing, `no branch "sync/main"`},
		"sha missing":  {"Not Found", nil, "", sha, sha, fault.ReasonBranchMissing, sha},
		"gone":         {"Not Found", refusing(404, "Not Found"), "", "main", "sync/main", fault.ReasonNotFound, "repository 42"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.handle("GET /repositories/42/compare/{basehead}", refusing(404, c.message))
			if c.repo == nil {
				c.repo = always(http.StatusOK, repositoryJSON(42, "acme/lab"))
			}
			f.handle("GET /repositories/42", c.repo)
			f.handle("GET /repositories/42/git/ref/heads/{branch...}", func(w http.ResponseWriter, r *http.Request) {
				if r.PathValue("branch") == c.missing {
					refuse(w, http.StatusNotFound, "Not Found")
					return
				}
				reply(w, http.StatusOK, refJSON("refs/heads/"+r.PathValue("branch"), sha))
			})
			_, err := f.client(t).Compare(background(t), 42, c.base, c.head)
			expectFault(t, err, fault.Blocked, c.reason, c.words)
		})
	}
}
