// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// listed gives a project n rows that are not provisioned.
func (w *world) listed(p domain.Project, n int) []domain.Repository {
	w.t.Helper()
	rows, err := w.SetRecipients(w.ctx, p.ID, recipients(n), t0)
	w.ok(err)
	return rows
}

func TestClaimProvisioning_R_PROV_03(t *testing.T) {
	w := newWorld(t)
	r := w.listed(w.built(spec("lab1")), 1)[0]
	claim := func(d time.Duration) bool {
		won, err := w.ClaimProvisioning(w.ctx, r.ID, at(d))
		w.ok(err)
		return won
	}
	w.Expect(claim(0)).To(BeTrue(), "pending without a claim")
	w.Expect(claim(claimStale)).To(BeFalse(), "claimed")
	w.Expect(claim(claimStale+time.Second)).To(BeTrue(), "a claim older than five minutes")
	w.ok(w.FailProvisioning(w.ctx, r.ID, domain.Problem{Class: "Blocked", Reason: "X", At: t0, RetryAt: at(time.Hour)}))
	w.Expect(claim(claimStale+2*time.Second)).To(BeTrue(), "failed")
	q, err := w.Repository(w.ctx, r.ID)
	w.ok(err)
	w.Expect(q.Provision).To(Equal(domain.ProvisionPending))
	w.Expect(q.ProvisionProblem.Reason).To(Equal("X"), "the last failure stays readable")
	w.ok(w.RecordRepositoryID(w.ctx, r.ID, domain.RepositoryRef{ID: 9, FullName: "acme/x"}, ""))
	w.ok(w.FinishProvisioning(w.ctx, r.ID, "main", false, t0))
	w.Expect(claim(time.Hour)).To(BeFalse(), "provisioned")
	w.Expect(w.ClaimProvisioning(w.ctx, 4242, t0)).To(BeFalse())
}

func TestClaimProvisioningRefuses(t *testing.T) {
	w := newWorld(t)
	rows := w.listed(w.built(spec("lab1")), 2)
	w.ok(w.ReleaseRepository(w.ctx, rows[0].ID, t0))
	w.Expect(w.ClaimProvisioning(w.ctx, rows[0].ID, t0)).To(BeFalse(), "released")
	w.ok(w.RecordRepositoryID(w.ctx, rows[1].ID, domain.RepositoryRef{ID: 9, FullName: "acme/x"}, ""))
	_, err := w.MarkDeleted(w.ctx, 9, "webhook", t0)
	w.ok(err)
	w.Expect(w.ClaimProvisioning(w.ctx, rows[1].ID, t0)).To(BeFalse(), "R-PROV-01: a deleted repository is never made again")
}

func TestOneOfManyClaimsProvisioning_R_PROV_03(t *testing.T) {
	w := newWorld(t)
	r := w.listed(w.built(spec("lab1")), 1)[0]
	w.Expect(w.together(8, func(int) (bool, error) { return w.ClaimProvisioning(w.ctx, r.ID, t0) })).To(Equal(1))
}

