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

func TestRepositoriesAreMadeOnce(t *testing.T) {
	s := newSim(t)
	path := "/orgs/acme/repos"
	a := s.ok(201, s.token(), "POST", path, map[string]any{"name": "new", "visibility": "private", "has_issues": false, "has_wiki": false, "description": "d", "homepage": "https://example.com"})
	s.Expect(a.at("private")).To(BeTrue())
	s.Expect(a.at("has_issues")).To(BeFalse())
	s.Expect(a.header.Get("Location")).To(Equal(s.URL + "/repos/acme/new"))
	s.Expect(s.ok(200, s.token(), "GET", "/repositories/"+fmt.Sprint(a.at("id")), nil).text("full_name")).To(Equal("acme/new"))
	for name, c := range map[string]struct {
		body    map[string]any
		message string
	}{
		"taken":        {map[string]any{"name": "New"}, "name already exists on this account"},
		"not a name":   {map[string]any{"name": "a b"}, "name is invalid"},
		"not given":    {map[string]any{}, ""},
		"only an dots": {map[string]any{"name": ".."}, "name is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(s.ok(422, s.token(), "POST", path, c.body).text("errors", 0, "message")).To(Equal(c.message))
		})
	}
	t.Run("only by those who may", func(t *testing.T) {
		s.ok(403, s.token(map[string]any{"permissions": map[string]string{"contents": "write"}}), "POST", path, map[string]any{"name": "x"})
		s.ok(401, "", "POST", path, map[string]any{"name": "x"})
		s.ok(404, s.token(), "POST", "/orgs/nobody/repos", map[string]any{"name": "x"})
		bob, err := s.User(s.ctx, "bob")
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(s.ok(403, bob, "POST", path, map[string]any{"name": "x"}).text("message")).To(HavePrefix("You need admin access to the organization"))
		s.Expect(s.Organization(s.ctx, "other")).To(Succeed())
		s.ok(404, s.token(), "POST", "/orgs/other/repos", map[string]any{"name": "x"})
	})
	t.Run("and listed", func(t *testing.T) {
		s.repository("acme/two")
		a := s.ok(200, s.token(), "GET", path, nil)
		NewWithT(t).Expect(a.body).To(HaveLen(2))
		NewWithT(t).Expect(s.ok(200, "", "GET", path, nil).body).To(BeEmpty())
		s.ok(404, s.token(), "GET", "/orgs/nobody/repos", nil)
		names, err := s.Repositories(s.ctx, "acme")
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(names).To(Equal([]string{"acme/new", "acme/two"}))
		o := s.ok(200, s.token(), "GET", "/orgs/acme", nil)
		NewWithT(t).Expect(o.text("type")).To(Equal("Organization"))
		s.ok(404, s.token(), "GET", "/orgs/bob", nil)
		s.ok(404, s.token(), "GET", "/users/unheard-of", nil)
		NewWithT(t).Expect(s.ok(200, "", "GET", "/meta", nil).at("verifiable_password_authentication")).To(BeFalse())
	})
}

func TestEveryPathWorksByNameAndByID(t *testing.T) {
	s := newSim(t)
	id, sha := s.repository(lab)
	s.commit(lab, "topic", map[string]string{"t": "t\n"})
	s.open("topic", "main")
	for _, rest := range []string{"", "/branches", "/branches/main", "/commits", "/commits/" + sha, "/compare/main...topic", "/git/ref/heads/main", "/git/matching-refs/heads",
		"/git/trees/main", "/pulls", "/pulls/1", "/issues/1/comments", "/issues/1/labels", "/collaborators", "/invitations", "/rulesets"} {
		byName := s.ok(200, s.token(), "GET", "/repos/"+lab+rest, nil)
		byID := s.ok(200, s.token(), "GET", fmt.Sprintf("/repositories/%d%s", id, rest), nil)
		s.Expect(byID.body).To(Equal(byName.body), rest)
	}
}

