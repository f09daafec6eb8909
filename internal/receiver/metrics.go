// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/sluice-dev/sluice/internal/clock"
)

var (
	deliveries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_webhook_deliveries_total",
		Help: "Webhook deliveries by event and by what they came to. The event of a delivery that was not verified is \"unverified\".",
	}, []string{"event", "result"})
	durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "sluice_webhook_duration_seconds",
		Help:    "Time from a delivery's arrival to its answer.",
		Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"result"})
	wakeups = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_webhook_wakeups_total",
		Help: "Wake-ups of objects after a delivery by result. One that was dropped or failed costs a moment only: the leader looks for deliveries by itself.",
	}, []string{"result"})
)

func init() { metrics.Registry.MustRegister(deliveries, durations, wakeups) }

// knownEvents bounds the event label; the others count as "other".
var knownEvents = map[string]bool{
	"push": true, "pull_request": true, "repository": true, "organization": true, "installation": true, "installation_repositories": true,
	"installation_target": true, "member": true, "workflow_run": true, "ping": true,
}

func eventLabel(event string) string {
	switch {
	case event == "":
		return "unverified"
	case knownEvents[event]:
		return event
	}
	return "other"
}

func observe(a answer, took time.Duration) {
	deliveries.WithLabelValues(eventLabel(a.event), a.result).Inc()
	durations.WithLabelValues(a.result).Observe(took.Seconds())
}

// sometimes says yes to one thing of a kind in a second.
type sometimes struct {
	mu    sync.Mutex
	clock clock.Clock
	last  map[string]time.Time
}

func newSometimes(c clock.Clock) *sometimes {
	return &sometimes{clock: c, last: map[string]time.Time{}}
}

// now reports whether this one is the first of its kind in a second. Kinds are
// few and fixed.
func (s *sometimes) now(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.clock.Now()
	if last, ok := s.last[kind]; ok && t.Sub(last) < time.Second {
		return false
	}
	s.last[kind] = t
	return true
}
