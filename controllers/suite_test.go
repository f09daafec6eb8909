// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/clock"
	"github.com/sluice-dev/sluice/internal/githubsim/simtest"
	"github.com/sluice-dev/sluice/internal/ledger"
	"github.com/sluice-dev/sluice/internal/operator"
	"github.com/sluice-dev/sluice/internal/testenv"
	"github.com/sluice-dev/sluice/internal/testenv/pgtest"
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Run(testenv.RunnerFunc(func() int {
		return pgtest.Run(m, func(dsn string) error {
			_, _, err := ledger.Migrate(context.Background(), dsn, func(string) {})
			return err
		})
	}), testenv.Options{CRDPaths: []string{"config/crd/bases"}}))
}

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// world is one test's GitHub, database, namespace and operator, apart from all
// others'.
type world struct {
	*WithT
	t         *testing.T
	ctx       context.Context
	k8s       client.Client
	namespace string
	name      string // of the GitHubApp, and unique in the cluster
	gh        simtest.Fixture
	dsn       string
	ledger    *ledger.Ledger
	hookURL   string
	// stopOperator stops the controller process.
	stopOperator func()
}

const webhookSecret = "a webhook secret"

// newWorld prepares everything but the objects, and starts the operator.
func newWorld(t *testing.T) *world {
	t.Helper()
	return startWorld(t, pgtest.Database(t))
}

func startWorld(t *testing.T, dsn string) *world {
	t.Helper()
	// Worlds share the API server and nothing else; most of a test is waiting.
	t.Parallel()
	w := &world{WithT: NewWithT(t), t: t, ctx: t.Context(), namespace: testenv.Namespace(t), dsn: dsn}
	w.SetDefaultEventuallyTimeout(patience)
	w.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	w.name = w.namespace
	w.gh = simtest.NewFixture(t, simtest.Start(t, nil), "acme", "sluice-demo")
	var err error
	w.k8s, err = client.New(testenv.Cluster(t).Config, client.Options{Scheme: operator.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())
	w.ledger, err = ledger.Open(w.ctx, dsn, ledger.Options{Logger: logr.Discard()})
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(w.ledger.Close)
	w.stopOperator = w.startOperator()
	w.startReceiver()
	return w
}

// logger writes to the test's log while the test runs.
func (w *world) logger() logr.Logger {
	var mu sync.Mutex
	over := false
	w.t.Cleanup(func() { mu.Lock(); over = true; mu.Unlock() })
	return funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			w.t.Log(prefix, args)
		}
	}, funcr.Options{})
}

// startOperator starts a controller process and returns what stops it.
func (w *world) startOperator() (stop func()) {
	w.t.Helper()
	mgr, err := operator.New(testenv.Cluster(w.t).Config, operator.Options{
		Logger: w.logger(), Clock: clock.Real(), DatabaseURL: w.dsn, ResourceNamespace: w.namespace, ControllerName: w.name,
		WatchNamespaces: []string{w.namespace}, DataDir: w.t.TempDir(), MetricsAddress: "0", ProbeAddress: "0", SkipNameValidation: true,
	})
	w.Expect(err).NotTo(HaveOccurred())
	return w.background(func(ctx context.Context) error { return mgr.Start(ctx) })
}

func (w *world) startReceiver() {
	w.t.Helper()
	listening := make(chan net.Addr, 1)
	w.background(func(ctx context.Context) error {
		return operator.RunReceiver(ctx, testenv.Cluster(w.t).Config, operator.ReceiverOptions{
			Logger: w.logger(), Clock: clock.Real(), DatabaseURL: w.dsn, Address: "127.0.0.1:0", ResourceNamespace: w.namespace, ControllerName: w.name,
			Listening: func(a net.Addr) { listening <- a },
		})
	})
	w.hookURL = "http://" + (<-listening).String() + "/webhooks/" + w.name
	w.Expect(w.gh.Hook(w.ctx, w.gh.AppID, w.hookURL, webhookSecret)).To(Succeed())
}

// background runs f until it is stopped or the test ends, and fails the test
// when it fails.
func (w *world) background(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("a process ended with %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// createApp makes the Secrets and the GitHubApp that lets the namespace do
// everything in acme.
func (w *world) createApp() {
	w.t.Helper()
	w.createSecrets()
	w.create(w.app())
}

func (w *world) createSecrets() {
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "app-key"}, Data: map[string][]byte{"privateKey": w.gh.Key}})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "app-webhook"}, Data: map[string][]byte{"webhookSecret": []byte(webhookSecret)}})
}

func (w *world) app() *v1alpha1.GitHubApp {
	return &v1alpha1.GitHubApp{ObjectMeta: metav1.ObjectMeta{Name: w.name}, Spec: v1alpha1.GitHubAppSpec{
		AppID: w.gh.AppID, BaseURL: w.gh.URL, ControllerName: w.name, PrivateKeyRef: v1alpha1.SecretKeyReference{Name: "app-key", Key: "privateKey"},
		WebhookSecretRefs: []v1alpha1.WebhookSecretReference{{Name: "app-webhook", Key: "webhookSecret"}},
		Grants: []v1alpha1.Grant{{Name: "all", Namespaces: v1alpha1.NamespaceSelection{From: v1alpha1.NamespacesSelector,
			Selector: &v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"kubernetes.io/metadata.name": v1alpha1.LabelValue(w.namespace)}}},
			Organizations: []string{"acme"}, Sources: []string{"acme/*"}, Downstream: []string{"acme/lab1-*", "acme/team-*"}}},
	}}
}

