// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-dev/sluice/internal/testenv"
)

const (
	system       = "sluice-system"
	waitForRoles = 20 * time.Second
)

// deployed returns the control plane with config/default applied.
func deployed(t *testing.T) (*testenv.ControlPlane, client.Client) {
	t.Helper()
	cluster := testenv.Cluster(t)
	root, err := testenv.Root()
	if err != nil {
		t.Fatal(err)
	}
	// Again by each test: applying twice changes nothing.
	if _, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "-k", filepath.Join(root, "config", "default")); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cluster.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cluster, c
}

func TestMain(m *testing.M) { os.Exit(testenv.Run(m, testenv.Options{ControllerManager: true})) }

// templates returns the pods that the manifests would run, by name.
func templates(t *testing.T, c client.Client) map[string]corev1.PodTemplateSpec {
	t.Helper()
	pods := map[string]corev1.PodTemplateSpec{}
	var deployments appsv1.DeploymentList
	var jobs batchv1.JobList
	for _, list := range []client.ObjectList{&deployments, &jobs} {
		if err := c.List(t.Context(), list, client.InNamespace(system)); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range deployments.Items {
		pods[d.Name] = d.Spec.Template
	}
	for _, j := range jobs.Items {
		pods[j.Name] = j.Spec.Template
	}
	return pods
}

func TestPodsMeetTheRestrictedStandard(t *testing.T) {
	g := NewWithT(t)
	_, c := deployed(t)
	var namespace corev1.Namespace
	g.Expect(c.Get(t.Context(), client.ObjectKey{Name: system}, &namespace)).To(Succeed())
	g.Expect(namespace.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"))

	pods := templates(t, c)
	g.Expect(pods).To(And(HaveLen(3), HaveKey("sluice-controller"), HaveKey("sluice-receiver"), HaveKey("sluice-migrate")))
	for name, template := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name, Labels: map[string]string{}}, Spec: template.Spec}
		g.Expect(c.Create(t.Context(), pod, client.DryRunAll)).To(Succeed(), name)
		container := pod.Spec.Containers[0]
		g.Expect(*container.SecurityContext.ReadOnlyRootFilesystem).To(BeTrue(), name)
		g.Expect(container.Resources.Limits).To(HaveKey(corev1.ResourceMemory), name)
	}

	lax := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "lax"}, Spec: corev1.PodSpec{
		ServiceAccountName: "sluice-controller", Containers: []corev1.Container{{Name: "lax", Image: "sluice"}},
	}}
	g.Expect(c.Create(t.Context(), lax, client.DryRunAll)).To(MatchError(ContainSubstring("violates PodSecurity")))
}

// TestDatabaseAddressesComeFromSecretsOfTheirOwn keeps the owner of the schema
// away from the two that run all the time, and the receiver away from the
// controller's role.
func TestDatabaseAddressesComeFromSecretsOfTheirOwn(t *testing.T) {
	g := NewWithT(t)
	_, c := deployed(t)
	found := map[string]string{}
	for name, template := range templates(t, c) {
		for _, variable := range template.Spec.Containers[0].Env {
			if variable.Name == "SLUICE_DATABASE_URL" {
				found[name] = variable.ValueFrom.SecretKeyRef.Name
			}
		}
	}
	g.Expect(found).To(Equal(map[string]string{
		"sluice-controller": "sluice-database", "sluice-receiver": "sluice-database-receiver", "sluice-migrate": "sluice-database-owner",
	}))
}

func TestSelectorsMeetTheirPods(t *testing.T) {
	g := NewWithT(t)
	_, c := deployed(t)
	pods := templates(t, c)
	var services corev1.ServiceList
	g.Expect(c.List(t.Context(), &services, client.InNamespace(system))).To(Succeed())
	chosen := map[string][]string{}
	for _, service := range services.Items {
		for name, template := range pods {
			if matches(service.Spec.Selector, template.Labels) && hasPort(template, service.Spec.Ports[0].TargetPort.StrVal) {
				chosen[service.Name] = append(chosen[service.Name], name)
			}
		}
	}
	g.Expect(chosen).To(HaveLen(2))
	g.Expect(chosen["sluice-receiver"]).To(ConsistOf("sluice-receiver"))
	g.Expect(chosen["sluice-metrics"]).To(ConsistOf("sluice-controller", "sluice-receiver"))
}

