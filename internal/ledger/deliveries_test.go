// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
)

func delivery(n int) domain.Delivery {
	return domain.Delivery{App: "app", GUID: guid(n), Event: "push", Payload: []byte(`{"ref": "refs/heads/main"}`), ReceivedAt: at(time.Duration(n) * time.Second)}
}

func (w *world) store(d domain.Delivery, r *domain.Receipt) bool {
	w.t.Helper()
	stored, err := w.StoreDelivery(w.ctx, d, r)
	w.ok(err)
	return stored
}

func (w *world) claimed(n int, now time.Time) []domain.Delivery {
	w.t.Helper()
	list, err := w.ClaimDeliveries(w.ctx, n, now)
	w.ok(err)
	return list
}

func TestStoreDelivery_R_HOOK_02(t *testing.T) {
	w := newWorld(t)
	d := delivery(1)
	d.Event, d.Action = "pull_request", "closed\x00\xff"
	w.Expect(w.store(d, nil)).To(BeTrue())
	d.Action = "closed\uFFFD\uFFFD"
	w.Expect(w.claimed(10, at(time.Minute))).To(Equal([]domain.Delivery{d}), "the very bytes")
	d.Payload = []byte("other")
	w.Expect(w.store(d, nil)).To(BeFalse())
	w.ok(w.DeliveryDone(w.ctx, d.App, d.GUID, t0))
	w.sql(`UPDATE webhook_deliveries SET body = NULL`)
	w.Expect(w.store(d, nil)).To(BeFalse(), "also once its body is purged")
	w.Expect(w.number(`SELECT count(*) FROM webhook_deliveries`)).To(Equal(1))
	d.App = "other"
	w.Expect(w.store(d, nil)).To(BeTrue(), "another App's deliveries are its own")
}

func TestConcurrentDeliveriesAreStoredOnce_R_CORE_03(t *testing.T) {
	w := newWorld(t)
	w.Expect(w.together(8, func(int) (bool, error) { return w.StoreDelivery(w.ctx, delivery(1), nil) })).To(Equal(1))
}

func TestReceipts_R_HOOK_05(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	r := w.provisioned(p, 1)[0]
	other := w.built(spec("other"))
	n := 0
	push := func(id int64, sha string, d time.Duration) {
		n++
		w.Expect(w.store(delivery(n), &domain.Receipt{RepositoryID: id, Branch: "main", HeadSHA: sha, ReceivedAt: at(d), Forced: true, Commits: 2})).To(BeTrue())
	}
	for _, c := range []struct {
		name     string
		id       int64
		receipts int
	}{
		{"downstream", r.Repo.ID, 1},
		{"distribution", p.DistributionRepo.ID, 1},
		{"R-AHEAD-04 source", p.SourceRepo.ID, 0},
		{"unknown", 5, 0},
	} {
		push(c.id, "a", 0)
		list, err := w.Receipts(w.ctx, c.id)
		w.ok(err)
		w.Expect(list).To(HaveLen(c.receipts), c.name)
	}
	w.Expect(w.number(`SELECT count(*) FROM webhook_deliveries`)).To(Equal(4), "the deliveries are stored all the same")

	push(r.Repo.ID, "b", time.Second)
	push(r.Repo.ID, "a", time.Hour)
	list, err := w.Receipts(w.ctx, r.Repo.ID)
	w.ok(err)
	w.Expect(list).To(Equal([]domain.Receipt{
		{RepositoryID: r.Repo.ID, Branch: "main", HeadSHA: "a", ReceivedAt: t0, Forced: true, Commits: 2},
		{RepositoryID: r.Repo.ID, Branch: "main", HeadSHA: "b", ReceivedAt: at(time.Second), Forced: true, Commits: 2},
	}), "the first receipt stands")

	foreign := delivery(99)
	foreign.App = "another-app"
	w.store(foreign, &domain.Receipt{RepositoryID: other.DistributionRepo.ID, Branch: "main", HeadSHA: "x", ReceivedAt: t0})
	list, err = w.Receipts(w.ctx, other.DistributionRepo.ID)
	w.ok(err)
	w.Expect(list).To(BeEmpty(), "an App speaks for its own repositories only")
}

func TestFailedReceiptStoresNothing_R_HOOK_03(t *testing.T) {
	w := newWorld(t)
	r := w.provisioned(w.built(spec("lab1")), 1)[0]
	stored, err := w.StoreDelivery(w.ctx, delivery(1), &domain.Receipt{RepositoryID: r.Repo.ID, Branch: "main", HeadSHA: "a", ReceivedAt: t0, Commits: -1})
	w.Expect(err).To(HaveOccurred())
	w.Expect(stored).To(BeFalse())
	w.Expect(w.number(`SELECT count(*) FROM webhook_deliveries`)).To(BeZero())
}