func TestRenamedRepositoriesRedirectUntilTheNameIsTaken(t *testing.T) {
	s := newSim(t)
	id, _ := s.repository(lab)
	s.Expect(s.Rename(s.ctx, lab, "moved")).To(Succeed())
	a := s.ok(301, s.token(), "GET", "/repos/acme/lab/commits?per_page=1", nil)
	location := fmt.Sprintf("%s/repositories/%d/commits?per_page=1", s.URL, id)
	s.Expect(a.header.Get("Location")).To(Equal(location))
	s.Expect(a.text("message")).To(Equal("Moved Permanently"))
	s.Expect(a.text("url")).To(Equal(location))
	for _, method := range []string{"PATCH", "POST", "PUT", "DELETE"} {
		path := map[string]string{"PATCH": "", "POST": "/git/refs", "PUT": "/collaborators/bob", "DELETE": "/collaborators/bob"}[method]
		a := s.ok(307, s.token(), method, "/repos/acme/lab"+path, map[string]any{"ref": "refs/heads/x", "sha": strings.Repeat("1", 40)})
		s.Expect(a.header.Get("Location")).To(Equal(fmt.Sprintf("%s/repositories/%d%s", s.URL, id, path)))
	}
	s.Expect(s.ok(301, s.jwt(nil), "GET", "/repos/acme/lab/installation", nil).header.Get("Location")).To(HaveSuffix(fmt.Sprintf("/repositories/%d/installation", id)))
	s.ok(404, "", "GET", "/repos/acme/lab", nil)

	s.clock.SetTime(time.Now())
	repo, _, err := s.app().Repositories.Get(s.ctx, "acme", "lab")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(repo.GetID()).To(Equal(id))
	s.Expect(repo.GetFullName()).To(Equal("acme/moved"))

	other, _ := s.repository(lab)
	s.Expect(s.ok(200, s.token(), "GET", "/repos/acme/lab", nil).at("id")).To(BeEquivalentTo(other), "the name leads to who has it now")
	s.ok(422, s.token(), "PATCH", "/repos/acme/moved", map[string]string{"name": "lab"})
	s.ok(200, s.token(), "PATCH", "/repos/acme/moved", map[string]string{"name": "again"})
	s.ok(301, s.token(), "GET", "/repos/acme/moved", nil)
	s.Expect(s.Rename(s.ctx, "acme/again", "not a name")).NotTo(Succeed())
}

func TestTransferredAndDeletedRepositoriesAreOutOfReach(t *testing.T) {
	s := newSim(t)
	id, _ := s.repository(lab)
	s.Expect(s.Organization(s.ctx, "elsewhere")).To(Succeed())
	s.Expect(s.Transfer(s.ctx, lab, "elsewhere")).To(Succeed())
	path := fmt.Sprintf("/repositories/%d", id)
	s.Expect(s.ok(404, s.token(), "GET", path, nil).text("message")).To(Equal("Not Found"))
	s.Expect(s.Install(s.ctx, s.AppID, "elsewhere")).To(Succeed())
	s.Expect(s.Transfer(s.ctx, "elsewhere/lab", "acme")).To(Succeed())
	s.ok(200, s.token(), "GET", path, nil)
	s.Expect(s.DeleteRepository(s.ctx, lab)).To(Succeed())
	s.ok(404, s.token(), "GET", path, nil)
	_, err := s.Look(s.ctx, lab)
	s.Expect(err).To(MatchError(ContainSubstring(`no repository "acme/lab"`)))
	s.repository(lab)
}

func TestPublicRepositoriesOutsideTheInstallationCanBeReadOnly(t *testing.T) {
	s := newSim(t)
	s.Expect(s.Organization(s.ctx, "elsewhere")).To(Succeed())
	_, err := s.PublicRepository(s.ctx, "elsewhere/open")
	s.Expect(err).NotTo(HaveOccurred())
	sha := s.commit("elsewhere/open", "main", map[string]string{"a": "a\n"})
	s.ok(200, s.token(), "GET", "/repos/elsewhere/open/commits", nil)
	s.ok(403, s.token(), "POST", "/repos/elsewhere/open/git/refs", map[string]string{"ref": "refs/heads/x", "sha": sha})
	s.Expect(s.SetPublic(s.ctx, "elsewhere/open", false)).To(Succeed())
	s.ok(404, s.token(), "GET", "/repos/elsewhere/open/commits", nil)
}

