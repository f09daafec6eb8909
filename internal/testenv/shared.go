// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// namespacePrefix bounds how much of a test's name its namespace carries.
const namespacePrefix = 40

// shared is the test package's one control plane.
var shared struct {
	mu      sync.Mutex
	options Options
	cluster *ControlPlane
	err     error // why it could not be started, for every later caller
}

// Runner is what TestMain runs: *testing.M, or a RunnerFunc around it.
type Runner interface{ Run() int }

// RunnerFunc is a Runner, for packages whose tests share more than a control
// plane:
//
//	testenv.Run(testenv.RunnerFunc(func() int { return pgtest.Run(m, migrate) }), options)
type RunnerFunc func() int

// Run calls f.
func (f RunnerFunc) Run() int { return f() }

// Run is for TestMain: it runs a package's tests and then stops the control
// plane that they shared, if any of them asked for it. It returns the exit
// code.
func Run(m Runner, o Options) int {
	shared.mu.Lock()
	shared.options = o
	shared.mu.Unlock()

	code := m.Run()

	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster == nil {
		return code
	}
	if err := shared.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Cluster returns the control plane that the package's tests share. The first
// call starts it, with the Options given to Run.
func Cluster(t testing.TB) *ControlPlane {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = StartControlPlane(context.Background(), shared.options)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// Namespace returns a fresh namespace of the shared control plane. Its deletion
// is asked for when the test ends.
func Namespace(t testing.TB) string {
	t.Helper()
	c, err := client.New(Cluster(t).Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespaceName(t.Name()) + "-"}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal("making a namespace: ", err)
	}
	t.Cleanup(func() {
		// The test's own context is done by now.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := client.IgnoreNotFound(c.Delete(ctx, namespace)); err != nil {
			t.Error("deleting the test's namespace: ", err)
		}
	})
	return namespace.Name
}

// namespaceName turns a test's name into a legal start of a namespace's name.
func namespaceName(test string) string {
	legal := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, test)
	if len(legal) > namespacePrefix {
		legal = legal[:namespacePrefix]
	}
	legal = strings.Trim(legal, "-")
	if legal == "" {
		return "test"
	}
	return legal
}
