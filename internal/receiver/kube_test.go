// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/sluice-dev/sluice/api/v1alpha1"
	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/testenv"
)

func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}

// cluster is a Kube on a real API server, as a user who may do what the
// receiver's roles allow and nothing else.
type cluster struct {
	*WithT
	t         *testing.T
	ctx       context.Context
	admin     client.Client
	namespace string
	clock     *testingclock.FakeClock
	kube      *Kube

	gets int
	down bool // the API server does not answer
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{WithT: NewWithT(t), t: t, ctx: t.Context(), namespace: testenv.Namespace(t), clock: testingclock.NewFakeClock(t0)}
	plane := testenv.Cluster(t)
	var err error
	c.admin, err = client.New(plane.Config, client.Options{Scheme: scheme()})
	c.ok(err)
	user := "receiver-of-" + c.namespace
	c.allow(user)
	config, err := plane.User(user)
	c.ok(err)
	direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme()})
	c.ok(err)
	counted := interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, cl client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			c.gets++
			if c.down {
				return errors.New("connection refused")
			}
			return cl.Get(ctx, key, obj, opts...)
		},
	})
	c.kube, err = NewKube(counted, c.namespace, KubeOptions{Clock: c.clock, Logger: logr.Discard()})
	c.ok(err)
	return c
}

func (c *cluster) ok(err error) {
	c.t.Helper()
	c.Expect(err).NotTo(HaveOccurred())
}

func (c *cluster) create(o client.Object) {
	c.t.Helper()
	c.ok(c.admin.Create(c.ctx, o))
	if o.GetNamespace() == "" {
		c.t.Cleanup(func() {
			if err := client.IgnoreNotFound(c.admin.Delete(context.Background(), o)); err != nil {
				c.t.Error(err)
			}
		})
	}
}

// allow gives a user the receiver's rights.
func (c *cluster) allow(user string) {
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}
	everywhere := metav1.ObjectMeta{Name: user}
	here := metav1.ObjectMeta{Name: user, Namespace: c.namespace}
	c.create(&rbacv1.ClusterRole{ObjectMeta: everywhere, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"sluice.dev"}, Resources: []string{"githubapps"}, Verbs: []string{"get"}},
		{APIGroups: []string{"sluice.dev"}, Resources: []string{"githubapps/status", "projectsyncs/status", "reporeconciles/status"}, Verbs: []string{"patch"}},
	}})
	c.create(&rbacv1.ClusterRoleBinding{ObjectMeta: everywhere, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}})
	c.create(&rbacv1.Role{ObjectMeta: here, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"hook", "hook-new"}, Verbs: []string{"get"}},
	}})
	c.create(&rbacv1.RoleBinding{ObjectMeta: here, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}})
}

func (c *cluster) app(edit func(*v1alpha1.GitHubApp)) *v1alpha1.GitHubApp {
	c.t.Helper()
	a := &v1alpha1.GitHubApp{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		Spec: v1alpha1.GitHubAppSpec{AppID: 4711, PrivateKeyRef: v1alpha1.SecretKeyReference{Name: "key"},
			WebhookSecretRefs: []v1alpha1.WebhookSecretReference{{Name: "hook"}}},
	}
	if edit != nil {
		edit(a)
	}
	c.create(a)
	return a
}

func (c *cluster) secret(name, key, value string) {
	c.t.Helper()
	c.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.namespace}, Data: map[string][]byte{key: []byte(value)}})
}

// secrets asks for an App's webhook secrets, as text.
func (c *cluster) secrets(app string) []string {
	c.t.Helper()
	list, known, err := c.kube.WebhookSecrets(c.ctx, app)
	c.ok(err)
	if !known {
		return []string{"unknown"}
	}
	texts := []string{}
	for _, one := range list {
		texts = append(texts, string(one))
	}
	return texts
}

