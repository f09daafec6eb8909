// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pgtest runs throwaway Postgres servers, for tests and for the demo:
// real ones, from the binaries on the machine, each in a folder and on a port
// of its own. It knows nothing of the schema; tests hand it their migration.
package pgtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// superuser owns everything; it needs no password on the loopback.
	superuser = "sluice"
	// readyLine is what the server logs once it takes connections.
	readyLine = "database system is ready to accept connections"
	// stopGrace is how long a server may take to shut down before it is killed.
	stopGrace = 10 * time.Second
	// portTries is how often another free port is tried when somebody took
	// the one just found.
	portTries = 5
	// keptLines is how much of the server's log an error quotes.
	keptLines = 20
)

// Options of a Server. The zero value is a server in a temporary folder on a
// free port.
type Options struct {
	// Dir holds the data. It is kept by Stop and reused when it holds a
	// database already. Empty means a temporary folder that Stop removes.
	Dir string
	// Log receives the server's log; nil drops it.
	Log io.Writer
	// Port on 127.0.0.1; 0 picks a free one.
	Port int
}

// Server is a running Postgres. Its methods may be called from several
// goroutines; Pause, Resume, Restart and Stop one at a time.
type Server struct {
	bin       string
	dir       string
	temporary bool
	log       io.Writer
	port      int
	as        *syscall.Credential // nil: as this process's own user

	mu   sync.Mutex
	proc *process // nil while paused or stopped
}

// process is one run of the server.
type process struct {
	cmd    *exec.Cmd
	ready  chan struct{} // closed once it takes connections
	exited chan struct{} // closed once it was waited for
	logged chan struct{} // closed once its log was read to the end
	tail   *tail
}

// Start initialises a database cluster and runs a server on it until Stop. It
// returns once the server takes connections. Postgres refuses to run as root;
// when this process does, the server runs as user postgres, else nobody.
func Start(ctx context.Context, o Options) (*Server, error) {
	bin, err := binDirectory()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: o.Dir, log: o.Log, port: o.Port}
	if s.log == nil {
		s.log = io.Discard
	}
	if os.Geteuid() == 0 {
		if s.as, err = ordinaryUser(); err != nil {
			return nil, err
		}
	}
	if err := s.prepareDirectory(); err != nil {
		return nil, err
	}
	if err := s.initialise(ctx); err != nil {
		return nil, errors.Join(err, s.removeTemporary())
	}
	if err := s.launchOnFreePort(ctx, o.Port != 0); err != nil {
		return nil, errors.Join(err, s.removeTemporary())
	}
	return s, nil
}

// ordinaryUser returns who runs Postgres when we are root.
func ordinaryUser() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("pgtest: running as root, and there is no user postgres or nobody to run Postgres as: run as an ordinary user")
}

func (s *Server) prepareDirectory() error {
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "sluice-postgres-")
		if err != nil {
			return fmt.Errorf("pgtest: making a folder for Postgres: %w", err)
		}
		s.dir, s.temporary = dir, true
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("pgtest: making a folder for Postgres: %w", err)
	}
	if s.as == nil {
		return nil
	}
	if err := os.Chown(s.dir, int(s.as.Uid), int(s.as.Gid)); err != nil {
		return fmt.Errorf("pgtest: giving the folder to the user who runs Postgres: %w", err)
	}
	return nil
}

func (s *Server) removeTemporary() error {
	if !s.temporary {
		return nil
	}
	return os.RemoveAll(s.dir)
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// initialise makes the database cluster, unless the folder holds one.
func (s *Server) initialise(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.data(), "PG_VERSION")); err == nil {
		return nil
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"),
		"--pgdata", s.data(), "--username", superuser, "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	cmd.Dir, cmd.Env = s.dir, s.environment()
	cmd.SysProcAttr = s.attributes()
	output, err := runLocked(cmd)
	if err != nil {
		return fmt.Errorf("pgtest: initdb in %s: %w\n%s", s.dir, err, output)
	}
	return nil
}

// runLocked runs a command to its end on one thread, because a thread's end
// would end the command (see dieWithParent).
func runLocked(cmd *exec.Cmd) ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.CombinedOutput()
}