// create makes an object and deletes it when the test ends.
func (w *world) create(o client.Object) {
	w.t.Helper()
	w.Expect(w.k8s.Create(w.ctx, o)).To(Succeed())
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = client.IgnoreNotFound(w.k8s.Delete(ctx, o))
	})
}

// project is a published ProjectSync of acme/lab1-source on main and hints,
// for r01 to r03 made from a template and one adopted repository.
func (w *world) project(stage v1alpha1.Stage) *v1alpha1.ProjectSync {
	return &v1alpha1.ProjectSync{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "lab1"}, Spec: v1alpha1.ProjectSyncSpec{
		AppRef: v1alpha1.AppReference{Name: w.name}, Stage: stage,
		Source: v1alpha1.Source{Repository: "acme/lab1-source", Branches: []v1alpha1.Branch{"main", "hints"}},
		Repositories: &v1alpha1.Repositories{Provision: &v1alpha1.Provision{NameTemplate: "lab1-{{ .recipient }}"},
			List: []v1alpha1.Recipient{{Recipient: "r01"}, {Recipient: "r02"}, {Recipient: "r03"}}},
	}}
}

// seedSource makes the source with two branches.
func (w *world) seedSource() {
	w.t.Helper()
	_, err := w.gh.Repository(w.ctx, "acme/lab1-source")
	w.Expect(err).NotTo(HaveOccurred())
	for branch, files := range map[string]map[string]string{
		"main":  {"README.md": "Lab 1\n", "src/a.txt": "a\n", "src/b.txt": "b\n"},
		"hints": {"README.md": "Lab 1\n", "HINTS.md": "think\n"},
	} {
		_, err := w.gh.Commit(w.ctx, "acme/lab1-source", branch, "ada", "start", files)
		w.Expect(err).NotTo(HaveOccurred())
	}
}

// pushSource pushes one commit to the source as a person.
func (w *world) pushSource(branch, message string, files map[string]string) {
	w.t.Helper()
	_, err := w.gh.Commit(w.ctx, "acme/lab1-source", branch, "ada", message, files)
	w.Expect(err).NotTo(HaveOccurred())
}

// get returns the ProjectSync as it is now.
func (w *world) get(p *v1alpha1.ProjectSync) *v1alpha1.ProjectSync {
	var now v1alpha1.ProjectSync
	if err := w.k8s.Get(w.ctx, client.ObjectKeyFromObject(p), &now); err != nil {
		return &v1alpha1.ProjectSync{}
	}
	return &now
}

func (w *world) getApp() *v1alpha1.GitHubApp {
	var now v1alpha1.GitHubApp
	if err := w.k8s.Get(w.ctx, client.ObjectKey{Name: w.name}, &now); err != nil {
		return &v1alpha1.GitHubApp{}
	}
	return &now
}

// change edits the ProjectSync's spec.
func (w *world) change(p *v1alpha1.ProjectSync, edit func(*v1alpha1.ProjectSync)) {
	w.t.Helper()
	now := w.get(p)
	before := now.DeepCopy()
	edit(now)
	w.Expect(w.k8s.Patch(w.ctx, now, client.MergeFrom(before))).To(Succeed())
}

// request sets a new token and waits until its pass has ended.
func (w *world) request(p *v1alpha1.ProjectSync, token string) v1alpha1.Outcomes {
	w.t.Helper()
	w.change(p, func(p *v1alpha1.ProjectSync) {
		if p.Spec.Sync == nil {
			p.Spec.Sync = &v1alpha1.Sync{}
		}
		p.Spec.Sync.Request = token
	})
	w.Eventually(func() string {
		s := w.get(p).Status.Sync
		if s == nil || s.LastCompleted == nil || s.InProgress != nil {
			return ""
		}
		return s.LastCompleted.Token
	}).Should(Equal(token), "the pass of %s", token)
	return w.get(p).Status.Sync.LastCompleted.Counts
}

// condition returns "Status/Reason" of a condition, and its message.
func condition(conditions []metav1.Condition, t string) (state, message string) {
	c := meta.FindStatusCondition(conditions, t)
	if c == nil {
		return "absent", ""
	}
	return fmt.Sprintf("%s/%s", c.Status, c.Reason), c.Message
}

func state(conditions []metav1.Condition, t string) string {
	s, _ := condition(conditions, t)
	return s
}

func message(conditions []metav1.Condition, t string) string {
	_, m := condition(conditions, t)
	return m
}

// kstatusOf computes what GitOps tools see.
func kstatusOf(o runtime.Object) status.Status {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return status.Status(err.Error())
	}
	m["apiVersion"], m["kind"] = v1alpha1.GroupVersion.String(), "ProjectSync"
	result, err := status.Compute(&unstructured.Unstructured{Object: m})
	if err != nil {
		return status.Status(err.Error())
	}
	return result.Status
}

// actions returns the project's audit actions in order.
func (w *world) actions(p *v1alpha1.ProjectSync) []string {
	project, err := w.ledger.ProjectByUID(w.ctx, string(p.UID))
	w.Expect(err).NotTo(HaveOccurred())
	entries, err := w.ledger.AuditEntries(w.ctx, project.ID)
	w.Expect(err).NotTo(HaveOccurred())
	var list []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Action, "project.accept") {
			list = append(list, e.Action)
		}
	}
	return list
}

// dedicatedDatabase returns a migrated database on a server of the test's own.
func dedicatedDatabase(t *testing.T, server *pgtest.Server) string {
	t.Helper()
	if err := server.CreateDatabase(t.Context(), "sluice"); err != nil {
		t.Fatal(err)
	}
	dsn := server.DSN("sluice")
	if _, _, err := ledger.Migrate(t.Context(), dsn, func(string) {}); err != nil {
		t.Fatal(err)
	}
	return dsn
}