func TestArchivedRepositoriesAreReadOnly(t *testing.T) {
	s := newSim(t)
	_, sha := s.repository(lab)
	s.commit(lab, "topic", map[string]string{"t": "t\n"})
	s.open("topic", "main")
	s.Expect(s.Archive(s.ctx, lab, true)).To(Succeed())
	s.ok(200, s.token(), "GET", "/repos/"+lab+"/pulls", nil)
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"POST", "/pulls", map[string]string{"title": "t", "head": "topic", "base": "main"}},
		{"POST", "/issues/1/comments", map[string]string{"body": "b"}},
		{"POST", "/issues/1/labels", []string{"l"}},
		{"POST", "/git/refs", map[string]string{"ref": "refs/heads/x", "sha": sha}},
		{"PATCH", "", map[string]string{"name": "x"}},
		{"PUT", "/collaborators/bob", nil},
	} {
		a := s.ok(403, s.token(), c.method, "/repos/"+lab+c.path, c.body)
		s.Expect(a.text("message")).To(Equal("Repository was archived so is read-only."))
		s.Expect(a.text("status")).To(Equal("403"))
	}
	s.Expect(s.ok(200, s.token(), "PATCH", "/repos/"+lab, map[string]bool{"archived": false}).at("archived")).To(BeFalse())
	s.Expect(s.ok(200, s.token(), "PATCH", "/repos/"+lab, map[string]bool{"archived": true}).at("archived")).To(BeTrue())
}

func TestBlockedRepositoriesAnswer451(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	s.Expect(s.Block(s.ctx, lab, true)).To(Succeed())
	a := s.ok(451, s.token(), "GET", "/repos/"+lab, nil)
	s.Expect(a.text("message")).To(Equal("Repository access blocked"))
	s.Expect(a.text("block", "reason")).To(Equal("dmca"))
	s.Expect(s.ok(200, s.token(), "GET", "/orgs/acme/repos", nil).body).To(HaveLen(1), "lists go on naming it")
}

func TestEmptyRepositoriesSaySo(t *testing.T) {
	s := newSim(t)
	_, err := s.Repository(s.ctx, lab)
	s.Expect(err).NotTo(HaveOccurred())
	for _, path := range []string{"/commits", "/commits/main", "/git/ref/heads/main", "/git/matching-refs/heads", "/git/trees/main", "/git/commits/" + strings.Repeat("1", 40)} {
		s.Expect(s.ok(409, s.token(), "GET", "/repos/"+lab+path, nil).text("message")).To(Equal("Git Repository is empty."), path)
	}
	s.ok(409, s.token(), "POST", "/repos/"+lab+"/git/refs", map[string]string{"ref": "refs/heads/main", "sha": strings.Repeat("1", 40)})
	s.ok(409, s.token(), "POST", "/repos/"+lab+"/git/blobs", map[string]string{"content": "x"})
	s.Expect(s.ok(200, s.token(), "GET", "/repos/"+lab+"/branches", nil).body).To(BeEmpty())
	s.ok(404, s.token(), "GET", "/repos/"+lab+"/branches/main", nil)
}

func TestSettingsOfARepository(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	path := "/repos/" + lab
	bad := s.ok(422, s.token(), "PATCH", path, map[string]string{"default_branch": "dev"})
	s.Expect(bad.text("errors", 0, "message")).To(ContainSubstring("The branch dev was not found"))
	s.commit(lab, "dev", map[string]string{"d": "d\n"})
	s.Expect(s.ok(200, s.token(), "PATCH", path, map[string]string{"default_branch": "dev"}).text("default_branch")).To(Equal("dev"))
	s.Expect(s.mustGit(s.clone(lab, s.writer("ada")), "branch", "--show-current")).To(Equal("dev"))
	s.Expect(s.ok(200, s.token(), "PATCH", path, map[string]bool{"private": false}).text("visibility")).To(Equal("public"))
	s.Expect(s.ok(200, s.token(), "PATCH", path, map[string]string{"visibility": "internal"}).at("private")).To(BeTrue())
}

