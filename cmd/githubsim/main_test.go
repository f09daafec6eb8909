// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/githubsim/simclient"
)

func TestServesTheSeedUntilItIsStopped(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "seed.yaml")
	g.Expect(os.WriteFile(file, []byte("organizations: [{login: acme}]\nusers: [ada]\nrepositories: [{name: acme/lab}]\napps: [{slug: demo, owner: acme, id: 7}]\n"), 0o600)).To(Succeed())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	var problems bytes.Buffer
	go func() {
		ended <- run(ctx, config{listen: "127.0.0.1:0", seed: file}, w, &problems)
		_ = w.Close()
	}()
	var lines []string
	url := ""
	for scanner := bufio.NewScanner(r); url == "" && scanner.Scan(); {
		lines = append(lines, scanner.Text())
		url, _ = strings.CutPrefix(scanner.Text(), "ready ")
		if !strings.HasPrefix(scanner.Text(), "ready ") {
			url = ""
		}
	}
	g.Expect(lines[0]).To(MatchRegexp(`^user ada has the token ghp_`))
	g.Expect(lines[1]).To(MatchRegexp(`^app demo has the id 7, its bot the user id \d+$`))
	g.Expect(lines[2]).To(Equal("-----BEGIN RSA PRIVATE KEY-----"))
	g.Expect(simclient.New(url).Repositories(ctx, "acme")).To(Equal([]string{"acme/lab"}))
	stop()
	g.Expect(<-ended).To(Succeed())
	g.Expect(problems.String()).To(BeEmpty())
}

func TestSaysWhatKeepsItFromServing(t *testing.T) {
	used := t.TempDir()
	if err := os.MkdirAll(filepath.Join(used, "repos", "1.git"), 0o755); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("nonsense: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]config{
		"listening on nowhere":   {listen: "nowhere:1:2"},
		"reading the seed":       {listen: "127.0.0.1:0", seed: "/nowhere.yaml"},
		"unknown field":          {listen: "127.0.0.1:0", seed: bad},
		"choose an empty folder": {listen: "127.0.0.1:0", data: used},
	} {
		t.Run(want, func(t *testing.T) {
			NewWithT(t).Expect(run(t.Context(), c, io.Discard, io.Discard)).To(MatchError(ContainSubstring(want)))
		})
	}
}
