// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/domain"
	"github.com/sluice-dev/sluice/internal/fault"
)

func TestSender(t *testing.T) {
	bot := BotIdentity{UserID: botID, Slug: "sluice"}
	for name, c := range map[string]struct {
		bot   BotIdentity
		id    int64
		login string
		want  domain.Sender
	}{
		"the App by its account's id, whatever its name":   {bot, botID, "renamed[bot]", domain.SenderApp},
		"the App by its name":                              {bot, 0, "Sluice[bot]", domain.SenderApp},
		"a workflow":                                       {bot, 41898282, "github-actions[bot]", domain.SenderWorkflow},
		"another App":                                      {bot, 99, "dependabot[bot]", domain.SenderPerson},
		"a person with the App's slug for a login":         {bot, 1, "sluice", domain.SenderPerson},
		"a person":                                         {bot, 1, "octocat", domain.SenderPerson},
		"nobody is the App while its account is not known": {BotIdentity{}, 0, "[bot]", domain.SenderPerson},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(c.bot.Sender(c.id, c.login)).To(Equal(c.want))
		})
	}
}

func TestNormalise_WhatSaysNothing(t *testing.T) {
	for name, d := range map[string]domain.Delivery{
		"an event nobody handles":         {Event: "star", Payload: []byte(`{"action":"created","repository":{"id":1}}`)},
		"an event nobody handles, unread": {Event: "star", Payload: []byte(`not json`)},
		"a push about no repository":      {Event: "push", Payload: []byte(`{"ref":"refs/heads/main"}`)},
		"a repository without an id":      {Event: "repository", Payload: []byte(`{"action":"deleted","repository":null}`)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			changes, err := Normalise(d, BotIdentity{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(changes).To(BeEmpty())
		})
	}
}

func TestNormalise_AnotherShapeIsAFaultThatQuotesNothing(t *testing.T) {
	for _, event := range []string{"push", "pull_request", "repository"} {
		for _, payload := range []string{`{"repository":"private-words"}`, `private-words`, `{"sender":{"id":"private-words"}}`, ``} {
			g := NewWithT(t)
			_, err := Normalise(domain.Delivery{Event: event, Payload: []byte(payload)}, BotIdentity{})
			g.Expect(fault.Of(err).Class).To(Equal(fault.Terminal))
			g.Expect(err.Error()).To(And(ContainSubstring(event), Not(ContainSubstring("private"))))
			g.Expect(errors.Unwrap(err)).To(BeNil(), "nor does its cause")
		}
	}
}

func TestMessage_R_CORE_10_HoldsNoSecret(t *testing.T) {
	for name, text := range map[string]string{
		"an installation token": "git: ghs_16C7e42F292c6912E7710c838347Ae178B4a",
		"a fine-grained token":  "github_pat_11ABC_16C7e42F292c6912E7710c838347Ae178B4a is not accepted",
		"a JWT":                 "auth eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOjQ3MTF9.c2VjcmV0LTE2Qzc was refused",
		"an address":            "fetching https://x-access-token:16C7e42F@github.com/acme/x.git",
		"a database URL":        "dial postgres://sluice:16C7e42F@db:5432/sluice",
		"a header":              "Authorization: Bearer 16C7e42F292c",
		"basic credentials":     "authorization: basic eDoxNkM3ZTQyRg==16C7",
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(message(errors.New(text))).To(And(ContainSubstring("[redacted]"), Not(ContainSubstring("16C7")), Not(ContainSubstring("c2Vj"))))
		})
	}
	g := NewWithT(t)
	g.Expect(message(errors.New("postgres refuses: value too long (SQLSTATE 22001)"))).To(Equal("postgres refuses: value too long (SQLSTATE 22001)"))
	g.Expect([]rune(message(errors.New(strings.Repeat("é", 5000))))).To(HaveLen(maxMessage), "R-HOOK-06")
}