func TestBodiesAreCompressed(t *testing.T) {
	w := newWorld(t)
	lz4 := w.number(`SELECT count(*) FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)`)
	w.Expect(w.number(`SELECT count(*) FROM pg_attribute WHERE attrelid = 'webhook_deliveries'::regclass AND attname = 'body' AND attcompression = 'l'`)).To(Equal(lz4))
	d := delivery(1)
	d.Payload = []byte(strings.Repeat(`{"key": "value"}`, 10_000))
	w.store(d, nil)
	w.Expect(w.number(`SELECT pg_column_size(body) FROM webhook_deliveries`)).To(BeNumerically("<", len(d.Payload)/10))
}

func TestClaimDeliveries(t *testing.T) {
	w := newWorld(t)
	for _, n := range []int{3, 1, 2, 4} {
		w.store(delivery(n), nil)
	}
	names := func(list []domain.Delivery) (names []string) {
		for _, d := range list {
			names = append(names, d.GUID)
		}
		return names
	}
	now := at(time.Hour)
	w.Expect(names(w.claimed(3, now))).To(Equal([]string{guid(1), guid(2), guid(3)}), "oldest receipt first")
	w.Expect(names(w.claimed(3, now))).To(Equal([]string{guid(4)}), "claimed ones are left alone")
	w.Expect(w.claimed(3, now)).To(BeEmpty())
	w.ok(w.DeliveryDone(w.ctx, "app", guid(1), now))
	_, err := w.DeliveryFailed(w.ctx, "app", guid(2), "m", now.Add(time.Hour), now)
	w.ok(err)
	w.ok(w.DeliveryDeferred(w.ctx, "app", guid(3), "m", now.Add(30*time.Minute)))
	w.Expect(names(w.claimed(9, now.Add(claimExpiry)))).To(BeEmpty())
	w.Expect(names(w.claimed(9, now.Add(claimExpiry+time.Second)))).To(Equal([]string{guid(4)}), "a claim expires")
	w.Expect(names(w.claimed(9, now.Add(30*time.Minute)))).To(Equal([]string{guid(3), guid(4)}), "what is due")
	w.sql(`UPDATE webhook_deliveries SET body = NULL WHERE guid = $1`, guid(2))
	w.Expect(names(w.claimed(9, now.Add(2*time.Hour)))).NotTo(ContainElement(guid(2)), "R-HOOK-06: purged")
}

func TestTwoClaimersShareNoDelivery(t *testing.T) {
	w := newWorld(t)
	for n := range 40 {
		w.store(delivery(n), nil)
	}
	var mu sync.Mutex
	seen := map[string]int{}
	w.together(4, func(int) (bool, error) {
		list, err := w.ClaimDeliveries(w.ctx, 10, at(time.Hour))
		mu.Lock()
		defer mu.Unlock()
		for _, d := range list {
			seen[d.GUID]++
		}
		return true, err
	})
	for guid, times := range seen {
		w.Expect(times).To(Equal(1), guid)
	}
	for _, d := range w.claimed(40, at(time.Hour)) {
		seen[d.GUID]++
	}
	w.Expect(seen).To(HaveLen(40))
}

func TestDeliveryIsParkedWithTheFifthTry_R_HOOK_06(t *testing.T) {
	w := newWorld(t)
	w.store(delivery(1), nil)
	now := at(time.Hour)
	for try := 1; try <= maxTries; try++ {
		list := w.claimed(1, now)
		w.Expect(list).To(HaveLen(1), "try %d", try)
		w.Expect(list[0].Attempts).To(Equal(try - 1))
		w.ok(w.DeliveryDeferred(w.ctx, "app", guid(1), "rate limit", now)) // R-HOOK-07: spends no try
		w.Expect(w.claimed(1, now)).To(HaveLen(1))
		parked, err := w.DeliveryFailed(w.ctx, "app", guid(1), strings.Repeat("x", 2000), now, now)
		w.ok(err)
		w.Expect(parked).To(Equal(try == maxTries))
	}
	w.Expect(w.claimed(1, at(1000*time.Hour))).To(BeEmpty())
	w.Expect(w.number(`SELECT length(error) FROM webhook_deliveries`)).To(Equal(1000))
	parked, err := w.DeliveryFailed(w.ctx, "app", guid(1), "late", now, now)
	w.ok(err)
	w.Expect(parked).To(BeFalse())
	w.ok(w.DeliveryDeferred(w.ctx, "app", guid(1), "late", now))
	w.Expect(w.number(`SELECT attempts FROM webhook_deliveries WHERE parked_at IS NOT NULL AND retry_at IS NULL`)).To(Equal(maxTries), "it stays parked")
}

