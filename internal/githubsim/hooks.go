// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
)

// delivery is one attempt to send a webhook.
type delivery struct {
	id                       int64
	guid, event, action      string
	body                     []byte
	header                   http.Header
	installation, repository int64
	url                      string
	redelivery               bool

	// Known once it was tried:
	deliveredAt time.Time
	duration    time.Duration
	statusCode  int
	status      string // OK, or what went wrong
	answer      string
	answered    http.Header
}

// keepDeliveries is how long GitHub can send a webhook again.
const keepDeliveries = 3 * 24 * time.Hour

// maxDeliveries bounds the log; the oldest half goes first.
const maxDeliveries = 10_000

// hookQueue delivers an App's webhooks one after the other, as they were
// queued, and keeps the log. A delivery that fails is not tried again, as on
// GitHub.
type hookQueue struct {
	now    func() time.Time
	client *http.Client

	mu      sync.Mutex
	changed *sync.Cond
	queue   []*delivery
	log     []*delivery // oldest first
	busy    bool
	held    bool // nothing is sent until it is released
	closed  bool
	stop    context.CancelFunc
	stopped chan struct{}
}

func newHookQueue(client *http.Client, now func() time.Time) *hookQueue {
	ctx, stop := context.WithCancel(context.Background())
	q := &hookQueue{now: now, client: client, stop: stop, stopped: make(chan struct{})}
	q.changed = sync.NewCond(&q.mu)
	go q.run(ctx)
	return q
}

func (q *hookQueue) run(ctx context.Context) {
	defer close(q.stopped)
	for {
		d := q.next()
		if d == nil {
			return
		}
		q.send(ctx, d)
		at := q.now()
		q.mu.Lock()
		d.deliveredAt = at
		if q.log = append(q.log, d); len(q.log) > maxDeliveries {
			q.log = append([]*delivery(nil), q.log[len(q.log)-maxDeliveries/2:]...)
		}
		q.busy = false
		q.changed.Broadcast()
		q.mu.Unlock()
	}
}

// next waits for a delivery; nil ends the queue.
func (q *hookQueue) next() *delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	for (len(q.queue) == 0 || q.held) && !q.closed {
		q.changed.Wait()
	}
	if q.closed {
		return nil
	}
	d := q.queue[0]
	q.queue = q.queue[1:]
	q.busy = true
	return d
}

// maxAnswer is how much of a receiver's answer is kept.
const maxAnswer = 4096

// send posts one delivery and notes what came of it.
func (q *hookQueue) send(ctx context.Context, d *delivery) {
	started := time.Now()
	defer func() { d.duration = time.Since(started) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(d.body))
	if err != nil {
		d.status = "failed to connect to host"
		return
	}
	req.Header = d.header.Clone()
	resp, err := q.client.Do(req)
	if err != nil {
		d.status = deliveryFailure(err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		d.status = deliveryFailure(err)
		return
	}
	d.statusCode, d.answer, d.answered = resp.StatusCode, string(text), resp.Header
	d.status = "OK"
	if resp.StatusCode >= http.StatusBadRequest {
		d.status = fmt.Sprintf("Invalid HTTP Response: %d", resp.StatusCode)
	}
}

// deliveryFailure says in GitHub's words why nobody answered.
func deliveryFailure(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "timed out"
	}
	return "failed to connect to host"
}

// add queues a delivery.
func (q *hookQueue) add(d *delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, d)
	q.changed.Broadcast()
}

// hold keeps deliveries back, or sends those kept.
func (q *hookQueue) hold(held bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held = held
	q.changed.Broadcast()
}

// drop loses what is queued and returns how many that were.
func (q *hookQueue) drop() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.queue)
	q.queue = nil
	q.changed.Broadcast()
	return n
}

// flush waits until nothing is queued or under way.
func (q *hookQueue) flush(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.changed.Broadcast()
	})
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for (len(q.queue) > 0 || q.busy) && !q.closed {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		q.changed.Wait()
	}
	return nil
}

// deliveries returns the log of those that can still be sent again, newest
// first.
func (q *hookQueue) deliveries() []*delivery {
	oldest := q.now().Add(-keepDeliveries)
	q.mu.Lock()
	defer q.mu.Unlock()
	var list []*delivery
	for i := len(q.log) - 1; i >= 0 && q.log[i].deliveredAt.After(oldest); i-- {
		list = append(list, q.log[i])
	}
	return list
}

func (q *hookQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.changed.Broadcast()
	q.mu.Unlock()
	q.stop()
	<-q.stopped
}

// maxPayload is GitHub's limit: a larger event is not delivered at all.
const maxPayload = 25 << 20

