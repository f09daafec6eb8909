// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var noon = time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

func TestSkip_R_SYNC_03(t *testing.T) {
	live := Repository{Listed: true, Provision: ProvisionOK, Repo: RepositoryRef{ID: 1, FullName: "acme/r"}}
	for name, c := range map[string]struct {
		edit    func(*Repository)
		project Project
		reason  string
	}{
		"a live repository has its turn":               {edit: func(*Repository) {}},
		"a deadline ahead lets it have its turn":       {edit: func(*Repository) {}, project: Project{ProjectSpec: ProjectSpec{DeadlineAt: ptr(noon.Add(time.Second))}}},
		"a deadline equal to now is reached (R-DL-02)": {edit: func(*Repository) {}, project: Project{ProjectSpec: ProjectSpec{DeadlineAt: &noon}}, reason: "DeadlinePassed"},
		"its own deadline counts before the project's": {edit: func(r *Repository) { r.DeadlineAt = ptr(noon.Add(time.Hour)) }, project: Project{ProjectSpec: ProjectSpec{DeadlineAt: &noon}}},
		"its own passed deadline skips it":             {edit: func(r *Repository) { r.DeadlineAt = &noon }, reason: "DeadlinePassed"},
		"locked for any reason":                        {edit: func(r *Repository) { r.LockedAt = &noon }, reason: "Locked"},
		"gone from GitHub":                             {edit: func(r *Repository) { r.DeletedAt = &noon }, reason: "Gone"},
		"not provisioned":                              {edit: func(r *Repository) { r.Provision = ProvisionPending }, reason: "NotProvisioned"},
		"without an id":                                {edit: func(r *Repository) { r.Repo.ID = 0 }, reason: "NotProvisioned"},
		"released":                                     {edit: func(r *Repository) { r.ReleasedAt = &noon }, reason: "NotLive"},
		"taken off the list":                           {edit: func(r *Repository) { r.Listed = false }, reason: "NotLive"},
		"excluded":                                     {edit: func(r *Repository) { r.Excluded = true }, reason: "NotLive"},
		"suspended by hand":                            {edit: func(r *Repository) { r.Suspended = true }, reason: "Suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := live
			c.edit(&r)
			reason, message, skip := Skip(r, c.project, noon)
			g.Expect(skip).To(Equal(c.reason != ""))
			g.Expect(reason).To(Equal(c.reason))
			g.Expect(message != "").To(Equal(skip))
		})
	}
}

func TestStrongest_R_SYNC_07(t *testing.T) {
	order := []Outcome{OutcomeUpToDate, OutcomeUpdated, OutcomeOpened, OutcomeHeld, OutcomeFailed}
	g := NewWithT(t)
	g.Expect(Strongest()).To(Equal(OutcomeUpToDate))
	for i := range order {
		for j := range order {
			g.Expect(Strongest(order[i], order[j])).To(Equal(order[max(i, j)]), "%s and %s", order[i], order[j])
		}
	}
}

func TestCountsAdd(t *testing.T) {
	g := NewWithT(t)
	var c Counts
	for i, o := range []Outcome{OutcomeOpened, OutcomeUpdated, OutcomeUpToDate, OutcomeHeld, OutcomeSkipped, OutcomeFailed, ""} {
		for range i + 1 {
			c = c.Add(o)
		}
	}
	g.Expect(c).To(Equal(Counts{Opened: 1, Updated: 2, UpToDate: 3, Held: 4, Skipped: 5, Failed: 6}))
	g.Expect(c.Total()).To(Equal(21))
}

func TestDistributionCandidates_R_DIST_05(t *testing.T) {
	g := NewWithT(t)
	names := DistributionCandidates("acme/lab1-squashed", false)
	g.Expect(names).To(HaveLen(20))
	g.Expect(names[:2]).To(Equal([]string{"acme/lab1-squashed", "acme/lab1-squashed-2"}))
	g.Expect(names[19]).To(Equal("acme/lab1-squashed-20"))
	g.Expect(DistributionCandidates("acme/mine", true)).To(Equal([]string{"acme/mine"}), "a name the spec fixes never steps")
	g.Expect(DefaultDistributionName("lab1", HistorySquash)).To(Equal("lab1-squashed"))
	g.Expect(DefaultDistributionName("lab1", HistoryWhole)).To(Equal("lab1-dist"))
}

