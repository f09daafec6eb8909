// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func TestSetRecipients(t *testing.T) {
	w := newWorld(t)
	p := w.project(spec("lab1"))
	list := recipients(2)
	list[0].DeadlineAt, list[0].Test, list[0].Adopt = ptr(at(time.Hour)), true, true
	rows, err := w.SetRecipients(w.ctx, p.ID, list, t0)
	w.ok(err)
	w.Expect(rows).To(HaveLen(2))
	w.Expect(rows[0]).To(Equal(domain.Repository{
		ID: rows[0].ID, ProjectID: p.ID, Recipient: "r01", Members: []string{"login01"}, WantedName: "acme/lab1-r01", Adopt: true, Listed: true, Test: true,
		Provision: domain.ProvisionPending, DeadlineAt: ptr(at(time.Hour)),
	}))

	t.Run("the same list writes nothing", func(t *testing.T) {
		w := w.in(t)
		sequence := func() int { return w.number(`SELECT last_value FROM repositories_id_seq`) }
		before := sequence()
		w.untouched("projects", func() {
			w.untouched("repositories", func() {
				again, err := w.SetRecipients(w.ctx, p.ID, list, at(time.Hour))
				w.ok(err)
				w.Expect(again).To(Equal(rows))
			})
		})
		w.Expect(sequence()).To(Equal(before), "not even a number is used up")
	})
	t.Run("changed, new and gone entries", func(t *testing.T) {
		w := w.in(t)
		changed := recipients(3)[1:]
		changed[0].FullName, changed[0].Exclude, changed[0].Members = "acme/other", true, nil
		after, err := w.SetRecipients(w.ctx, p.ID, changed, t0)
		w.ok(err)
		w.Expect(after).To(HaveLen(3))
		w.Expect(after[0].Listed).To(BeFalse(), "gone from the list; the row stays")
		w.Expect(after[0].DeadlineAt).NotTo(BeNil())
		w.Expect(after[1].WantedName).To(Equal("acme/other"))
		w.Expect(after[1].Excluded).To(BeTrue())
		w.Expect(after[1].Members).To(BeEmpty())
		w.Expect(after[2].Recipient).To(Equal("r03"))
	})
	t.Run("back on the list it is the same row", func(t *testing.T) {
		w := w.in(t)
		after, err := w.SetRecipients(w.ctx, p.ID, list, t0)
		w.ok(err)
		w.Expect(after[:2]).To(Equal(rows))
		w.Expect(after[2].Listed).To(BeFalse())
	})
	t.Run("an empty list lists nobody", func(t *testing.T) {
		w := w.in(t)
		after, err := w.SetRecipients(w.ctx, p.ID, nil, t0)
		w.ok(err)
		for _, r := range after {
			w.Expect(r.Listed).To(BeFalse())
		}
	})
}

func TestConcurrentSetRecipients_R_CORE_03(t *testing.T) {
	w := newWorld(t)
	p := w.project(spec("lab1"))
	w.together(4, func(int) (bool, error) {
		rows, err := w.SetRecipients(w.ctx, p.ID, recipients(30), t0)
		return len(rows) == 30, err
	})
	w.Expect(w.number(`SELECT count(*) FROM repositories`)).To(Equal(30))
}

func TestSetRecipientsKeepsFacts_R_CORE_06(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	before := w.provisioned(p, 1)[0]
	list := recipients(1)
	list[0].FullName = "acme/wanted"
	rows, err := w.SetRecipients(w.ctx, p.ID, list, t0)
	w.ok(err)
	w.Expect(rows[0].WantedName).To(Equal("acme/wanted"))
	rows[0].WantedName = before.WantedName
	w.Expect(rows[0]).To(Equal(before))
}

