// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/githubsim"
)

func TestOutsidersAreInvitedAndMembersAdded(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	for _, login := range []string{"bob", "eve"} {
		_, err := s.User(s.ctx, login)
		s.Expect(err).NotTo(HaveOccurred())
	}
	s.Expect(s.Member(s.ctx, "acme", "mia", "member")).To(Succeed())
	path := "/repos/" + lab + "/collaborators/"

	a := s.ok(201, s.token(), "PUT", path+"bob", map[string]string{"permission": "push"})
	s.Expect(a.text("permissions")).To(Equal("write"), "PUT says push, the invitation says write")
	s.Expect(a.text("invitee", "login")).To(Equal("bob"))
	s.Expect(a.header.Get("Location")).To(Equal(fmt.Sprintf("%s/user/repository_invitations/%.0f", s.URL, a.at("id"))))
	s.ok(404, s.token(), "GET", path+"bob", nil)
	s.Expect(s.ok(200, s.token(), "GET", path+"bob/permission", nil).text("permission")).To(Equal("none"))
	s.Expect(s.ok(201, s.token(), "PUT", path+"bob", "null").at("id")).To(Equal(a.at("id")), "an open invitation is answered again")

	s.Expect(s.AnswerInvitation(s.ctx, lab, "bob", true)).To(Succeed())
	s.ok(204, s.token(), "GET", path+"bob", nil)
	s.ok(204, s.token(), "PUT", path+"bob", map[string]string{"permission": "maintain"})
	p := s.ok(200, s.token(), "GET", path+"bob/permission", nil)
	s.Expect([]any{p.text("permission"), p.text("role_name")}).To(Equal([]any{"write", "maintain"}))

	s.ok(204, s.token(), "PUT", path+"mia", map[string]string{"permission": "push"})
	s.ok(404, s.token(), "PUT", path+"nobody", nil)
	s.ok(422, s.token(), "PUT", path+"eve", map[string]string{"permission": "sovereign"})
	s.Expect(s.ConfigureOrganization(s.ctx, githubsim.AccountRequest{Login: "acme", BasePermission: "write"})).To(Succeed())
	s.Expect(s.ok(422, s.token(), "PUT", path+"mia", map[string]string{"permission": "pull"}).text("message")).To(Equal("Cannot assign mia permission of read"))

	names := func(query string) []any {
		var list []any
		for _, c := range s.ok(200, s.token(), "GET", "/repos/"+lab+"/collaborators"+query, nil).body.([]any) {
			list = append(list, c.(map[string]any)["login"])
		}
		return list
	}
	s.Expect(names("")).To(ConsistOf("bob", "mia"))
	s.Expect(names("?affiliation=outside")).To(ConsistOf("bob"))
	s.ok(204, s.token(), "DELETE", path+"bob", nil)
	s.Expect(names("?affiliation=direct")).To(ConsistOf("mia"))
	s.ok(404, s.token(), "DELETE", path+"nobody", nil)
	s.Expect(s.Look(s.ctx, lab)).To(HaveField("Collaborators", map[string]string{"mia": "write"}))
}

func TestInvitationsExpireAfterSevenDays(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	_, err := s.User(s.ctx, "bob")
	s.Expect(err).NotTo(HaveOccurred())
	s.ok(201, s.token(), "PUT", "/repos/"+lab+"/collaborators/bob", map[string]string{"permission": "pull"})
	list := func() answer { return s.ok(200, s.token(), "GET", "/repos/"+lab+"/invitations", nil) }
	id := list().at(0, "id")
	s.Expect(s.ok(200, s.token(), "PATCH", fmt.Sprintf("/repos/%s/invitations/%.0f", lab, id), map[string]string{"permissions": "maintain"}).text("permissions")).To(Equal("maintain"))
	s.clock.Step(7*24*time.Hour - time.Second)
	s.Expect(list().at(0, "expired")).To(BeFalse())
	s.clock.Step(time.Second)
	s.Expect(list().at(0, "expired")).To(BeTrue(), "an expired one stays in the list")
	s.Expect(s.AnswerInvitation(s.ctx, lab, "bob", true)).To(MatchError(ContainSubstring("expired")))
	s.ok(204, s.token(), "DELETE", fmt.Sprintf("/repos/%s/invitations/%.0f", lab, id), nil)
	s.ok(404, s.token(), "DELETE", fmt.Sprintf("/repos/%s/invitations/%.0f", lab, id), nil)
	s.ok(404, s.token(), "PATCH", "/repos/"+lab+"/invitations/1", map[string]string{"permissions": "read"})
	s.ok(201, s.token(), "PUT", "/repos/"+lab+"/collaborators/bob", nil)
	s.Expect(s.AnswerInvitation(s.ctx, lab, "bob", false)).To(Succeed())
	s.Expect(list().body).To(BeEmpty())
	s.Expect(s.AnswerInvitation(s.ctx, lab, "bob", true)).To(MatchError(ContainSubstring("bob is not invited to acme/lab")))
}

func TestFiftyInvitationsADay(t *testing.T) {
	s := newSim(t)
	s.repository(lab)
	invite := func(i int) int {
		login := fmt.Sprintf("u%02d", i)
		_, err := s.User(s.ctx, login)
		s.Expect(err).NotTo(HaveOccurred())
		return s.call(s.token(), "PUT", "/repos/"+lab+"/collaborators/"+login, nil).status
	}
	for i := range 50 {
		s.Expect(invite(i)).To(Equal(201))
	}
	s.Expect(invite(50)).To(Equal(422))
	s.clock.Step(24 * time.Hour)
	s.Expect(invite(50)).To(Equal(201))
	s.Expect(s.ok(200, s.token(), "GET", "/repos/"+lab+"/invitations?per_page=100", nil).body).To(HaveLen(51))
}
