// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	. "github.com/onsi/gomega"
)

// childVariable makes this test binary start a server, say where, and wait to
// be killed.
const childVariable = "SLUICE_PGTEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		serveUntilKilled()
		return
	}
	os.Exit(Run(m, func(dsn string) error {
		return execute(dsn, "CREATE TABLE marks (mark text PRIMARY KEY)")
	}))
}

func serveUntilKilled() {
	s, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	fmt.Println(s.proc.cmd.Process.Pid, s.dir)
	select {}
}

func execute(dsn, sql string) error {
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(context.Background(), sql)
	return errors.Join(err, conn.Close(context.Background()))
}

func marks(dsn string) (n int, err error) {
	conn, err := pgx.Connect(context.Background(), dsn)
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(context.Background(), "SELECT count(*) FROM marks").Scan(&n)
	return n, errors.Join(err, conn.Close(context.Background()))
}

func TestDatabasesAreMigratedAndApart(t *testing.T) {
	g := NewWithT(t)
	one, other := Database(t), Database(t)
	g.Expect(execute(one, "INSERT INTO marks VALUES ('mine')")).To(Succeed())
	g.Expect(marks(one)).To(Equal(1))
	g.Expect(marks(other)).To(Equal(0))
}

func TestDatabaseIsDroppedAfterTheTest(t *testing.T) {
	g := NewWithT(t)
	var dsn string
	t.Run("uses one", func(t *testing.T) {
		dsn = Database(t)
		NewWithT(t).Expect(execute(dsn, "SELECT 1")).To(Succeed())
	})
	g.Expect(execute(dsn, "SELECT 1")).To(MatchError(ContainSubstring("does not exist")))
}

func TestTemplateAfterUseIsRefused(t *testing.T) {
	Database(t)
	NewWithT(t).Expect(Template(t.Context(), func(string) error { return nil })).To(MatchError(ContainSubstring("exists already")))
}

func TestPauseAndResumeKeepPortAndData(t *testing.T) {
	g := NewWithT(t)
	s := Dedicated(t)
	g.Expect(s.CreateDatabase(t.Context(), "kept")).To(Succeed())
	g.Expect(execute(s.DSN("kept"), "CREATE TABLE marks AS SELECT 'mine' AS mark")).To(Succeed())
	address := s.Address()

	s.Pause()
	g.Expect(execute(s.DSN("kept"), "SELECT 1")).To(MatchError(ContainSubstring("connection refused")))

	g.Expect(s.Resume(t.Context())).To(Succeed())
	g.Expect(s.Resume(t.Context())).To(Succeed(), "resuming a running server does nothing")
	g.Expect(s.Address()).To(Equal(address))
	g.Expect(marks(s.DSN("kept"))).To(Equal(1))

	g.Expect(s.Restart(t.Context())).To(Succeed())
	g.Expect(marks(s.DSN("kept"))).To(Equal(1))
}

func TestStopRemovesATemporaryFolderAndKeepsAGivenOne(t *testing.T) {
	g := NewWithT(t)
	temporary, err := Start(t.Context(), Options{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(temporary.Stop()).To(Succeed())
	g.Expect(temporary.Stop()).To(Succeed())
	g.Expect(temporary.dir).NotTo(BeADirectory())

	// Not t.TempDir(): its parent is closed to the user who runs Postgres.
	parent, err := os.MkdirTemp("", "sluice-pgtest-")
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(os.RemoveAll(parent)).To(Succeed()) }()
	g.Expect(os.Chmod(parent, 0o755)).To(Succeed())
	dir := filepath.Join(parent, "postgres")
	first, err := Start(t.Context(), Options{Dir: dir})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.CreateDatabase(t.Context(), "kept")).To(Succeed())
	g.Expect(first.Stop()).To(Succeed())
	again, err := Start(t.Context(), Options{Dir: dir})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(execute(again.DSN("kept"), "SELECT 1")).To(Succeed())
	g.Expect(again.Stop()).To(Succeed())
}

func TestStartSaysWhyPostgresEnded(t *testing.T) {
	g := NewWithT(t)
	s := Dedicated(t)
	_, err := Start(t.Context(), Options{Port: s.port})
	g.Expect(err).To(MatchError(And(ContainSubstring("ended before it was ready"), ContainSubstring("Address already in use"))))
}

func TestStartStopsWaitingWithItsContext(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Start(ctx, Options{})
	g.Expect(err).To(MatchError(context.Canceled))
}

func TestKilledBinaryLeavesNoServer(t *testing.T) {
	g := NewWithT(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1")
	out, err := child.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(child.Start()).To(Succeed())
	line, err := bufio.NewReader(out).ReadString('\n')
	g.Expect(err).NotTo(HaveOccurred())
	number, dir, found := strings.Cut(strings.TrimSpace(line), " ")
	g.Expect(found).To(BeTrue(), line)
	defer func() { g.Expect(os.RemoveAll(dir)).To(Succeed()) }()
	pid, err := strconv.Atoi(number)
	g.Expect(err).NotTo(HaveOccurred(), line)
	g.Expect(gone(pid)).To(BeFalse())

	g.Expect(child.Process.Kill()).To(Succeed())
	_ = child.Wait() // killed, as asked
	g.Eventually(func() bool { return gone(pid) }).WithTimeout(20 * time.Second).Should(BeTrue())
}

// gone reports whether a process has ended; one that nobody waited for yet has.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist) || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

func TestNewestVersionFirst(t *testing.T) {
	g := NewWithT(t)
	g.Expect(newestFirst([]string{"/p/9.6/bin", "/p/15/bin", "/p/x/bin", "/p/14/bin"})).
		To(Equal([]string{"/p/15/bin", "/p/14/bin", "/p/9.6/bin", "/p/x/bin"}))
}

func TestMissingBinariesNameTheRemedy(t *testing.T) {
	g := NewWithT(t)
	half := t.TempDir() // a client-only installation
	g.Expect(os.WriteFile(filepath.Join(half, "initdb"), nil, 0o755)).To(Succeed())
	_, err := firstComplete([]string{half})
	g.Expect(err).To(MatchError(ContainSubstring("apt-get install postgresql")))

	dump, err := Binary("pg_dump")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(executable(dump)).To(BeTrue())
}
