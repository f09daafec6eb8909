// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// maxMessages and maxOutput bound what is kept of a process: what it
	// says, and what it is asked for.
	maxMessages = 64 << 10
	maxOutput   = 512 << 20
	// killGrace is how long a killed process may hold its pipes.
	killGrace = 5 * time.Second
)

// command is one run of git.
type command struct {
	args []string
	// gitDir is the mirror it works in; empty outside of any.
	gitDir string
	// config and env are its own, on top of those every git gets.
	config  []setting
	env     []string
	input   []byte
	secrets []string // kept out of whatever it prints
}

// setting is one line of git's configuration.
type setting struct{ key, value string }

func invoke(args ...string) command { return command{args: args} }

// gitError is a git process that failed. It holds what git and the server
// said, bounded and without the token.
type gitError struct {
	verb           string
	code           int // exit code; -1 when it was killed or never ran
	stdout, stderr string
	timedOut       time.Duration // how long it ran before it was given up
	cause          error
}

func (e *gitError) Error() string {
	said := lastLine(e.stderr)
	if said == "" {
		said = e.cause.Error()
	}
	return "git " + e.verb + ": " + said
}

func (e *gitError) Unwrap() error { return e.cause }

// asGitError returns the failed git process in err's chain, or nil.
func asGitError(err error) *gitError {
	var e *gitError
	errors.As(err, &e)
	return e
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return plain(lines[len(lines)-1])
}

// run runs git and returns what it printed. Its environment is made from
// nothing: no configuration of the machine, no credential helper, no prompt.
// The whole process group ends with ctx, and then ctx's error is returned.
// Any other failure is a *gitError.
func (g *Git) run(ctx context.Context, c command) (string, error) {
	limited, cancel := context.WithTimeout(ctx, g.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, g.Command, c.args...)
	cmd.Dir = g.scratch()
	cmd.Env = g.environment(c)
	cmd.ExtraFiles = []*os.File{g.lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = killGrace
	cmd.Stdin = bytes.NewReader(c.input)
	stdout := &boundedBuffer{limit: maxOutput, strict: true}
	stderr := &boundedBuffer{limit: maxMessages}
	cmd.Stdout, cmd.Stderr = stdout, stderr

	err := cmd.Run()
	if err == nil {
		return stdout.String(), nil
	}
	if cmd.Process != nil {
		_ = killGroup(cmd) // what git started must not outlive it
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	hide := redactor(c.secrets)
	failure := &gitError{verb: c.args[0], code: -1, stdout: hide(truncate(stdout.String(), maxMessages)), stderr: hide(stderr.String()), cause: err}
	if cmd.ProcessState != nil {
		failure.code = cmd.ProcessState.ExitCode()
	}
	if limited.Err() != nil {
		failure.timedOut = g.Timeout
	}
	return "", failure
}

func killGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// passedOn are the variables of our own environment that git is given: the way
// out to GitHub, where it leads through a proxy.
var passedOn = []string{"PATH", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"}

// authorities maps the variables by which Go's TLS learns certificate
// authorities to git's names for the same.
var authorities = map[string]string{"SSL_CERT_FILE": "GIT_SSL_CAINFO", "SSL_CERT_DIR": "GIT_SSL_CAPATH"}

// everywhere is the configuration of every git. Redirects are not followed,
// because git would carry the token along to the other host (see remote).
// Paths are handed on as they were committed, whatever other systems make of
// them. Bitmaps would make packs larger than they need be.
var everywhere = []setting{
	{"credential.helper", ""},
	{"core.askPass", ""},
	{"core.hooksPath", os.DevNull},
	{"core.protectNTFS", "false"},
	{"core.protectHFS", "false"},
	{"http.followRedirects", "false"},
	{"transfer.credentialsInUrl", "die"},
	{"gc.autoDetach", "false"},
	{"repack.writeBitmaps", "false"},
	{"pack.threads", "1"},
}

// environment returns all of a git's environment (R-CORE-10).
func (g *Git) environment(c command) []string {
	protocols := "http:https"
	if g.AllowFile {
		protocols += ":file"
	}
	gitDir := c.gitDir
	if gitDir == "" {
		// None: git shall not take up a repository that Dir happens to be in.
		gitDir = filepath.Join(g.scratch(), "none")
	}
	env := []string{
		"HOME=" + g.scratch(),
		"TMPDIR=" + g.scratch(),
		"LC_ALL=C",
		"GIT_DIR=" + gitDir,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ALLOW_PROTOCOL=" + protocols,
		// A connection on which nothing moves is given up.
		"GIT_HTTP_LOW_SPEED_LIMIT=1",
		"GIT_HTTP_LOW_SPEED_TIME=120",
	}
	for _, name := range passedOn {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	for ours, gits := range authorities {
		// Go takes a list of folders, git a single one.
		if v := os.Getenv(ours); v != "" && !strings.ContainsRune(v, filepath.ListSeparator) {
			env = append(env, gits+"="+v)
		}
	}
	env = append(env, c.env...)
	config := append(everywhere[:len(everywhere):len(everywhere)], c.config...)
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(config)))
	for i, s := range config {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s.key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s.value))
	}
	return env
}

var userInURL = regexp.MustCompile(`://[^/@\s]+@`)

// redactor returns a function that blanks secrets out of a text: the known
// ones, and whatever stands before an @ in an address.
func redactor(secrets []string) func(string) string {
	var pairs []string
	for _, s := range secrets {
		if s != "" {
			pairs = append(pairs, s, "***")
		}
	}
	known := strings.NewReplacer(pairs...)
	return func(text string) string { return userInURL.ReplaceAllString(known.Replace(text), "://***@") }
}

// maxQuoted bounds one quoted line of a server.
const maxQuoted = 300

// plain makes a line of a server fit to be shown: one line of printable
// characters, not too long.
func plain(line string) string {
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(line, "\uFFFD"))
	line = strings.TrimSpace(line)
	if runes := []rune(line); len(runes) > maxQuoted {
		return string(runes[:maxQuoted]) + "..."
	}
	return line
}

func truncate(s string, limit int) string { return s[:min(len(s), limit)] }

var errTooMuch = errors.New("it printed more than can be kept")

// boundedBuffer keeps the first limit bytes written to it. A strict one fails
// on more, which ends the process that writes.
type boundedBuffer struct {
	bytes.Buffer
	limit  int
	strict bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := max(b.limit-b.Len(), 0)
	b.Buffer.Write(p[:min(len(p), room)])
	if b.strict && len(p) > room {
		return room, errTooMuch
	}
	return len(p), nil
}