func TestNamedLikeDistribution_R_DIST_03(t *testing.T) {
	for name, want := range map[string]bool{"acme/lab1-squashed": true, "acme/lab1-squashed-7": true, "acme/squashed": false, "acme/lab1-squashed-x": false, "acme/lab1": false} {
		if got := NamedLikeDistribution(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLeavesAhead_R_AHEAD_03(t *testing.T) {
	p := Project{ProjectSpec: ProjectSpec{Branches: []string{"main"}, Stage: StageDraft}, SourceHeads: Heads{"main": "aaa"}}
	push := PushChange{Branch: "main", After: "bbb"}
	for name, c := range map[string]struct {
		edit func(*Project, *PushChange)
		want bool
	}{
		"a new head, drafts included":    {func(*Project, *PushChange) {}, true},
		"a head handed out already":      {func(_ *Project, c *PushChange) { c.After = "aaa" }, false},
		"a branch not handed out":        {func(_ *Project, c *PushChange) { c.Branch = "other" }, false},
		"a tag":                          {func(_ *Project, c *PushChange) { c.Branch = "" }, false},
		"a deletion":                     {func(_ *Project, c *PushChange) { c.Deleted = true }, false},
		"an all-zero head":               {func(_ *Project, c *PushChange) { c.After = strings.Repeat("0", 40) }, false},
		"an archived project":            {func(p *Project, _ *PushChange) { p.Stage = StageArchived }, false},
		"a project of unknown hand-outs": {func(p *Project, _ *PushChange) { p.SourceHeads = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, push := p, push
			c.edit(&p, &push)
			NewWithT(t).Expect(LeavesAhead(p, push)).To(Equal(c.want))
		})
	}
}

func TestAheadCommits_R_AHEAD_05(t *testing.T) {
	g := NewWithT(t)
	sum, ok := AheadCommits(map[string]AheadBranch{"a": {Commits: ptr(2)}, "b": {Commits: ptr(3)}})
	g.Expect(ok).To(BeTrue())
	g.Expect(sum).To(Equal(5))
	_, ok = AheadCommits(map[string]AheadBranch{"a": {Commits: ptr(2)}, "b": {}})
	g.Expect(ok).To(BeFalse(), "one unknown count leaves no number")
	_, ok = AheadCommits(nil)
	g.Expect(ok).To(BeFalse())
}

func TestPullRequestText_R_PR_04_R_PRIV_02(t *testing.T) {
	g := NewWithT(t)
	files := make([]ChangedFile, 0, 53)
	for i := range 53 {
		files = append(files, ChangedFile{Name: fmt.Sprintf("f%02d.txt", i), Status: "modified"})
	}
	head := "0123456789abcdef0123456789abcdef01234567"
	text := DescribePullRequest(PullRequestSettings{}, "lab1", "main", head, files)
	g.Expect(text.Title).To(Equal("Update main to 0123456"))
	g.Expect(text.Body).To(And(ContainSubstring("53 files"), ContainSubstring("modified: `f49.txt`"), ContainSubstring("and 3 more")))
	g.Expect(text.Body).NotTo(ContainSubstring("f50.txt"))
	g.Expect(DescribeUpdate("main", head, files[:1])).To(And(ContainSubstring("0123456"), ContainSubstring("1 file on `main`")))

	own := DescribePullRequest(PullRequestSettings{Title: "{{ .project }}: {{.branch}}", Body: "see {{ .files }}"}, "lab1", "main", head, files[:1])
	g.Expect(own).To(Equal(PullRequestText{Title: "lab1: main", Body: "see - modified: `f00.txt`"}))
}

func TestListFilesCannotBeBrokenOutOf(t *testing.T) {
	g := NewWithT(t)
	list := ListFiles([]ChangedFile{{Name: "a`b\n- injected", Status: "added"}, {Name: "new", PreviousName: "old", Status: "renamed"}})
	g.Expect(strings.Split(list, "\n")).To(Equal([]string{"- added: `` a`b\\n- injected ``", "- renamed: `old` to `new`"}))
}

func TestTemplates(t *testing.T) {
	g := NewWithT(t)
	g.Expect(CheckTemplate("lab1-{{ .recipient }}", NameTemplateFields)).To(Succeed())
	g.Expect(CheckTemplate("lab1-{{ .login }}", NameTemplateFields)).To(MatchError(ContainSubstring("{{ .login }} is not known: use {{ .recipient }}")))
	g.Expect(CheckTemplate("{{ printf .recipient }}", NameTemplateFields)).To(HaveOccurred())
	g.Expect(CheckTemplate("lab1-{{ .recipient", NameTemplateFields)).To(MatchError(ContainSubstring("unbalanced")))
	g.Expect(Render("{{ .a }}-{{.b}}-{{- .c -}}", map[string]string{"a": "1", "b": "2", "c": "3"})).To(Equal("1-2-3"))
}

func TestGrants(t *testing.T) {
	covered := func(ns string) bool { return ns == "labs" }
	grants := []Grant{{Name: "labs", Covers: covered, Organizations: []string{"acme"}, Sources: []string{"acme/lab*"}, Downstream: []string{"acme/lab1-*"}}}
	for _, c := range []struct {
		namespace string
		use       Use
		subject   string
		allowed   bool
	}{
		{"labs", UseOrganization, "ACME", true},
		{"labs", UseOrganization, "other", false},
		{"labs", UseSource, "acme/lab1-source", true},
		{"labs", UseSource, "acme/secret", false},
		{"labs", UseDownstream, "acme/lab1-r01", true},
		{"labs", UseDownstream, "acme/lab2-r01", false},
		{"labs", UseDownstream, "acme/lab1-x/y", false},
		{"others", UseSource, "acme/lab1-source", false},
	} {
		t.Run(fmt.Sprintf("%s %s %s", c.namespace, c.use, c.subject), func(t *testing.T) {
			g := NewWithT(t)
			name, err := Allowed(grants, "app", c.namespace, c.use, c.subject)
			if c.allowed {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(name).To(Equal("labs"))
				return
			}
			g.Expect(err).To(MatchError(And(ContainSubstring(c.subject), ContainSubstring("spec.grants[]."))))
		})
	}
	_, err := Allowed(nil, "app", "labs", UseSource, "acme/lab1")
	NewWithT(t).Expect(err).To(HaveOccurred(), "no grants allow nothing")
}

func TestRetryDelay(t *testing.T) {
	g := NewWithT(t)
	g.Expect(RetryDelay(1)).To(Equal(15 * time.Second))
	g.Expect(RetryDelay(3)).To(Equal(time.Minute))
	g.Expect(RetryDelay(100)).To(Equal(10 * time.Minute))
}

func TestNames(t *testing.T) {
	g := NewWithT(t)
	g.Expect(LegalRepositoryName("lab1-r.01_x")).To(Succeed())
	for _, bad := range []string{"", ".", "..", "a b", "x.git", strings.Repeat("a", 101), "a/b"} {
		g.Expect(LegalRepositoryName(bad)).To(HaveOccurred(), bad)
	}
	g.Expect(Owner("acme/lab")).To(Equal("acme"))
	g.Expect(Name("acme/lab")).To(Equal("lab"))
	g.Expect(SameName("Acme/Lab", "acme/lab")).To(BeTrue())
	g.Expect(ShortSHA("0123456789")).To(Equal("0123456"))
	g.Expect(ShortSHA("012")).To(Equal("012"))
}

func TestMissingPermissions(t *testing.T) {
	g := NewWithT(t)
	all := map[string]string{"administration": "write", "contents": "write", "metadata": "read", "pull_requests": "write", "issues": "write", "workflows": "write"}
	g.Expect(MissingPermissions(all)).To(BeEmpty())
	all["contents"] = "read"
	delete(all, "workflows")
	g.Expect(MissingPermissions(all)).To(Equal([]string{"contents=write", "workflows=write"}))
}

func TestBotSignature(t *testing.T) {
	g := NewWithT(t)
	g.Expect(BotSignature(AppInfo{Slug: "sluice", BotUserID: 7})).To(Equal(Signature{Name: "sluice[bot]", Email: "7+sluice[bot]@users.noreply.github.com"}))
	g.Expect(BotSignature(AppInfo{Slug: "sluice", BotUserID: 7, NoReplyHost: "users.noreply.ghe.example"}).Email).To(HaveSuffix("@users.noreply.ghe.example"))
}
