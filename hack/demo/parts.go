// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluice-dev/sluice/internal/githubsim/simclient"
	"github.com/sluice-dev/sluice/internal/testenv"
	"github.com/sluice-dev/sluice/internal/testenv/pgtest"
	"github.com/sluice-dev/sluice/internal/testenv/proc"
)

const (
	// resourceNamespace holds the GitHubApp's Secrets and the leader's Lease.
	resourceNamespace = "sluice-system"
	database          = "sluice"
	// startPatience is how long a process may take to answer.
	startPatience = time.Minute
	// stopGrace is how long a process may take to end when asked to.
	stopGrace = 10 * time.Second
	pollEvery = 50 * time.Millisecond
)

// parts are the processes of the demo.
type parts struct {
	dir string
	// fail ends the demo when a process ends by itself.
	fail context.CancelCauseFunc

	root        string
	kubeconfig  string
	dsn         string
	receiverURL string

	cluster  *testenv.ControlPlane
	postgres *pgtest.Server
	github   *simclient.Client

	mu       sync.Mutex
	running  []*running // in order of start
	stopping bool
}

type running struct {
	*proc.Process
	name string
}

// start builds the binaries and starts every process but the controller and
// the receiver, which need the resource namespace first.
func (p *parts) start(ctx context.Context, t *teller) error {
	t.chapter("Start the parts, each in a process of its own")
	var err error
	if p.root, err = testenv.Root(); err != nil {
		return err
	}
	for _, d := range []string{"bin", "logs", "data"} {
		if err := os.MkdirAll(filepath.Join(p.dir, d), 0o700); err != nil {
			return err
		}
	}
	var group sync.WaitGroup
	var errs [3]error
	for i, f := range []func(context.Context, *teller) error{p.build, p.startCluster, p.startPostgres} {
		group.Go(func() { errs[i] = f(ctx, t) })
	}
	group.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if err := p.startGitHub(ctx, t); err != nil {
		return err
	}
	return p.migrate(ctx, t)
}

// build builds the two commands once.
func (p *parts) build(ctx context.Context, _ *teller) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(p.dir, "bin")+string(filepath.Separator), "./cmd/sluice", "./cmd/githubsim")
	cmd.Dir = p.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the commands: %w\n%s", err, out)
	}
	return nil
}

func (p *parts) startCluster(ctx context.Context, t *teller) error {
	cluster, err := testenv.StartControlPlane(ctx, testenv.Options{Dir: filepath.Join(p.dir, "controlplane"), ControllerManager: true, CRDPaths: []string{"config/crd/bases"}})
	if err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	p.cluster, p.kubeconfig = cluster, filepath.Join(p.dir, "kubeconfig")
	if err := cluster.Kubeconfig(p.kubeconfig); err != nil {
		return err
	}
	t.say("Kubernetes control plane answers at %s, sluice.dev/v1alpha1 is served", cluster.Config.Host)
	return nil
}

func (p *parts) startPostgres(ctx context.Context, t *teller) error {
	log, err := os.Create(filepath.Join(p.dir, "logs", "postgres.log"))
	if err != nil {
		return err
	}
	// Its data is in a folder of its own: Postgres may have to run as a user
	// who cannot enter ours.
	server, err := pgtest.Start(ctx, pgtest.Options{Log: log})
	if err != nil {
		_ = log.Close() // the error says what it holds
		return fmt.Errorf("starting Postgres: %w", err)
	}
	p.postgres, p.dsn = server, server.DSN(database)
	if err := server.CreateDatabase(ctx, database); err != nil {
		return err
	}
	t.say("Postgres answers at %s", server.Address())
	return nil
}

func (p *parts) startGitHub(ctx context.Context, t *teller) error {
	port, err := testenv.ReservePort()
	if err != nil {
		return err
	}
	url := "http://" + port.Address()
	if err := p.run("githubsim", nil, "-listen", port.Address(), "-data", filepath.Join(p.dir, "data", "github")); err != nil {
		return err
	}
	p.github = simclient.New(url)
	if err := p.answers(ctx, "the simulated GitHub", url, false); err != nil {
		return err
	}
	t.say("GitHub, simulated, answers at %s: REST, git and webhooks", url)
	return nil
}

