// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what must be refused
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/ledger"
	"github.com/sluice-dev/sluice/internal/testenv"
	"github.com/sluice-dev/sluice/internal/testenv/pgtest"
)

func TestMain(m *testing.M) {
	tests := testenv.RunnerFunc(func() int { return pgtest.Run(m, migrate) })
	os.Exit(testenv.Run(tests, testenv.Options{CRDPaths: []string{"config/crd/bases"}}))
}

func migrate(dsn string) error {
	_, _, err := ledger.Migrate(context.Background(), dsn, nil)
	return err
}

const (
	app           = "acme-app"
	secret        = "It's a Secret to Everybody"
	oldSecret     = "the one before"
	guid          = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
	downstreamID  = 2001
	distribution  = 1001
	sourceID      = 1000
	unknownRepoID = 9999
	sha           = "6113728f27ae82c7b1a177c8d03f9e96e0adf246"
	zeroes        = "0000000000000000000000000000000000000000"
)

var t0 = time.Date(2026, 10, 5, 9, 0, 0, 0, time.UTC)

// secretsOf is a Secrets made of values.
type secretsOf map[string][]string

func (s secretsOf) WebhookSecrets(_ context.Context, name string) (secrets [][]byte, known bool, err error) {
	list, known := s[name]
	for _, one := range list {
		secrets = append(secrets, []byte(one))
	}
	return secrets, known, nil
}

// woken records wake-ups. Each waits for hold, when there is one.
type woken struct {
	hold chan struct{}
	fail error

	mu   sync.Mutex
	list []string
}

func (w *woken) Wake(ctx context.Context, ref domain.ObjectRef, e domain.Event) error {
	if w.hold != nil {
		select {
		case <-w.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, fmt.Sprintf("%s %s/%s %s", ref.Kind, ref.Namespace, ref.Name, e.Event))
	return w.fail
}

func (w *woken) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.list...)
}

// world is a Receiver on a real database with a project of one repository.
type world struct {
	*WithT
	t        *testing.T
	ctx      context.Context
	ledger   *ledger.Ledger
	clock    *testingclock.FakeClock
	secrets  secretsOf
	woken    *woken
	receiver *Receiver
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := worldOn(t, pgtest.Database(t), nil)
	w.seed()
	return w
}

// worldOn makes a Receiver on a database. wrap, if given, stands between it
// and the ledger.
func worldOn(t *testing.T, dsn string, wrap func(Store) Store) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t), t: t, ctx: context.Background(), clock: testingclock.NewFakeClock(t0),
		secrets: secretsOf{app: {oldSecret, secret}, "no-secret": nil, "empty-secret": {""}}, woken: &woken{}}
	var err error
	w.ledger, err = ledger.Open(w.ctx, dsn, ledger.Options{})
	w.ok(err)
	t.Cleanup(w.ledger.Close)
	var store Store = w.ledger
	if wrap != nil {
		store = wrap(store)
	}
	w.receiver, err = New(Options{Store: store, Secrets: w.secrets, Waker: w.woken, Clock: w.clock, Logger: logr.Discard(), MaxBody: 4096})
	w.ok(err)
	return w
}

func (w *world) ok(err error) {
	w.t.Helper()
	w.Expect(err).NotTo(HaveOccurred())
}

func (w *world) seed() {
	w.t.Helper()
	p, err := w.ledger.UpsertProject(w.ctx, domain.ProjectSpec{
		UID: "uid-lab1", Object: domain.ObjectKey{Namespace: "teaching", Name: "lab1"}, App: app, Stage: domain.StagePublished,
		Source: "acme/lab1-source", Branches: []string{"main"}, History: domain.HistorySquash, Distribution: "acme/lab1-squashed",
		Organization: "acme", PullRequest: domain.PullRequestSettings{BranchPrefix: "sync/"}, Concurrency: 4,
	}, t0)
	w.ok(err)
	w.ok(w.ledger.RecordSource(w.ctx, p.ID, domain.RepositoryRef{ID: sourceID, FullName: "acme/lab1-source"}))
	l, _, err := w.ledger.ClaimLease(w.ctx, p.ID, "me", t0)
	w.ok(err)
	w.ok(w.ledger.ClaimDistribution(w.ctx, l, domain.RepositoryRef{ID: distribution, FullName: "acme/lab1-squashed"}, t0))
	w.ok(w.ledger.RecordBuilt(w.ctx, l, "acme/lab1-squashed", domain.Heads{"main": "d1"}, domain.Heads{"main": "s1"}, t0))
	list, err := w.ledger.SetRecipients(w.ctx, p.ID, []domain.Recipient{{Name: "r01", FullName: "acme/lab1-r01"}}, t0)
	w.ok(err)
	w.ok(w.ledger.RecordRepositoryID(w.ctx, list[0].ID, domain.RepositoryRef{ID: downstreamID, FullName: "acme/lab1-r01"}, "R_1"))
	w.ok(w.ledger.FinishProvisioning(w.ctx, list[0].ID, "main", true, t0))
	w.ok(w.ledger.SetObject(w.ctx, list[0].ID, domain.ObjectKey{Namespace: "teaching", Name: "lab1-r01"}))
}

