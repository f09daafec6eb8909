// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Command now stands for a process of the product in a test of its clock: it
// prints how many whole hours the clock is ahead of the machine's, and again
// once a timer of a day has fired.
package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/sluice-dev/sluice/internal/clock"
)

func main() {
	c, err := clock.Process(context.Background())
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	day := c.NewTimer(24 * time.Hour)
	show(c)
	if len(os.Args) > 1 {
		return
	}
	<-day.C()
	show(c)
}

func show(c clock.Clock) {
	fmt.Println(math.Round(time.Until(c.Now()).Hours()))
}
