// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

const (
	signatureHeader = "X-Hub-Signature-256"
	signaturePrefix = "sha256="
)

// signature returns the digest that a request claims for its body. It is
// refused when missing, given twice, without its prefix or not made of 64 hex
// digits; the SHA-1 header is never looked at (R-HOOK-01).
func signature(h http.Header) (digest []byte, ok bool) {
	values := h.Values(signatureHeader)
	if len(values) != 1 {
		return nil, false
	}
	text, found := strings.CutPrefix(values[0], signaturePrefix)
	if !found || len(text) != hex.EncodedLen(sha256.Size) {
		return nil, false
	}
	digest, err := hex.DecodeString(text)
	return digest, err == nil
}

// signed reports whether the digest is that of the raw body under one of the
// secrets. Every secret is tried, in constant time, so that the answer's time
// tells nothing about which one fits. An empty secret fits nothing.
func signed(body, digest []byte, secrets [][]byte) bool {
	fits := false
	for _, secret := range secrets {
		if len(secret) == 0 {
			continue
		}
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		if hmac.Equal(mac.Sum(nil), digest) {
			fits = true
		}
	}
	return fits
}