// migrate runs `sluice migrate` to its end.
func (p *parts) migrate(ctx context.Context, t *teller) error {
	log := filepath.Join(p.dir, "logs", "migrate.log")
	m, err := proc.Start(proc.Options{Name: "sluice migrate", Path: p.binary("sluice"), Args: []string{"migrate", "--log-format=text"}, Env: p.env(), LogFile: log})
	if err != nil {
		return err
	}
	select {
	case <-m.Exited():
	case <-ctx.Done():
		m.Stop(stopGrace)
		return context.Cause(ctx)
	}
	if err := m.Err(); err != nil {
		return err
	}
	t.say("sluice migrate brought the schema up to date")
	return nil
}

// startOperator starts the controller and the receiver and waits until both
// are ready.
func (p *parts) startOperator(ctx context.Context, t *teller) error {
	var ports [2]*testenv.Port
	for i := range ports {
		port, err := testenv.ReservePort()
		if err != nil {
			return err
		}
		ports[i] = port
	}
	probe, hooks := ports[0].Address(), ports[1].Address()
	if err := p.run("sluice", []string{"controller"}, "--resource-namespace="+resourceNamespace, "--data-dir="+filepath.Join(p.dir, "data", "sluice"),
		"--metrics-bind-address=0", "--health-probe-bind-address="+probe, "--leader-election-namespace="+resourceNamespace,
		"--leader-lease-duration=3s", "--leader-renew-deadline=2s", "--leader-retry-period=500ms", "--log-format=text"); err != nil {
		return err
	}
	if err := p.run("sluice", []string{"receiver"}, "--resource-namespace="+resourceNamespace, "--bind-address="+hooks, "--metrics-bind-address=0", "--log-format=text"); err != nil {
		return err
	}
	p.receiverURL = "http://" + hooks
	if err := p.answers(ctx, "the controller", "http://"+probe+"/readyz", true); err != nil {
		return err
	}
	if err := p.answers(ctx, "the receiver", p.receiverURL+"/readyz", true); err != nil {
		return err
	}
	t.say("sluice controller (leader election on) and sluice receiver (%s) are ready", p.receiverURL)
	return nil
}

func (p *parts) binary(name string) string { return filepath.Join(p.dir, "bin", name) }

// env is what the product's processes get: where the cluster and the database
// are.
func (p *parts) env() []string {
	return append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "SLUICE_DATABASE_URL="+p.dsn)
}

// run starts a command of ours that has to live as long as the demo does.
func (p *parts) run(binary string, verb []string, args ...string) error {
	name := binary
	for _, v := range verb {
		name += "-" + v
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	process, err := proc.Start(proc.Options{Name: name, Path: p.binary(binary), Args: append(verb, args...), Env: p.env(), LogFile: filepath.Join(p.dir, "logs", name+".log")})
	if err != nil {
		return err
	}
	r := &running{Process: process, name: name}
	p.running = append(p.running, r)
	go func() {
		<-process.Exited()
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.stopping {
			err := process.Err()
			if err == nil {
				err = fmt.Errorf("%s ended by itself; the end of its log:\n%s", name, process.Tail())
			}
			p.fail(err)
		}
	}()
	return nil
}

// answers waits until an address answers, with 200 if asked for.
func (p *parts) answers(ctx context.Context, what, url string, ok bool) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	var last error
	for {
		if last = probe(ctx, url, ok); last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not get ready at %s: %w", what, url, last)
		case <-ticker.C:
		}
	}
}

func probe(ctx context.Context, url string, ok bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if ok && resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return errors.Join(fmt.Errorf("%s: %s", resp.Status, body), err)
	}
	return nil
}

// printTails prints the end of every process's log.
func (p *parts) printTails(to io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.running {
		_, _ = fmt.Fprintf(to, "\n--- the end of the log of %s:\n%s\n", r.name, r.Tail()) // for people only
	}
}

// stop ends everything, the last started first.
func (p *parts) stop() error {
	p.mu.Lock()
	p.stopping = true
	list := p.running
	p.mu.Unlock()
	for i := len(list) - 1; i >= 0; i-- {
		list[i].Stop(stopGrace)
	}
	var errs []error
	if p.postgres != nil {
		errs = append(errs, p.postgres.Stop())
	}
	if p.cluster != nil {
		errs = append(errs, p.cluster.Stop())
	}
	return errors.Join(errs...)
}
