// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// inbox is the channel that a stored delivery is announced on.
	inbox = "sluice_inbox"
	// listenRetry and listenRetryMax bound the pauses between attempts to
	// listen again.
	listenRetry    = 500 * time.Millisecond
	listenRetryMax = 15 * time.Second
	// listenCheck is how often a silent connection is asked whether it lives.
	listenCheck = time.Minute
)

// Wakeups returns a channel that hints at new deliveries. It is a hint only:
// what is announced while the connection is lost is missed, so the receiver of
// hints looks by itself now and then, and gets one hint with each new
// connection. Connections are made anew with backoff. The channel is closed
// when ctx ends.
func (l *Ledger) Wakeups(ctx context.Context) <-chan struct{} {
	hints := make(chan struct{}, 1)
	go func() {
		defer close(hints)
		pause := listenRetry
		for ctx.Err() == nil {
			if l.listen(ctx, hints) {
				pause = listenRetry
			}
			timer := time.NewTimer(pause)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			timer.Stop()
			pause = min(2*pause, listenRetryMax)
		}
	}()
	return hints
}

// listen passes hints on until the connection is lost or ctx ends. It reports
// whether it listened at all.
func (l *Ledger) listen(ctx context.Context, hints chan<- struct{}) (listened bool) {
	conn, err := l.dedicated(ctx)
	if err != nil {
		l.log.V(1).Info("Listening for deliveries failed; it is tried again", "address", l.address)
		return false
	}
	defer func() {
		// Not within ctx, which has ended; and not for long.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // it is of no use any more, whatever comes of it
	}()
	hint(hints)
	for {
		if err := l.awaitNotification(ctx, conn, hints); err != nil {
			if ctx.Err() == nil {
				l.log.V(1).Info("Lost the connection that listens for deliveries; making another", "address", l.address)
			}
			return true
		}
	}
}

// dedicated returns a listening connection of its own, outside of the pool: a
// connection given back would go on listening.
func (l *Ledger) dedicated(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, l.pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+inbox); err != nil {
		_ = conn.Close(ctx) // the first error is the one that tells
		return nil, err
	}
	return conn, nil
}

// awaitNotification passes one notification on. Silence is no error as long as
// the connection answers.
func (l *Ledger) awaitNotification(ctx context.Context, conn *pgx.Conn, hints chan<- struct{}) error {
	waiting, cancel := context.WithTimeout(ctx, listenCheck)
	defer cancel()
	_, err := conn.WaitForNotification(waiting)
	switch {
	case err == nil:
		hint(hints)
		return nil
	case ctx.Err() != nil || waiting.Err() == nil:
		return err
	}
	checking, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return conn.Ping(checking)
}

// hint never blocks: one hint that was not taken yet says it all.
func hint(hints chan<- struct{}) {
	select {
	case hints <- struct{}{}:
	default:
	}
}
