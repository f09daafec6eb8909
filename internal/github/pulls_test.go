// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

var (
	newPull  = domain.NewPullRequest{Title: "Update main", Body: "Files", Head: "sync/main", Base: "main", Draft: true}
	testRepo = domain.GitHubRepository{ID: 42, OwnerLogin: "acme"}
)

// pullJSON is an open pull request of ours, with changes.
func pullJSON(number int, change map[string]any) map[string]any {
	p := map[string]any{"number": number, "state": "open", "html_url": fmt.Sprintf("https://github.com/acme/lab/pull/%d", number), "updated_at": "2031-03-04T09:00:00Z",
		"head": map[string]any{"ref": "sync/main", "sha": "abc", "repo": map[string]any{"id": 42}},
		"base": map[string]any{"ref": "main"}, "user": map[string]any{"id": 987, "login": "sluice-test[bot]"}}
	for k, v := range change {
		p[k] = v
	}
	return p
}

func head(ref string, repo any) map[string]any {
	return map[string]any{"head": map[string]any{"ref": ref, "sha": "abc", "repo": repo}}
}

func TestPullRequest_R_PR_06_States(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]any
		want   domain.PullRequestState
	}{
		"open":   {nil, domain.PullRequestOpen},
		"closed": {map[string]any{"state": "closed"}, domain.PullRequestClosed},
		"merged": {map[string]any{"state": "closed", "merged_at": "2031-03-04T09:30:00Z"}, domain.PullRequestMerged},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFake(t)
			f.handle("GET /repositories/42/pulls/7", always(http.StatusOK, pullJSON(7, c.change)))
			pr, err := f.client(t).PullRequest(background(t), 42, 7)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pr).To(Equal(domain.GitHubPullRequest{Number: 7, State: c.want, HeadRef: "sync/main", HeadSHA: "abc", BaseRef: "main",
				URL: "https://github.com/acme/lab/pull/7", HeadRepositoryID: 42, AuthorID: 987, AuthorLogin: "sluice-test[bot]",
				UpdatedAt: time.Date(2031, 3, 4, 9, 0, 0, 0, time.UTC)}))
		})
	}
	t.Run("missing", func(t *testing.T) {
		f := newFake(t)
		f.handle("GET /repositories/42/pulls/7", refusing(404, "Not Found"))
		_, err := f.client(t).PullRequest(background(t), 42, 7)
		expectFault(t, err, fault.Blocked, fault.ReasonNotFound, "pull request #7 of repository 42")
	})
}

func TestFindOpenPullRequest_R_PR_02_LooksAtEveryAnswer(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("GET /repositories/42/pulls", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		g.Expect(q.Get("head")).To(Equal("acme:sync/main"))
		g.Expect(q.Get("base")).To(Equal("main"))
		g.Expect(q.Get("state")).To(Equal("open"))
		if q.Get("page") == "2" {
			reply(w, http.StatusOK, []any{pullJSON(9, nil)})
			return
		}
		w.Header().Set("Link", fmt.Sprintf(`<%s/repositories/42/pulls?page=2>; rel="next"`, f.URL))
		reply(w, http.StatusOK, []any{
			pullJSON(1, head("feature", map[string]any{"id": 42})),                // another branch on the same commit
			pullJSON(2, head("sync/main", map[string]any{"id": 43})),              // a fork's branch of that name
			pullJSON(3, head("sync/main", nil)),                                   // a fork that is gone
			pullJSON(4, map[string]any{"base": map[string]any{"ref": "release"}}), // onto another branch
			pullJSON(5, map[string]any{"state": "closed"}),                        // the filter ignored
		})
	})
	pr, found, err := f.client(t).FindOpenPullRequest(background(t), testRepo, "sync/main", "main")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeTrue())
	g.Expect(pr.Number).To(Equal(9))
}

func TestFindOpenPullRequest_FindsNone(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("GET /repositories/42/pulls", always(http.StatusOK, []any{}))
	_, found, err := f.client(t).FindOpenPullRequest(background(t), testRepo, "sync/main", "main")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeFalse())
}

func TestCreatePullRequest(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("POST /repositories/42/pulls", always(http.StatusCreated, pullJSON(7, nil)))
	pr, err := f.client(t).CreatePullRequest(background(t), 42, newPull)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pr.Number).To(Equal(7))
	g.Expect(f.seen()[0].body).To(MatchJSON(`{"title":"Update main","body":"Files","head":"sync/main","base":"main","draft":true}`))
}

func TestCreatePullRequest_R_PR_01_AnswersWithTheOneThatIsOpen(t *testing.T) {
	exists := refusing(422, "Validation Failed", map[string]any{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for renamed:sync/main."})
	t.Run("found by the owner's login of today", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		f.handle("POST /repositories/42/pulls", exists)
		f.handle("GET /repositories/42", always(http.StatusOK, repositoryJSON(42, "renamed/lab")))
		f.handle("GET /repositories/42/pulls", func(w http.ResponseWriter, r *http.Request) {
			g.Expect(r.URL.Query().Get("head")).To(Equal("renamed:sync/main"))
			reply(w, http.StatusOK, []any{pullJSON(7, nil)})
		})
		pr, err := f.client(t).CreatePullRequest(background(t), 42, newPull)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pr.Number).To(Equal(7))
	})
	t.Run("not listed yet", func(t *testing.T) {
		f := newFake(t)
		f.handle("POST /repositories/42/pulls", exists)
		f.handle("GET /repositories/42", always(http.StatusOK, repositoryJSON(42, "renamed/lab")))
		f.handle("GET /repositories/42/pulls", always(http.StatusOK, []any{}))
		_, err := f.client(t).CreatePullRequest(background(t), 42, newPull)
		expectFault(t, err, fault.Retryable, fault.ReasonGitHubRefused, "does not list it yet")
	})
	t.Run("the repository gone in between", func(t *testing.T) {
		f := newFake(t)
		f.handle("POST /repositories/42/pulls", exists)
		f.handle("GET /repositories/42", refusing(404, "Not Found"))
		_, err := f.client(t).CreatePullRequest(background(t), 42, newPull)
		expectFault(t, err, fault.Blocked, fault.ReasonNotFound)
	})
}

