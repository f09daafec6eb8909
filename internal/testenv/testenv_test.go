// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMain(m *testing.M) {
	os.Exit(Run(m, Options{ControllerManager: true, CRDPaths: []string{"internal/testenv/testdata"}}))
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func newClient(t *testing.T, c *ControlPlane) client.Client {
	t.Helper()
	api, err := client.New(c.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func TestKubectlReadsWhatWasApplied(t *testing.T) {
	g := NewWithT(t)
	cluster, namespace := Cluster(t), Namespace(t)
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {word: hello}\n"
	_, err := cluster.KubectlInput(t.Context(), strings.NewReader(manifest), "apply", "-n", namespace, "-f", "-")
	g.Expect(err).NotTo(HaveOccurred())
	out, err := cluster.Kubectl(t.Context(), "get", "configmap", "greeting", "-n", namespace, "-o", "jsonpath={.data.word}")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(Equal("hello"))

	_, err = cluster.Kubectl(t.Context(), "get", "configmap", "absent", "-n", namespace)
	g.Expect(err).To(MatchError(ContainSubstring(`configmaps "absent" not found`)))
}

func TestCRDsAreServed(t *testing.T) {
	g := NewWithT(t)
	out, err := Cluster(t).Kubectl(t.Context(), "api-resources", "--api-group=testenv.sluice.dev", "-o", "name")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Fields(out)).To(ConsistOf("marks.testenv.sluice.dev"))
}

func TestOwnedObjectGoesWithItsOwner(t *testing.T) {
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"},
		{Group: "testenv.sluice.dev", Version: "v1", Kind: "Mark"},
	} {
		t.Run("owner "+kind.Kind, func(t *testing.T) {
			g := NewWithT(t)
			api, namespace := newClient(t, Cluster(t)), Namespace(t)
			owner := &unstructured.Unstructured{}
			owner.SetGroupVersionKind(kind)
			owner.SetNamespace(namespace)
			owner.SetName("owner")
			g.Expect(api.Create(t.Context(), owner)).To(Succeed())
			owned := configMap(namespace, "owned")
			owned.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
			g.Expect(api.Create(t.Context(), owned)).To(Succeed())

			g.Expect(api.Delete(t.Context(), owner)).To(Succeed())
			g.Eventually(func() error { return api.Get(t.Context(), client.ObjectKeyFromObject(owned), owned) }).
				WithTimeout(60 * time.Second).Should(Satisfy(apierrors.IsNotFound))
		})
	}
}

func TestUserMayDoWhatItsGroupMay(t *testing.T) {
	g := NewWithT(t)
	cluster, namespace := Cluster(t), Namespace(t)
	config, err := cluster.User("alice", "readers")
	g.Expect(err).NotTo(HaveOccurred())
	api, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	list := func() error { return api.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace)) }
	g.Expect(list()).To(And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(`User "alice" cannot list`))))

	_, err = cluster.Kubectl(t.Context(), "create", "rolebinding", "readers", "-n", namespace, "--clusterrole=view", "--group=readers")
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(list).WithTimeout(20 * time.Second).Should(Succeed())

	path := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(WriteKubeconfig(path, config)).To(Succeed())
	out, err := cluster.Kubectl(t.Context(), "--kubeconfig", path, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(Equal("alice"))
}

func TestNamespacesDiffer(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Namespace(t)).NotTo(Equal(Namespace(t)))
}

func TestNamespaceGoesWithItsTest(t *testing.T) {
	g := NewWithT(t)
	api := newClient(t, Cluster(t))
	var name string
	t.Run("inner", func(t *testing.T) { name = Namespace(t) })
	g.Expect(name).To(HavePrefix("testnamespacegoeswithitstest-inner-"))
	g.Eventually(func() error { return api.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}) }).
		WithTimeout(60 * time.Second).Should(Satisfy(apierrors.IsNotFound))
}

func TestTwoStartsInARowAreApart(t *testing.T) {
	g := NewWithT(t)
	dir := filepath.Join(t.TempDir(), "controlplane")
	for round := range 2 {
		func() {
			cluster, err := StartControlPlane(t.Context(), Options{Dir: dir})
			g.Expect(err).NotTo(HaveOccurred())
			ports := []*Port{cluster.etcdPort, cluster.apiPort}
			defer func() {
				pids := cluster.PIDs()
				g.Expect(pids).To(HaveLen(2))
				g.Expect(cluster.Stop()).To(Succeed())
				g.Expect(cluster.Stop()).To(Succeed())
				for _, port := range ports {
					g.Expect(listen(port.Number)).To(Succeed(), "round %d", round)
				}
			}()
			api := newClient(t, cluster)
			g.Expect(api.Create(t.Context(), configMap("default", "mark"))).To(Succeed())
		}()
	}
	g.Expect(filepath.Join(dir, "kubeconfig")).To(BeARegularFile())
}

