// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// module makes a module with the given test functions' file and goes there.
func module(t *testing.T, test string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":           "module example\n\ngo 1.26\n",
		"a/a_test.go":      "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Exit\n\nvar _ testing.TB\n\n" + test + "\n",
		"empty/nothing.go": "package empty\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, test string
		want       string // the last line printed
		err        string
		shows      []string
		hides      string
	}{
		{
			name: "all pass", test: `func TestGood(t *testing.T) { t.Log("chatter"); t.Run("sub", func(*testing.T) {}) }`,
			want: "2 tests passed, 0 failed, 0 skipped", shows: []string{"ok  \texample/a"}, hides: "chatter",
		},
		{
			name: "one fails", test: `func TestGood(t *testing.T) { t.Log("chatter") }; func TestBad(t *testing.T) { t.Error("broken here") }`,
			want: "1 tests passed, 1 failed, 0 skipped", err: "exit status 1", shows: []string{"broken here", "failed  example/a TestBad"}, hides: "chatter",
		},
		{
			name: "one is skipped", test: `func TestGood(*testing.T) {}; func TestLazy(t *testing.T) { t.Skip("another day") }`,
			want: "1 tests passed, 0 failed, 1 skipped", err: "tests were skipped", shows: []string{"another day", "skipped example/a TestLazy"},
		},
		{
			name: "none runs", test: `func helper() {}`,
			want: "0 tests passed, 0 failed, 0 skipped", err: "no test ran",
		},
		{
			name: "the binary ends in the middle", test: `func TestCrash(t *testing.T) { println("last words"); os.Exit(3) }`,
			want: "0 tests passed, 0 failed, 0 skipped", err: "exit status 1", shows: []string{"last words", "failed  example/a", "unended example/a TestCrash"},
		},
		{
			name: "it does not compile", test: `func TestBad(t *testing.T) { undefinedThing() }`,
			want: "0 tests passed, 0 failed, 0 skipped", err: "exit status 1", shows: []string{"undefined: undefinedThing", "failed  example/a"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			module(t, c.test)
			var out bytes.Buffer
			err := run([]string{"./..."}, &out)
			if c.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.err)))
			}
			g.Expect(strings.TrimSpace(out.String())).To(HaveSuffix(c.want))
			for _, part := range c.shows {
				g.Expect(out.String()).To(ContainSubstring(part))
			}
			if c.hides != "" {
				g.Expect(out.String()).NotTo(ContainSubstring(c.hides))
			}
			g.Expect(out.String()).NotTo(ContainSubstring("no test files"))
		})
	}
}

func TestUnendedTestsAreNamed(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	s := newSummary(&out)
	g.Expect(s.read(strings.NewReader(`{"Action":"output","Package":"p","Test":"TestSlow","Output":"so far\n"}
not an event
{"Action":"output","Package":"p","Output":"panic: test timed out\n"}
{"Action":"fail","Package":"p"}
`))).To(Succeed())
	g.Expect(s.finish(nil)).To(MatchError("tests failed"))
	g.Expect(out.String()).To(Equal("not an event\nso far\npanic: test timed out\nfailed  p\nunended p TestSlow\n0 tests passed, 0 failed, 0 skipped\n"))
	g.Expect(newSummary(&out).finish(errors.New("exit status 1"))).To(MatchError("go test: exit status 1"))
}
