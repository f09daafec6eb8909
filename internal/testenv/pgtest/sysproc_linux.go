// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package pgtest

import "syscall"

// dieWithParent makes the kernel stop the server at once when the thread that
// started it ends, which is when this process ends: a killed test binary
// leaves no Postgres behind.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
