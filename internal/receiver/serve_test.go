// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/testenv/pgtest"
)

const patience = 20 * time.Second

// serving is a Receiver that answers on a real address.
type serving struct {
	*world
	url   string
	stop  context.CancelFunc
	ended chan error
}

func (w *world) serve() *serving {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.ok(err)
	ctx, cancel := context.WithCancel(w.ctx)
	s := &serving{world: w, url: "http://" + l.Addr().String(), stop: cancel, ended: make(chan error, 1)}
	go func() { s.ended <- w.receiver.Serve(ctx, l) }()
	w.t.Cleanup(cancel)
	return s
}

// send posts a delivery over the network.
func (s *serving) send(event, body string) (int, error) {
	req := request(event, body)
	req.RequestURI = ""
	out, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.url+"/webhooks/"+app, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	out.Header = req.Header
	resp, err := http.DefaultClient.Do(out)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

func (s *serving) get(path string) (int, string) {
	resp, err := http.Get(s.url + path) //nolint:noctx // a test's own server
	s.ok(err)
	body, err := io.ReadAll(resp.Body)
	s.ok(err)
	s.ok(resp.Body.Close())
	return resp.StatusCode, strings.TrimSpace(string(body))
}

// slowStore holds deliveries back until it is told.
type slowStore struct {
	Store
	entered, release chan struct{}
}

func (s *slowStore) StoreDelivery(ctx context.Context, d domain.Delivery, r *domain.Receipt) (bool, error) {
	close(s.entered)
	<-s.release
	return s.Store.StoreDelivery(ctx, d, r)
}

func TestServe_ShutdownLosesNothingAccepted(t *testing.T) {
	slow := &slowStore{entered: make(chan struct{}), release: make(chan struct{})}
	w := worldOn(t, pgtest.Database(t), func(s Store) Store { slow.Store = s; return slow })
	w.seed()
	s := w.serve()
	answered := make(chan int, 1)
	go func() {
		code, err := s.send("push", pushTo(downstreamID))
		if err != nil {
			code = -1
		}
		answered <- code
	}()
	w.Eventually(slow.entered, patience).Should(BeClosed())

	s.stop()
	w.Eventually(s.receiver.stopping.Load, patience).Should(BeTrue())
	w.Expect(s.ended).NotTo(Receive(), "it waits for the delivery under way")
	close(slow.release)

	w.Eventually(answered, patience).Should(Receive(Equal(202)))
	w.Eventually(s.ended, patience).Should(Receive(BeNil()))
	w.Expect(w.stored()).To(HaveLen(1))
	w.Expect(w.receipts(downstreamID)).To(HaveLen(1))
	w.Expect(w.woken.seen()).To(ConsistOf("GitHubApp /acme-app push", "RepoReconcile teaching/lab1-r01 push"), "wake-ups that were left are sent")
	_, err := s.send("push", pushTo(downstreamID))
	w.Expect(err).To(HaveOccurred(), "nothing is accepted any more")
}

func TestServe_R_HOOK_03_ASenderThatHangsUpUndoesNothing(t *testing.T) {
	slow := &slowStore{entered: make(chan struct{}), release: make(chan struct{})}
	w := worldOn(t, pgtest.Database(t), func(s Store) Store { slow.Store = s; return slow })
	w.seed()
	ctx, hangUp := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.receiver.Handler().ServeHTTP(httptest.NewRecorder(), request("push", pushTo(downstreamID)).WithContext(ctx))
	}()
	w.Eventually(slow.entered, patience).Should(BeClosed())
	hangUp()
	close(slow.release)
	w.Eventually(done, patience).Should(BeClosed())
	w.Expect(w.stored()).To(HaveLen(1))
}