func TestFindingRepositories(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	r := w.provisioned(p, 1)[0]
	byObject, err := w.RepositoryByObject(w.ctx, r.Object)
	w.ok(err)
	w.Expect(byObject).To(Equal(r))
	byID, itsProject, err := w.RepositoryByGitHubID(w.ctx, r.Repo.ID)
	w.ok(err)
	w.Expect(byID).To(Equal(r))
	w.Expect(itsProject).To(Equal(p))
	_, err = w.RepositoryByObject(w.ctx, domain.ObjectKey{})
	w.Expect(err).To(MatchError(ErrNotFound))
	_, _, err = w.RepositoryByGitHubID(w.ctx, 5)
	w.Expect(err).To(MatchError(ErrNotFound))
	_, err = w.Repository(w.ctx, 4242)
	w.Expect(err).To(MatchError(ErrNotFound))

	w.ok(w.ReleaseRepository(w.ctx, r.ID, t0))
	w.ok(w.ReleaseRepository(w.ctx, r.ID, at(time.Hour)))
	released, err := w.Repository(w.ctx, r.ID)
	w.ok(err)
	w.Expect(*released.ReleasedAt).To(Equal(t0))
	_, _, err = w.RepositoryByGitHubID(w.ctx, r.Repo.ID)
	w.Expect(err).To(MatchError(ErrNotFound))
	_, err = w.RepositoryByObject(w.ctx, r.Object)
	w.Expect(err).To(MatchError(ErrNotFound))
}

func TestSetObject(t *testing.T) {
	w := newWorld(t)
	rows := w.provisioned(w.built(spec("lab1")), 2)
	key := rows[0].Object
	w.untouched("repositories", func() { w.ok(w.SetObject(w.ctx, rows[0].ID, key)) })
	w.ok(w.SetObject(w.ctx, rows[1].ID, key))
	r, err := w.RepositoryByObject(w.ctx, key)
	w.ok(err)
	w.Expect(r.ID).To(Equal(rows[1].ID), "one object shows one row")
	r, err = w.Repository(w.ctx, rows[0].ID)
	w.ok(err)
	w.Expect(r.Object).To(BeZero())
	w.ok(w.SetObject(w.ctx, rows[1].ID, domain.ObjectKey{}))
	_, err = w.RepositoryByObject(w.ctx, key)
	w.Expect(err).To(MatchError(ErrNotFound))
	w.Expect(w.SetObject(w.ctx, 4242, key)).To(MatchError(ErrNotFound))
}

func TestSetSuspended(t *testing.T) {
	w := newWorld(t)
	r := w.provisioned(w.built(spec("lab1")), 1)[0]
	w.ok(w.SetSuspended(w.ctx, r.ID, true))
	r, err := w.Repository(w.ctx, r.ID)
	w.ok(err)
	w.Expect(r.Suspended).To(BeTrue())
	w.untouched("repositories", func() { w.ok(w.SetSuspended(w.ctx, r.ID, true)) })
}

