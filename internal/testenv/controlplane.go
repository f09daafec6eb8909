// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/sluice-dev/sluice/internal/testenv/proc"
)

const (
	// startTimeout bounds a start on a busy machine; ready takes two seconds
	// on an idle one.
	startTimeout = 2 * time.Minute
	// readyInterval is how often the API server is asked whether it is ready.
	readyInterval = 50 * time.Millisecond
	// systemMasters is the group that may do everything.
	systemMasters = "system:masters"
	// The client's own limits are for production; tests wait for nothing.
	clientQPS, clientBurst = 1000, 2000
)

// controllers are the parts of kube-controller-manager that make a namespace
// behave as in a cluster. Those that run pods are left out: there are no nodes.
var controllers = []string{
	"garbage-collector-controller", "namespace-controller", "serviceaccount-controller", "clusterrole-aggregation-controller",
}

// Options of a ControlPlane. The zero value is etcd and an API server in a
// temporary folder.
type Options struct {
	// Dir holds data, certificates and logs. It is kept by Stop; what an
	// earlier control plane stored there is dropped at start. Empty means a
	// temporary folder that Stop removes.
	Dir string
	// Log receives what the programs print, besides <Dir>/<program>.log; nil
	// means the files only.
	Log io.Writer
	// ControllerManager also runs garbage collection of owned objects, the
	// deletion of namespaces' content, and default service accounts.
	ControllerManager bool
	// CRDPaths are files or folders of CustomResourceDefinitions to install.
	// Relative ones are from the module's root, e.g. "config/crd/bases".
	CRDPaths []string
	// Detached leaves the programs running when this process ends. Whoever
	// asks for it stops them by PIDs, or by Stop.
	Detached bool
}

// ControlPlane is a running Kubernetes API without nodes. It serves what the
// API server of its version serves by default: no alpha or beta interface is
// switched on.
type ControlPlane struct {
	// Config is the administrator's.
	Config *rest.Config

	dir       string
	temporary bool
	options   Options
	authority *authority
	kubectl   string
	etcdPort  *Port
	apiPort   *Port

	mu        sync.Mutex
	processes []*proc.Process // in order of start
}

// StartControlPlane starts a control plane and returns once it answers and the
// CustomResourceDefinitions are served. A canceled context ends the start, not
// the control plane. The error names `make controlplane` when a program is
// missing, and quotes the log of one that ended.
func StartControlPlane(ctx context.Context, o Options) (*ControlPlane, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c := &ControlPlane{options: o, dir: o.Dir}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	names := []string{"etcd", "kube-apiserver", "kubectl"}
	if c.options.ControllerManager {
		names = append(names, "kube-controller-manager")
	}
	programs, err := binaries(names)
	if err != nil {
		return err
	}
	c.kubectl = programs["kubectl"]
	if err := c.prepare(); err != nil {
		return err
	}
	if err := c.run(programs["etcd"], c.etcdArgs()); err != nil {
		return err
	}
	if err := c.run(programs["kube-apiserver"], c.apiServerArgs()); err != nil {
		return err
	}
	if err := c.awaitReady(ctx); err != nil {
		return err
	}
	if err := c.InstallCRDs(c.options.CRDPaths...); err != nil {
		return err
	}
	if !c.options.ControllerManager {
		return nil
	}
	// Last, because the garbage collector looks for new kinds only every 30
	// seconds: those installed so far it knows from its start.
	return c.run(programs["kube-controller-manager"], c.controllerManagerArgs())
}

func binaries(names []string) (map[string]string, error) {
	paths := make(map[string]string, len(names))
	for _, name := range names {
		path, err := Binary(name)
		if err != nil {
			return nil, err
		}
		paths[name] = path
	}
	return paths, nil
}

