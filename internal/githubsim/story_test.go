// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/git"
	"github.com/sluice-dev/sluice/internal/github"
	"github.com/sluice-dev/sluice/internal/githubsim/simtest"
)

type bench struct {
	simtest.Fixture
	app    *github.App
	client *github.Client
	git    *git.Git
	info   domain.AppInfo
}

func newBench(t *testing.T) bench {
	t.Helper()
	g := NewWithT(t)
	f := simtest.NewFixture(t, simtest.Start(t, nil), "acme", "sluice-demo")
	app, err := github.New(github.Credentials{AppID: f.AppID, PrivateKey: f.Key, BaseURL: f.URL}, github.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	info, err := app.Self(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	client, err := app.ForAccount(t.Context(), "acme")
	g.Expect(err).NotTo(HaveOccurred())
	runner, err := git.New(t.Context(), git.Options{Dir: t.TempDir()})
	g.Expect(err).NotTo(HaveOccurred())
	return bench{Fixture: f, app: app, client: client, git: runner, info: info}
}

func (b bench) remote(fullName string) domain.Remote {
	return domain.Remote{URL: b.app.GitURL(fullName), Token: b.client.Token}
}

func TestAppLearnsItsSlugAndBot(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	g.Expect(b.info.Slug).To(Equal("sluice-demo"))
	g.Expect(b.info.BotUserID).To(Equal(b.BotUserID))
	g.Expect(b.info.BotUserID).NotTo(Equal(b.info.ID))
}

func TestWrongKeyIsRefused(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	other := simtest.NewFixture(t, b.Client, "other", "other-app")
	app, err := github.New(github.Credentials{AppID: b.AppID, PrivateKey: other.Key, BaseURL: b.URL}, github.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = app.Self(t.Context())
	g.Expect(fault.Is(err, fault.ReasonCredentialsRefused)).To(BeTrue(), "%v", err)
	g.Expect(err.Error()).To(ContainSubstring("do not belong together"))
}

func TestSuspendedAndMissingInstallations(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	ctx := t.Context()
	g.Expect(b.Suspend(ctx, b.AppID, "acme", true)).To(Succeed())
	b.app.Forget("acme")
	_, err := b.app.ForAccount(ctx, "acme")
	g.Expect(fault.Is(err, fault.ReasonAppSuspended)).To(BeTrue(), "%v", err)
	g.Expect(b.Suspend(ctx, b.AppID, "acme", false)).To(Succeed())
	g.Expect(b.Uninstall(ctx, b.AppID, "acme")).To(Succeed())
	_, err = b.app.ForAccount(ctx, "acme")
	g.Expect(fault.Is(err, fault.ReasonAppNotInstalled)).To(BeTrue(), "%v", err)
}

// The main job's calls, end to end: build, provision, push, compare, open.
func TestDistributionReachesAPullRequest(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	ctx := t.Context()

	_, err := b.Repository(ctx, "acme/lab1-source")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = b.Commit(ctx, "acme/lab1-source", "main", "ada", "first", map[string]string{"README.md": "one\n", "src/a.txt": "a\n"})
	g.Expect(err).NotTo(HaveOccurred())

	dist, err := b.client.CreateRepository(ctx, "acme", domain.NewRepository{Name: "lab1-squashed", Visibility: "private"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(dist.Private).To(BeTrue())
	isEmpty, err := b.client.IsEmpty(ctx, dist.ID)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(isEmpty).To(BeTrue())
	_, err = b.client.CreateRepository(ctx, "acme", domain.NewRepository{Name: "lab1-squashed", Visibility: "private"})
	g.Expect(fault.Is(err, fault.ReasonRepositoryNameTaken)).To(BeTrue(), "%v", err)

	request := domain.DistributeRequest{Key: "p", Source: b.remote("acme/lab1-source"), Distribution: b.remote("acme/lab1-squashed"),
		Branches: []string{"main"}, History: domain.HistorySquash, Author: domain.BotSignature(b.info), Message: domain.CommitMessage}
	built, err := b.git.Distribute(ctx, request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(built.Changed).To(Equal([]string{"main"}))
	again, err := b.git.Distribute(ctx, request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Changed).To(BeEmpty())
	g.Expect(again.Heads).To(Equal(built.Heads))

	down, err := b.client.CreateRepository(ctx, "acme", domain.NewRepository{Name: "lab1-r01", Visibility: "private"})
	g.Expect(err).NotTo(HaveOccurred())
	snap, err := b.git.Snapshot(ctx, "p", b.remote("acme/lab1-squashed"), []string{"main"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(snap.Push(ctx, b.remote("acme/lab1-r01"), []domain.RefUpdate{{Ref: "refs/heads/main", New: built.Heads["main"]}})).To(Succeed())
	g.Expect(snap.Close()).To(Succeed())

	_, err = b.Commit(ctx, "acme/lab1-source", "main", "ada", "second", map[string]string{"src/a.txt": "a2\n", "src/b.txt": "b\n"})
	g.Expect(err).NotTo(HaveOccurred())
	updated, err := b.git.Distribute(ctx, request)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(updated.Changed).To(Equal([]string{"main"}))

	snap, err = b.git.Snapshot(ctx, "p", b.remote("acme/lab1-squashed"), []string{"main"})
	g.Expect(err).NotTo(HaveOccurred())
	push := []domain.RefUpdate{{Ref: "refs/heads/sync/main", New: updated.Heads["main"], Force: true}}
	g.Expect(snap.Push(ctx, b.remote("acme/lab1-r01"), push)).To(Succeed())
	g.Expect(snap.Push(ctx, b.remote("acme/lab1-r01"), push)).To(Succeed(), "a replay of a push already done is a success")
	wrong := []domain.RefUpdate{{Ref: "refs/heads/sync/main", New: built.Heads["main"], Old: built.Heads["main"], Force: true}}
	err = snap.Push(ctx, b.remote("acme/lab1-r01"), wrong)
	g.Expect(fault.Is(err, fault.ReasonStaleRef)).To(BeTrue(), "%v", err)
	g.Expect(snap.Close()).To(Succeed())

	sha, found, err := b.client.Ref(ctx, down.ID, "heads/sync/main")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeTrue())
	g.Expect(sha).To(Equal(updated.Heads["main"]))
	cmp, err := b.client.Compare(ctx, down.ID, "main", "sync/main")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cmp.AheadBy).To(Equal(1))
	g.Expect(cmp.Files).To(ConsistOf(domain.ChangedFile{Name: "src/a.txt", Status: "modified"}, domain.ChangedFile{Name: "src/b.txt", Status: "added"}))

	pr, err := b.client.CreatePullRequest(ctx, down.ID, domain.NewPullRequest{Title: "Update", Body: "body", Head: "sync/main", Base: "main"})
	g.Expect(err).NotTo(HaveOccurred())
	same, err := b.client.CreatePullRequest(ctx, down.ID, domain.NewPullRequest{Title: "Update", Body: "body", Head: "sync/main", Base: "main"})
	g.Expect(err).NotTo(HaveOccurred(), "an open one is reused")
	g.Expect(same.Number).To(Equal(pr.Number))
	g.Expect(pr.AuthorID).To(Equal(b.BotUserID))
	g.Expect(b.client.Comment(ctx, down.ID, pr.Number, "hello")).To(Succeed())
	g.Expect(b.client.AddLabels(ctx, down.ID, pr.Number, []string{"sync"})).To(Succeed())

	_, err = b.Merge(ctx, "acme/lab1-r01", pr.Number, "squash", "r01")
	g.Expect(err).NotTo(HaveOccurred())
	merged, err := b.client.PullRequest(ctx, down.ID, pr.Number)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(merged.State).To(Equal(domain.PullRequestMerged))
	look, err := b.Look(ctx, "acme/lab1-r01")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(look.Pulls).To(HaveLen(1))
	g.Expect(look.Pulls[0].Comments).To(Equal([]string{"hello"}))
	g.Expect(look.Pulls[0].Labels).To(Equal([]string{"sync"}))
}

func TestRenamedRepositoryIsFoundByIDAndRedirected(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	ctx := t.Context()
	id, err := b.Repository(ctx, "acme/before")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(b.Rename(ctx, "acme/before", "after")).To(Succeed())
	byName, err := b.client.RepositoryByName(ctx, "acme/before")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(byName.ID).To(Equal(id))
	g.Expect(byName.FullName).To(Equal("acme/after"))
}

// The token must not be found in any file git leaves behind, nor in an error.
func TestTokenStaysOutOfFilesAndErrors_R_CORE_10(t *testing.T) {
	g := NewWithT(t)
	b := newBench(t)
	ctx := t.Context()
	token, err := b.client.Token(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	dir := t.TempDir()
	runner, err := git.New(ctx, git.Options{Dir: dir})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = runner.Snapshot(ctx, "k", b.remote("acme/missing"), []string{"main"})
	g.Expect(err).To(HaveOccurred())
	g.Expect(err.Error()).NotTo(ContainSubstring(token))
	g.Expect(fault.Is(err, fault.ReasonNotFound)).To(BeTrue(), "%v", err)
	g.Expect(filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), token) {
			t.Errorf("%s holds the token", path)
		}
		return err
	})).To(Succeed())
}