func listen(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return l.Close()
}

func TestTemporaryFolderGoesWithStop(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TMPDIR", t.TempDir())
	cluster, err := StartControlPlane(t.Context(), Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cluster.dir).To(BeADirectory())
	g.Expect(cluster.Stop()).To(Succeed())
	g.Expect(cluster.dir).NotTo(BeADirectory())
}

func TestMissingProgramNamesTheRemedy(t *testing.T) {
	g := NewWithT(t)
	elsewhere := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(elsewhere, "go.mod"), []byte("module elsewhere\n"), 0o600)).To(Succeed())
	for _, tool := range []struct{ dir, require string }{
		{"hack/controlplane", "require k8s.io/kubernetes v1.0.0\n"},
		{"hack/etcd", "require (\n\tgo.etcd.io/etcd/server/v3 v3.0.0\n)\n"},
	} {
		g.Expect(os.MkdirAll(filepath.Join(elsewhere, tool.dir), 0o700)).To(Succeed())
		g.Expect(os.WriteFile(filepath.Join(elsewhere, tool.dir, "go.mod"), []byte(tool.require), 0o600)).To(Succeed())
	}
	t.Chdir(elsewhere)
	t.Setenv(assetsVariable, "")
	t.Setenv("XDG_CACHE_HOME", filepath.Join(elsewhere, "cache"))
	_, err := StartControlPlane(t.Context(), Options{})
	g.Expect(err).To(MatchError(And(ContainSubstring("there is no etcd"), ContainSubstring("make controlplane"),
		ContainSubstring("cache/sluice/controlplane-v1.0.0"), ContainSubstring("cache/sluice/etcd-v3.0.0"))))
}

func TestFirstFolderWithTheProgramWins(t *testing.T) {
	g := NewWithT(t)
	empty, plain, good := t.TempDir(), t.TempDir(), t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(plain, "etcd"), nil, 0o600)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(good, "etcd"), nil, 0o700)).To(Succeed())
	g.Expect(findBinary("etcd", []string{empty, plain, good})).To(Equal(filepath.Join(good, "etcd")))
}

func TestStartQuotesTheLogOfAProgramThatEnded(t *testing.T) {
	g := NewWithT(t)
	assets := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(assets, "etcd"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(assets, "kube-apiserver"), []byte("#!/bin/sh\necho no room left; exit 1\n"), 0o700)).To(Succeed())
	t.Setenv(assetsVariable, assets)
	_, err := StartControlPlane(t.Context(), Options{})
	g.Expect(err).To(MatchError(And(ContainSubstring("kube-apiserver ended: exit status 1"), ContainSubstring("no room left"))))
}

func TestStartEndsWithItsContext(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := StartControlPlane(ctx, Options{})
	g.Expect(err).To(MatchError(context.Canceled))
}

func TestReservedPortIsNobodyElses(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("TMPDIR", t.TempDir())
	port, err := ReservePort()
	g.Expect(err).NotTo(HaveOccurred())
	path := filepath.Join(os.TempDir(), fmt.Sprintf("sluice-ports-%d", os.Getuid()), fmt.Sprint(port.Number))
	lock, err := tryLock(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lock).To(BeNil())
	g.Expect(port.free()).To(BeTrue())

	port.Release()
	port.Release()
	lock, err = tryLock(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lock).NotTo(BeNil())
	g.Expect(lock.Close()).To(Succeed())
}

func TestNamespaceName(t *testing.T) {
	for test, want := range map[string]string{
		"TestX":                                  "testx",
		"TestX/R-DIST-05 next_name":              "testx-r-dist-05-next-name",
		"Test" + strings.Repeat("y", 80) + "/z":  "test" + strings.Repeat("y", 36),
		"Test" + strings.Repeat("y", 35) + "/zz": "test" + strings.Repeat("y", 35),
		"/ü/":                                    "test",
	} {
		t.Run(test, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(namespaceName(test)).To(Equal(want))
			g.Expect(validation.IsDNS1123Label(namespaceName(test))).To(BeEmpty())
		})
	}
}

func TestKubectlIsTheOneThatWasFound(t *testing.T) {
	g := NewWithT(t)
	path, err := Binary("kubectl")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exec.Command(path, "version", "--client").Run()).To(Succeed())
}