func (s *Server) environment() []string {
	return []string{"PATH=" + s.bin + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C", "TZ=UTC"}
}

func (s *Server) attributes() *syscall.SysProcAttr {
	// A group of its own: Ctrl-C in a terminal reaches the tests only, which
	// then stop their server.
	a := &syscall.SysProcAttr{Setpgid: true, Credential: s.as}
	dieWithParent(a)
	return a
}

// launchOnFreePort runs the server, on another port when the one just found
// was taken in between; a fixed port is tried once.
func (s *Server) launchOnFreePort(ctx context.Context, fixed bool) error {
	if fixed {
		return s.launch(ctx)
	}
	var err error
	for range portTries {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.launch(ctx); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("pgtest: looking for a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("pgtest: looking for a free port: %w", err)
	}
	return port, nil
}

// launch runs the server and waits for the line that says it is ready.
func (s *Server) launch(ctx context.Context) error {
	p, err := s.run()
	if err != nil {
		return err
	}
	select {
	case <-p.ready:
		s.mu.Lock()
		s.proc = p
		s.mu.Unlock()
		return nil
	case <-p.exited:
		<-p.logged
		return fmt.Errorf("pgtest: Postgres ended before it was ready:\n%s", p.tail)
	case <-ctx.Done():
		p.stop(syscall.SIGQUIT)
		return fmt.Errorf("pgtest: waiting for Postgres to be ready: %w\n%s", ctx.Err(), p.tail)
	}
}

func (s *Server) run() (*process, error) {
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data())
	for _, setting := range []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(s.port), "unix_socket_directories=",
		"fsync=off", "synchronous_commit=off", "full_page_writes=off",
		"max_connections=200", "shared_buffers=64MB", "timezone=UTC",
		"logging_collector=off", "log_destination=stderr",
	} {
		cmd.Args = append(cmd.Args, "-c", setting)
	}
	cmd.Dir, cmd.Env = s.dir, s.environment()
	cmd.SysProcAttr = s.attributes()

	output, input, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pgtest: starting Postgres: %w", err)
	}
	cmd.Stdout, cmd.Stderr = input, input
	p := &process{cmd: cmd, ready: make(chan struct{}), exited: make(chan struct{}), logged: make(chan struct{}), tail: &tail{}}
	started := make(chan error, 1)
	go func() {
		// The thread lives as long as the server: see dieWithParent.
		runtime.LockOSThread()
		err := cmd.Start()
		_ = input.Close() // the server has its own
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended does not matter, only that it did
		}
		close(p.exited)
	}()
	if err := <-started; err != nil {
		_ = output.Close()
		return nil, fmt.Errorf("pgtest: starting Postgres: %w", err)
	}
	go p.readLog(output, s.log)
	return p, nil
}

// readLog passes the server's log on, and closes ready at its readyLine.
func (p *process) readLog(output io.ReadCloser, to io.Writer) {
	defer close(p.logged)
	defer func() { _ = output.Close() }()
	announced := false
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.tail.add(lines.Text())
		_, _ = fmt.Fprintln(to, lines.Text()) // a log that cannot be written stops nothing
		if !announced && strings.Contains(lines.Text(), readyLine) {
			announced = true
			close(p.ready)
		}
	}
	_, _ = io.Copy(io.Discard, output) // a line beyond the bound must not block the server
}

// stop sends a signal, waits for the server to end, and kills it when it does
// not.
func (p *process) stop(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig) // it may have ended already
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.exited:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// Address returns host:port.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// DSN returns the URL of one of the server's databases. The databases that are
// always there are called postgres and template1.
func (s *Server) DSN(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Host: s.Address(), Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// CreateDatabase makes an empty database.
func (s *Server) CreateDatabase(ctx context.Context, name string) error {
	return s.admin(ctx, "CREATE DATABASE "+quote(name))
}

// admin runs one statement outside of any database of a test.
func (s *Server) admin(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	_, err = conn.Exec(ctx, sql)
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return fmt.Errorf("pgtest: %s: %w", sql, err)
	}
	return nil
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// Pause stops the server the way an administrator does: connections are cut,
// new ones are refused. Nothing is lost.
func (s *Server) Pause() { s.end(syscall.SIGINT) }

// Resume runs a paused server again, with the same data on the same port.
func (s *Server) Resume(ctx context.Context) error {
	s.mu.Lock()
	running := s.proc != nil
	s.mu.Unlock()
	if running {
		return nil
	}
	return s.launch(ctx)
}

// Restart is Pause and Resume.
func (s *Server) Restart(ctx context.Context) error {
	s.Pause()
	return s.Resume(ctx)
}

// Stop ends the server for good and removes its temporary folder. A second
// call does nothing.
func (s *Server) Stop() error {
	sig := syscall.SIGINT
	if s.temporary {
		sig = syscall.SIGQUIT // at once: nobody needs the data any more
	}
	s.end(sig)
	return s.removeTemporary()
}

func (s *Server) end(sig syscall.Signal) {
	s.mu.Lock()
	p := s.proc
	s.proc = nil
	s.mu.Unlock()
	if p != nil {
		p.stop(sig)
	}
}

// tail keeps the last lines of a log.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	if len(t.lines) > keptLines {
		t.lines = t.lines[1:]
	}
}

// String returns the lines kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b bytes.Buffer
	for _, line := range t.lines {
		b.WriteString(line + "\n")
	}
	return b.String()
}
