// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
)

func TestRecordBotCommit_R_CORE_01(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	r := w.provisioned(p, 1)[0]
	l := w.lease(p)
	is := func(sha string) bool {
		is, err := w.IsBotCommit(w.ctx, r.Repo.ID, sha)
		w.ok(err)
		return is
	}
	w.Expect(is("d2")).To(BeFalse())
	w.ok(w.RecordBotCommit(w.ctx, l, r.ID, "d2", domain.BotCommitSync, t0))
	w.ok(w.RecordBotCommit(w.ctx, l, r.ID, "d2", domain.BotCommitRevert, at(time.Hour)))
	w.ok(w.RecordGraderCommit(w.ctx, r.ID, "d2", at(time.Hour)))
	w.Expect(is("d2")).To(BeTrue())
	w.Expect(w.number(`SELECT count(*) FROM bot_commits WHERE sha = 'd2' AND kind = 'sync'`)).To(Equal(1), "the first kind stands")
	w.ok(w.RecordGraderCommit(w.ctx, r.ID, "g1", t0))
	w.Expect(is("g1")).To(BeTrue())

	_, err := w.MarkDeleted(w.ctx, r.Repo.ID, "webhook", t0)
	w.ok(err)
	w.ok(w.RecordGraderCommit(w.ctx, r.ID, "g2", t0))
	w.Expect(is("g2")).To(BeFalse(), "R-EVT-13")
}

func TestPullRequestOrder_R_PR_07(t *testing.T) {
	type fact struct {
		number int
		state  domain.PullRequestState
		after  int // seconds
	}
	for _, c := range []struct {
		name    string
		facts   []fact
		changed []bool
		final   fact
	}{
		{"opened, merged", []fact{{7, "Open", 1}, {7, "Merged", 2}}, []bool{true, true}, fact{7, "Merged", 2}},
		{"opened replayed after closed", []fact{{7, "Open", 1}, {7, "Closed", 2}, {7, "Open", 1}}, []bool{true, true, false}, fact{7, "Closed", 2}},
		{"reopened later", []fact{{7, "Closed", 2}, {7, "Open", 3}}, []bool{true, true}, fact{7, "Open", 3}},
		{"a lower number", []fact{{7, "Open", 1}, {6, "Closed", 2}}, []bool{true, false}, fact{7, "Open", 1}},
		{"a higher number, received earlier", []fact{{7, "Closed", 2}, {8, "Open", 1}}, []bool{true, true}, fact{8, "Open", 1}},
		{"the same again", []fact{{7, "Open", 1}, {7, "Open", 1}}, []bool{true, false}, fact{7, "Open", 1}},
		{"a newer fact that says the same keeps older ones out", []fact{{7, "Open", 1}, {7, "Open", 5}, {7, "Closed", 3}}, []bool{true, false, false}, fact{7, "Open", 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			r := w.provisioned(w.built(spec("lab1")), 1)[0]
			for i, f := range c.facts {
				changed, err := w.ApplyPullRequest(w.ctx, domain.PullRequest{RepositoryID: r.ID, Branch: "main", Number: f.number, State: f.state, UpdatedAt: at(time.Duration(f.after) * time.Second)})
				w.ok(err)
				w.Expect(changed).To(Equal(c.changed[i]), "fact %d", i)
			}
			pr, found, err := w.PullRequest(w.ctx, r.ID, "main")
			w.ok(err)
			w.Expect(found).To(BeTrue())
			w.Expect(fact{pr.Number, pr.State, int(pr.UpdatedAt.Sub(t0).Seconds())}).To(Equal(c.final))
		})
	}
}

func TestRecordPullRequest_R_PR_02(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	r := w.provisioned(p, 1)[0]
	l := w.lease(p)
	_, found, err := w.PullRequest(w.ctx, r.ID, "main")
	w.ok(err)
	w.Expect(found).To(BeFalse())
	pr := domain.PullRequest{RepositoryID: r.ID, Branch: "main", Number: 7, State: domain.PullRequestOpen, URL: "https://x/7", UpdatedAt: t0}
	w.ok(w.RecordPullRequest(w.ctx, l, pr))
	stored, found, err := w.PullRequest(w.ctx, r.ID, "main")
	w.ok(err)
	w.Expect(found).To(BeTrue())
	w.Expect(stored).To(Equal(pr))
	_, found, err = w.PullRequest(w.ctx, r.ID, "hints")
	w.ok(err)
	w.Expect(found).To(BeFalse(), "R-PR-01: one row per branch")
}

func TestApplyPullRequestToNobody_R_EVT_13(t *testing.T) {
	w := newWorld(t)
	r := w.provisioned(w.built(spec("lab1")), 1)[0]
	_, err := w.MarkDeleted(w.ctx, r.Repo.ID, "webhook", t0)
	w.ok(err)
	for _, id := range []int64{r.ID, 4242} {
		changed, err := w.ApplyPullRequest(w.ctx, domain.PullRequest{RepositoryID: id, Branch: "main", Number: 1, State: domain.PullRequestOpen, UpdatedAt: t0})
		w.ok(err)
		w.Expect(changed).To(BeFalse())
	}
	w.Expect(w.number(`SELECT count(*) FROM pull_requests`)).To(BeZero())
}
