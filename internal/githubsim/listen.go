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

// Listen serves the simulator on an address of this machine and returns the
// URL and a function that stops it. Port 0 chooses a free one.
func (s *Server) Listen(ctx context.Context, address string) (url string, stop func(), err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	url = "http://" + l.Addr().String()
	s.SetBaseURL(url)
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) && s.options.OnInvalid != nil {
			s.options.OnInvalid(err)
		}
	}()
	return url, func() {
		_ = server.Close()
		<-done
		s.Close()
	}, nil
}
