// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxListedFiles is how many changed files a pull request names (R-PR-04).
const MaxListedFiles = 50

// CommitMessage is the message of every commit the App makes in a
// distribution: fixed, without any sha or name of the source (R-REQ-05,
// R-PRIV-02).
const CommitMessage = "Update handed-out files"

// ChangedFile is one file a pull request changes.
type ChangedFile struct {
	Name         string
	PreviousName string
	Status       string // added, modified, removed, renamed, ...
}

// PullRequestText is what a pull request says.
type PullRequestText struct{ Title, Body string }

const (
	defaultTitle = "Update {{ .branch }} to {{ .sha }}"
	defaultBody  = `This pull request brings the latest version ({{ .sha }}) of the files you were given to ` + "`{{ .branch }}`" + `. It changes {{ .count }}:

{{ .files }}

Merge it when it suits you. If more changes come before you do, this same pull request is updated.`
)

// DescribePullRequest returns the title and body of the pull request that
// brings head to branch. Both carry the distribution's short sha and never
// anything of the source (R-PR-04, R-PRIV-02).
func DescribePullRequest(s PullRequestSettings, project, branch, head string, files []ChangedFile) PullRequestText {
	values := map[string]string{
		"branch":  branch,
		"sha":     ShortSHA(head),
		"project": project,
		"files":   ListFiles(files),
		"count":   countFiles(len(files)),
	}
	title, body := s.Title, s.Body
	if title == "" {
		title = defaultTitle
	}
	if body == "" {
		body = defaultBody
	}
	return PullRequestText{Title: Render(title, values), Body: Render(body, values)}
}

// DescribeUpdate returns the comment on an open pull request whose head was
// moved (R-PR-03).
func DescribeUpdate(branch, head string, files []ChangedFile) string {
	return fmt.Sprintf("Updated to %s. This pull request now changes %s on `%s`:\n\n%s",
		ShortSHA(head), countFiles(len(files)), branch, ListFiles(files))
}

// ListFiles returns a Markdown list of at most MaxListedFiles files with their
// status, and how many more there are.
func ListFiles(files []ChangedFile) string {
	var b strings.Builder
	for i, f := range files {
		if i == MaxListedFiles {
			fmt.Fprintf(&b, "- and %d more\n", len(files)-MaxListedFiles)
			break
		}
		name := code(f.Name)
		if f.Status == "renamed" && f.PreviousName != "" {
			name = code(f.PreviousName) + " to " + name
		}
		fmt.Fprintf(&b, "- %s: %s\n", f.Status, name)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// code quotes a path for Markdown. A path may hold backticks or control
// characters; it must not break out of the list.
func code(path string) string {
	if strings.ContainsAny(path, "`\n\r") {
		path = strings.Trim(strconv.Quote(path), `"`)
		return "`` " + path + " ``"
	}
	return "`" + path + "`"
}

func countFiles(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}
