// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/sluice-dev/sluice/controllers"
	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/github"
)

// apps connects the GitHubApp controller to the registry: an App's connection
// stays the same as long as its credentials do, and with it its tokens.
type apps struct {
	registry *github.Registry
	clock    clock.Clock

	mu    sync.Mutex
	known map[string]connected
}

type connected struct {
	fingerprint string
	app         *github.App
}

// Connect returns the App's connection.
func (a *apps) Connect(name string, appID int64, baseURL string, privateKey []byte) (controllers.AppConnection, error) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s\x00%s", appID, baseURL, privateKey))
	fingerprint := hex.EncodeToString(sum[:])
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, found := a.known[name]; found && k.fingerprint == fingerprint {
		return k.app, nil
	}
	app, err := github.New(github.Credentials{AppID: appID, PrivateKey: privateKey, BaseURL: baseURL},
		github.Options{Clock: a.clock, Observe: observeGitHub})
	if err != nil {
		return nil, err
	}
	a.known[name] = connected{fingerprint, app}
	return app, nil
}

// Register makes the App usable by name.
func (a *apps) Register(name string, info domain.AppInfo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, found := a.known[name]; found {
		a.registry.Set(name, k.app, info)
	}
}

// Unregister ends that. The connection is kept for when it is back.
func (a *apps) Unregister(name string) { a.registry.Remove(name) }

// bots tells the intake who an App's bot is.
type bots struct{ registry *github.Registry }

// Bot returns an App as GitHub knows it.
func (b bots) Bot(app string) (domain.AppInfo, error) {
	_, info, err := b.registry.Get(app)
	return info, err
}
