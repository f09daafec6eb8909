// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
)

func TestProjectView(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	rows := w.provisioned(p, 26)
	w.sql(`UPDATE repositories SET locked_at = $2 WHERE id = $1`, rows[0].ID, t0)
	_, err := w.MarkDeleted(w.ctx, rows[1].Repo.ID, "webhook", t0)
	w.ok(err)
	list := recipients(28)
	list[25].Exclude = true
	_, err = w.SetRecipients(w.ctx, p.ID, list, t0)
	w.ok(err)
	all, err := w.Repositories(w.ctx, p.ID)
	w.ok(err)
	w.ok(w.FailProvisioning(w.ctx, all[26].ID, domain.Problem{Class: "Blocked", Reason: "X", At: t0}))

	v, err := w.ProjectView(w.ctx, p.UID)
	w.ok(err)
	w.Expect(v.Project).To(Equal(p))
	w.Expect(v.Repositories).To(Equal(domain.RepositoryCounts{Total: 27, Live: 24, Locked: 1, Deleted: 1, Provisioned: 25, ProvisionFailed: 1}))
	w.Expect(v.Outcomes).To(BeZero())
	w.Expect([]any{v.LastRequest, v.ActivePass, v.LastPass}).To(HaveEach(BeNil()))
	w.Expect(v.Failing).To(BeEmpty())

	l := w.lease(p)
	pass := w.pass(l, w.request(p, "one"))
	for i := range 22 {
		outcome := domain.OutcomeFailed
		if i%2 == 0 {
			outcome = domain.OutcomeHeld
		}
		w.ok(w.Settle(w.ctx, l, pass.ID, rows[i].ID, domain.Settlement{Outcome: outcome, Reason: "X"}, t0))
	}
	w.ok(w.Settle(w.ctx, l, pass.ID, rows[22].ID, domain.Settlement{Outcome: domain.OutcomeOpened}, t0))
	v, err = w.ProjectView(w.ctx, p.UID)
	w.ok(err)
	w.Expect(*v.ActivePass).To(Equal(pass))
	w.Expect([]int{v.Settled, v.Targets}).To(Equal([]int{23, 27}))
	w.Expect(v.LastPass).To(BeNil())
	w.Expect(v.Outcomes).To(Equal(domain.Counts{Opened: 1, Held: 11, Failed: 11}))
	w.Expect(v.Failing).To(HaveLen(20), "a bounded sample")
	for i := 1; i < len(v.Failing); i++ {
		w.Expect(v.Failing[i-1].Repo.FullName < v.Failing[i].Repo.FullName).To(BeTrue(), "ordered by name")
	}

	done, _, err := w.FinishPass(w.ctx, l, pass.ID, at(time.Minute))
	w.ok(err)
	second := w.pass(w.lease(p), w.request(p, "two"))
	v, err = w.ProjectView(w.ctx, p.UID)
	w.ok(err)
	w.Expect(*v.LastPass).To(Equal(done))
	w.Expect(v.ActivePass.ID).To(Equal(second.ID))
	w.Expect(v.Outcomes.Opened).To(Equal(1), "R-SYNC-11: last outcomes, not the running pass's")

	_, err = w.ProjectView(w.ctx, "nobody")
	w.Expect(err).To(MatchError(ErrNotFound))
}

func TestProjectViewShowsTheRequestThatCounts(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	record := func(token string, a domain.Answer, d time.Duration) {
		_, _, err := w.RecordRequest(w.ctx, p.ID, domain.Token{Source: domain.TokenSpec, Value: token}, a, "", "", at(d))
		w.ok(err)
	}
	shown := func() string {
		v, err := w.ProjectView(w.ctx, p.UID)
		w.ok(err)
		return v.LastRequest.Value
	}
	record("lost", domain.AnswerSuperseded, time.Hour)
	w.Expect(shown()).To(Equal("lost"), "when there is no other")
	record("built", domain.AnswerBuilt, 0)
	w.Expect(shown()).To(Equal("built"))
	record("waiting", domain.AnswerWaiting, time.Minute)
	record("refused", domain.AnswerRefused, 2*time.Minute)
	w.Expect(shown()).To(Equal("waiting"))
	record("next", domain.AnswerWaiting, 3*time.Minute)
	w.Expect(shown()).To(Equal("next"))
}

func TestRepositoryView(t *testing.T) {
	w := newWorld(t)
	r := w.provisioned(w.built(spec("lab1")), 1)[0]
	v, err := w.RepositoryView(w.ctx, r.ID)
	w.ok(err)
	w.Expect(v.Repository).To(Equal(r))
	w.Expect(v.PullRequests).To(BeEmpty())
	main := domain.PullRequest{RepositoryID: r.ID, Branch: "main", Number: 7, State: domain.PullRequestOpen, URL: "https://x/7", UpdatedAt: t0}
	hints := domain.PullRequest{RepositoryID: r.ID, Branch: "hints", Number: 8, State: domain.PullRequestMerged, URL: "https://x/8", UpdatedAt: t0}
	for _, pr := range []domain.PullRequest{main, hints} {
		_, err := w.ApplyPullRequest(w.ctx, pr)
		w.ok(err)
	}
	v, err = w.RepositoryView(w.ctx, r.ID)
	w.ok(err)
	w.Expect(v.PullRequests).To(Equal([]domain.PullRequest{hints, main}))
	_, err = w.RepositoryView(w.ctx, 4242)
	w.Expect(err).To(MatchError(ErrNotFound))
}

func TestAuditLogIsAppendOnly_R_CORE_12(t *testing.T) {
	w := newWorld(t)
	p := w.project(spec("lab1"))
	e := domain.AuditEntry{Actor: "ops\x00", Action: "project.sync_failed", ProjectID: p.ID, Subject: "project/x", Payload: map[string]any{"reason": "github"}, At: t0}
	w.ok(w.Audit(w.ctx, e))
	w.ok(w.Audit(w.ctx, domain.AuditEntry{Actor: "system", Action: "app.ready", Subject: "app/x", At: t0}))
	for _, sql := range []string{`UPDATE audit_log SET actor = 'somebody'`, `DELETE FROM audit_log`, `TRUNCATE audit_log`} {
		_, err := w.pool.Exec(w.ctx, sql)
		w.Expect(err).To(MatchError(ContainSubstring("append-only")), sql)
	}
	entries, err := w.AuditEntries(w.ctx, p.ID)
	w.ok(err)
	e.Actor = "ops\uFFFD"
	w.Expect(entries).To(Equal([]domain.AuditEntry{e}))
	w.Expect(w.number(`SELECT count(*) FROM audit_log`)).To(Equal(2))
}