func TestAHandledDeliveryStaysHandled_R_HOOK_06(t *testing.T) {
	w := newWorld(t)
	w.store(delivery(1), nil)
	_, err := w.DeliveryFailed(w.ctx, "app", guid(1), "broken", t0, t0)
	w.ok(err)
	w.ok(w.DeliveryDone(w.ctx, "app", guid(1), at(time.Minute)))
	w.ok(w.DeliveryDone(w.ctx, "app", guid(1), at(time.Hour)))
	_, err = w.DeliveryFailed(w.ctx, "app", guid(1), "late", t0, t0)
	w.ok(err)
	w.ok(w.DeliveryDeferred(w.ctx, "app", guid(1), "late", t0))
	w.Expect(w.number(`SELECT count(*) FROM webhook_deliveries WHERE processed_at = $1 AND error = '' AND attempts = 1`, at(time.Minute))).To(Equal(1), "the error is cleared")
	w.Expect(w.claimed(9, at(1000*time.Hour))).To(BeEmpty())
	parked, err := w.DeliveryFailed(w.ctx, "app", guid(2), "unknown", t0, t0)
	w.ok(err)
	w.Expect(parked).To(BeFalse())
}

func TestObjectsFor(t *testing.T) {
	w := newWorld(t)
	p := w.built(spec("lab1"))
	r := w.provisioned(p, 1)[0]
	sync := domain.ObjectRef{Kind: domain.KindProjectSync, ObjectKey: p.Object}
	for _, c := range []struct {
		name, app string
		id        int64
		refs      []domain.ObjectRef
	}{
		{"source", "app", p.SourceRepo.ID, []domain.ObjectRef{sync}},
		{"distribution", "app", p.DistributionRepo.ID, []domain.ObjectRef{sync}},
		{"downstream", "app", r.Repo.ID, []domain.ObjectRef{{Kind: domain.KindRepoReconcile, ObjectKey: r.Object}}},
		{"another App's", "other", p.SourceRepo.ID, nil},
		{"unknown", "app", 5, nil},
	} {
		refs, err := w.ObjectsFor(w.ctx, c.app, c.id)
		w.ok(err)
		w.Expect(refs).To(HaveLen(len(c.refs)), c.name)
		w.Expect(refs).To(ContainElements(c.refs), c.name)
	}
	w.ok(w.SetObject(w.ctx, r.ID, domain.ObjectKey{}))
	refs, err := w.ObjectsFor(w.ctx, "app", r.Repo.ID)
	w.ok(err)
	w.Expect(refs).To(BeEmpty(), "a repository beyond the object limit")
	w.ok(w.ReleaseProject(w.ctx, p.UID, "ops", t0))
	refs, err = w.ObjectsFor(w.ctx, "app", p.SourceRepo.ID)
	w.ok(err)
	w.Expect(refs).To(BeEmpty(), "released")
}

func TestWakeups(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(w.ctx)
	hints := w.Wakeups(ctx)
	w.Eventually(hints).WithTimeout(10*time.Second).Should(Receive(), "a hint with each new connection")
	w.store(delivery(1), nil)
	w.Eventually(hints).WithTimeout(10 * time.Second).Should(Receive())
	w.store(delivery(1), nil)
	w.Consistently(hints).WithTimeout(100*time.Millisecond).ShouldNot(Receive(), "a duplicate wakes nobody")

	// Its connection is cut: it makes another.
	w.sql(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`)
	w.Eventually(hints).WithTimeout(10 * time.Second).Should(Receive())
	for n := 2; n < 50; n++ {
		w.store(delivery(n), nil) // nobody reads hints: nothing blocks
	}
	cancel()
	w.Eventually(func() bool {
		select {
		case _, open := <-hints:
			return !open
		default:
			return false
		}
	}).WithTimeout(10 * time.Second).Should(BeTrue())
	w.Eventually(func() int {
		return w.number(fmt.Sprintf(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN %s'`, inbox))
	}).WithTimeout(10 * time.Second).Should(BeZero())
}
