// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// maxPacket is the longest payload of a packet line.
const maxPacket = 65516

// flushPacket ends a section.
const flushPacket = "0000"

// errFlush is returned by readPacket for a flush packet.
var errFlush = errors.New("flush packet")

// readPacket reads one packet line; errFlush stands for a flush packet.
func readPacket(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length, err := strconv.ParseUint(string(head[:]), 16, 16)
	switch {
	case err != nil || (length > 0 && length < 4):
		return nil, fmt.Errorf("%q is no length of a packet line", head)
	case length == 0:
		return nil, errFlush
	}
	payload := make([]byte, length-4)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, err
	}
	return payload, nil
}

// packet appends a packet line.
func packet(to *bytes.Buffer, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintf(to, "%04x%s", len(text)+4, text)
}

// Bands of side-band-64k.
const (
	bandData     = 1
	bandProgress = 2
)

// sideband appends data on a band, cut into packets.
func sideband(to *bytes.Buffer, band byte, data []byte) {
	for len(data) > 0 {
		n := min(len(data), maxPacket-1)
		fmt.Fprintf(to, "%04x%c%s", n+5, band, data[:n])
		data = data[n:]
	}
}
