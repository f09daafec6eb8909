// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// delivery is one webhook, sent or to be sent.
type delivery struct {
	id           int64
	app          *app
	guid, event  string
	action       string
	body         []byte
	installation int64
	repository   int64
	url, secret  string
	deliveredAt  time.Time
	duration     time.Duration
	statusCode   int
}

// hookQueue delivers webhooks one after the other, as they were queued, and
// keeps the log. A delivery that fails is not tried again, as on GitHub.
type hookQueue struct {
	mu      sync.Mutex
	wake    *sync.Cond
	queue   []*delivery
	log     []*delivery
	busy    bool
	closed  bool
	now     func() time.Time
	client  *http.Client
	stopped chan struct{}
}

// hookTimeout is how long GitHub waits for an answer.
const hookTimeout = 10 * time.Second

func newHookQueue(now func() time.Time) *hookQueue {
	q := &hookQueue{now: now, client: &http.Client{Timeout: hookTimeout}, stopped: make(chan struct{})}
	q.wake = sync.NewCond(&q.mu)
	go q.run()
	return q
}

func (q *hookQueue) run() {
	defer close(q.stopped)
	for {
		q.mu.Lock()
		for len(q.queue) == 0 && !q.closed {
			q.wake.Wait()
		}
		if q.closed {
			q.mu.Unlock()
			return
		}
		d := q.queue[0]
		q.queue = q.queue[1:]
		q.busy = true
		q.mu.Unlock()
		status, took := q.send(d)
		q.mu.Lock()
		d.statusCode, d.duration, d.deliveredAt = status, took, q.now()
		q.log = append(q.log, d)
		q.busy = false
		q.wake.Broadcast()
		q.mu.Unlock()
	}
}

// send posts one delivery; status 0 means that nobody answered.
func (q *hookQueue) send(d *delivery) (status int, took time.Duration) {
	started := time.Now()
	req, err := http.NewRequest(http.MethodPost, d.url, bytes.NewReader(d.body))
	if err != nil {
		return 0, 0
	}
	mac := hmac.New(sha256.New, []byte(d.secret))
	mac.Write(d.body)
	for k, v := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "GitHub-Hookshot/0000000", "X-GitHub-Event": d.event, "X-GitHub-Delivery": d.guid,
		"X-GitHub-Hook-ID": strconv.FormatInt(d.app.id, 10), "X-GitHub-Hook-Installation-Target-ID": strconv.FormatInt(d.app.id, 10),
		"X-GitHub-Hook-Installation-Target-Type": "integration", "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil)),
	} {
		req.Header.Set(k, v)
	}
	resp, err := q.client.Do(req)
	if err != nil {
		return 0, time.Since(started)
	}
	_ = resp.Body.Close()
	return resp.StatusCode, time.Since(started)
}

func (q *hookQueue) add(d *delivery) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, d)
	q.wake.Broadcast()
}

// flush waits until nothing is queued or under way.
func (q *hookQueue) flush(ctx context.Context) error {
	stop := context.AfterFunc(ctx, q.wake.Broadcast)
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for (len(q.queue) > 0 || q.busy) && !q.closed {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		q.wake.Wait()
	}
	return nil
}

func (q *hookQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.wake.Broadcast()
	q.mu.Unlock()
	<-q.stopped
}

// emit queues an event for every App that is installed on the repository's
// owner and has a webhook.
func (s *Server) emit(r *repo, by *account, event, action string, payload map[string]any) {
	for _, i := range s.installations {
		if i.account != r.owner || i.app.hookURL == "" || i.suspendedAt != nil {
			continue
		}
		payload["repository"] = s.repository(r)
		if event == "push" {
			payload["repository"] = s.pushRepository(r)
		}
		payload["sender"] = s.user(by)
		payload["installation"] = map[string]any{"id": i.id, "node_id": nodeID("I", i.id)}
		if r.owner.kind == "Organization" {
			payload["organization"] = map[string]any{"login": r.owner.login, "id": r.owner.id, "node_id": nodeID("O", r.owner.id), "url": s.api("/orgs/%s", r.owner.login)}
		}
		if action != "" {
			payload["action"] = action
		}
		body, err := json.Marshal(payload)
		if err != nil {
			panic(err) // the payload is made of plain values
		}
		s.hooks.add(&delivery{id: s.id(), app: i.app, guid: uuid.NewString(), event: event, action: action, body: body, installation: i.id, repository: r.id,
			url: i.app.hookURL, secret: i.app.hookSecret})
	}
}

