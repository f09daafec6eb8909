// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"os"
	"regexp"
	"testing"
)

// What a refusal says can be read on a RepoReconcile, where nothing of the
// source appears (R-PRIV-01).
func TestRefusalsSpeakNotOfTheSource_R_PRIV_01(t *testing.T) {
	text, err := os.ReadFile("refusals.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range regexp.MustCompile(`"[^"\n]*\bsource\b[^"\n]*"`).FindAllString(string(text), -1) {
		t.Errorf("a refusal speaks of the source: %s", message)
	}
}
