// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-dev/sluice/internal/domain"
)

// maxOutput bounds what is kept of a command's messages.
const maxOutput = 64 << 10

// commandError is a git command that failed. Its text is git's own, bounded;
// it holds no token, because git is never given one but by its environment.
type commandError struct {
	verb   string
	stdout string
	stderr string
	err    error
}

func (e *commandError) Error() string {
	return fmt.Sprintf("git %s: %s", e.verb, lastLine(e.stderr))
}

func (e *commandError) Unwrap() error { return e.err }

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// run runs git in dir and returns what it printed. Its environment is made
// from nothing: no configuration of the machine, no credential helper, no
// prompt. The whole process group ends with ctx.
func (g *Git) run(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	return g.runInput(ctx, dir, env, nil, args...)
}

func (g *Git) runInput(ctx context.Context, dir string, env []string, input []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, g.Command, args...)
	cmd.Dir = dir
	cmd.Env = append(g.baseEnv(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	var stdout bytes.Buffer
	stderr := &boundedBuffer{limit: maxOutput}
	cmd.Stdout, cmd.Stderr = &stdout, stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", &commandError{verb: args[0], stdout: stdout.String(), stderr: stderr.String(), err: err}
	}
	return stdout.String(), nil
}

func (g *Git) baseEnv() []string {
	protocols := "http:https"
	if g.AllowFile {
		protocols += ":file"
	}
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + g.Dir,
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=true",
		"GIT_ALLOW_PROTOCOL=" + protocols,
		"GIT_HTTP_LOW_SPEED_LIMIT=1000",
		"GIT_HTTP_LOW_SPEED_TIME=60",
	}
}

// authEnv returns the environment that makes git send a token to that host
// alone.
func authEnv(remote, token string) ([]string, error) {
	u, err := url.Parse(remote)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("%q is no address that takes a token", remote)
	}
	basic := base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token))
	return []string{
		"GIT_CONFIG_COUNT=2",
		"GIT_CONFIG_KEY_0=http." + u.Scheme + "://" + u.Host + "/.extraHeader",
		"GIT_CONFIG_VALUE_0=Authorization: Basic " + basic,
		"GIT_CONFIG_KEY_1=credential.helper",
		"GIT_CONFIG_VALUE_1=",
	}, nil
}

// commitEnv returns the environment that says who makes a commit, and when.
func (g *Git) commitEnv(s domain.Signature) []string {
	date := fmt.Sprintf("%d +0000", g.Clock.Now().Unix())
	return []string{
		"GIT_AUTHOR_NAME=" + s.Name, "GIT_AUTHOR_EMAIL=" + s.Email, "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=" + s.Name, "GIT_COMMITTER_EMAIL=" + s.Email, "GIT_COMMITTER_DATE=" + date,
	}
}

// pushDelays are the pauses between tries of what passes by itself
// (R-CORE-13).
var pushDelays = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}

// retry runs f again after each delay while its failure is one that passes by
// itself.
func (g *Git) retry(ctx context.Context, f func() (string, error)) (string, error) {
	for i := 0; ; i++ {
		out, err := f()
		c, isCommand := asCommandError(err)
		if err == nil || !isCommand || !transient(c.stderr) || i == len(pushDelays) {
			return out, err
		}
		timer := g.Clock.NewTimer(pushDelays[i])
		select {
		case <-ctx.Done():
			timer.Stop()
			return "", ctx.Err()
		case <-timer.C():
		}
	}
}

// boundedBuffer keeps the first limit bytes written to it.
type boundedBuffer struct {
	bytes.Buffer
	limit int
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if room := b.limit - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