// stored returns all deliveries that wait to be handled.
func (w *world) stored() []domain.Delivery {
	w.t.Helper()
	list, err := w.ledger.ClaimDeliveries(w.ctx, 1000, t0.Add(time.Hour))
	w.ok(err)
	return list
}

func (w *world) receipts(id int64) []domain.Receipt {
	w.t.Helper()
	list, err := w.ledger.Receipts(w.ctx, id)
	w.ok(err)
	return list
}

// post sends a request through the handler.
func (w *world) post(req *http.Request) (code int, body string) {
	answer := httptest.NewRecorder()
	w.receiver.Handler().ServeHTTP(answer, req)
	return answer.Code, answer.Body.String()
}

func sign(name string, f func() hash.Hash, key, body string) string {
	mac := hmac.New(f, []byte(key))
	mac.Write([]byte(body))
	return name + "=" + hex.EncodeToString(mac.Sum(nil))
}

func sha256Of(key, body string) string { return sign("sha256", sha256.New, key, body) }

// request is a well-formed, signed delivery.
func request(event, body string) *http.Request {
	req := httptest.NewRequest(http.MethodPost, "/webhooks/"+app, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", event)
	req.Header.Set("X-GitHub-Delivery", guid)
	req.Header.Set(signatureHeader, sha256Of(secret, body))
	return req
}

// pushTo is a push to a branch of a repository by a person, of two new commits
// and one of the App's.
func pushTo(id int64) string {
	return fmt.Sprintf(`{"ref":"refs/heads/main","before":"%[2]s","after":"%[3]s","created":false,"deleted":false,"forced":true,
		"commits":[{"id":"a","distinct":true,"author":{"name":"Mona","username":"octocat"}},{"id":"b","distinct":true,"author":{"name":"Mona"}},
			{"id":"c","distinct":false,"author":{"name":"Mona","username":"octocat"}},{"id":"d","distinct":true,"author":{"name":"sluice[bot]","username":"sluice[bot]"}}],
		"head_commit":{"id":"%[3]s","timestamp":"2001-01-01T00:00:00Z"},
		"repository":{"id":%[1]d,"full_name":"acme/lab1-r01","owner":{"name":"acme","login":"acme"}},
		"pusher":{"name":"octocat"},"sender":{"login":"octocat","id":1,"type":"User"}}`, id, zeroes, sha)
}

// edited is a request of which one thing is different.
func edited(event, body string, edit func(*http.Request)) *http.Request {
	req := request(event, body)
	edit(req)
	return req
}

func with(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if value == "" {
			r.Header.Del(name)
			return
		}
		r.Header.Set(name, value)
	}
}

func path(p string) func(*http.Request) {
	return func(r *http.Request) { r.URL.Path = p }
}

