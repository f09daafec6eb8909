// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// distributed returns a git whose mirror of "project" holds a distribution of
// one branch, main.
func distributed(t *testing.T, g *Git) (source, dist repo) {
	t.Helper()
	source, dist = newRepo(t), newRepo(t)
	source.commit("main", tree{"a": "1"})
	_, err := g.Distribute(t.Context(), request(source.remote(), dist.remote(), "main"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return source, dist
}

func snapshot(t *testing.T, g *Git, dist repo) *Snapshot {
	t.Helper()
	s, err := g.Snapshot(t.Context(), "project", dist.remote(), []string{"main"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestSnapshotReceivesTheSameHeads_R_SYNC_01(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	source, dist := distributed(t, git)
	s := snapshot(t, git, dist)
	head := dist.head("main")
	g.Expect(s.Heads()).To(Equal(domain.Heads{"main": head}))

	// Other work on the same project goes on while the snapshot is open, and
	// does not change what it pushes.
	source.commit("main", tree{"a": "2"})
	_, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "main"))
	g.Expect(err).NotTo(HaveOccurred())
	newer := snapshot(t, git, dist)
	g.Expect(newer.Heads()).To(Equal(domain.Heads{"main": dist.head("main")}))
	g.Expect(newer.Heads()).NotTo(Equal(s.Heads()))
	g.Expect(newer.Close()).To(Succeed())
	g.Expect(newer.Close()).To(Succeed(), "closing twice does no harm")

	down := newRepo(t)
	g.Expect(s.Push(t.Context(), down.remote(), []domain.RefUpdate{{Ref: "refs/heads/sync/main", New: s.Heads()["main"]}})).To(Succeed())
	g.Expect(down.head("sync/main")).To(Equal(head))
	g.Expect(down.refs()).To(Equal([]string{"refs/heads/sync/main"}))
}

func TestSnapshotOfAMachineThatHasNothingYet(t *testing.T) {
	g := NewWithT(t)
	_, dist := distributed(t, newGit(t, nil))
	g.Expect(snapshot(t, newGit(t, nil), dist).Heads()["main"]).To(Equal(dist.head("main")))
}

func TestSnapshotOfADistributionWithoutTheBranch(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	_, dist := distributed(t, git)
	_, err := git.Snapshot(t.Context(), "project", dist.remote(), []string{"main", "extra"})
	g.Expect(fault.Is(err, fault.ReasonDistributionMissing)).To(BeTrue(), "%v", err)
	g.Expect(fault.Of(err).Class).To(Equal(fault.Blocked))
	g.Expect(err.Error()).To(And(ContainSubstring(`"extra"`), ContainSubstring("ask for a sync")))
}

func TestPushIsHeldToTheOldValue(t *testing.T) {
	git := newGit(t, nil)
	_, dist := distributed(t, git)
	s := snapshot(t, git, dist)
	head := s.Heads()["main"]
	const ref = "refs/heads/sync/main"
	for name, c := range map[string]struct {
		has     bool // the ref is there, elsewhere
		force   bool
		old     func(there string) string
		refused fault.Reason
	}{
		"not there, as expected":                   {false, true, func(string) string { return "" }, ""},
		"there, though it should not be":           {true, true, func(string) string { return "" }, fault.ReasonStaleRef},
		"there, and forced from what it is":        {true, true, func(there string) string { return there }, ""},
		"there, and forced from something else":    {true, true, func(string) string { return head }, fault.ReasonStaleRef},
		"not there, though it should be":           {false, true, func(string) string { return strings.Repeat("1", 40) }, fault.ReasonStaleRef},
		"unforced, and it would drop commits":      {true, false, func(there string) string { return there }, fault.ReasonPushRejected},
		"unforced, with an old value nobody knows": {false, false, func(string) string { return strings.Repeat("1", 40) }, fault.ReasonPushRejected},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			down := newRepo(t)
			there := ""
			if c.has {
				there = down.commit("sync/main", tree{"theirs": "1"})
			}
			err := s.Push(t.Context(), down.remote(), []domain.RefUpdate{{Ref: ref, New: head, Old: c.old(there), Force: c.force}})
			if c.refused == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(down.head("sync/main")).To(Equal(head))
				return
			}
			g.Expect(fault.Is(err, c.refused)).To(BeTrue(), "%v", err)
			g.Expect(down.head("sync/main")).To(Equal(there), "nothing moved")
		})
	}
}

func TestPushUnforcedMovesForward(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	source, dist := distributed(t, git)
	down := newRepo(t)
	old := snapshot(t, git, dist).Heads()["main"]
	source.commit("main", tree{"a": "2"})
	_, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "main"))
	g.Expect(err).NotTo(HaveOccurred())
	s := snapshot(t, git, dist)
	g.Expect(s.Push(t.Context(), down.remote(), []domain.RefUpdate{{Ref: "refs/heads/main", New: old}})).To(Succeed())
	g.Expect(s.Push(t.Context(), down.remote(), []domain.RefUpdate{{Ref: "refs/heads/main", New: s.Heads()["main"], Old: old}})).To(Succeed())
	g.Expect(down.head("main")).To(Equal(dist.head("main")))
}