// The rows of the table of what a comparison says.
func TestComparisonsAreThreeDot(t *testing.T) {
	s := newSim(t)
	_, base := s.repository(lab)
	compare := func(basehead string) answer {
		return s.ok(200, s.token(), "GET", "/repos/"+lab+"/compare/"+basehead, nil)
	}
	a := compare("main...main")
	s.Expect([]any{a.text("status"), a.at("ahead_by"), a.at("behind_by")}).To(Equal([]any{"identical", 0.0, 0.0}))

	s.commit(lab, "sync/main", map[string]string{"a.txt": "1\n", "gone.txt": "x\n"})
	head := s.commit(lab, "sync/main", map[string]string{"a.txt": "1\n2\n", "gone.txt": "", "README.md": ""})
	s.commit(lab, "main", map[string]string{"mine.txt": "m\n"})
	a = compare("main...sync%2Fmain")
	s.Expect([]any{a.text("status"), a.at("ahead_by"), a.at("behind_by"), a.at("total_commits")}).To(Equal([]any{"diverged", 2.0, 1.0, 2.0}))
	s.Expect(a.text("merge_base_commit", "sha")).To(Equal(base))
	s.Expect(a.text("commits", 1, "sha")).To(Equal(head), "the newest is last")
	s.Expect(a.at("files")).To(HaveLen(2), "main's own file is not among them")
	s.Expect([]any{a.text("files", 0, "filename"), a.text("files", 0, "status")}).To(Equal([]any{"README.md", "removed"}))
	s.Expect([]any{a.text("files", 1, "filename"), a.text("files", 1, "status"), a.at("files", 1, "additions")}).To(Equal([]any{"a.txt", "added", 2.0}))

	a = compare("sync%2Fmain..." + base)
	s.Expect([]any{a.text("status"), a.at("commits"), a.at("files")}).To(Equal([]any{"behind", []any{}, []any{}}))
	s.Expect(compare("acme:main...acme:sync%2Fmain").text("status")).To(Equal("diverged"))
	s.Expect(compare(base[:10] + "..." + head).text("status")).To(Equal("ahead"))

	t.Run("renamed files keep their former name", func(t *testing.T) {
		g := NewWithT(t)
		text := strings.Repeat("a line\n", 50)
		s.commit(lab, "r1", map[string]string{"old name.txt": text})
		s.commit(lab, "r1", map[string]string{"old name.txt": "", "new näme.txt": text + "more\n"})
		s.move("r0", s.ok(200, s.token(), "GET", "/repos/"+lab+"/commits/r1", nil).text("parents", 0, "sha"))
		f := compare("r0...r1").at("files", 0).(map[string]any)
		g.Expect(f).To(HaveKeyWithValue("filename", "new näme.txt"))
		g.Expect(f).To(HaveKeyWithValue("previous_filename", "old name.txt"))
		g.Expect(f).To(HaveKeyWithValue("status", "renamed"))
		g.Expect(f).To(HaveKeyWithValue("additions", 1.0))
	})
	t.Run("what cannot be compared", func(t *testing.T) {
		_, err := s.MakeCommit(s.ctx, githubsim.CommitRequest{Repository: lab, Branch: "stranger", Orphan: true, Message: "root", Files: map[string]string{"z": "z\n"}})
		s.Expect(err).NotTo(HaveOccurred())
		for basehead, message := range map[string]string{"main...nowhere": "Not Found", "nowhere...main": "Not Found", "main": "Not Found", "main..sync%2Fmain": "Not Found",
			"main...stranger": "No common ancestor between main and stranger."} {
			a := s.ok(404, s.token(), "GET", "/repos/"+lab+"/compare/"+basehead, nil)
			NewWithT(t).Expect(a.text("message")).To(Equal(message), basehead)
		}
	})
	t.Run("a merge made nothing differ, a revert as well", func(t *testing.T) {
		s.open("sync/main", "main")
		_, err := s.Merge(s.ctx, lab, 1, "merge", "ada")
		s.Expect(err).NotTo(HaveOccurred())
		a := compare("main...sync%2Fmain")
		NewWithT(t).Expect([]any{a.at("ahead_by"), a.at("files")}).To(Equal([]any{0.0, []any{}}))
		s.commit(lab, "sync/main", map[string]string{"r": "r\n"})
		s.commit(lab, "sync/main", map[string]string{"r": ""})
		a = compare("main...sync%2Fmain")
		NewWithT(t).Expect([]any{a.at("ahead_by"), a.at("files")}).To(Equal([]any{2.0, []any{}}))
	})
}

