// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// storeTimeout ends within the ten seconds that GitHub waits.
const storeTimeout = 8 * time.Second

// answer is what a request came to.
type answer struct {
	status int
	// result is a bounded word: the answer's, the log's and the metric's.
	result string
	// message says what to mend; empty where that would help a forger.
	message string

	// What was learnt about the delivery; logged as far as it goes. Event is
	// empty until the signature was verified.
	app, guid, event, action string
	repositoryID             int64
	receivedAt               time.Time
	// detail is for the log only.
	detail string
}

// Results of a request.
const (
	resultStored      = "stored"
	resultDuplicate   = "duplicate"
	resultSignature   = "bad_signature"
	resultHeaders     = "bad_headers"
	resultBody        = "bad_body"
	resultTooLarge    = "too_large"
	resultBusy        = "busy"
	resultUnknownApp  = "unknown_app"
	resultUnavailable = "unavailable"
)

// with returns a copy with the end of a request's story.
func (a answer) with(status int, result, message string) answer {
	a.status, a.result, a.message = status, result, message
	return a
}

// because returns a copy with an error's text for the log. Faults hold no
// secret.
func (a answer) because(err error) answer {
	f := fault.Of(err)
	a.detail = string(f.Reason) + ": " + f.Message
	return a
}

// deliver takes one delivery in. The wake-up comes after the answer and never
// holds it up (R-HOOK-03, R-HOOK-04).
func (r *Receiver) deliver(w http.ResponseWriter, req *http.Request) {
	arrived := r.clock.Now()
	a := r.receive(w, req, arrived)
	a.write(w)
	observe(a, r.clock.Since(arrived))
	r.logAnswer(a)
	if a.result == resultStored {
		r.wakes.offer(wake{app: a.app, repositoryID: a.repositoryID, event: domain.Event{ID: a.guid, Event: eventName(a.event, a.action), ReceivedAt: a.receivedAt}})
	}
}

// receive does the steps of R-HOOK-01 in their order. What is cheap to refuse
// is refused before the body is read; nothing is parsed or stored before the
// signature is verified.
func (r *Receiver) receive(w http.ResponseWriter, req *http.Request, arrived time.Time) answer {
	a := answer{app: req.PathValue("app"), receivedAt: arrived.UTC().Truncate(time.Microsecond)}
	digest, ok := signature(req.Header)
	if !ok {
		return a.with(http.StatusUnauthorized, resultSignature, "")
	}
	secrets, known, err := r.secrets.WebhookSecrets(req.Context(), a.app)
	if err != nil {
		return a.because(err).with(http.StatusServiceUnavailable, resultUnavailable, "try again later")
	}
	if !known {
		return a.with(http.StatusNotFound, resultUnknownApp, "")
	}
	body, release, err := readBody(w, req, r.maxBody, r.memory)
	defer release()
	if err != nil {
		return a.unread(err)
	}
	if !signed(body, digest, secrets) {
		return a.with(http.StatusUnauthorized, resultSignature, "")
	}
	if a, ok = a.identify(req.Header); !ok {
		return a
	}
	if !isObject(body) {
		return a.with(http.StatusBadRequest, resultBody, notAnObject(req.Header))
	}
	a.action, a.repositoryID = readHeader(body)
	return r.keep(req.Context(), a, body)
}

// unread is the answer to a body that could not be read to its end.
func (a answer) unread(err error) answer {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return a.with(http.StatusRequestEntityTooLarge, resultTooLarge, "the body is larger than "+strconv.FormatInt(large.Limit, 10)+" bytes")
	case errors.Is(err, errBusy):
		return a.with(http.StatusServiceUnavailable, resultBusy, "try again later")
	}
	return a.with(http.StatusBadRequest, resultBody, "the body ended early")
}

// identify reads the headers of a verified delivery.
func (a answer) identify(h http.Header) (answer, bool) {
	guid := h.Get("X-GitHub-Delivery")
	id, err := uuid.Parse(guid)
	if err != nil || len(guid) != len(uuid.Nil.String()) {
		return a.with(http.StatusBadRequest, resultHeaders, "X-GitHub-Delivery must be a UUID"), false
	}
	a.guid = id.String()
	event := h.Get("X-GitHub-Event")
	if !word.MatchString(event) {
		return a.with(http.StatusBadRequest, resultHeaders, "X-GitHub-Event must name an event"), false
	}
	a.event = event
	return a, true
}

func notAnObject(h http.Header) string {
	if strings.HasPrefix(h.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return "the body must be a JSON object: set the webhook's content type to application/json"
	}
	return "the body must be a JSON object"
}

// keep stores a verified delivery and, for a push, its receipt. A sender who
// hangs up meanwhile does not undo it: its redelivery is a duplicate then.
func (r *Receiver) keep(ctx context.Context, a answer, body []byte) answer {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	var receipt *domain.Receipt
	if a.event == "push" {
		var documented bool
		if receipt, documented = readReceipt(body, a.receivedAt); !documented {
			a.detail = "the payload of this push is not as GitHub documents it: it gets no receipt"
		}
	}
	stored, err := r.store.StoreDelivery(ctx, domain.Delivery{
		App: a.app, GUID: a.guid, Event: a.event, Action: a.action, Payload: body, ReceivedAt: a.receivedAt,
	}, receipt)
	switch {
	case err != nil:
		// Nothing is stored, so a redelivery is no duplicate (R-HOOK-03).
		return a.because(err).with(http.StatusServiceUnavailable, resultUnavailable, "try again later")
	case !stored:
		return a.with(http.StatusOK, resultDuplicate, "")
	}
	return a.with(http.StatusAccepted, resultStored, "")
}

// write sends the answer: {"status": ...} for what was taken in, {"error": ...}
// for what was not. An unknown App is answered like any unknown path.
func (a answer) write(w http.ResponseWriter) {
	if a.result == resultUnknownApp {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	text := map[string]string{"status": a.result}
	if a.status >= http.StatusBadRequest {
		text = map[string]string{"error": a.result}
	}
	if a.message != "" {
		text["message"] = a.message
	}
	body, err := json.Marshal(text)
	if err != nil {
		body = []byte(`{}`) // cannot happen: a map of strings
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.status)
	_, _ = w.Write(body) // a sender who has gone finds out by its own log
}

func answerText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // the kubelet has gone: nothing to do
}

// logAnswer writes one line. Refusals are open to everybody, so of each kind
// only one a second is logged; the metric counts them all.
func (r *Receiver) logAnswer(a answer) {
	taken := a.status < http.StatusBadRequest
	if !taken && !r.refused.now(a.result) {
		return
	}
	line := []any{"app", a.app, "result", a.result}
	for _, pair := range [][2]string{{"delivery", a.guid}, {"event", a.event}, {"action", a.action}, {"detail", a.detail}} {
		if pair[1] != "" {
			line = append(line, pair[0], pair[1])
		}
	}
	if a.repositoryID != 0 {
		line = append(line, "repositoryID", a.repositoryID)
	}
	if taken {
		r.log.Info("Received delivery", line...)
		return
	}
	r.log.Info("Refused delivery", line...)
}

// eventName joins an event and its action as a status shows them.
func eventName(event, action string) string {
	if action == "" {
		return event
	}
	return event + "." + action
}