func TestPushDoneBeforeIsASuccess(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	_, dist := distributed(t, git)
	s := snapshot(t, git, dist)
	down := newRepo(t)
	old := down.commit("sync/main", tree{"before": "1"})
	update := []domain.RefUpdate{{Ref: "refs/heads/sync/main", New: s.Heads()["main"], Old: old, Force: true}}
	for range 2 {
		g.Expect(s.Push(t.Context(), down.remote(), update)).To(Succeed())
	}
	g.Expect(down.head("sync/main")).To(Equal(s.Heads()["main"]))
	g.Expect(s.Push(t.Context(), down.remote(), nil)).To(Succeed(), "nothing to push")
}

func TestPushMovesAllRefsOrNone(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	_, dist := distributed(t, git)
	s := snapshot(t, git, dist)
	down := newRepo(t)
	theirs := down.commit("sync/b", tree{"theirs": "1"})
	head := s.Heads()["main"]
	err := s.Push(t.Context(), down.remote(), []domain.RefUpdate{{Ref: "refs/heads/sync/a", New: head, Force: true}, {Ref: "refs/heads/sync/b", New: head, Force: true}})
	g.Expect(fault.Is(err, fault.ReasonStaleRef)).To(BeTrue(), "%v", err)
	g.Expect(down.head("sync/a")).To(BeEmpty())
	g.Expect(down.head("sync/b")).To(Equal(theirs))
}

func TestPushNeverDeletesAndTakesNamesForNames(t *testing.T) {
	git := newGit(t, nil)
	_, dist := distributed(t, git)
	s := snapshot(t, git, dist)
	head := s.Heads()["main"]
	for name, u := range map[string]domain.RefUpdate{
		"no new value":       {Ref: "refs/heads/a"},
		"the zero value":     {Ref: "refs/heads/a", New: strings.Repeat("0", 40)},
		"a name for a value": {Ref: "refs/heads/a", New: "HEAD"},
		"an old value that is none": {
			Ref: "refs/heads/a", New: head, Old: "HEAD"},
		"a short ref":     {Ref: "main", New: head},
		"a refspec's end": {Ref: "refs/heads/a:refs/heads/b", New: head},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			down := newRepo(t)
			before := down.commit("a", tree{"a": "1"})
			g.Expect(s.Push(t.Context(), down.remote(), []domain.RefUpdate{u})).NotTo(Succeed())
			g.Expect(down.refs()).To(Equal([]string{"refs/heads/a"}))
			g.Expect(down.head("a")).To(Equal(before))
		})
	}
}

// Four at a time from one snapshot, as in a pass (R-SYNC-02), while the same
// project is distributed anew and another snapshot comes and goes.
func TestPushesSideBySide_R_SYNC_02(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	s := newServer(t)
	source, distRemote := newRepo(t), s.remote("acme/dist")
	dist, _ := s.repo("acme/dist")
	source.commit("main", tree{"a": "1"})
	req := request(source.remote(), distRemote, "main")
	_, err := git.Distribute(t.Context(), req)
	g.Expect(err).NotTo(HaveOccurred())
	snap, err := git.Snapshot(t.Context(), "project", distRemote, []string{"main"})
	g.Expect(err).NotTo(HaveOccurred())
	head := dist.head("main")

	// The first pushes wait for each other: they really are under way at once.
	const atOnce = 4
	var arrived sync.WaitGroup
	arrived.Add(atOnce)
	var first sync.Map
	s.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/acme/down") || !strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
			return false
		}
		if _, again := first.LoadOrStore(r.URL.Path, true); !again {
			arrived.Done()
			arrived.Wait()
		}
		return false
	})
	var work sync.WaitGroup
	failures := make(chan error, 16)
	var downs []repo
	for n := range atOnce {
		down, remote := s.repo(fmt.Sprintf("acme/down%d", n))
		downs = append(downs, down)
		work.Go(func() {
			failures <- snap.Push(t.Context(), remote, []domain.RefUpdate{{Ref: "refs/heads/sync/main", New: head, Force: true}})
		})
	}
	work.Go(func() {
		source.commit("main", tree{"a": "2"})
		_, err := git.Distribute(t.Context(), req)
		failures <- err
		other, err := git.Snapshot(t.Context(), "project", distRemote, []string{"main"})
		failures <- err
		if err == nil {
			failures <- other.Close()
		}
	})
	work.Wait()
	close(failures)
	for err := range failures {
		g.Expect(err).NotTo(HaveOccurred())
	}
	for _, down := range downs {
		g.Expect(down.head("sync/main")).To(Equal(head))
	}
	g.Expect(snap.Close()).To(Succeed())
}