func TestComparisonsListAtMost300FilesAnd250Commits(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	dir := s.clone(lab, s.writer("ada"))
	files := map[string]string{}
	for i := range 310 {
		files[fmt.Sprintf("f%03d", i)] = "x\n"
	}
	s.commit(lab, "many", files)
	s.mustGit(dir, "fetch", "-q")
	s.mustGit(dir, "checkout", "-q", "many")
	var stream strings.Builder
	for i := range 259 {
		fmt.Fprintf(&stream, "commit refs/heads/many\ncommitter Ada <ada@example.com> %d +0000\ndata 1\nx\n", 1_800_000_000+i)
		if i == 0 {
			stream.WriteString("from refs/heads/many^0\n")
		}
	}
	s.fastImport(dir, stream.String())
	s.mustGit(dir, "push", "-q", "origin", "many")
	path := "/repos/" + lab + "/compare/main...many"
	a := s.ok(200, s.token(), "GET", path, nil)
	s.Expect(a.at("files")).To(HaveLen(300))
	s.Expect(a.at("commits")).To(HaveLen(250))
	s.Expect(a.at("total_commits")).To(BeEquivalentTo(260))
	a = s.ok(200, s.token(), "GET", path+"?per_page=1&page=1", nil)
	s.Expect(a.at("files")).To(HaveLen(300))
	s.Expect(a.at("commits")).To(HaveLen(1))
	a = s.ok(200, s.token(), "GET", path+"?per_page=1&page=2", nil)
	s.Expect(a.at("files")).To(BeNil(), "files come with the first page only")
}

func TestConditionalRequestsAreBoundToTheToken(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	token := s.token()
	a := s.ok(200, token, "GET", "/repos/"+lab, nil)
	etag := a.header.Get("ETag")
	s.Expect(etag).To(HavePrefix(`W/"`))
	again := s.call(token, "GET", "/repos/"+lab, nil, "If-None-Match", etag)
	s.Expect(again.status).To(Equal(304))
	s.Expect(again.raw).To(BeEmpty())
	s.Expect(s.call(s.token(), "GET", "/repos/"+lab, nil, "If-None-Match", etag).status).To(Equal(200), "another token has another ETag")
	before := s.ok(200, token, "GET", "/rate_limit", nil).at("rate", "used")
	s.Expect(s.call(token, "GET", "/repos/"+lab, nil, "If-None-Match", etag).status).To(Equal(304))
	s.Expect(s.ok(200, token, "GET", "/rate_limit", nil).at("rate", "used")).To(Equal(before), "unmodified costs nothing")
	s.commit(lab, "main", map[string]string{"x": "x\n"})
	s.ok(200, token, "PATCH", "/repos/"+lab, map[string]string{"description": "new"})
	s.Expect(s.call(token, "GET", "/repos/"+lab, nil, "If-None-Match", etag).status).To(Equal(200))
}

func TestAnswersCarryGitHubsHeaders(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	a := s.ok(200, s.token(), "GET", "/repos/"+lab, nil)
	for name, pattern := range map[string]string{
		"Content-Type": `^application/json; charset=utf-8$`, "Cache-Control": `^private, max-age=60, s-maxage=60$`, "Vary": "Authorization",
		"X-GitHub-Media-Type": `^github\.v3; format=json$`, "X-GitHub-Request-Id": `^[0-9A-F]{4}:[0-9A-F]{6}:[0-9A-F]{6}:[0-9A-F]{6}:[0-9A-F]{8}$`,
		"Date": `^Mon, 05 Oct 2026 08:00:00 GMT$`, "Access-Control-Expose-Headers": "X-GitHub-Request-Id", "X-RateLimit-Used": `^\d+$`,
	} {
		s.Expect(a.header.Get(name)).To(MatchRegexp(pattern), name)
	}
	s.Expect(s.call(s.token(), "HEAD", "/repos/"+lab, nil).raw).To(BeEmpty())
}

