// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"regexp"

	"github.com/sluice-dev/sluice/internal/fault"
)

// maxMessage bounds a stored error, in characters (R-HOOK-06).
const maxMessage = 1000

// secretLike finds what must never be stored: GitHub's tokens, JWTs, and
// credentials in an address or a header (R-CORE-10). Faults hold none; this is
// for the errors that nobody classified.
var secretLike = regexp.MustCompile(`\b(gh[a-z]_|github_pat_)\w+|\beyJ[\w-]+\.[\w-]+(\.[\w-]*)?|://[^\s/@]+@|(?i:\bauthorization:\s*\w+\s+\S+|\bbearer\s+\S+)`)

// message returns an error's text as it may be stored.
func message(err error) string {
	text := []rune(secretLike.ReplaceAllString(fault.Of(err).Message, "[redacted]"))
	if len(text) > maxMessage {
		text = text[:maxMessage]
	}
	return string(text)
}