func TestUpsertHandMade(t *testing.T) {
	w := newWorld(t)
	h := handMade(domain.ObjectKey{Namespace: "teaching", Name: "lab1"})
	r, err := w.UpsertHandMade(w.ctx, h, t0)
	w.ok(err)
	w.Expect(r).To(Equal(domain.Repository{ID: r.ID, Recipient: "team", Members: []string{"octocat"}, Object: h.Object, WantedName: "acme/svc",
		Adopt: true, Listed: true, Provision: domain.ProvisionPending}))
	w.untouched("repositories", func() {
		again, err := w.UpsertHandMade(w.ctx, h, at(time.Hour))
		w.ok(err)
		w.Expect(again).To(Equal(r))
	})

	t.Run("belongs to the project it names once that is there", func(t *testing.T) {
		w := w.in(t)
		p := w.built(spec("lab1"))
		r, err := w.UpsertHandMade(w.ctx, h, t0)
		w.ok(err)
		w.Expect(r.ProjectID).To(Equal(p.ID))
		own, err := w.SetRecipients(w.ctx, p.ID, nil, t0)
		w.ok(err)
		w.Expect(own).To(BeEmpty(), "a project's list leaves it alone")
		w.ok(w.ReleaseProject(w.ctx, p.UID, "ops", t0))
		r, err = w.UpsertHandMade(w.ctx, h, t0)
		w.ok(err)
		w.Expect(r.ProjectID).To(BeZero())
	})
	t.Run("released and taken back", func(t *testing.T) {
		w := w.in(t)
		w.ok(w.ReleaseHandMade(w.ctx, h.ObjectUID, t0))
		w.ok(w.ReleaseHandMade(w.ctx, h.ObjectUID, at(time.Hour)))
		w.ok(w.ReleaseHandMade(w.ctx, "nobody", t0))
		released, err := w.Repository(w.ctx, r.ID)
		w.ok(err)
		w.Expect(*released.ReleasedAt).To(Equal(t0))
		back, err := w.UpsertHandMade(w.ctx, h, t0)
		w.ok(err)
		w.Expect(back.ID).To(Equal(r.ID))
		w.Expect(back.ReleasedAt).To(BeNil())
	})
	t.Run("another object of the same name takes the name", func(t *testing.T) {
		w := w.in(t)
		other := h
		other.ObjectUID = "uid-svc-again"
		second, err := w.UpsertHandMade(w.ctx, other, t0)
		w.ok(err)
		w.Expect(second.ID).NotTo(Equal(r.ID))
		byObject, err := w.RepositoryByObject(w.ctx, h.Object)
		w.ok(err)
		w.Expect(byObject.ID).To(Equal(second.ID))
	})
}

func TestUpsertHandMadeByID(t *testing.T) {
	w := newWorld(t)
	h := handMade(domain.ObjectKey{})
	h.FullName, h.RepoID = "", 900
	r, err := w.UpsertHandMade(w.ctx, h, t0)
	w.ok(err)
	w.Expect(r.Repo).To(Equal(domain.RepositoryRef{ID: 900}))
	w.ok(w.RecordRepositoryID(w.ctx, r.ID, domain.RepositoryRef{ID: 900, FullName: "acme/svc"}, "node"))
	again, err := w.UpsertHandMade(w.ctx, h, t0)
	w.ok(err)
	w.Expect(again.Repo.FullName).To(Equal("acme/svc"), "what was learnt stays")

	second := h
	second.Object.Name, second.ObjectUID = "twin", "uid-twin"
	_, err = w.UpsertHandMade(w.ctx, second, t0)
	w.reason(err, fault.Blocked, fault.ReasonRepositoryClaimed)
	w.Expect(w.number(`SELECT count(*) FROM repositories`)).To(Equal(1), "the first claim wins, nothing is left of the other")
}

func TestRecordRename_R_EVT_07(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	r := w.provisioned(p, 1)[0]
	sync := domain.ObjectRef{Kind: domain.KindProjectSync, ObjectKey: p.Object}
	for _, c := range []struct {
		name    string
		id      int64
		old     string
		refs    []domain.ObjectRef
		current func() string
	}{
		{"source", p.SourceRepo.ID, "lab1-source", []domain.ObjectRef{sync}, func() string { return w.reload(p).SourceRepo.FullName }},
		{"distribution", p.DistributionRepo.ID, "LAB1-Squashed", []domain.ObjectRef{sync}, func() string { return w.reload(p).DistributionRepo.FullName }},
		{"downstream", r.Repo.ID, "lab1-r01", []domain.ObjectRef{{Kind: domain.KindRepoReconcile, ObjectKey: r.Object}}, func() string {
			q, err := w.Repository(w.ctx, r.ID)
			w.ok(err)
			return q.Repo.FullName
		}},
	} {
		refs, err := w.RecordRename(w.ctx, c.id, "another", "acme/renamed")
		w.ok(err)
		w.Expect(refs).To(BeEmpty(), "%s: only where the name part is the old one", c.name)
		w.Expect(c.current()).NotTo(Equal("acme/renamed"))
		refs, err = w.RecordRename(w.ctx, c.id, c.old, "moved/renamed")
		w.ok(err)
		w.Expect(refs).To(Equal(c.refs), c.name)
		w.Expect(c.current()).To(Equal("moved/renamed"), "%s: the owner may differ", c.name)
		refs, err = w.RecordRename(w.ctx, c.id, c.old, "moved/renamed")
		w.ok(err)
		w.Expect(refs).To(BeEmpty(), "%s: a replay changes nothing", c.name)
	}
	refs, err := w.RecordRename(w.ctx, 5, "lab1-source", "acme/x")
	w.ok(err)
	w.Expect(refs).To(BeEmpty(), "R-HOOK-09")
}