func TestKubeSecrets_FollowsARotation(t *testing.T) {
	c := newCluster(t)
	a := c.app(nil)
	c.Expect(c.secrets(a.Name)).To(BeEmpty(), "the Secret is missing: no secret, so 401")

	c.secret("hook", "webhookSecret", "old\n")
	c.Expect(c.secrets(a.Name)).To(BeEmpty(), "kept for ten seconds")
	c.clock.Step(secretsFor)
	c.Expect(c.secrets(a.Name)).To(Equal([]string{"old"}))

	c.secret("hook-new", "token", "new")
	a.Spec.WebhookSecretRefs = append(a.Spec.WebhookSecretRefs, v1alpha1.WebhookSecretReference{Name: "hook-new", Key: "token"})
	c.ok(c.admin.Update(c.ctx, a))
	c.clock.Step(secretsFor)
	c.Expect(c.secrets(a.Name)).To(Equal([]string{"old", "new"}))

	a.Spec.WebhookSecretRefs = a.Spec.WebhookSecretRefs[1:]
	c.ok(c.admin.Update(c.ctx, a))
	c.clock.Step(secretsFor)
	c.Expect(c.secrets(a.Name)).To(Equal([]string{"new"}))

	c.ok(c.admin.Delete(c.ctx, a))
	c.clock.Step(secretsFor)
	c.Expect(c.secrets(a.Name)).To(Equal([]string{"unknown"}))
}

func TestKubeSecrets_WhatGivesNone(t *testing.T) {
	for name, ref := range map[string]v1alpha1.WebhookSecretReference{
		"a key that is missing":                {Name: "hook", Key: "nothing"},
		"an empty value":                       {Name: "hook-new"},
		"a Secret that the role does not name": {Name: "elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.secret("hook", "webhookSecret", "fine")
			c.secret("hook-new", "webhookSecret", "\n")
			c.secret("elsewhere", "webhookSecret", "not for the receiver")
			a := c.app(func(a *v1alpha1.GitHubApp) { a.Spec.WebhookSecretRefs = []v1alpha1.WebhookSecretReference{ref} })
			c.Expect(c.secrets(a.Name)).To(BeEmpty())
		})
	}
	t.Run("one that is missing does not hide the others", func(t *testing.T) {
		c := newCluster(t)
		c.secret("hook-new", "webhookSecret", "fine")
		a := c.app(func(a *v1alpha1.GitHubApp) {
			a.Spec.WebhookSecretRefs = []v1alpha1.WebhookSecretReference{{Name: "hook"}, {Name: "hook-new"}}
		})
		c.Expect(c.secrets(a.Name)).To(Equal([]string{"fine"}))
	})
	t.Run("another installation's App is unknown", func(t *testing.T) {
		c := newCluster(t)
		c.secret("hook", "webhookSecret", "fine")
		a := c.app(func(a *v1alpha1.GitHubApp) { a.Spec.ControllerName = "sluice.dev/staging" })
		c.Expect(c.secrets(a.Name)).To(Equal([]string{"unknown"}))
	})
}

func TestKubeSecrets_WithoutTheAPIServer(t *testing.T) {
	c := newCluster(t)
	c.secret("hook", "webhookSecret", "fine")
	a := c.app(nil)
	c.Expect(c.secrets(a.Name)).To(Equal([]string{"fine"}))

	c.down = true
	c.clock.Step(secretsFor)
	asked := c.gets
	for range 5 {
		c.Expect(c.secrets(a.Name)).To(Equal([]string{"fine"}), "deliveries go on")
	}
	c.Expect(c.gets).To(Equal(asked+1), "and do not each wait for the API server")

	_, _, err := c.kube.WebhookSecrets(c.ctx, "never-asked-for")
	c.Expect(err).To(HaveOccurred(), "unknown is not the same as not to be told")

	c.clock.Step(secretsWithoutServer)
	_, _, err = c.kube.WebhookSecrets(c.ctx, a.Name)
	c.Expect(err).To(MatchError(ContainSubstring("connection refused")), "not for ever")
	c.down = false
	c.Expect(c.secrets(a.Name)).To(Equal([]string{"fine"}))
}

func TestKubeSecrets_InventedNamesCostLittle(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"No_Name", "../secrets", "", "a b"} {
		c.Expect(c.secrets(name)).To(Equal([]string{"unknown"}))
	}
	c.Expect(c.gets).To(BeZero(), "no such name can exist")
	for range 3 {
		c.Expect(c.secrets("invented")).To(Equal([]string{"unknown"}))
	}
	c.Expect(c.gets).To(Equal(1), "an answer is kept")
	refused := 0
	for n := range 2 * firstBurst {
		if _, _, err := c.kube.WebhookSecrets(c.ctx, fmt.Sprintf("invented-%d", n)); err != nil {
			refused++
		}
	}
	c.Expect(refused).To(Equal(firstBurst + 1))
	for n := range 2 * maxKnownNames {
		c.kube.keep(fmt.Sprintf("old-%d", n), appSecrets{})
	}
	c.Expect(len(c.kube.known)).To(BeNumerically("<=", maxKnownNames))
}