// prepare makes the folder, the ports, the certificates and the
// administrator's configuration.
func (c *ControlPlane) prepare() (err error) {
	if c.dir == "" {
		if c.dir, err = os.MkdirTemp("", "sluice-controlplane-"); err != nil {
			return fmt.Errorf("testenv: %w", err)
		}
		c.temporary = true
	} else if c.dir, err = filepath.Abs(c.dir); err != nil {
		return fmt.Errorf("testenv: %w", err)
	}
	if err := os.RemoveAll(c.path("etcd")); err != nil {
		return fmt.Errorf("testenv: dropping an earlier control plane's data: %w", err)
	}
	if err := os.MkdirAll(c.path("etcd"), 0o700); err != nil {
		return fmt.Errorf("testenv: %w", err)
	}
	if c.etcdPort, err = ReservePort(); err != nil {
		return err
	}
	if c.apiPort, err = ReservePort(); err != nil {
		return err
	}
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	if err := c.writeCertificates(); err != nil {
		return err
	}
	if c.Config, err = c.User("admin", systemMasters); err != nil {
		return err
	}
	return c.Kubeconfig(c.path("kubeconfig"))
}

func (c *ControlPlane) writeCertificates() error {
	serving, err := c.authority.server()
	if err != nil {
		return err
	}
	signing, err := signingKey()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"ca.crt": c.authority.pem, "apiserver.crt": serving.certificate, "apiserver.key": serving.key, "serviceaccount.key": signing,
	} {
		if err := os.WriteFile(c.path(name), content, 0o600); err != nil {
			return fmt.Errorf("testenv: %w", err)
		}
	}
	return nil
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }

func (c *ControlPlane) etcdArgs() []string {
	client := "http://" + c.etcdPort.Address()
	const peer = "http://127.0.0.1:0" // there are no peers
	return []string{
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer,
		"--unsafe-no-fsync", "--log-level=warn",
	}
}

func (c *ControlPlane) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=http://" + c.etcdPort.Address(),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.apiPort.Number),
		// Nobody reaches the API through its Service here.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.0.0.0/24",
		"--client-ca-file=" + c.path("ca.crt"),
		"--tls-cert-file=" + c.path("apiserver.crt"), "--tls-private-key-file=" + c.path("apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.path("serviceaccount.key"), "--service-account-signing-key-file=" + c.path("serviceaccount.key"),
		"--authorization-mode=RBAC",
		"--cert-dir=" + c.dir,
	}
	if !c.options.ControllerManager {
		// Nobody makes the service account that this plugin demands.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return args
}

func (c *ControlPlane) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + c.path("kubeconfig"),
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--concurrent-gc-syncs=4", "--concurrent-namespace-syncs=4",
		"--kube-api-qps=500", "--kube-api-burst=1000",
	}
}

func (c *ControlPlane) run(program string, args []string) error {
	name := filepath.Base(program)
	p, err := proc.Start(proc.Options{
		Name: name, Path: program, Args: args, Dir: c.dir,
		// Nothing of the machine's own configuration.
		Env:     []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "TMPDIR=" + os.TempDir()},
		LogFile: c.path(name + ".log"), Log: c.options.Log, Detached: c.options.Detached,
	})
	if err != nil {
		return fmt.Errorf("testenv: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = append(c.processes, p)
	return nil
}

// awaitReady returns once the API server says it is ready and the default
// namespace is there, or says why it will not be.
func (c *ControlPlane) awaitReady(ctx context.Context) error {
	api, err := client.New(c.Config, client.Options{})
	if err != nil {
		return fmt.Errorf("testenv: %w", err)
	}
	httpClient, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		return fmt.Errorf("testenv: %w", err)
	}
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	etcd, server := c.processes[0], c.processes[1]
	for {
		if ready(ctx, httpClient, c.Config.Host) && exists(ctx, api, &corev1.Namespace{}, corev1.NamespaceDefault) {
			return nil
		}
		select {
		case <-etcd.Exited():
			return fmt.Errorf("testenv: %w", orEnded(etcd, "etcd"))
		case <-server.Exited():
			return fmt.Errorf("testenv: %w", orEnded(server, "kube-apiserver"))
		case <-ctx.Done():
			return fmt.Errorf("testenv: waiting for the API server to be ready: %w; the end of its log:\n%s", context.Cause(ctx), server.Tail())
		case <-ticker.C:
		}
	}
}