func TestReceive_R_HOOK_01(t *testing.T) {
	body := pushTo(downstreamID)
	digest := strings.TrimPrefix(sha256Of(secret, body), signaturePrefix)
	large := `{"filler":"` + strings.Repeat("x", 5000) + `"}`
	for name, test := range map[string]struct {
		request *http.Request
		code    int
		answer  string
		stored  int
	}{
		"a signed push is stored":           {request("push", body), 202, `{"status":"stored"}`, 1},
		"an event nobody handles is stored": {request("star", `{"action":"created"}`), 202, `{"status":"stored"}`, 1},
		"the secret before is tried too":    {edited("push", body, with(signatureHeader, sha256Of(oldSecret, body))), 202, `{"status":"stored"}`, 1},
		"no signature":                      {edited("push", body, with(signatureHeader, "")), 401, `{"error":"bad_signature"}`, 0},
		"a wrong signature":                 {edited("push", body, with(signatureHeader, sha256Of("guess", body))), 401, `{"error":"bad_signature"}`, 0},
		"signed with an empty secret":       {edited("push", body, with(signatureHeader, sha256Of("", body))), 401, `{"error":"bad_signature"}`, 0},
		"the signature of another body":     {edited("push", body, with(signatureHeader, sha256Of(secret, "{}"))), 401, `{"error":"bad_signature"}`, 0},
		"a bare digest":                     {edited("push", body, with(signatureHeader, digest)), 401, `{"error":"bad_signature"}`, 0},
		"a digest cut short":                {edited("push", body, with(signatureHeader, "sha256="+digest[:62])), 401, `{"error":"bad_signature"}`, 0},
		"a digest that is not hex":          {edited("push", body, with(signatureHeader, "sha256="+strings.Repeat("zz", 32))), 401, `{"error":"bad_signature"}`, 0},
		"two signatures":                    {edited("push", body, func(r *http.Request) { r.Header.Add(signatureHeader, r.Header.Get(signatureHeader)) }), 401, `{"error":"bad_signature"}`, 0},
		"SHA-1 only": {edited("push", body, func(r *http.Request) {
			r.Header.Del(signatureHeader)
			r.Header.Set("X-Hub-Signature", sign("sha1", sha1.New, secret, body))
		}), 401, `{"error":"bad_signature"}`, 0},
		"SHA-1 under the name of SHA-256": {edited("push", body, with(signatureHeader, sign("sha1", sha1.New, secret, body))), 401, `{"error":"bad_signature"}`, 0},
		"an App without a secret":         {edited("push", body, path("/webhooks/no-secret")), 401, `{"error":"bad_signature"}`, 0},
		"an App with an empty secret": {edited("push", body, func(r *http.Request) {
			path("/webhooks/empty-secret")(r)
			with(signatureHeader, sha256Of("", body))(r)
		}), 401, `{"error":"bad_signature"}`, 0},
		"an App nobody knows":                     {edited("push", body, path("/webhooks/nobody")), 404, "404 page not found\n", 0},
		"another path":                            {edited("push", body, path("/webhooks")), 404, "404 page not found\n", 0},
		"the signature is judged before headers":  {edited("push", "not json", func(r *http.Request) { r.Header.Del("X-GitHub-Event"); with(signatureHeader, "sha256=00")(r) }), 401, `{"error":"bad_signature"}`, 0},
		"headers are judged before the body":      {edited("push", "not json", with("X-GitHub-Delivery", "1")), 400, `{"error":"bad_headers","message":"X-GitHub-Delivery must be a UUID"}`, 0},
		"no delivery id":                          {edited("push", body, with("X-GitHub-Delivery", "")), 400, `{"error":"bad_headers","message":"X-GitHub-Delivery must be a UUID"}`, 0},
		"a delivery id in another form of UUID":   {edited("push", body, with("X-GitHub-Delivery", "{"+guid+"}")), 400, `{"error":"bad_headers","message":"X-GitHub-Delivery must be a UUID"}`, 0},
		"no event":                                {edited("push", body, with("X-GitHub-Event", "")), 400, `{"error":"bad_headers","message":"X-GitHub-Event must name an event"}`, 0},
		"an event that is no word":                {edited("push", body, with("X-GitHub-Event", "pu sh")), 400, `{"error":"bad_headers","message":"X-GitHub-Event must name an event"}`, 0},
		"no JSON":                                 {request("push", "hello"), 400, `{"error":"bad_body","message":"the body must be a JSON object"}`, 0},
		"JSON cut short":                          {request("push", `{"a":`), 400, `{"error":"bad_body","message":"the body must be a JSON object"}`, 0},
		"a JSON array":                            {request("push", `[{}]`), 400, `{"error":"bad_body","message":"the body must be a JSON object"}`, 0},
		"JSON null":                               {request("push", `null`), 400, `{"error":"bad_body","message":"the body must be a JSON object"}`, 0},
		"an empty body":                           {request("push", ""), 400, `{"error":"bad_body","message":"the body must be a JSON object"}`, 0},
		"a form":                                  {edited("push", "payload=%7B%7D", with("Content-Type", "application/x-www-form-urlencoded")), 400, `{"error":"bad_body","message":"the body must be a JSON object: set the webhook's content type to application/json"}`, 0},
		"too large":                               {request("push", large), 413, `{"error":"too_large","message":"the body is larger than 4096 bytes"}`, 0},
		"too large, without saying so":            {edited("push", large, func(r *http.Request) { r.ContentLength = -1 }), 413, `{"error":"too_large","message":"the body is larger than 4096 bytes"}`, 0},
		"another method":                          {edited("push", body, func(r *http.Request) { r.Method = http.MethodGet }), 405, "Method Not Allowed\n", 0},
		"a push in a shape nobody documents":      {request("push", `{"ref":7}`), 202, `{"status":"stored"}`, 1},
		"an action that no database could hold":   {request("push", `{"action":"\u0000"}`), 202, `{"status":"stored"}`, 1},
		"bytes that are not text within the JSON": {request("star", "{\"a\":\"\xff\"}"), 202, `{"status":"stored"}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			code, answer := w.post(test.request)
			w.Expect(answer).To(Equal(test.answer))
			w.Expect(code).To(Equal(test.code))
			w.Expect(w.stored()).To(HaveLen(test.stored))
			if test.stored == 0 {
				w.Expect(w.receipts(downstreamID)).To(BeEmpty())
			}
		})
	}
}

func TestReceive_StoresTheBytesThatWereSigned(t *testing.T) {
	w := newWorld(t)
	body := "  {\"action\":\"closed\",  \"n\": 1.0}\n"
	w.clock.SetTime(t0.Add(time.Minute + 1234567*time.Nanosecond))
	code, _ := w.post(request("pull_request", body))
	w.Expect(code).To(Equal(202))
	w.Expect(w.stored()).To(HaveExactElements(domain.Delivery{App: app, GUID: guid, Event: "pull_request", Action: "closed",
		Payload: []byte(body), ReceivedAt: t0.Add(time.Minute + 1234*time.Microsecond)}))
}

func TestReceive_R_HOOK_02_ADuplicateChangesNothing(t *testing.T) {
	w := newWorld(t)
	code, _ := w.post(request("push", pushTo(downstreamID)))
	w.Expect(code).To(Equal(202))
	w.clock.Step(time.Hour)
	code, answer := w.post(edited("push", pushTo(downstreamID), with("X-GitHub-Delivery", strings.ToUpper(guid))))
	w.Expect(code).To(Equal(200))
	w.Expect(answer).To(Equal(`{"status":"duplicate"}`))
	w.Expect(w.stored()).To(HaveLen(1))
	w.Expect(w.receipts(downstreamID)).To(HaveExactElements(HaveField("ReceivedAt", t0)))
	w.Expect(w.receiver.wakes.offered).To(HaveLen(1), "a duplicate wakes nobody")
}

func TestReceive_R_HOOK_05_Receipts(t *testing.T) {
	receipt := domain.Receipt{RepositoryID: downstreamID, Branch: "main", HeadSHA: sha, ReceivedAt: t0, Forced: true, Commits: 2}
	like := func(edit func(*domain.Receipt)) []domain.Receipt {
		r := receipt
		edit(&r)
		return []domain.Receipt{r}
	}
	replaced := func(old, by string) string { return strings.ReplaceAll(pushTo(downstreamID), old, by) }
	bot := func(login, kind string) string {
		return replaced(`"login":"octocat","id":1,"type":"User"`, fmt.Sprintf(`"login":%q,"id":1,"type":%q`, login, kind))
	}
	for name, test := range map[string]struct {
		id      int64
		event   string
		payload string
		want    []domain.Receipt
	}{
		"a person's push to a downstream repository":    {downstreamID, "push", pushTo(downstreamID), []domain.Receipt{receipt}},
		"a push to the distribution":                    {distribution, "push", pushTo(distribution), like(func(r *domain.Receipt) { r.RepositoryID = distribution })},
		"a push to another branch":                      {downstreamID, "push", replaced("refs/heads/main", "refs/heads/feature/x"), like(func(r *domain.Receipt) { r.Branch = "feature/x" })},
		"the App's push":                                {downstreamID, "push", bot("sluice[bot]", "Bot"), like(func(r *domain.Receipt) { r.Bot = true })},
		"a workflow's push":                             {downstreamID, "push", bot("github-actions[bot]", "Bot"), like(func(r *domain.Receipt) { r.Bot = true })},
		"a person with a bot's kind only":               {downstreamID, "push", bot("bot", "Bot"), []domain.Receipt{receipt}},
		"R-AHEAD-04 a push to a source":                 {sourceID, "push", pushTo(sourceID), nil},
		"R-HOOK-09 a push to a repository nobody knows": {unknownRepoID, "push", pushTo(unknownRepoID), nil},
		"a deletion of a branch":                        {downstreamID, "push", strings.ReplaceAll(replaced(sha, zeroes), `"deleted":false`, `"deleted":true`), nil},
		"a head of zeros":                               {downstreamID, "push", replaced(sha, zeroes), nil},
		"a tag":                                         {downstreamID, "push", replaced("refs/heads/main", "refs/tags/v1"), nil},
		"another event that looks like a push":          {downstreamID, "create", pushTo(downstreamID), nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			code, _ := w.post(request(test.event, test.payload))
			w.Expect(code).To(Equal(202))
			w.Expect(w.receipts(test.id)).To(HaveExactElements(asAny(test.want)...))
		})
	}
	t.Run("the first receipt of a head stands", func(t *testing.T) {
		w := newWorld(t)
		w.post(request("push", pushTo(downstreamID)))
		w.clock.Step(time.Minute)
		code, _ := w.post(edited("push", pushTo(downstreamID), with("X-GitHub-Delivery", strings.Replace(guid, "7", "8", 1))))
		w.Expect(code).To(Equal(202))
		w.Expect(w.receipts(downstreamID)).To(HaveExactElements(receipt))
	})
}

func asAny[T any](list []T) []any {
	var all []any
	for _, one := range list {
		all = append(all, one)
	}
	return all
}

// countingReader fails the test's expectation when a body is read.
type countingReader struct {
	bytes.Reader
	read int
}

func (c *countingReader) Read(p []byte) (int, error) {
	c.read++
	return c.Reader.Read(p)
}

func TestReceive_R_HOOK_01_NothingIsReadWithoutASignature(t *testing.T) {
	w := newWorld(t)
	body := &countingReader{}
	code, _ := w.post(edited("push", "{}", func(r *http.Request) {
		r.Body = http.NoBody
		r.Header.Del(signatureHeader)
	}))
	w.Expect(code).To(Equal(401))
	req := httptest.NewRequest(http.MethodPost, "/webhooks/nobody", body)
	req.Header.Set(signatureHeader, sha256Of(secret, ""))
	code, _ = w.post(req)
	w.Expect(code).To(Equal(404))
	w.Expect(body.read).To(BeZero())
}

func TestReceive_MemoryIsBoundedForAll(t *testing.T) {
	w := newWorld(t)
	others := w.receiver.memory.left.Load() - 10
	w.Expect(w.receiver.memory.take(others)).To(BeTrue())
	code, answer := w.post(request("push", pushTo(downstreamID)))
	w.Expect(code).To(Equal(503))
	w.Expect(answer).To(ContainSubstring("busy"))
	w.Expect(w.receiver.memory.left.Load()).To(BeEquivalentTo(10), "what was read was given back")
	w.receiver.memory.give(others)
	code, _ = w.post(request("push", pushTo(downstreamID)))
	w.Expect(code).To(Equal(202))
	w.Expect(w.receiver.memory.left.Load()).To(Equal(others + 10))
}

// failingSecrets cannot tell.
type failingSecrets struct{}

func (failingSecrets) WebhookSecrets(context.Context, string) ([][]byte, bool, error) {
	return nil, false, context.DeadlineExceeded
}

func TestReceive_SecretsThatCannotBeReadAreNoRefusal(t *testing.T) {
	w := newWorld(t)
	w.receiver.secrets = failingSecrets{}
	code, answer := w.post(request("push", pushTo(downstreamID)))
	w.Expect(code).To(Equal(503))
	w.Expect(answer).To(Equal(`{"error":"unavailable","message":"try again later"}`))
	w.Expect(w.stored()).To(BeEmpty())
}

func TestReceive_R_CORE_10_LogsHoldNoSecretAndNoPayload(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	w.receiver.log = funcr.New(func(prefix, args string) { log.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 9})
	const private = "private-words"
	body := `{"action":"created","repository":{"id":2001},"comment":"` + private + `"}`
	w.post(request("issue_comment", body))
	w.post(edited("issue_comment", body, with(signatureHeader, sha256Of("guess", body))))
	w.post(request("issue_comment", body+private))
	w.Expect(log.String()).To(And(ContainSubstring("Received delivery"), ContainSubstring("Refused delivery"), ContainSubstring(guid), ContainSubstring(`"repositoryID"=2001`)))
	for _, hidden := range []string{private, secret, oldSecret, sha256Of(secret, body)} {
		w.Expect(log.String()).NotTo(ContainSubstring(hidden))
	}

	log.Reset()
	for range 10 {
		w.post(edited("push", "{}", with(signatureHeader, "")))
	}
	w.Expect(log.String()).To(BeEmpty(), "one refusal of a kind was logged this second; the others are counted only")
	w.clock.Step(time.Second)
	w.post(edited("push", "{}", with(signatureHeader, "")))
	w.Expect(strings.Count(log.String(), "Refused delivery")).To(Equal(1))
}

func TestNewNamesTheMissingOption(t *testing.T) {
	g := NewWithT(t)
	_, err := New(Options{Store: &ledger.Ledger{}, Secrets: secretsOf{}, Waker: &woken{}})
	g.Expect(err).To(MatchError(ContainSubstring("Clock")))
}
