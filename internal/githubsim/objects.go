// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// commitInfo is a commit, taken apart.
type commitInfo struct {
	sha, tree, message string
	parents            []string
	author, committer  signature
	signed             bool
}

// signature says who made a commit, and when.
type signature struct {
	name, email string
	at          time.Time
}

// header returns the signature as a commit's header has it.
func (g signature) header() string {
	return fmt.Sprintf("%s <%s> %d %s", g.name, g.email, g.at.Unix(), g.at.Format("-0700"))
}

var signatureText = regexp.MustCompile(`^(.*?) ?<(.*?)> (-?\d+) ([+-]\d{4})$`)

func parseSignature(text string) signature {
	m := signatureText.FindStringSubmatch(text)
	if m == nil {
		return signature{name: text}
	}
	seconds, err := strconv.ParseInt(m[3], 10, 64)
	if err != nil {
		return signature{name: m[1], email: m[2]}
	}
	at := time.Unix(seconds, 0).UTC()
	if zone, err := time.Parse("-0700", m[4]); err == nil {
		at = at.In(zone.Location())
	}
	return signature{name: m[1], email: m[2], at: at}
}

// parseCommit takes a commit object apart.
func parseCommit(sha string, raw []byte) *commitInfo {
	head, message, _ := strings.Cut(string(raw), "\n\n")
	c := &commitInfo{sha: sha, message: strings.TrimRight(message, "\n")}
	for line := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			c.tree = value
		case "parent":
			c.parents = append(c.parents, value)
		case "author":
			c.author = parseSignature(value)
		case "committer":
			c.committer = parseSignature(value)
		case "gpgsig":
			c.signed = true
		}
	}
	return c
}

// object is one object as git stores it.
type object struct {
	sha, kind string
	data      []byte
}

// objects reads objects with one git process; those missing are left out.
func (st *store) objects(names ...string) ([]object, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out, err := st.run(gitCommand{args: []string{"cat-file", "--batch", "--buffer"}, input: []byte(strings.Join(names, "\n") + "\n")})
	if err != nil {
		return nil, err
	}
	var list []object
	for rest := out; rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		f := strings.Fields(line)
		if len(f) != 3 { // "<name> missing"
			rest = after
			continue
		}
		size, err := strconv.Atoi(f[2])
		if err != nil || size+1 > len(after) {
			return nil, fmt.Errorf("git cat-file: cannot read %q", line)
		}
		list = append(list, object{sha: f[0], kind: f[1], data: []byte(after[:size])})
		rest = after[size+1:]
	}
	return list, nil
}

// object reads one object.
func (st *store) object(name string) (object, bool) {
	if !isSHA(name) {
		return object{}, false
	}
	list, err := st.objects(name)
	if err != nil || len(list) != 1 {
		return object{}, false
	}
	return list[0], true
}

// readCommits reads commits, in the order given; those missing are left out.
func (st *store) readCommits(shas ...string) []*commitInfo {
	var unknown []string
	found := make(map[string]*commitInfo, len(shas))
	for _, sha := range shas {
		if c := st.commits[sha]; c != nil {
			found[sha] = c
		} else {
			unknown = append(unknown, sha)
		}
	}
	objects, err := st.objects(unknown...)
	if err != nil {
		return nil
	}
	for _, o := range objects {
		if o.kind == "commit" {
			found[o.sha] = remember(st.commits, o.sha, parseCommit(o.sha, o.data))
		}
	}
	var list []*commitInfo
	for _, sha := range shas {
		if c := found[sha]; c != nil {
			list = append(list, c)
		}
	}
	return list
}

// readCommit reads one commit.
func (st *store) readCommit(sha string) (*commitInfo, bool) {
	if !isSHA(sha) {
		return nil, false
	}
	list := st.readCommits(sha)
	if len(list) != 1 {
		return nil, false
	}
	return list[0], true
}

var fullSHA = regexp.MustCompile(`^[0-9a-f]{40}$`)

func isSHA(text string) bool { return fullSHA.MatchString(text) && text != zeroSHA }

// resolve returns the commit that a branch, a tag, a full ref name or an
// object id stands for.
func (st *store) resolve(name string) (string, bool) {
	for _, ref := range []string{"refs/heads/" + name, "refs/tags/" + name, "refs/" + name, name} {
		if sha, found := st.refs[ref]; found {
			return st.commitOf(sha)
		}
	}
	if name == "" || strings.ContainsAny(name, " ~^:?*[\\") || !regexp.MustCompile(`^[0-9a-f]{4,40}$`).MatchString(name) {
		return "", false
	}
	return st.commitOf(name)
}

// commitOf follows annotated tags to a commit.
func (st *store) commitOf(sha string) (string, bool) {
	if st.commits[sha] != nil {
		return sha, true
	}
	out, err := st.git("rev-parse", "--verify", "--quiet", "--end-of-options", sha+"^{commit}")
	if err != nil {
		return "", false
	}
	return strings.TrimSpace(out), true
}

// writeObject stores an object and returns its id.
func (st *store) writeObject(kind string, data []byte) (string, error) {
	raw := append(fmt.Appendf(nil, "%s %d\x00", kind, len(data)), data...)
	sum := sha1.Sum(raw)
	sha := hex.EncodeToString(sum[:])
	path := filepath.Join(st.dir, "objects", sha[:2], sha[2:])
	if _, err := os.Stat(path); err == nil {
		return sha, nil
	}
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	if _, err := z.Write(raw); err != nil {
		return "", fmt.Errorf("storing an object: %w", err)
	}
	if err := z.Close(); err != nil {
		return "", fmt.Errorf("storing an object: %w", err)
	}
	return sha, st.writeFile("objects/"+sha[:2]+"/"+sha[2:], packed.String())
}

