// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// receiveCapabilities is what GitHub's own receive-pack advertises.
const receiveCapabilities = "report-status report-status-v2 delete-refs side-band-64k ofs-delta atomic push-options object-format=sha1 quiet agent=github/spokes-receive-pack-sim"

// advertiseReceive writes the refs a push may change.
func (st *store) advertiseReceive() []byte {
	var out bytes.Buffer
	packet(&out, "# service=git-receive-pack\n")
	out.WriteString(flushPacket)
	first := true
	for _, name := range slices.Sorted(maps.Keys(st.refs)) {
		if strings.HasPrefix(name, hiddenRefs) {
			continue
		}
		if first {
			packet(&out, "%s %s\x00%s\n", st.refs[name], name, receiveCapabilities)
		} else {
			packet(&out, "%s %s\n", st.refs[name], name)
		}
		first = false
	}
	if first {
		packet(&out, "%s capabilities^{}\x00%s\n", zeroSHA, receiveCapabilities)
	}
	out.WriteString(flushPacket)
	return out.Bytes()
}

// refCommand asks for one ref to be moved, made (old empty) or deleted (new
// empty).
type refCommand struct {
	ref, old, now string
	// refused is why it was not done; empty: it was.
	refused string
}

// push is a request to receive-pack.
type push struct {
	commands     []*refCommand
	capabilities map[string]bool
	shallow      bool
	// messages are shown to the person who pushes.
	messages []string
	// violations are the rules that refused commands break.
	violations []string
	// rejected is a fault that refuses the push.
	rejected *Fault
}

// refuse refuses every command that is not refused yet.
func (p *push) refuse(reason string) {
	for _, c := range p.commands {
		if c.refused == "" {
			c.refused = reason
		}
	}
}

func (p *push) anyRefused() bool {
	return slices.ContainsFunc(p.commands, func(c *refCommand) bool { return c.refused != "" })
}

// news returns the objects that the commands want refs to point to.
func (p *push) news() []string {
	var list []string
	for _, c := range p.commands {
		if c.now != "" {
			list = append(list, c.now)
		}
	}
	return list
}

// readPush reads what comes before the pack.
func readPush(r io.Reader) (*push, error) {
	p := &push{capabilities: map[string]bool{}}
	for {
		line, err := readPacket(r)
		if errors.Is(err, errFlush) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the commands: %w", err)
		}
		text, capabilities, has := strings.Cut(string(line), "\x00")
		if has {
			for name := range strings.FieldsSeq(capabilities) {
				p.capabilities[name] = true
			}
		}
		text = strings.TrimSuffix(text, "\n")
		if strings.HasPrefix(text, "shallow ") {
			p.shallow = true
			continue
		}
		f := strings.SplitN(text, " ", 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("%q is no command", text)
		}
		c := &refCommand{ref: f[2]}
		if f[0] != zeroSHA {
			c.old = f[0]
		}
		if f[1] != zeroSHA {
			c.now = f[1]
		}
		p.commands = append(p.commands, c)
	}
	if p.capabilities["push-options"] {
		for { // read and ignored, as GitHub does
			if _, err := readPacket(r); errors.Is(err, errFlush) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("reading the push options: %w", err)
			}
		}
	}
	return p, nil
}

// report writes what became of a push.
func (p *push) report(unpacked string) []byte {
	var report bytes.Buffer
	packet(&report, "unpack %s\n", unpacked)
	for _, c := range p.commands {
		if c.refused != "" {
			packet(&report, "ng %s %s\n", c.ref, c.refused)
		} else {
			packet(&report, "ok %s\n", c.ref)
		}
	}
	report.WriteString(flushPacket)
	wanted := p.capabilities["report-status"] || p.capabilities["report-status-v2"]
	if !p.capabilities["side-band-64k"] {
		if !wanted {
			return nil
		}
		return report.Bytes()
	}
	var out bytes.Buffer
	if len(p.messages) > 0 {
		sideband(&out, bandProgress, []byte(strings.Join(p.messages, "\n")+"\n"))
	}
	if wanted {
		sideband(&out, bandData, report.Bytes())
	}
	out.WriteString(flushPacket)
	return out.Bytes()
}

// quarantine is where the objects of a push wait until it is accepted. While
// one is set on a store, git sees its objects as well.
type quarantine struct{ dir string }

func (q *quarantine) env(st *store) []string {
	return []string{"GIT_OBJECT_DIRECTORY=" + q.dir, "GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(st.dir, "objects")}
}

// openQuarantine starts to keep new objects apart.
func (st *store) openQuarantine() error {
	dir, err := os.MkdirTemp(st.dir, "incoming-")
	if err != nil {
		return fmt.Errorf("receiving a push: %w", err)
	}
	st.quarantine = &quarantine{dir: dir}
	return nil
}

// closeQuarantine ends it: the objects become the repository's, or go.
func (st *store) closeQuarantine(keep bool) error {
	q := st.quarantine
	st.quarantine = nil
	defer func() { _ = os.RemoveAll(q.dir) }()
	if !keep {
		clear(st.commits) // it may know objects that are gone now
		return nil
	}
	packs, err := filepath.Glob(filepath.Join(q.dir, "pack", "*"))
	if err != nil {
		return fmt.Errorf("keeping a push: %w", err)
	}
	// git looks for indexes: the packs must be there before them.
	slices.SortFunc(packs, func(a, b string) int {
		return strings.Compare(fmt.Sprint(strings.HasSuffix(a, ".idx"), a), fmt.Sprint(strings.HasSuffix(b, ".idx"), b))
	})
	for _, pack := range packs {
		if err := os.Rename(pack, filepath.Join(st.dir, "objects", "pack", filepath.Base(pack))); err != nil {
			return fmt.Errorf("keeping a push: %w", err)
		}
	}
	return nil
}

// packHeader is the length of a pack's header: signature, version, count.
const packHeader = 12

// indexPack stores the pack in the quarantine, without the server's lock, and
// reports whether it could.
func (st *store) indexPack(pack *bufio.Reader) bool {
	head, err := pack.Peek(packHeader)
	if err != nil {
		return false
	}
	if string(head[:4]) == "PACK" && binary.BigEndian.Uint32(head[8:]) == 0 {
		return true
	}
	st.lock.Unlock()
	defer st.lock.Lock()
	cmd := exec.Command("git", "index-pack", "--stdin", "--fix-thin")
	cmd.Dir, cmd.Env, cmd.Stdin = st.dir, gitEnv(st.quarantine.env(st)...), pack
	return cmd.Run() == nil
}

// checkConnected reports whether everything that the new objects need is
// there, and which blobs are larger than limit bytes.
func (st *store) checkConnected(news []string, limit int64) (large []string, err error) {
	out, err := st.run(gitCommand{args: []string{"rev-list", "--objects", fmt.Sprintf("--filter=blob:limit=%d", limit+1), "--filter-print-omitted", "--stdin", "--not", "--all"},
		input: []byte(strings.Join(news, "\n") + "\n")})
	if err != nil {
		return nil, errors.New("missing necessary objects")
	}
	for line := range strings.Lines(out) {
		if sha, omitted := strings.CutPrefix(strings.TrimSpace(line), "~"); omitted {
			large = append(large, sha)
		}
	}
	return large, nil
}
