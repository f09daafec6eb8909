// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func TestHandOut_R_DIST_08(t *testing.T) {
	both := domain.HandOut{OverlayDirectory: "handout", IgnoreFile: ".handoutignore"}
	submodule := file{modeSubmodule, strings.Repeat("12", 20)}
	for name, c := range map[string]struct {
		rules domain.HandOut
		files tree
		want  map[string]string
	}{
		"the overlay is merged file by file, nested directories too, and removed": {both,
			tree{"README.md": "staff", "src/a.c": "a", "src/b.c": "b", "handout/README.md": "handout", "handout/src/b.c": "b2", "handout/src/deep/c.c": "c"},
			map[string]string{"README.md": "100644 handout", "src/a.c": "100644 a", "src/b.c": "100644 b2", "src/deep/c.c": "100644 c"}},
		"listed paths are removed, with what is below them, and the ignore file itself": {both,
			tree{".handoutignore": "solution\nsrc/secret.c\n", "solution/a/b": "1", "src/secret.c": "1", "src/secret.cc": "1", "solutions": "1"},
			map[string]string{"src/secret.cc": "100644 1", "solutions": "100644 1"}},
		"comments, empty lines, line ends of another system, slashes at the ends": {both,
			tree{".handoutignore": "\uFEFF# staff only\r\n\r\n  # indented\r\n/a/\r\n ./b \r\nc//d\r\ne#f", "a/x": "1", "b": "1", "c/d": "1", "c/e": "1", "e#f": "1", "# staff only": "1"},
			map[string]string{"c/e": "100644 1", "# staff only": "100644 1"}},
		"no globs, no negation": {both,
			tree{".handoutignore": "*.c\n!b\nd*\n[ab]\n", "a.c": "1", "b": "1", "dd": "1", "a": "1", "*.c": "literal"},
			map[string]string{"a.c": "100644 1", "b": "100644 1", "dd": "100644 1", "a": "100644 1"}},
		"paths that lead out of the tree, or are the whole of it, remove nothing": {both,
			tree{".handoutignore": "..\n../a\n.\n/\n./\n/..\nb/../../a\n", "a": "1"},
			map[string]string{"a": "100644 1"}},
		"a list shipped inside the overlay has no effect": {both,
			tree{"a": "1", "b": "1", ".handoutignore": "a\n", "handout/.handoutignore": "b\n"},
			map[string]string{"b": "100644 1"}},
		"a list shipped inside the overlay has no effect without one at the root either": {both,
			tree{"a": "1", "handout/.handoutignore": "a\n"},
			map[string]string{"a": "100644 1"}},
		"the list is applied after the merge": {both,
			tree{"a": "staff", ".handoutignore": "a\nb\nhandout\n", "handout/a": "1", "handout/b": "1", "handout/c": "1"},
			map[string]string{"c": "100644 1"}},
		"an overlay file takes a directory's place, and a directory a file's": {both,
			tree{"a/b": "1", "a/c": "1", "d": "1", "handout/a": "file", "handout/d/e": "below"},
			map[string]string{"a": "100644 file", "d/e": "100644 below"}},
		"a directory of the overlay's name inside the overlay is handed out": {both,
			tree{"handout/handout/a": "1", "x/handout/b": "1"},
			map[string]string{"handout/a": "100644 1", "x/handout/b": "100644 1"}},
		"symlinks stay as committed": {both,
			tree{"a": "1", "in": link("a"), "out": link("/etc/passwd"), "dangling": link("nowhere"), "handout/b": link("../a")},
			map[string]string{"a": "100644 1", "in": "120000 a", "out": "120000 /etc/passwd", "dangling": "120000 nowhere", "b": "120000 ../a"}},
		"a symlinked overlay is no overlay": {both,
			tree{"a": "1", "real/a": "2", "handout": link("real")},
			map[string]string{"a": "100644 1", "real/a": "100644 2", "handout": "120000 real"}},
		"a file of the overlay's name is no overlay": {both, tree{"a": "1", "handout": "x"}, map[string]string{"a": "100644 1", "handout": "100644 x"}},
		"a submodule of the overlay's name is no overlay": {both,
			tree{"a": "1", "handout": submodule}, map[string]string{"a": "100644 1", "handout": "160000 " + submodule.content}},
		"a listed symlink is removed, not what it leads to": {both,
			tree{".handoutignore": "in\nout\n", "a": "1", "in": link("a"), "out": link("/etc")},
			map[string]string{"a": "100644 1"}},
		"a path through a symlink that stays in the tree is removed where it lies": {both,
			tree{".handoutignore": "docs/secret\nx/y/z\n", "docs": link("real/deep"), "real/deep/secret": "1", "real/deep/open": "1", "x/y": link("../real/./z/.."), "real/z": "1"},
			map[string]string{"docs": "120000 real/deep", "real/deep/open": "100644 1", "x/y": "120000 ../real/./z/.."}},
		"a path through a symlink that leaves the tree is not removed": {both,
			tree{".handoutignore": "up/a\nabs/passwd\nloop/a\nnone/a\n", "a": "1", "up": link(".."), "abs": link("/etc"), "loop": link("loop"), "none": link("nowhere"), "passwd": "1"},
			map[string]string{"a": "100644 1", "up": "120000 ..", "abs": "120000 /etc", "loop": "120000 loop", "none": "120000 nowhere", "passwd": "100644 1"}},
		"the overlay wins over a symlink in its way, and nothing is written through it": {both,
			tree{"dir": link("real"), "real/a": "1", "handout/dir/a": "2"},
			map[string]string{"dir/a": "100644 2", "real/a": "100644 1"}},
		"a symlinked ignore file is read inside the tree, so that nothing is handed out by mistake": {both,
			tree{".handoutignore": link("staff/list"), "staff/list": "staff\nb\n", "a": "1", "b": "1"},
			map[string]string{"a": "100644 1"}},
		"modes, programs and submodules stay as they are": {both,
			tree{"run": program("#!"), "handout/go": program("#!"), "lib": submodule, "handout/dep": submodule},
			map[string]string{"run": "100755 #!", "go": "100755 #!", "lib": "160000 " + submodule.content, "dep": "160000 " + submodule.content}},
		"odd bytes in names and contents": {both,
			tree{".handoutignore": "tab\there\n\"quoted\"\n\xff\xfe\n", "tab\there": "1", "\"quoted\"": "1", "\xff\xfe": "1", "new\nline": "\x00\r\n", "a\\b": "1", "ünï": "1", "con.": "1", " lead": "1", "handout/\xfd": "2"},
			map[string]string{"new\nline": "100644 \x00\r\n", "a\\b": "100644 1", "ünï": "100644 1", "con.": "100644 1", " lead": "100644 1", "\xfd": "100644 2"}},
		"everything may be removed": {both, tree{".handoutignore": "a\n", "a/b": "1"}, map[string]string{}},
		"other names, nested ones": {domain.HandOut{OverlayDirectory: "/hand/out/", IgnoreFile: "./hand/ignore"},
			tree{"a": "1", "hand/out/a": "2", "hand/ignore": "hand\nc\n", "c": "1", "handout/a": "3"},
			map[string]string{"a": "100644 2", "handout/a": "100644 3"}},
		"an ignore file inside the overlay directory is not handed out at its merged place": {domain.HandOut{OverlayDirectory: "s", IgnoreFile: "s/ignore"},
			tree{"a": "1", "s/ignore": "a\n", "s/b": "1"},
			map[string]string{"b": "100644 1"}},
		"an empty overlay convention is off": {domain.HandOut{IgnoreFile: ".handoutignore"},
			tree{"a": "1", "handout/a": "2"}, map[string]string{"a": "100644 1", "handout/a": "100644 2"}},
		"an empty ignore convention is off": {domain.HandOut{OverlayDirectory: "handout"},
			tree{".handoutignore": "a\n", "a": "1"}, map[string]string{".handoutignore": "100644 a\n", "a": "100644 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			source, dist := newRepo(t), newRepo(t)
			source.commit("main", c.files)
			req := request(source.remote(), dist.remote(), "main")
			req.HandOut = c.rules
			_, err := newGit(t, nil).Distribute(t.Context(), req)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(dist.files("main")).To(Equal(c.want))
			g.Expect(dist.git("fsck", "--strict", "--no-dangling")).To(BeEmpty())
		})
	}
}