func TestRecordRepositoryID_R_PROV_04(t *testing.T) {
	repo := domain.RepositoryRef{ID: 9, FullName: "acme/x"}
	t.Run("once and again", func(t *testing.T) {
		w := newWorld(t)
		r := w.listed(w.built(spec("lab1")), 1)[0]
		w.ok(w.RecordRepositoryID(w.ctx, r.ID, repo, "node"))
		w.untouched("repositories", func() { w.ok(w.RecordRepositoryID(w.ctx, r.ID, repo, "node")) })
		w.ok(w.RecordRepositoryID(w.ctx, r.ID, domain.RepositoryRef{ID: 9, FullName: "acme/renamed"}, "node"))
		q, err := w.Repository(w.ctx, r.ID)
		w.ok(err)
		w.Expect(q.Repo.FullName).To(Equal("acme/renamed"))
		w.Expect(q.NodeID).To(Equal("node"))
	})
	t.Run("never another repository", func(t *testing.T) {
		w := newWorld(t)
		r := w.listed(w.built(spec("lab1")), 1)[0]
		w.ok(w.RecordRepositoryID(w.ctx, r.ID, repo, ""))
		w.reason(w.RecordRepositoryID(w.ctx, r.ID, domain.RepositoryRef{ID: 10, FullName: "acme/x"}, ""), fault.Terminal, fault.ReasonRepositoryChanged)
	})
	t.Run("the first claim wins", func(t *testing.T) {
		w := newWorld(t)
		rows := w.listed(w.built(spec("lab1")), 2)
		won := w.together(2, func(i int) (bool, error) {
			err := w.RecordRepositoryID(w.ctx, rows[i].ID, repo, "")
			if fault.Is(err, fault.ReasonRepositoryClaimed) {
				return false, nil
			}
			return err == nil, err
		})
		w.Expect(won).To(Equal(1))
		other := w.listed(w.built(spec("lab2")), 1)[0]
		w.reason(w.RecordRepositoryID(w.ctx, other.ID, repo, ""), fault.Blocked, fault.ReasonRepositoryClaimed)
	})
	t.Run("not a distribution nor the project's own source", func(t *testing.T) {
		w := newWorld(t)
		p, other := w.built(spec("lab1")), w.built(spec("lab2"))
		rows := w.listed(p, 1)
		for _, taken := range []domain.RepositoryRef{p.SourceRepo, p.DistributionRepo, other.DistributionRepo} {
			w.reason(w.RecordRepositoryID(w.ctx, rows[0].ID, taken, ""), fault.Blocked, fault.ReasonRepositoryClaimed)
		}
		w.ok(w.RecordRepositoryID(w.ctx, rows[0].ID, other.SourceRepo, "")) // projects may follow each other
	})
	t.Run("a distribution and a downstream repository at once", func(t *testing.T) {
		w := newWorld(t)
		r := w.listed(w.built(spec("lab1")), 1)[0]
		l := w.lease(w.project(spec("lab2")))
		won := w.together(2, func(i int) (bool, error) {
			var err error
			if i == 0 {
				err = w.RecordRepositoryID(w.ctx, r.ID, repo, "")
			} else {
				err = w.ClaimDistribution(w.ctx, l, repo, t0)
			}
			if fault.Is(err, fault.ReasonRepositoryClaimed) || fault.Is(err, fault.ReasonDistributionNameTaken) {
				return false, nil
			}
			return err == nil, err
		})
		w.Expect(won).To(Equal(1))
	})
	t.Run("of a released row is free", func(t *testing.T) {
		w := newWorld(t)
		rows := w.listed(w.built(spec("lab1")), 2)
		w.ok(w.RecordRepositoryID(w.ctx, rows[0].ID, repo, ""))
		w.ok(w.ReleaseRepository(w.ctx, rows[0].ID, t0))
		w.ok(w.RecordRepositoryID(w.ctx, rows[1].ID, repo, ""))
		w.Expect(w.RecordRepositoryID(w.ctx, rows[0].ID, repo, "")).To(MatchError(ErrNotFound))
	})
}

func TestFinishAndFailProvisioning_R_PROV_06(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	r := w.listed(p, 1)[0]
	w.ok(w.FailProvisioning(w.ctx, r.ID, domain.Problem{Class: "Blocked", Reason: "RepositoryNameTaken", Message: strings.Repeat("é", 600), At: t0, RetryAt: at(time.Minute)}))
	q, err := w.Repository(w.ctx, r.ID)
	w.ok(err)
	w.Expect(q.Provision).To(Equal(domain.ProvisionFailed))
	w.Expect(q.ProvisionProblem).To(Equal(domain.Problem{Class: "Blocked", Reason: "RepositoryNameTaken", Message: strings.Repeat("é", 500), At: t0, RetryAt: at(time.Minute)}))

	w.ok(w.RecordRepositoryID(w.ctx, r.ID, domain.RepositoryRef{ID: 9, FullName: "acme/x"}, ""))
	w.ok(w.FinishProvisioning(w.ctx, r.ID, "main", true, t0))
	w.ok(w.FinishProvisioning(w.ctx, r.ID, "other", false, at(time.Hour)))
	w.ok(w.FailProvisioning(w.ctx, r.ID, domain.Problem{Class: "Retryable", Reason: "late", At: t0}))
	q, err = w.Repository(w.ctx, r.ID)
	w.ok(err)
	w.Expect([]any{q.Provision, q.DefaultBranch, q.Adopted, q.ProvisionProblem, q.ClaimedAt}).
		To(Equal([]any{domain.ProvisionOK, "main", true, domain.Problem{}, (*time.Time)(nil)}))
	w.Expect(q.Live()).To(BeTrue())

	entries, err := w.AuditEntries(w.ctx, p.ID)
	w.ok(err)
	w.Expect(entries).To(HaveLen(2), "created, and accepted once")
	w.Expect(entries[1].Action).To(Equal("project.accept"))
	w.Expect(entries[1].Payload).To(Equal(map[string]any{"repo": "acme/x", "adopted": true}))
	w.ok(w.FinishProvisioning(w.ctx, 4242, "main", false, t0))
}

func TestProvisionedMeansKnown(t *testing.T) {
	w := newWorld(t)
	r := w.listed(w.built(spec("lab1")), 1)[0]
	w.Expect(w.FinishProvisioning(w.ctx, r.ID, "main", false, t0)).To(MatchError(ContainSubstring("23514")), "a constraint holds it")
}
