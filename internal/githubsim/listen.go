// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Patience of the server that Listen runs.
const (
	headerTimeout = 10 * time.Second
	stopTimeout   = 5 * time.Second
)

// Listen serves the simulator on an address of this machine and returns the
// URL and a function that stops it. Port 0 chooses a free one. Stopping waits
// a moment for requests under way, and ends the delivery of webhooks.
func (s *Server) Listen(ctx context.Context, address string) (url string, stop func(), err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	url = "http://" + l.Addr().String()
	if s.options.BaseURL == "" {
		s.SetBaseURL(url)
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: headerTimeout}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.options.OnInvalid(fmt.Errorf("serving ended: %w", err))
		}
	}()
	return url, func() {
		s.Close()
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
		<-done
	}, nil
}
