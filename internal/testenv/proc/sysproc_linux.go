// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import "syscall"

// dieWithParent makes the kernel kill the program when the thread that started
// it ends.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