func TestHandOutRefusesAnUnusableIgnoreFile_R_DIST_08(t *testing.T) {
	for name, c := range map[string]struct {
		files tree
		says  string
	}{
		"a symlink out of the tree":   {tree{"a": "1", ".handoutignore": link("/etc/hosts")}, "a symlink that leads to no file"},
		"a dangling symlink":          {tree{"a": "1", ".handoutignore": link("nowhere")}, "a symlink that leads to no file"},
		"a symlink to a directory":    {tree{"d/a": "1", ".handoutignore": link("d")}, "a symlink that leads to no file"},
		"a submodule":                 {tree{"a": "1", ".handoutignore": file{modeSubmodule, strings.Repeat("ab", 20)}}, "is a submodule"},
		"too large":                   {tree{"a": "1", ".handoutignore": strings.Repeat("x\n", maxIgnoreFile)}, "larger than 1 MiB"},
		"too large, behind a symlink": {tree{"a": strings.Repeat("x\n", maxIgnoreFile), ".handoutignore": link("a")}, "larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			source, dist := newRepo(t), newRepo(t)
			source.commit("main", c.files)
			_, err := newGit(t, nil).Distribute(t.Context(), request(source.remote(), dist.remote(), "main"))
			g.Expect(fault.Is(err, fault.ReasonInvalidHandOut)).To(BeTrue(), "%v", err)
			g.Expect(fault.Of(err).Class).To(Equal(fault.Blocked))
			g.Expect(err.Error()).To(And(ContainSubstring("branch main: "), ContainSubstring(".handoutignore"), ContainSubstring(c.says)))
			g.Expect(dist.refs()).To(BeEmpty(), "nothing that was to be kept back is handed out")
		})
	}
}