// pushRepository is a repository as push events carry it: times as epoch
// numbers, the owner with a name.
func (s *Server) pushRepository(r *repo) map[string]any {
	m := s.repository(r)
	m["created_at"], m["pushed_at"] = r.createdAt.Unix(), r.pushedAt.Unix()
	owner := s.user(r.owner)
	owner["name"], owner["email"] = r.owner.login, nil
	m["owner"] = owner
	return m
}

// maxPushCommits is how many commits a push event lists.
const maxPushCommits = 2048

func (s *Server) emitPush(r *repo, by *account, ref, old, now string) {
	or := func(sha string) string {
		if sha == "" {
			return zeroSHA
		}
		return sha
	}
	payload := map[string]any{"ref": ref, "before": or(old), "after": or(now), "created": old == "", "deleted": now == "", "forced": false, "base_ref": nil,
		"compare": s.api("/%s/compare/%s...%s", r.fullName(), or(old), or(now)), "commits": []any{}, "head_commit": nil,
		"pusher": map[string]any{"name": by.login, "email": fmt.Sprintf("%d+%s@users.noreply.github.com", by.id, by.login)}}
	if now != "" {
		payload["forced"] = old != "" && !isAncestor(r.dir, old, now)
		args := []string{"rev-list", "--reverse", fmt.Sprintf("--max-count=%d", maxPushCommits), now}
		if old != "" {
			args = append(args, "^"+old)
		}
		out, err := git(r.dir, nil, nil, args...)
		if err == nil {
			list := []any{}
			for _, sha := range strings.Fields(out) {
				list = append(list, s.pushCommit(r, sha))
			}
			payload["commits"] = list
		}
		payload["head_commit"] = s.pushCommit(r, now)
	}
	s.emit(r, by, "push", "", payload)
}

func (s *Server) pushCommit(r *repo, sha string) map[string]any {
	info := readCommit(r.dir, sha)
	lists := map[string][]string{"added": {}, "modified": {}, "removed": {}}
	if len(info.parents) > 0 {
		for _, f := range diff(r.dir, info.parents[0], sha) {
			kind := map[string]string{"added": "added", "removed": "removed"}[f.status]
			if kind == "" {
				kind = "modified"
			}
			lists[kind] = append(lists[kind], f.name)
		}
	}
	return map[string]any{"id": sha, "tree_id": info.tree, "distinct": true, "message": info.message, "timestamp": info.committerDate, "url": s.api("/%s/commit/%s", r.fullName(), sha),
		"author": map[string]any{"name": info.author, "email": info.authorEmail}, "committer": map[string]any{"name": info.committer, "email": info.committerEmail},
		"added": lists["added"], "modified": lists["modified"], "removed": lists["removed"]}
}

func (s *Server) emitPull(p *pull, by *account, action string, more map[string]any) {
	payload := map[string]any{"number": p.number, "pull_request": s.pullFull(p)}
	for k, v := range more {
		payload[k] = v
	}
	s.emit(p.repo, by, "pull_request", action, payload)
}

func (s *Server) emitRepository(r *repo, by *account, action string, changes map[string]any) {
	payload := map[string]any{}
	if changes != nil {
		payload["changes"] = changes
	}
	s.emit(r, by, "repository", action, payload)
}

func (s *Server) listDeliveries(c *call) response {
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	list := []any{}
	for i := len(s.hooks.log) - 1; i >= 0; i-- {
		d := s.hooks.log[i]
		if d.app != c.actor.app {
			continue
		}
		status := "OK"
		if d.statusCode == 0 {
			status = "failed to connect to host"
		} else if d.statusCode >= 400 {
			status = fmt.Sprintf("Invalid HTTP Response: %d", d.statusCode)
		}
		var action any
		if d.action != "" {
			action = d.action
		}
		list = append(list, map[string]any{"id": d.id, "guid": d.guid, "delivered_at": stamp(d.deliveredAt), "redelivery": false, "duration": d.duration.Seconds(),
			"status": status, "status_code": d.statusCode, "event": d.event, "action": action, "installation_id": d.installation, "repository_id": d.repository, "throttled_at": nil})
	}
	list, header := page(s, c, list)
	return response{status: http.StatusOK, body: list, header: header}
}
