// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package movable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Variable is the environment variable that names the file a process's clock
// follows. The file holds how far to be ahead of the machine, e.g. "36h".
const Variable = "SLUICE_TEST_CLOCK"

// Follow returns a clock whose offset is what a file says, and moves it
// whenever the file changes, until the context ends. A file that cannot be read
// later on moves nothing and is reported.
func Follow(ctx context.Context, path string, report func(error)) (*Clock, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("following the clock file: %w", err)
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("following the clock file %s: %w", path, err)
	}
	// The folder, because a file that is replaced is another file. Watched
	// before the first reading, so that no change falls in between.
	if err := watcher.Add(filepath.Dir(path)); err != nil {
		return nil, errors.Join(fmt.Errorf("following the clock file %s: %w", path, err), watcher.Close())
	}
	c := &Clock{}
	if err := c.read(path); err != nil {
		return nil, errors.Join(err, watcher.Close())
	}
	go c.follow(ctx, path, watcher, report)
	return c, nil
}

func (c *Clock) follow(ctx context.Context, path string, watcher *fsnotify.Watcher, report func(error)) {
	defer func() { _ = watcher.Close() }() // nothing more is asked of it
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-watcher.Errors:
			report(fmt.Errorf("following the clock file %s: %w", path, err))
		case event := <-watcher.Events:
			if event.Name != path || (!event.Has(fsnotify.Create) && !event.Has(fsnotify.Write)) {
				continue
			}
			if err := c.read(path); err != nil {
				report(err)
			}
		}
	}
}

// read moves the clock to what the file says.
func (c *Clock) read(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the clock file: %w", err)
	}
	offset, err := time.ParseDuration(strings.TrimSpace(string(b)))
	if err != nil {
		return fmt.Errorf("the clock file %s holds no duration such as 36h: %w", path, err)
	}
	c.Move(offset)
	return nil
}