// node is a directory when it has children, else a file: the rules told once
// more, the way a person would carry them out in folders, as a measure for the
// implementation on path lists.
type node struct {
	children map[string]*node
	content  string
}

func (n *node) put(at, content string) {
	for part := range strings.SplitSeq(at, "/") {
		if n.children == nil {
			n.children = map[string]*node{}
		}
		if n.children[part] == nil {
			n.children[part] = &node{}
		}
		n = n.children[part]
	}
	n.content = content
}

func (n *node) lay(over *node) {
	for name, o := range over.children {
		mine := n.children[name]
		if mine != nil && mine.children != nil && o.children != nil {
			mine.lay(o)
			continue
		}
		n.children[name] = o
	}
}

func (n *node) drop(at string) {
	first, rest, more := strings.Cut(at, "/")
	switch child := n.children[first]; {
	case child == nil:
	case !more:
		delete(n.children, first)
	default:
		child.drop(rest)
	}
}

func (n *node) flatten(prefix string, into map[string]string) map[string]string {
	for name, c := range n.children {
		if c.children == nil {
			into[prefix+name] = c.content
		}
		c.flatten(prefix+name+"/", into)
	}
	return into
}

func byFolders(files map[string]string, list []string) map[string]string {
	root := &node{children: map[string]*node{}}
	for p, c := range files {
		root.put(p, c)
	}
	overlay := root.children["handout"]
	if overlay != nil && overlay.children != nil {
		delete(root.children, "handout")
		root.lay(overlay)
	}
	for _, p := range list {
		root.drop(p)
	}
	return root.flatten("", map[string]string{})
}

func TestHandOutAgreesWithFolders_R_DIST_08(t *testing.T) {
	const seed = 20260301
	random := rand.New(rand.NewPCG(seed, 1))
	names := []string{"a", "b", "ab", "handout", "a b"}
	randomPath := func() string {
		parts := make([]string, 1+random.IntN(4))
		for i := range parts {
			parts[i] = names[random.IntN(len(names))]
		}
		return path.Join(parts...)
	}
	for round := range 5000 {
		files := map[string]string{}
		for i := range 1 + random.IntN(12) {
			p := randomPath()
			if random.IntN(2) == 0 {
				p = "handout/" + p
			}
			if fits(files, p) {
				files[p] = fmt.Sprint(i)
			}
		}
		var list []string
		for range random.IntN(4) {
			list = append(list, randomPath())
		}
		var entries []entry
		for p, c := range files {
			entries = append(entries, entry{"100644", c, p})
		}
		merged := mergeOverlay(entries, "handout")
		removed, err := symlinksOf(merged, nil).removals(list)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, e := range remove(merged, removed) {
			if _, twice := got[e.path]; twice || !fits(got, e.path) {
				t.Fatalf("round %d of seed %d: %q is twice in the tree, or in the way of another: %v", round, seed, e.path, files)
			}
			got[e.path] = e.sha
		}
		if want := byFolders(files, list); !maps.Equal(got, want) {
			t.Fatalf("round %d of seed %d: %v without %q gives %v, want %v", round, seed, files, list, got, want)
		}
	}
}

// fits reports whether a file may be added: it is no directory of another, nor
// below a file.
func fits(files map[string]string, p string) bool {
	for q := range files {
		if p == q || strings.HasPrefix(q, p+"/") || strings.HasPrefix(p, q+"/") {
			return false
		}
	}
	return true
}

func TestMergeOverlayLeavesItsInputAlone(t *testing.T) {
	g := NewWithT(t)
	entries := []entry{{"100644", "1", "a"}, {"100644", "2", "b/c"}, {"100644", "3", "handout/a"}}
	before := slices.Clone(entries)
	remove(mergeOverlay(entries, "handout"), map[string]bool{"b": true})
	g.Expect(entries).To(Equal(before))
}

func FuzzParseIgnoreNeverLeavesTheTree(f *testing.F) {
	for _, s := range []string{"a\n", "../a", "/..", "a/../../b", "#", "\uFEFF..", "a\x00b", "./..//a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range parseIgnore(text) {
			if p == "" || p == "." || strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/") || p == ".." || strings.HasPrefix(p, "../") {
				t.Errorf("%q lists %q", text, p)
			}
		}
	})
}
