// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
	"github.com/sluice-dev/sluice/internal/testenv/pgtest"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Run(m, func(dsn string) error {
		_, _, err := Migrate(context.Background(), dsn, nil)
		return err
	}))
}

// t0 is when tests begin; nothing here reads the machine's clock.
var t0 = time.Date(2026, 10, 5, 9, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

func ptr[T any](v T) *T { return &v }

// world is a ledger on a database of the test's own, and Gomega.
type world struct {
	*Ledger
	*WithT
	t   *testing.T
	ctx context.Context
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return open(t, pgtest.Database(t), Options{})
}

func open(t *testing.T, dsn string, o Options) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, ctx: context.Background()}
	var err error
	w.Ledger, err = Open(w.ctx, dsn, o)
	w.ok(err)
	t.Cleanup(w.Close)
	return w
}

// in is the same world for a subtest.
func (w *world) in(t *testing.T) *world {
	return &world{Ledger: w.Ledger, WithT: NewWithT(t), t: t, ctx: w.ctx}
}

func (w *world) ok(err error) {
	w.t.Helper()
	w.Expect(err).NotTo(HaveOccurred())
}

// reason expects a classified fault.
func (w *world) reason(err error, class fault.Class, reason fault.Reason) {
	w.t.Helper()
	w.Expect(err).To(HaveOccurred())
	f := fault.Of(err)
	w.Expect(f.Reason).To(Equal(reason), err.Error())
	w.Expect(f.Class).To(Equal(class), err.Error())
}

// sql runs a statement the ledger has no method for.
func (w *world) sql(sql string, args ...any) {
	w.t.Helper()
	_, err := w.pool.Exec(w.ctx, sql, args...)
	w.ok(err)
}

// number reads one number.
func (w *world) number(sql string, args ...any) (n int) {
	w.t.Helper()
	w.ok(w.pool.QueryRow(w.ctx, sql, args...).Scan(&n))
	return n
}

// untouched expects that f writes nothing to a table: no row gets a new version
// and no row is locked.
func (w *world) untouched(table string, f func()) {
	w.t.Helper()
	state := func() (s string) {
		w.ok(w.pool.QueryRow(w.ctx, `SELECT coalesce(string_agg(concat_ws(' ', ctid, xmin, xmax), ', ' ORDER BY ctid), '') FROM `+table).Scan(&s))
		return s
	}
	before := state()
	f()
	w.Expect(state()).To(Equal(before), "%s was written", table)
}

func spec(name string) domain.ProjectSpec {
	return domain.ProjectSpec{
		UID: "uid-" + name, Object: domain.ObjectKey{Namespace: "teaching", Name: name}, App: "app", Stage: domain.StagePublished,
		Source: "acme/" + name + "-source", Branches: []string{"main", "hints"}, History: domain.HistorySquash,
		Distribution: "acme/" + name + "-squashed", Organization: "acme",
		Provision:   &domain.Provision{Visibility: "Private", Permission: "Push"},
		PullRequest: domain.PullRequestSettings{BranchPrefix: "sync/"}, Concurrency: 4,
	}
}

func (w *world) project(s domain.ProjectSpec) domain.Project {
	w.t.Helper()
	p, err := w.UpsertProject(w.ctx, s, t0)
	w.ok(err)
	return p
}

func (w *world) reload(p domain.Project) domain.Project {
	w.t.Helper()
	p, err := w.Project(w.ctx, p.ID)
	w.ok(err)
	return p
}

func (w *world) lease(p domain.Project) domain.Lease {
	w.t.Helper()
	l, won, err := w.ClaimLease(w.ctx, p.ID, "me", t0)
	w.ok(err)
	w.Expect(won).To(BeTrue())
	return l
}

