// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build sluicetest

package clock

import (
	"context"
	"fmt"
	"os"

	"github.com/sluice-dev/sluice/internal/clock/movable"
)

// Process returns the clock of a whole process. In this test binary it follows
// the file that the environment variable movable.Variable names, until the
// context ends; without the variable it is the machine's.
func Process(ctx context.Context) (Clock, error) {
	path := os.Getenv(movable.Variable)
	if path == "" {
		return Real(), nil
	}
	return movable.Follow(ctx, path, func(err error) {
		fmt.Fprintln(os.Stderr, "test clock:", err)
	})
}