// The downstream holds the distribution below commits of its own: git asks
// first, and sends only what is new.
func TestFirstPushSendsOnlyWhatIsNew(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	s := newServer(t)
	source, dist := newRepo(t), newRepo(t)
	files := tree{}
	for i := range 200 {
		files[fmt.Sprintf("big/%d", i)] = strings.Repeat(fmt.Sprintf("%d %x\n", i, i*i*7919), 50)
	}
	source.commit("main", files)
	req := request(source.remote(), dist.remote(), "main")
	_, err := git.Distribute(t.Context(), req)
	g.Expect(err).NotTo(HaveOccurred())
	down, remote := s.repo("acme/down")
	snap := snapshot(t, git, dist)
	g.Expect(snap.Push(t.Context(), remote, []domain.RefUpdate{{Ref: "refs/heads/main", New: snap.Heads()["main"]}})).To(Succeed(), "into an empty repository")
	files["theirs"] = "1"
	down.commit("main", files)
	delete(files, "theirs")
	files["new"] = "1"
	source.commit("main", files)
	_, err = git.Distribute(t.Context(), req)
	g.Expect(err).NotTo(HaveOccurred())

	var size int64
	var mu sync.Mutex
	s.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "git-receive-pack") {
			mu.Lock()
			defer mu.Unlock()
			size = r.ContentLength
		}
		return false
	})
	snap = snapshot(t, git, dist)
	g.Expect(snap.Push(t.Context(), remote, []domain.RefUpdate{{Ref: "refs/heads/sync/main", New: snap.Heads()["main"], Force: true}})).To(Succeed())
	g.Expect(down.head("sync/main")).To(Equal(dist.head("main")))
	mu.Lock()
	defer mu.Unlock()
	g.Expect(size).To(And(BeNumerically(">", 0), BeNumerically("<", 4096)))
}

func TestSnapshotKeepsItsObjectsThroughARebuild(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	source, dist := distributed(t, git)
	s := snapshot(t, git, dist)
	git.mirror("project").markBroken(s.dir)
	source.commit("main", tree{"a": "2"})
	_, err := git.Distribute(t.Context(), request(source.remote(), dist.remote(), "main"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(git.mirror("project").dir).NotTo(Equal(s.dir), "made anew in another folder")

	down := newRepo(t)
	g.Expect(s.Push(t.Context(), down.remote(), []domain.RefUpdate{{Ref: "refs/heads/sync/main", New: s.Heads()["main"]}})).To(Succeed())
	g.Expect(s.dir).To(BeADirectory())
	g.Expect(s.Close()).To(Succeed())
	g.Expect(s.dir).NotTo(BeADirectory(), "the last to close removes it")
}

func TestForgetRemovesAMirror(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	_, dist := distributed(t, git)
	s := snapshot(t, git, dist)
	g.Expect(git.Forget(t.Context(), "project")).To(Succeed())
	g.Expect(s.Push(t.Context(), newRepo(t).remote(), []domain.RefUpdate{{Ref: "refs/heads/a", New: s.Heads()["main"]}})).To(Succeed(), "an open snapshot stays usable")
	g.Expect(s.Close()).To(Succeed())
	g.Expect(s.dir).NotTo(BeADirectory())
	g.Expect(git.Forget(t.Context(), "project")).To(Succeed(), "there is nothing left to forget")
	g.Expect(snapshot(t, git, dist).Heads()["main"]).To(Equal(dist.head("main")), "it may come back")

	// One left by an earlier process is found.
	dir := git.mirror("project").dir
	g.Expect(git.Close()).To(Succeed())
	next, err := New(t.Context(), Options{Dir: git.Dir})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = next.Close() }()
	g.Expect(next.Forget(t.Context(), "project")).To(Succeed())
	_, err = os.Stat(dir)
	g.Expect(os.IsNotExist(err)).To(BeTrue())
}

func TestWaitingForAMirrorEndsWithTheContext(t *testing.T) {
	g := NewWithT(t)
	git := newGit(t, nil)
	_, dist := distributed(t, git)
	busy, done := make(chan struct{}), make(chan struct{})
	held := make(chan error)
	go func() {
		held <- git.mirror("project").with(t.Context(), func(string) error {
			close(busy)
			<-done
			return nil
		})
	}()
	<-busy
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := git.Snapshot(ctx, "project", dist.remote(), []string{"main"})
	g.Expect(err).To(MatchError(ctx.Err()))
	g.Expect(git.Forget(ctx, "project")).To(MatchError(ctx.Err()))
	other, err := git.Snapshot(t.Context(), "another project", dist.remote(), []string{"main"})
	g.Expect(err).NotTo(HaveOccurred(), "projects do not wait for each other")
	g.Expect(other.Close()).To(Succeed())
	close(done)
	g.Expect(<-held).To(Succeed())
}