// writeCommit stores a commit and returns its id.
func (st *store) writeCommit(c commitInfo) (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "tree %s\n", c.tree)
	for _, p := range c.parents {
		fmt.Fprintf(&text, "parent %s\n", p)
	}
	fmt.Fprintf(&text, "author %s\ncommitter %s\n\n%s\n", c.author.header(), c.committer.header(), strings.TrimRight(c.message, "\n"))
	return st.writeObject("commit", []byte(text.String()))
}

// treeEntry is one line of a tree.
type treeEntry struct {
	mode, kind, sha, path string
	size                  int64 // of a blob
}

// readTree lists a tree, with all below it when recursive.
func (st *store) readTree(name string, recursive bool) ([]treeEntry, error) {
	args := []string{"ls-tree", "-z", "--long", "--full-tree"}
	if recursive {
		args = append(args, "-r", "-t")
	}
	out, err := st.git(append(args, name)...)
	if err != nil {
		return nil, err
	}
	var list []treeEntry
	for line := range strings.SplitSeq(out, "\x00") {
		meta, path, found := strings.Cut(line, "\t")
		f := strings.Fields(meta)
		if !found || len(f) != 4 {
			continue
		}
		size, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			size = -1 // "-": not a blob
		}
		list = append(list, treeEntry{mode: f[0], kind: f[1], sha: f[2], path: path, size: size})
	}
	return list, nil
}

// writeTree puts entries over a base tree (empty: none) and returns the tree's
// id. An entry without a sha removes its path.
func (st *store) writeTree(base string, entries []treeEntry) (string, error) {
	if base == "" && !slices.ContainsFunc(entries, func(e treeEntry) bool { return e.sha == "" || e.mode == modeTree }) {
		return st.buildTree(entries)
	}
	index, err := os.CreateTemp(st.dir, "index-")
	if err != nil {
		return "", fmt.Errorf("making a tree: %w", err)
	}
	_ = index.Close()
	defer func() { _ = os.Remove(index.Name()) }()
	if err := os.Remove(index.Name()); err != nil { // git wants no index rather than an empty file
		return "", fmt.Errorf("making a tree: %w", err)
	}
	env := []string{"GIT_INDEX_FILE=" + index.Name()}
	if base != "" {
		if _, err := st.run(gitCommand{args: []string{"read-tree", base}, env: env}); err != nil {
			return "", err
		}
	}
	var info bytes.Buffer
	for _, e := range entries {
		if e.sha == "" {
			fmt.Fprintf(&info, "0 %s\t%s\x00", zeroSHA, e.path)
			continue
		}
		fmt.Fprintf(&info, "%s %s\t%s\x00", e.mode, e.sha, e.path)
	}
	if _, err := st.run(gitCommand{args: []string{"update-index", "-z", "--index-info"}, env: env, input: info.Bytes()}); err != nil {
		return "", err
	}
	out, err := st.run(gitCommand{args: []string{"write-tree"}, env: env})
	return strings.TrimSpace(out), err
}

// Modes of files in a tree.
const (
	modeFile       = "100644"
	modeExecutable = "100755"
	modeTree       = "040000"
)

// buildTree writes a tree, and those below it, of nothing but these files.
func (st *store) buildTree(files []treeEntry) (string, error) {
	below := map[string][]treeEntry{}
	byName := map[string]treeEntry{}
	for _, f := range files {
		folder, rest, nested := strings.Cut(f.path, "/")
		if !nested {
			byName[f.path] = f
			continue
		}
		f.path = rest
		below[folder] = append(below[folder], f)
	}
	for folder, inside := range below {
		if _, clash := byName[folder]; clash {
			return "", fmt.Errorf("%q is both a file and a folder", folder)
		}
		sha, err := st.buildTree(inside)
		if err != nil {
			return "", err
		}
		byName[folder] = treeEntry{path: folder, mode: modeTree, sha: sha}
	}
	// git sorts folders as if their names ended in a slash.
	order := func(e treeEntry) string {
		if e.mode == modeTree {
			return e.path + "/"
		}
		return e.path
	}
	list := slices.SortedFunc(maps.Values(byName), func(a, b treeEntry) int { return strings.Compare(order(a), order(b)) })
	var data bytes.Buffer
	for _, e := range list {
		id, err := hex.DecodeString(e.sha)
		if err != nil || slices.Contains([]string{"", ".", "..", ".git"}, e.path) {
			return "", fmt.Errorf("the tree has a bad entry %q", e.path)
		}
		fmt.Fprintf(&data, "%s %s\x00%s", strings.TrimPrefix(e.mode, "0"), e.path, id)
	}
	return st.writeObject("tree", data.Bytes())
}

// writeFiles returns the tree of a base tree with files put over it; an empty
// content removes a file.
func (st *store) writeFiles(base string, files map[string]string, executable map[string]bool) (string, error) {
	var entries []treeEntry
	for path, content := range files {
		e := treeEntry{path: path, mode: modeFile}
		if executable[path] {
			e.mode = modeExecutable
		}
		if content != "" {
			sha, err := st.writeObject("blob", []byte(content))
			if err != nil {
				return "", err
			}
			e.sha = sha
		}
		entries = append(entries, e)
	}
	return st.writeTree(base, entries)
}