func TestServe_WakesTheObjectsConcerned(t *testing.T) {
	for name, test := range map[string]struct {
		event, payload string
		want           []any
	}{
		"the project of a source":                        {"push", pushTo(sourceID), []any{"GitHubApp /acme-app push", "ProjectSync teaching/lab1 push"}},
		"the project of a distribution":                  {"push", pushTo(distribution), []any{"GitHubApp /acme-app push", "ProjectSync teaching/lab1 push"}},
		"the object of a downstream repository":          {"pull_request", `{"action":"closed","repository":{"id":2001}}`, []any{"GitHubApp /acme-app pull_request.closed", "RepoReconcile teaching/lab1-r01 pull_request.closed"}},
		"R-HOOK-09 the App alone for an unknown one":     {"push", pushTo(unknownRepoID), []any{"GitHubApp /acme-app push"}},
		"the App alone for an event about no repository": {"installation", `{"action":"suspend"}`, []any{"GitHubApp /acme-app installation.suspend"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorld(t).serve()
			s.Expect(s.send(test.event, test.payload)).To(Equal(202))
			s.Eventually(s.woken.seen, patience).Should(ConsistOf(test.want...))
		})
	}
}

func TestServe_R_HOOK_04_ASlowAPIServerHoldsNothingUp(t *testing.T) {
	w := newWorld(t)
	w.woken.hold = make(chan struct{})
	s := w.serve()
	for range 3 {
		s.Expect(s.send("push", pushTo(downstreamID))).To(BeElementOf(202, 200))
	}
	w.Expect(w.woken.seen()).To(BeEmpty())
	close(w.woken.hold)
	s.Eventually(s.woken.seen, patience).Should(HaveLen(2))
	s.stop()
	s.Eventually(s.ended, patience).Should(Receive(BeNil()))
}

func TestServe_R_HOOK_03_WithoutPostgresNothingIsTakenAndItComesBack(t *testing.T) {
	server := pgtest.Dedicated(t)
	ctx := context.Background()
	g := NewWithT(t)
	g.Expect(server.CreateDatabase(ctx, "sluice")).To(Succeed())
	g.Expect(migrate(server.DSN("sluice"))).To(Succeed())
	server.Pause()

	w := worldOn(t, server.DSN("sluice"), nil)
	s := w.serve() // starts before Postgres is there
	ready := func() string {
		w.clock.Step(2 * readyFor)
		code, text := s.get("/readyz")
		return http.StatusText(code) + " " + text
	}
	g.Expect(ready()).To(Equal("Service Unavailable DatabaseUnavailable"))
	code, text := s.get("/healthz")
	g.Expect(code).To(Equal(200), text)
	g.Expect(s.send("push", pushTo(downstreamID))).To(Equal(503))

	g.Expect(server.Resume(ctx)).To(Succeed())
	g.Eventually(ready, patience).Should(Equal("OK ok"))
	w.seed()
	g.Expect(s.send("push", pushTo(downstreamID))).To(Equal(202), "the redelivery is no duplicate")
	g.Expect(w.receipts(downstreamID)).To(HaveLen(1))

	server.Pause()
	g.Eventually(ready, patience).Should(Equal("Service Unavailable DatabaseUnavailable"))
	g.Expect(s.send("push", pushTo(downstreamID))).To(Equal(503))
	g.Expect(server.Resume(ctx)).To(Succeed())
	g.Eventually(ready, patience).Should(Equal("OK ok"))
	g.Expect(s.send("push", pushTo(downstreamID))).To(Equal(200), "what was stored before is still known")
}

// askedStore counts questions.
type askedStore struct {
	Store
	asked int
}

func (a *askedStore) Ready(ctx context.Context) error {
	a.asked++
	return a.Store.Ready(ctx)
}

func TestReadyz_AsksTheDatabaseOnceASecond(t *testing.T) {
	asked := &askedStore{}
	w := worldOn(t, pgtest.Database(t), func(s Store) Store { asked.Store = s; return asked })
	for range 5 {
		code, _ := w.post(httptest.NewRequest(http.MethodGet, "/readyz", nil))
		w.Expect(code).To(Equal(200))
	}
	w.Expect(asked.asked).To(Equal(1))
	w.receiver.stopping.Store(true)
	code, _ := w.post(httptest.NewRequest(http.MethodGet, "/readyz", nil))
	w.Expect(code).To(Equal(503))
}

func TestServe_AListenerThatFailsIsAnError(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.ok(err)
	w.ok(l.Close())
	w.Expect(w.receiver.Serve(w.ctx, l)).To(MatchError(ContainSubstring("receiving webhooks on 127.0.0.1:")))
}