func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func hasPort(template corev1.PodTemplateSpec, name string) bool {
	for _, port := range template.Spec.Containers[0].Ports {
		if port.Name == name {
			return true
		}
	}
	return false
}

// TestServiceAccountsMayDoWhatTheyMustAndNoMore covers R-PRIV-01's side of RBAC:
// who may read what names a source.
func TestServiceAccountsMayDoWhatTheyMustAndNoMore(t *testing.T) {
	_, c := deployed(t)
	type permission struct {
		may                                                 bool
		verb, group, resource, subresource, namespace, name string
	}
	const group = "sluice.dev"
	for account, permissions := range map[string][]permission{
		"sluice-receiver": {
			{true, "get", group, "githubapps", "", "", "any"},
			{false, "list", group, "githubapps", "", "", ""},
			{false, "patch", group, "githubapps", "", "", "any"},
			{true, "patch", group, "githubapps", "status", "", "any"},
			{true, "patch", group, "projectsyncs", "status", "labs", "any"},
			{true, "patch", group, "reporeconciles", "status", "labs", "any"},
			{false, "update", group, "reporeconciles", "status", "labs", "any"},
			{false, "get", group, "projectsyncs", "", "labs", "any"},
			{false, "get", group, "reporeconciles", "", "labs", "any"},
			{false, "patch", group, "projectsyncs", "", "labs", "any"},
			{true, "get", "", "secrets", "", system, "sluice-demo-webhook"},
			{false, "get", "", "secrets", "", system, "sluice-demo-key"},
			{false, "get", "", "secrets", "", system, "sluice-database"},
			{false, "list", "", "secrets", "", system, ""},
			{false, "get", "", "secrets", "", "labs", "sluice-demo-webhook"},
			{false, "create", "", "pods", "", system, ""},
		},
		"sluice-controller": {
			{true, "watch", group, "githubapps", "", "", ""},
			{true, "patch", group, "githubapps", "status", "", "any"},
			{true, "watch", group, "projectsyncs", "", "labs", ""},
			{true, "patch", group, "projectsyncs", "status", "labs", "any"},
			{true, "create", group, "reporeconciles", "", "labs", ""},
			{false, "delete", group, "projectsyncs", "", "labs", "any"},
			{false, "create", group, "projectsyncs", "", "labs", ""},
			{true, "get", "", "namespaces", "", "", "kube-system"},
			{true, "get", "", "secrets", "", system, "any"},
			{false, "list", "", "secrets", "", system, ""},
			{false, "get", "", "secrets", "", "labs", "any"},
			{true, "create", "coordination.k8s.io", "leases", "", system, ""},
			{true, "update", "coordination.k8s.io", "leases", "", system, "sluice-controller"},
			{false, "update", "coordination.k8s.io", "leases", "", system, "other"},
			{true, "create", "events.k8s.io", "events", "", "labs", ""},
			{false, "create", "", "pods", "", system, ""},
		},
		"sluice-migrate": {
			{false, "get", "", "secrets", "", system, "sluice-database-owner"},
			{false, "get", group, "githubapps", "", "", "any"},
		},
	} {
		for _, p := range permissions {
			name := strings.Join([]string{account, p.verb, p.resource, p.subresource, p.namespace, p.name}, " ")
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: "system:serviceaccount:" + system + ":" + account,
					ResourceAttributes: &authorizationv1.ResourceAttributes{
						Verb: p.verb, Group: p.group, Resource: p.resource, Subresource: p.subresource, Namespace: p.namespace, Name: p.name,
					},
				}}
				// The authorizer learns of new roles by a watch.
				g.Eventually(func() (bool, error) {
					err := c.Create(t.Context(), review)
					return review.Status.Allowed, err
				}).WithTimeout(waitForRoles).Should(Equal(p.may))
			})
		}
	}
}

// Reading a
// ProjectSync tells of its source, so view and edit do not include it.
func TestNobodyReadsProjectsByTheClustersOwnRoles_R_PRIV_01(t *testing.T) {
	g := NewWithT(t)
	cluster, _ := deployed(t)
	for _, role := range []string{"view", "edit", "admin"} {
		out, err := cluster.Kubectl(t.Context(), "get", "clusterrole", role, "-o", "yaml")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(out).NotTo(ContainSubstring("sluice.dev"), role)
	}
}
