// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

const (
	firstRetry = 15 * time.Second
	longRetry  = 10 * time.Minute
	// RequestLifetime is how long a request waits for a passing fault before
	// it is refused as expired.
	RequestLifetime = 24 * time.Hour
)

// RetryDelay returns how long to wait after the n-th failed attempt in a row
// (n from 1): 15 s doubling to 10 min.
func RetryDelay(n int) time.Duration {
	d := firstRetry
	for i := 1; i < n && d < longRetry; i++ {
		d *= 2
	}
	return min(d, longRetry)
}