func orEnded(p *proc.Process, name string) error {
	if err := p.Err(); err != nil {
		return err
	}
	return errors.New(name + " ended by itself")
}

func ready(ctx context.Context, c *http.Client, host string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/readyz", nil)
	if err != nil {
		return false
	}
	resp, err := c.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }() // only read
	return resp.StatusCode == http.StatusOK
}

func exists(ctx context.Context, c client.Client, object client.Object, name string) bool {
	return c.Get(ctx, client.ObjectKey{Name: name}, object) == nil
}

// InstallCRDs installs CustomResourceDefinitions and returns once they are
// served. Relative paths are from the module's root. When a controller manager
// runs already, its garbage collector learns of them within 30 seconds.
func (c *ControlPlane) InstallCRDs(paths ...string) error {
	if len(paths) == 0 {
		return nil
	}
	absolute := make([]string, len(paths))
	for i, path := range paths {
		if filepath.IsAbs(path) {
			absolute[i] = path
			continue
		}
		root, err := Root()
		if err != nil {
			return err
		}
		absolute[i] = filepath.Join(root, path)
	}
	_, err := envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{
		Paths: absolute, ErrorIfPathMissing: true, MaxTime: 30 * time.Second, PollInterval: readyInterval,
	})
	if err != nil {
		return fmt.Errorf("testenv: installing the CRDs of %q: %w", paths, err)
	}
	return nil
}

// User returns the configuration of a user that exists by being named. It may
// do what RBAC allows to the name and the groups.
func (c *ControlPlane) User(name string, groups ...string) (*rest.Config, error) {
	p, err := c.authority.client(name, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: "https://" + c.apiPort.Address(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: bytes.Clone(c.authority.pem), CertData: p.certificate, KeyData: p.key,
		},
		QPS: clientQPS, Burst: clientBurst,
	}, nil
}

// Kubeconfig writes the administrator's kubeconfig to a file.
func (c *ControlPlane) Kubeconfig(path string) error { return WriteKubeconfig(path, c.Config) }

// WriteKubeconfig writes a user's kubeconfig to a file, for programs that run
// beside the test.
func WriteKubeconfig(path string, config *rest.Config) error {
	const name = "sluice"
	k := clientcmdapi.NewConfig()
	k.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	k.CurrentContext = name
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		return fmt.Errorf("testenv: writing a kubeconfig: %w", err)
	}
	return nil
}

// Kubectl runs kubectl as the administrator and returns what it printed. The
// error holds what it complained about.
func (c *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.KubectlInput(ctx, nil, args...)
}

// KubectlInput is Kubectl with something to read, e.g. for `apply -f -`.
func (c *ControlPlane) KubectlInput(ctx context.Context, input io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.kubectl, args...)
	cmd.Stdin = input
	// A cache of its own: the shared one is keyed by host and port, and would
	// answer with what an earlier control plane on this port served.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.path("kubeconfig"), "KUBECACHEDIR="+c.path("kubectl-cache"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// PIDs returns the process ids of what runs, in order of start.
func (c *ControlPlane) PIDs() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids := make([]int, len(c.processes))
	for i, p := range c.processes {
		pids[i] = p.PID()
	}
	return pids
}

// Stop ends all that was started and removes the temporary folder. Stopping
// again does nothing.
func (c *ControlPlane) Stop() error {
	c.mu.Lock()
	processes := c.processes
	c.processes = nil
	c.mu.Unlock()
	for i := len(processes) - 1; i >= 0; i-- {
		// Killed, not asked: the API server would wait for its watches to
		// end, and nobody needs the data any more.
		processes[i].Stop(0)
	}
	for _, port := range []*Port{c.apiPort, c.etcdPort} {
		if port != nil {
			port.Release()
		}
	}
	if !c.temporary {
		return nil
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("testenv: removing the control plane's folder: %w", err)
	}
	return nil
}
