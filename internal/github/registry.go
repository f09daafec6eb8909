// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"sync"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

// Registry holds the working Apps by the name of their GitHubApp. The GitHubApp
// controller keeps it; everybody else asks it at the time of use.
type Registry struct {
	mu   sync.RWMutex
	apps map[string]registered
}

type registered struct {
	app  *App
	info domain.AppInfo
}

// NewRegistry returns an empty Registry.
func NewRegistry() *Registry { return &Registry{apps: map[string]registered{}} }

// Set registers a working App.
func (r *Registry) Set(name string, a *App, info domain.AppInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.apps[name] = registered{a, info}
}

// Remove takes an App out: its GitHubApp is gone, suspended or not ready.
func (r *Registry) Remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.apps, name)
}

// Get returns a working App, or a Waiting fault with reason AppNotReady that
// names its GitHubApp.
func (r *Registry) Get(name string) (*App, domain.AppInfo, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	a, ok := r.apps[name]
	if !ok {
		return nil, domain.AppInfo{}, fault.New(fault.Waiting, fault.ReasonAppNotReady, "GitHubApp %q is not ready: see its conditions", name)
	}
	return a.app, a.info, nil
}
