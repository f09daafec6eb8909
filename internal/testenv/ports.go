// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	// Ports are taken from below the range that kernels hand out by
	// themselves, so that no outgoing connection sits on one.
	firstPort = 20000
	portCount = 10000
	portTries = 1000
)

// Port is a TCP port on 127.0.0.1 that no other user of this package takes,
// in this process or another, until it is given back or the process ends.
type Port struct {
	Number int
	lock   *os.File
}

// ReservePort finds a free port and reserves it.
func ReservePort() (*Port, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("sluice-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("testenv: reserving a port: %w", err)
	}
	for range portTries {
		number := firstPort + rand.IntN(portCount)
		lock, err := tryLock(filepath.Join(dir, strconv.Itoa(number)))
		if err != nil {
			return nil, fmt.Errorf("testenv: reserving a port: %w", err)
		}
		if lock == nil {
			continue
		}
		port := &Port{Number: number, lock: lock}
		if port.free() {
			return port, nil
		}
		port.Release()
	}
	return nil, errors.New("testenv: found no free port: other test runs hold them, or something listens on all of them")
}

// tryLock returns the locked file, or nil when somebody else holds it. The
// kernel drops the lock with the process.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	_ = file.Close() // nothing was written
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

func (p *Port) free() bool {
	l, err := net.Listen("tcp", p.Address())
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Address returns 127.0.0.1:number.
func (p *Port) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)) }

// Release gives the port back. Giving it back again does nothing.
func (p *Port) Release() {
	_ = p.lock.Close() // closing drops the lock; the file stays for the next user
}