func TestCreatePullRequest_SaysWhyNot(t *testing.T) {
	custom := func(message string) map[string]any {
		return map[string]any{"resource": "PullRequest", "code": "custom", "message": message}
	}
	invalid := func(field, code string) map[string]any {
		return map[string]any{"resource": "PullRequest", "field": field, "code": code}
	}
	for name, c := range map[string]struct {
		errs   []any
		reason fault.Reason
		words  string
	}{
		"nothing to bring":             {[]any{custom("No commits between main and sync/main")}, fault.ReasonNoCommits, "holds nothing"},
		"nothing, with further errors": {[]any{invalid("head_sha", "missing_field"), invalid("base_sha", "missing_field"), custom("No commits between main and sync/main")}, fault.ReasonNoCommits, "holds nothing"},
		"unrelated":                    {[]any{custom("The sync/main branch has no history in common with main")}, fault.ReasonUnrelatedHistories, "shares no history"},
		"base missing":                 {[]any{invalid("base", "invalid")}, fault.ReasonBranchMissing, `"main"`},
		"head missing":                 {[]any{invalid("head", "invalid")}, fault.ReasonBranchMissing, `"sync/main"`},
		"no drafts":                    {[]any{custom("Draft pull requests are not supported in this repository.")}, fault.ReasonGitHubRefused, "spec.pullRequest.draft"},
		"something else":               {[]any{invalid("title", "missing_field")}, fault.ReasonGitHubRefused, "title missing_field"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.handle("POST /repositories/42/pulls", refusing(422, "Validation Failed", c.errs...))
			_, err := f.client(t).CreatePullRequest(background(t), 42, newPull)
			expectFault(t, err, fault.Blocked, c.reason, c.words)
		})
	}
}

func TestTexts_AreCutBeforeTheyAreSent(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("POST /repositories/42/pulls", always(http.StatusCreated, pullJSON(7, nil)))
	f.handle("POST /repositories/42/issues/7/comments", always(http.StatusCreated, map[string]any{"id": 1}))
	c := f.client(t)
	long := strings.Repeat("- added: `dir/file.go`\n", 4000)
	_, err := c.CreatePullRequest(background(t), 42, domain.NewPullRequest{Title: strings.Repeat("ä", 300), Body: long, Head: "sync/main", Base: "main"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.Comment(background(t), 42, 7, long)).To(Succeed())
	var pull, comment struct{ Title, Body string }
	g.Expect(json.Unmarshal([]byte(f.seen()[0].body), &pull)).To(Succeed())
	g.Expect(json.Unmarshal([]byte(f.seen()[1].body), &comment)).To(Succeed())
	g.Expect(pull.Title).To(Equal(strings.Repeat("ä", 255) + "…"))
	for _, body := range []string{pull.Body, comment.Body} {
		g.Expect(len([]rune(body))).To(And(BeNumerically("<=", maxBody), BeNumerically(">", maxBody-100)))
		g.Expect(body).To(HaveSuffix("`\n\n*The rest was left out: it is longer than GitHub takes.*"), "cut at the end of a line")
	}
}

func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"fits":                           {"abcdef", 6, "abcdef"},
		"one too many":                   {"abcdefg", 6, "abcde…"},
		"characters, not bytes":          {"äöüäöü", 6, "äöüäöü"},
		"outside the basic plane: twice": {"😀😀😀😀", 6, "😀😀…"},
		"at the end of a line":           {"abcd\nefgh", 7, "abcd…"},
		"not when most would go":         {"a\nbcdefgh", 7, "a\nbcde…"},
		"empty":                          {"", 6, ""},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(cut(c.text, c.limit, "…")).To(Equal(c.want))
		})
	}
}

func TestComment(t *testing.T) {
	t.Run("is added", func(t *testing.T) {
		g := NewWithT(t)
		f := newFake(t)
		f.handle("POST /repositories/42/issues/7/comments", always(http.StatusCreated, map[string]any{"id": 1}))
		g.Expect(f.client(t).Comment(background(t), 42, 7, "Updated <b>")).To(Succeed())
		g.Expect(f.seen()[0].body).To(MatchJSON(`{"body":"Updated <b>"}`))
	})
	t.Run("is refused in a locked conversation", func(t *testing.T) {
		f := newFake(t)
		f.handle("POST /repositories/42/issues/7/comments", refusing(403, "Unable to create comment because issue is locked."))
		err := f.client(t).Comment(background(t), 42, 7, "Hello")
		expectFault(t, err, fault.Blocked, fault.ReasonConversationLocked, "pull request #7", "unlock")
	})
}

func TestAddLabels(t *testing.T) {
	g := NewWithT(t)
	f := newFake(t)
	f.handle("POST /repositories/42/issues/7/labels", always(http.StatusOK, []any{}))
	c := f.client(t)
	g.Expect(c.AddLabels(background(t), 42, 7, nil)).To(Succeed())
	g.Expect(f.seen()).To(BeEmpty(), "without labels nothing is asked")
	g.Expect(c.AddLabels(background(t), 42, 7, []string{"sync", "bot"})).To(Succeed())
	g.Expect(f.seen()[0].body).To(MatchJSON(`{"labels":["sync","bot"]}`))
}
