// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package receiver

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/sluice-dev/sluice/internal/domain"
)

// isObject reports whether a body is one JSON object (R-HOOK-01).
func isObject(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) && json.Valid(body)
}

// word is what GitHub's event and action names look like.
var word = regexp.MustCompile(`^[a-z0-9_]{1,50}$`)

// header is what every payload may hold.
type header struct {
	Action     string `json:"action"`
	Repository struct {
		ID int64 `json:"id"`
	} `json:"repository"`
}

// readHeader returns a payload's action, empty when there is none, and the
// repository it is about, 0 when about none. A payload in another shape than
// GitHub documents has neither; it is stored all the same.
func readHeader(body []byte) (action string, repositoryID int64) {
	var h header
	if json.Unmarshal(body, &h) != nil {
		return "", 0
	}
	if word.MatchString(h.Action) {
		action = h.Action
	}
	return action, h.Repository.ID
}

// push is what a receipt is made from.
type push struct {
	Ref     string `json:"ref"`
	After   string `json:"after"`
	Deleted bool   `json:"deleted"`
	Forced  bool   `json:"forced"`
	Commits []struct {
		Distinct bool   `json:"distinct"`
		Author   author `json:"author"`
	} `json:"commits"`
	Repository struct {
		ID int64 `json:"id"`
	} `json:"repository"`
	Sender struct {
		Login string `json:"login"`
		Type  string `json:"type"`
	} `json:"sender"`
}

type author struct {
	Name     string `json:"name"`
	Username string `json:"username"`
}

const (
	branchPrefix = "refs/heads/"
	botSuffix    = "[bot]"
)

// readReceipt returns the receipt of a push to a branch, nil for a deletion, a
// tag or another ref (R-HOOK-05). ok is false when the payload is not in the
// shape that GitHub documents. Whether the repository is tracked is for the
// store to say.
func readReceipt(body []byte, receivedAt time.Time) (receipt *domain.Receipt, ok bool) {
	var p push
	if json.Unmarshal(body, &p) != nil {
		return nil, false
	}
	branch, isBranch := strings.CutPrefix(p.Ref, branchPrefix)
	if !isBranch || p.Deleted || domain.ZeroSHA(p.After) {
		return nil, true
	}
	if branch == "" || p.Repository.ID == 0 {
		return nil, false
	}
	return &domain.Receipt{
		RepositoryID: p.Repository.ID,
		Branch:       branch,
		HeadSHA:      p.After,
		ReceivedAt:   receivedAt,
		// The App's own name is not known here; a workflow's and the App's
		// account are of this type and named like this, and no person's is.
		Bot:     p.Sender.Type == "Bot" && strings.HasSuffix(p.Sender.Login, botSuffix),
		Forced:  p.Forced,
		Commits: p.newCommits(),
	}, true
}

// newCommits counts the commits that are new to the repository and that no bot
// authored (R-HOOK-05).
func (p push) newCommits() (n int) {
	for _, c := range p.Commits {
		if c.Distinct && !c.Author.bot() {
			n++
		}
	}
	return n
}

// bot judges by the account, or by the name where GitHub linked none.
func (a author) bot() bool {
	name := a.Username
	if name == "" {
		name = a.Name
	}
	return strings.HasSuffix(name, botSuffix)
}
