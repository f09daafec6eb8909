// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package proc

import "syscall"

// dieWithParent does nothing where the kernel cannot do it.
func dieWithParent(*syscall.SysProcAttr) {}