// newDelivery makes a delivery of an event to an App's hook.
func (s *Server) newDelivery(a *app, event, action string, body []byte) *delivery {
	guid := uuid.NewString()
	header := http.Header{
		"Content-Type": {"application/json"}, "Accept": {"*/*"}, "User-Agent": {"GitHub-Hookshot/0000000"},
		"X-Github-Event": {event}, "X-Github-Delivery": {guid}, "X-Github-Hook-Id": {strconv.FormatInt(a.hookID, 10)},
		"X-Github-Hook-Installation-Target-Id": {strconv.FormatInt(a.id, 10)}, "X-Github-Hook-Installation-Target-Type": {"integration"},
	}
	if a.hookSecret != "" {
		header.Set("X-Hub-Signature", "sha1="+sign(sha1.New, a.hookSecret, body))
		header.Set("X-Hub-Signature-256", "sha256="+sign(sha256.New, a.hookSecret, body))
	}
	return &delivery{id: s.id(), guid: guid, event: event, action: action, body: body, header: header, url: a.hookURL}
}

func sign(algorithm func() hash.Hash, secret string, body []byte) string {
	mac := hmac.New(algorithm, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func (s *Server) listDeliveries(c *call) response {
	list := c.actor.app.hooks.deliveries()
	q := c.URL.Query()
	if wanted := q.Get("status"); wanted != "" {
		list = filterDeliveries(list, wanted)
	}
	cursor := q.Get("cursor")
	if cursor != "" {
		last, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil {
			return refuse(http.StatusBadRequest, "Invalid cursor")
		}
		for len(list) > 0 && list[0].id >= last {
			list = list[1:]
		}
	}
	header := http.Header{}
	if per := c.pageSize(); len(list) > per {
		list = list[:per]
		q.Set("cursor", strconv.FormatInt(list[per-1].id, 10))
		header.Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, s.api("/app/hook/deliveries"), q.Encode()))
	}
	out := []any{}
	for _, d := range list {
		out = append(out, d.item())
	}
	return response{status: http.StatusOK, body: out, header: header}
}

// filterDeliveries keeps those that succeeded or failed; a delivery that got
// no answer at all is neither.
func filterDeliveries(list []*delivery, wanted string) []*delivery {
	var kept []*delivery
	for _, d := range list {
		success := d.statusCode >= http.StatusOK && d.statusCode < http.StatusBadRequest
		failure := d.statusCode >= http.StatusBadRequest
		if (wanted == "success" && success) || (wanted == "failure" && failure) {
			kept = append(kept, d)
		}
	}
	return kept
}

// item renders a delivery of a list.
func (d *delivery) item() map[string]any {
	m := map[string]any{"id": d.id, "guid": d.guid, "delivered_at": stamp(d.deliveredAt), "redelivery": d.redelivery, "duration": d.duration.Round(time.Millisecond).Seconds(),
		"status": d.status, "status_code": d.statusCode, "event": d.event, "action": nil, "installation_id": nil, "repository_id": nil, "throttled_at": nil}
	if d.action != "" {
		m["action"] = d.action
	}
	if d.installation != 0 {
		m["installation_id"] = d.installation
	}
	if d.repository != 0 {
		m["repository_id"] = d.repository
	}
	return m
}

// delivery finds the delivery a request names.
func (c *call) delivery() *delivery {
	id := c.number("delivery")
	for _, d := range c.actor.app.hooks.deliveries() {
		if d.id == id {
			return d
		}
	}
	return nil
}

func (s *Server) getDelivery(c *call) response {
	d := c.delivery()
	if d == nil {
		return notFound
	}
	m := d.item()
	m["url"] = d.url
	m["request"] = map[string]any{"headers": flat(d.header), "payload": rawJSON(d.body)}
	m["response"] = map[string]any{"headers": flat(d.answered), "payload": d.answer}
	return ok(m)
}

// flat renders headers with one value each.
func flat(h http.Header) map[string]any {
	m := map[string]any{}
	for name := range maps.Keys(h) {
		m[name] = h.Get(name)
	}
	return m
}

// redeliver sends a delivery again, with the same GUID and body.
func (s *Server) redeliver(c *call) response {
	d := c.delivery()
	if d == nil {
		return notFound
	}
	again := &delivery{id: s.id(), guid: d.guid, event: d.event, action: d.action, body: d.body, header: d.header, installation: d.installation,
		repository: d.repository, url: c.actor.app.hookURL, redelivery: true}
	c.actor.app.hooks.add(again)
	return response{status: http.StatusAccepted, body: map[string]any{}}
}