// built is a project whose distribution is there. Its source has the GitHub id
// 1000 times its row's, its distribution one more.
func (w *world) built(s domain.ProjectSpec) domain.Project {
	w.t.Helper()
	p := w.project(s)
	l := w.lease(p)
	w.ok(w.RecordSource(w.ctx, p.ID, domain.RepositoryRef{ID: 1000 * p.ID, FullName: s.Source}))
	w.ok(w.ClaimDistribution(w.ctx, l, domain.RepositoryRef{ID: 1000*p.ID + 1, FullName: s.Distribution}, t0))
	w.ok(w.RecordBuilt(w.ctx, l, s.Distribution, domain.Heads{"main": "d1", "hints": "e1"}, domain.Heads{"main": "s1", "hints": "h1"}, t0))
	w.ok(w.ReleaseLease(w.ctx, l))
	return w.reload(p)
}

func recipients(n int) []domain.Recipient {
	list := make([]domain.Recipient, n)
	for i := range list {
		list[i] = domain.Recipient{Name: fmt.Sprintf("r%02d", i+1), FullName: fmt.Sprintf("acme/lab1-r%02d", i+1), Members: []string{fmt.Sprintf("login%02d", i+1)}}
	}
	return list
}

// provisioned gives a project n provisioned repositories with the GitHub ids
// 1000 times the project's row plus 11 and up, and objects named after them.
func (w *world) provisioned(p domain.Project, n int) []domain.Repository {
	w.t.Helper()
	rows, err := w.SetRecipients(w.ctx, p.ID, recipients(n), t0)
	w.ok(err)
	for i, r := range rows {
		w.ok(w.SetObject(w.ctx, r.ID, domain.ObjectKey{Namespace: p.Object.Namespace, Name: p.Object.Name + "-" + r.Recipient}))
		w.ok(w.RecordRepositoryID(w.ctx, r.ID, domain.RepositoryRef{ID: 1000*p.ID + int64(11+i), FullName: r.WantedName}, "node"))
		w.ok(w.FinishProvisioning(w.ctx, r.ID, "main", false, t0))
	}
	rows, err = w.Repositories(w.ctx, p.ID)
	w.ok(err)
	return rows
}

// request records a waiting token.
func (w *world) request(p domain.Project, token string) domain.Request {
	w.t.Helper()
	r, created, err := w.RecordRequest(w.ctx, p.ID, domain.Token{Source: domain.TokenSpec, Value: token, RequestedBy: "ops"}, domain.AnswerWaiting, "", "", t0)
	w.ok(err)
	w.Expect(created).To(BeTrue())
	return r
}

// pass starts a pass that hands s2 of main out.
func (w *world) pass(l domain.Lease, r domain.Request) domain.Pass {
	w.t.Helper()
	p, err := w.StartPass(w.ctx, l, domain.PassStart{
		RequestID: r.ID, Heads: domain.Heads{"main": "d2", "hints": "e1"}, SourceHeads: domain.Heads{"main": "s2", "hints": "h1"},
		Changed: []string{"main"}, Actor: "unverified:ops",
	}, t0)
	w.ok(err)
	return p
}

// actions returns the actions of a project's audit entries.
func (w *world) actions(projectID int64) []string {
	w.t.Helper()
	entries, err := w.AuditEntries(w.ctx, projectID)
	w.ok(err)
	actions := []string{}
	for _, e := range entries {
		actions = append(actions, e.Action)
	}
	return actions
}

// together runs f n times at once, released by one barrier, and returns how
// often it answered true.
func (w *world) together(n int, f func(i int) (bool, error)) int {
	w.t.Helper()
	var ready, done sync.WaitGroup
	barrier := make(chan struct{})
	won, errs := make([]bool, n), make([]error, n)
	for i := range n {
		ready.Add(1)
		done.Add(1)
		go func() {
			defer done.Done()
			ready.Done()
			<-barrier
			won[i], errs[i] = f(i)
		}()
	}
	ready.Wait()
	close(barrier)
	done.Wait()
	count := 0
	for i := range n {
		w.ok(errs[i])
		if won[i] {
			count++
		}
	}
	return count
}