func TestGitDataByAPI(t *testing.T) {
	s := newSim(t)
	s.clock.SetTime(time.Now())
	_, first := s.repository(lab)
	c := s.app()
	blob, _, err := c.Git.CreateBlob(s.ctx, "acme", "lab", &github.Blob{Content: github.String("aGVsbG8K"), Encoding: github.String("base64")})
	s.Expect(err).NotTo(HaveOccurred())
	read, _, err := c.Git.GetBlob(s.ctx, "acme", "lab", blob.GetSHA())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(read.GetContent()).To(Equal("aGVsbG8K\n"))
	tree, _, err := c.Git.CreateTree(s.ctx, "acme", "lab", first, []*github.TreeEntry{
		{Path: github.String("bin/run"), Mode: github.String("100755"), Type: github.String("blob"), SHA: blob.SHA},
		{Path: github.String("note"), Mode: github.String("100644"), Type: github.String("blob"), Content: github.String("n\n")},
		{Path: github.String("README.md"), Mode: github.String("100644"), Type: github.String("blob")}, // a null sha removes it
	})
	s.Expect(err).NotTo(HaveOccurred())
	commit, _, err := c.Git.CreateCommit(s.ctx, "acme", "lab", &github.Commit{Message: github.String("by API"), Tree: tree, Parents: []*github.Commit{{SHA: github.String(first)}}}, nil)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(commit.GetAuthor().GetName()).To(Equal("demo[bot]"))

	ref := &github.Reference{Ref: github.String("refs/heads/feature/x"), Object: &github.GitObject{SHA: commit.SHA}}
	_, _, err = c.Git.CreateRef(s.ctx, "acme", "lab", ref)
	s.Expect(err).NotTo(HaveOccurred())
	_, _, err = c.Git.CreateRef(s.ctx, "acme", "lab", ref)
	s.Expect(err).To(MatchError(ContainSubstring("Reference already exists")))
	got, _, err := c.Git.GetTree(s.ctx, "acme", "lab", "feature/x", true)
	s.Expect(err).NotTo(HaveOccurred())
	paths := map[string]string{}
	for _, e := range got.Entries {
		paths[e.GetPath()] = e.GetMode()
	}
	s.Expect(paths).To(Equal(map[string]string{"bin": "040000", "bin/run": "100755", "note": "100644"}))
	list, _, err := c.Git.ListMatchingRefs(s.ctx, "acme", "lab", &github.ReferenceListOptions{Ref: "heads/feat"})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(list).To(HaveLen(1))
	gone, _, err := c.Git.GetCommit(s.ctx, "acme", "lab", commit.GetSHA())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(gone.GetMessage()).To(Equal("by API"))

	path := "/repos/" + lab + "/git/refs/heads/feature/x"
	for name, c := range map[string]struct {
		body    map[string]any
		path    string
		message string
	}{
		"not a fast forward": {map[string]any{"sha": first}, path, "Update is not a fast forward"},
		"no such object":     {map[string]any{"sha": strings.Repeat("1", 40)}, path, "Object does not exist"},
		"no such ref":        {map[string]any{"sha": first}, "/repos/" + lab + "/git/refs/heads/none", "Reference does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(s.ok(422, s.token(), "PATCH", c.path, c.body).text("message")).To(Equal(c.message))
		})
	}
	s.Expect(s.ok(200, s.token(), "PATCH", path, map[string]any{"sha": first, "force": true}).text("object", "sha")).To(Equal(first))
	s.ok(200, s.token(), "PATCH", path, map[string]any{"sha": first})
	s.ok(204, s.token(), "DELETE", path, nil)
	s.ok(422, s.token(), "DELETE", path, nil)
	s.ok(404, s.token(), "GET", "/repos/"+lab+"/git/ref/heads/feature/x", nil)
	s.ok(422, s.token(), "POST", "/repos/"+lab+"/git/refs", map[string]string{"ref": "main", "sha": first})
	s.ok(422, s.token(), "POST", "/repos/"+lab+"/git/commits", map[string]any{"message": "m", "tree": first, "parents": []string{}})
	s.ok(422, s.token(), "POST", "/repos/"+lab+"/git/trees", map[string]any{"tree": []any{map[string]any{"path": "/x", "mode": "100644", "content": ""}}})
	s.ok(404, s.token(), "GET", "/repos/"+lab+"/git/blobs/"+first, nil)
	s.ok(422, s.token(), "GET", "/repos/"+lab+"/commits/nowhere", nil)
	s.Expect(s.ok(200, s.token(), "GET", "/repos/"+lab+"/commits?sha=main&path=README.md", nil).body).To(HaveLen(1))
}

func TestCommitsAreLinkedToAccountsByTheirAddress(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	dir := s.clone(lab, s.writer("ada"))
	for address, login := range map[string]string{
		fmt.Sprintf("%d+demo[bot]@users.noreply.github.com", s.BotUserID): "demo[bot]",
		"ada@users.noreply.github.com":                                    "ada",
		"1+demo[bot]@users.noreply.github.com":                            "",
		"someone@example.com":                                             "",
	} {
		s.mustGit(dir, "-c", "user.name=x", "-c", "user.email="+address, "commit", "-q", "--allow-empty", "--author", "X <"+address+">", "-m", "m")
		s.mustGit(dir, "push", "-q", "origin", "HEAD:main")
		s.Expect(s.ok(200, s.token(), "GET", "/repos/"+lab+"/commits/main", nil).text("author", "login")).To(Equal(login), address)
	}
}