func TestRenameInCaseOnlyIsReplayedSafely(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	for i, n := range []int{1, 0} {
		refs, err := w.RecordRename(w.ctx, p.SourceRepo.ID, "lab1-source", "acme/Lab1-Source")
		w.ok(err)
		w.Expect(refs).To(HaveLen(n), "time %d", i)
	}
}

func TestMarkDeletedOnce_R_EVT_08(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	r := w.provisioned(p, 1)[0]
	refs, err := w.MarkDeleted(w.ctx, r.Repo.ID, "webhook", t0)
	w.ok(err)
	w.Expect(refs).To(Equal([]domain.ObjectRef{{Kind: domain.KindRepoReconcile, ObjectKey: r.Object}}))
	refs, err = w.MarkDeleted(w.ctx, r.Repo.ID, "sync", at(time.Hour))
	w.ok(err)
	w.Expect(refs).To(BeEmpty())
	for _, id := range []int64{p.SourceRepo.ID, p.DistributionRepo.ID, 5} {
		refs, err = w.MarkDeleted(w.ctx, id, "webhook", t0)
		w.ok(err)
		w.Expect(refs).To(BeEmpty(), "left to the staff")
	}
	q, err := w.Repository(w.ctx, r.ID)
	w.ok(err)
	w.Expect(*q.DeletedAt).To(Equal(t0))
	entries, err := w.AuditEntries(w.ctx, p.ID)
	w.ok(err)
	last := entries[len(entries)-1]
	w.Expect(last.Action).To(Equal("project_repo.deleted"))
	w.Expect(last.Payload).To(Equal(map[string]any{"repo": "acme/lab1-r01", "via": "webhook"}))
	w.Expect(w.actions(p.ID)).To(HaveExactElements("project.create", "project.accept", "project_repo.deleted"))
}

func TestRecordPush_R_EVT_01(t *testing.T) {
	w := newWorld(t)
	r := w.provisioned(w.built(spec("lab1")), 1)[0]
	push := func(sha string, commit, received time.Duration) bool {
		changed, err := w.RecordPush(w.ctx, r.ID, sha, at(commit), at(received))
		w.ok(err)
		return changed
	}
	last := func() (string, time.Time) {
		q, err := w.Repository(w.ctx, r.ID)
		w.ok(err)
		return q.LastCommitSHA, *q.LastCommitAt
	}
	w.Expect(push("a", 1000*time.Hour, time.Second)).To(BeTrue())
	w.Expect(push("b", -time.Hour, 2*time.Second)).To(BeTrue(), "R-CORE-04: dates of commits decide nothing")
	sha, when := last()
	w.Expect(sha).To(Equal("b"))
	w.Expect(when).To(Equal(at(-time.Hour)))
	w.Expect(push("a", 1000*time.Hour, time.Second)).To(BeFalse(), "an older receipt")
	w.Expect(push("b", -time.Hour, 2*time.Second)).To(BeFalse(), "a replay")
	sha, _ = last()
	w.Expect(sha).To(Equal("b"))
	_, err := w.MarkDeleted(w.ctx, r.Repo.ID, "webhook", t0)
	w.ok(err)
	w.Expect(push("c", 0, time.Hour)).To(BeFalse(), "R-EVT-13")
}