func (c *cluster) objects() map[domain.ObjectKind]client.Object {
	in := metav1.ObjectMeta{Namespace: c.namespace, Name: "lab1"}
	return map[domain.ObjectKind]client.Object{
		domain.KindGitHubApp: c.app(nil),
		domain.KindProjectSync: &v1alpha1.ProjectSync{ObjectMeta: in, Spec: v1alpha1.ProjectSyncSpec{
			AppRef: v1alpha1.AppReference{Kind: "GitHubApp", Name: "app"}, Source: v1alpha1.Source{Repository: "acme/lab1-source"}}},
		domain.KindRepoReconcile: &v1alpha1.RepoReconcile{ObjectMeta: in, Spec: v1alpha1.RepoReconcileSpec{
			AppRef: v1alpha1.AppReference{Kind: "GitHubApp", Name: "app"}, Repository: v1alpha1.RepositoryIdentity{Owner: "acme", Name: "lab1-r01"}}},
	}
}

// lastEventOf reads an object's status.lastEvent back.
func lastEventOf(o client.Object) *v1alpha1.Event {
	switch o := o.(type) {
	case *v1alpha1.GitHubApp:
		return o.Status.LastEvent
	case *v1alpha1.ProjectSync:
		return o.Status.LastEvent
	case *v1alpha1.RepoReconcile:
		return o.Status.LastEvent
	}
	return nil
}

func TestKubeWake_WritesTheLastEventAndNothingElse(t *testing.T) {
	c := newCluster(t)
	for kind, object := range c.objects() {
		t.Run(string(kind), func(t *testing.T) {
			c := &cluster{WithT: NewWithT(t), t: t, ctx: t.Context(), admin: c.admin, namespace: c.namespace, kube: c.kube}
			if kind != domain.KindGitHubApp {
				c.create(object)
			}
			ref := domain.ObjectRef{Kind: kind, ObjectKey: domain.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetName()}}
			c.ok(c.kube.Wake(c.ctx, ref, domain.Event{ID: guid, Event: "pull_request.closed", ReceivedAt: t0.Add(1500 * time.Millisecond)}))
			c.ok(c.kube.Wake(c.ctx, ref, domain.Event{ID: "b", Event: "push", ReceivedAt: t0.Add(time.Minute)}))

			c.ok(c.admin.Get(c.ctx, client.ObjectKeyFromObject(object), object))
			got := lastEventOf(object)
			c.Expect(got).NotTo(BeNil())
			c.Expect(got.ID).To(Equal("b"))
			c.Expect(got.Event).To(Equal("push"))
			c.Expect(got.ReceivedAt.UTC()).To(Equal(t0.Add(time.Minute)))
			c.Expect(object.GetGeneration()).To(BeEquivalentTo(1))

			owned := []string{}
			for _, m := range object.GetManagedFields() {
				if m.Manager == FieldManager {
					owned = append(owned, m.Subresource+" "+m.FieldsV1.GetRawString())
				}
			}
			c.Expect(owned).To(HaveExactElements(MatchRegexp(`^status \{"f:status":\{"f:lastEvent":\{("f:(id|event|receivedAt)":\{\},?){3}\}\}\}$`)))
		})
	}
}

func TestKubeWake_AnObjectThatIsGoneIsNoErrorAndIsNotMade(t *testing.T) {
	c := newCluster(t)
	for kind := range c.objects() {
		ref := domain.ObjectRef{Kind: kind, ObjectKey: domain.ObjectKey{Name: "gone-" + c.namespace}}
		if kind != domain.KindGitHubApp {
			ref.Namespace = c.namespace
		}
		c.ok(c.kube.Wake(c.ctx, ref, domain.Event{ID: guid, Event: "push", ReceivedAt: t0}))
	}
	var apps v1alpha1.GitHubAppList
	c.ok(c.admin.List(c.ctx, &apps))
	for _, a := range apps.Items {
		c.Expect(a.Name).NotTo(Equal("gone-" + c.namespace))
	}
	var projects v1alpha1.ProjectSyncList
	c.ok(c.admin.List(c.ctx, &projects, client.InNamespace(c.namespace)))
	c.Expect(projects.Items).To(BeEmpty())
}
