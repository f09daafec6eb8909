// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/sluice-dev/sluice/internal/github"
)

// Metrics of GitHub. Labels are bounded: a route has its ids and names
// replaced.
var (
	githubRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_github_requests_total", Help: "Requests to GitHub's REST API, by route and status; status 0 is no answer.",
	}, []string{"method", "route", "status"})
	githubRemaining = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "sluice_github_quota_remaining", Help: "Requests left of an installation's hourly quota, as GitHub last said.",
	}, []string{"installation"})
)

func init() {
	metrics.Registry.MustRegister(githubRequests, githubRemaining)
}

func observeGitHub(r github.Request) {
	githubRequests.WithLabelValues(r.Method, r.Route, strconv.Itoa(r.Status)).Inc()
	if r.Remaining >= 0 && r.Installation != 0 {
		githubRemaining.WithLabelValues(strconv.FormatInt(r.Installation, 10)).Set(float64(r.Remaining))
	}
}
