// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
)

// answer is the input of ValidateAnswer. Zero values mean a JSON answer of status 200
// to a request about which nothing is known.
type answer struct {
	operation string
	request   *http.Request
	status    int
	header    http.Header
	body      string
}

func (a answer) validate(t *testing.T) error {
	t.Helper()
	if a.status == 0 {
		a.status = http.StatusOK
	}
	if a.header == nil {
		a.header = http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	}
	return loaded(t).ValidateAnswer(a.operation, a.request, a.status, a.header, []byte(a.body))
}

const (
	goodRef   = `{"ref":"refs/heads/main","node_id":"R_1","url":"https://github.example/r","object":{"type":"commit","sha":"aa218f56b14c9653891f9e74264a383fa43fefbd","url":"https://github.example/c"}}`
	goodToken = `{"token":"ghs_1","expires_at":"2026-01-02T03:04:05Z","permissions":{"contents":"write"},"repository_selection":"all"}`
	goodError = `{"message":"Not Found","documentation_url":"https://docs.github.com/rest","status":"404"}`
)

func request(method, header, value string) *http.Request {
	r := &http.Request{Method: method, Header: http.Header{}}
	if header != "" {
		r.Header.Set(header, value)
	}
	return r
}

// changed returns the documented answer 200 of an operation, as a sample with
// every key, after a change.
func changed(t *testing.T, operation string, change func(map[string]any)) string {
	t.Helper()
	value, isObject := sample(loaded(t).operations[operation].answers[http.StatusOK]["application/json"].schema, 8).(map[string]any)
	if !isObject {
		t.Fatalf("%s does not answer an object", operation)
	}
	change(value)
	return string(encode(t, value))
}

func TestValidateAccepts(t *testing.T) {
	redirect := http.Header{"Content-Type": {"application/json"}, "Location": {"https://github.example/repositories/7"}}
	const moved = `{"message":"Moved Permanently","url":"https://github.example/repositories/7","documentation_url":"https://docs.github.com"}`
	for _, c := range []struct {
		name string
		answer
	}{
		{"a documented answer", answer{operation: "git/get-ref", body: goodRef}},
		{"a documented answer to a request", answer{operation: "git/get-ref", request: request("GET", "", ""), body: goodRef}},
		{"keys that are optional", answer{operation: "apps/create-installation-access-token", status: 201, body: goodToken}},
		{"an empty list", answer{operation: "pulls/list", body: `[]`}},
		{"an empty answer where none is documented", answer{operation: "repos/check-collaborator", status: 204, header: http.Header{}}},
		{"content that is not JSON where that is documented", answer{operation: "repos/compare-commits-with-basehead", header: http.Header{"Content-Type": {"application/vnd.github.diff; charset=utf-8"}}, body: "diff --git"}},
		{"null where an account is unknown", answer{operation: "repos/get-commit", body: changed(t, "repos/get-commit", func(c map[string]any) { c["author"], c["committer"] = nil, map[string]any{} })}},
		{"any key among custom properties", answer{operation: "repos/get", body: changed(t, "repos/get", func(r map[string]any) { r["custom_properties"] = map[string]any{"team": "a"} })}},
		{"a 404 that the operation does not document", answer{operation: "apps/get-org-installation", status: 404, body: goodError}},
		{"401 for every operation", answer{operation: "pulls/list", status: 401, body: goodError}},
		{"403 with the reason of a block", answer{operation: "repos/get", status: 403, body: `{"message":"Repository access blocked","block":{"reason":"tos"}}`}},
		{"409 of an empty repository", answer{operation: "repos/list-branches", status: 409, body: `{"message":"Git Repository is empty."}`}},
		{"429 of a rate limit", answer{operation: "pulls/create", status: 429, body: `{"message":"API rate limit exceeded for installation ID 1."}`}},
		{"451 of a blocked repository", answer{operation: "repos/get", status: 451, body: `{"message":"Repository access blocked","block":{"reason":"dmca","created_at":"2026-01-02T03:04:05Z"}}`}},
		{"422 with the status as a text", answer{operation: "pulls/create", status: 422, body: `{"message":"Validation Failed","errors":[{"resource":"PullRequest","code":"custom","message":"No commits between main and sync/main"}],"documentation_url":"https://docs.github.com","status":"422"}`}},
		{"422 with errors as texts", answer{operation: "repos/add-collaborator", status: 422, body: `{"message":"Validation Failed","errors":["no such user"],"documentation_url":"https://docs.github.com"}`}},
		{"422 with a value of null", answer{operation: "pulls/create", status: 422, body: `{"message":"Validation Failed","errors":[{"code":"missing","value":null}],"documentation_url":"https://docs.github.com"}`}},
		{"422 where a body is taken but none documented", answer{operation: "repos/update-invitation", status: 422, body: `{"message":"Validation Failed","documentation_url":"https://docs.github.com"}`}},
		{"422 with a body of a ref that is not there to be deleted", answer{operation: "git/delete-ref", status: 422, body: `{"message":"Reference does not exist","documentation_url":"https://docs.github.com"}`}},
		{"301 of a renamed repository", answer{operation: "pulls/list", status: 301, header: redirect, body: moved}},
		{"307 of a renamed repository", answer{operation: "pulls/create", status: 307, header: redirect, body: moved}},
		{"304 of a conditional request", answer{operation: "repos/get", request: request("GET", "If-None-Match", `"e"`), status: 304, header: http.Header{}}},
		{"502 with the page of a proxy", answer{operation: "repos/get", status: 502, header: http.Header{"Content-Type": {"text/html"}}, body: "<html>"}},
		{"HEAD of what is documented for GET", answer{operation: "repos/get", request: request("HEAD", "", "")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			NewWithT(t).Expect(c.validate(t)).To(Succeed())
		})
	}
}

func TestValidateRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		answer
		pointer string // of the problem
		want    string // part of its text
	}{
		{"a missing required key", answer{operation: "git/get-ref", body: strings.Replace(goodRef, `"node_id":"R_1",`, ``, 1)}, "/node_id", `missing required key "node_id"`},
		{"a missing key in a list", answer{operation: "issues/list-labels-on-issue", body: `[{"id":1,"node_id":"L","url":"https://github.example/l","name":"sync","description":null,"color":"ededed"}]`}, "/0/default", `missing required key "default"`},
		{"a wrong type", answer{operation: "git/get-ref", body: strings.Replace(goodRef, `"ref":"refs/heads/main"`, `"ref":7`, 1)}, "/ref", "found a number, expected a string"},
		{"null where none is allowed", answer{operation: "git/get-ref", body: strings.Replace(goodRef, `"ref":"refs/heads/main"`, `"ref":null`, 1)}, "/ref", "found null, expected a string"},
		{"a fraction for an integer", answer{operation: "repos/get", body: changed(t, "repos/get", func(r map[string]any) { r["id"] = 1.5 })}, "/id", "expected an integer"},
		{"an object for a list", answer{operation: "pulls/list", body: `{}`}, "", "found an object, expected an array"},
		{"an unknown key", answer{operation: "git/get-ref", body: strings.Replace(goodRef, `{"ref"`, `{"sha":"a","ref"`, 1)}, "/sha", `unknown key "sha": documented here are node_id, object, ref, url`},
		{"an unknown key deep inside", answer{operation: "pulls/get", body: changed(t, "pulls/get", func(p map[string]any) {
			p["head"].(map[string]any)["repo"].(map[string]any)["owner"].(map[string]any)["follower_url"] = "x"
		})}, "/head/repo/owner/follower_url", `unknown key "follower_url"`},
		{"an unknown key with a slash, escaped in the pointer", answer{operation: "git/get-ref", body: strings.Replace(goodRef, `{"ref"`, `{"a/b~c":"a","ref"`, 1)}, "/a~1b~0c", `unknown key "a/b~c"`},
		{"an unknown key in one of several alternatives", answer{operation: "apps/get-installation", body: changed(t, "apps/get-installation", func(i map[string]any) { i["account"].(map[string]any)["plan"] = "free" })}, "/account/plan", `unknown key "plan"`},
		{"an unknown key of an object that must be empty or an account", answer{operation: "repos/get-commit", body: changed(t, "repos/get-commit", func(c map[string]any) { c["author"].(map[string]any)["nick"] = "x" })}, "/author/nick", `unknown key "nick"`},
		{"a wrong type in one of several alternatives", answer{operation: "apps/get-installation", body: changed(t, "apps/get-installation", func(i map[string]any) { i["account"].(map[string]any)["login"] = 7 })}, "/account/login", "found a number, expected a string"},
		{"a type that no alternative has", answer{operation: "apps/get-installation", body: changed(t, "apps/get-installation", func(i map[string]any) { i["account"] = "acme" })}, "/account", "found a string, expected an object"},
		{"a wrong parameter of a rule, told by the rule's type", answer{operation: "repos/get-repo-ruleset", body: changed(t, "repos/get-repo-ruleset", func(r map[string]any) {
			r["rules"] = []any{map[string]any{"type": "update", "parameters": map[string]any{"update_allows_fetch_and_merge": "yes"}}}
		})}, "/rules/0/parameters/update_allows_fetch_and_merge", "found a string, expected a boolean"},
		{"a value outside an enum", answer{operation: "pulls/get", body: changed(t, "pulls/get", func(p map[string]any) { p["state"] = "merged" })}, "/state", `["open","closed"]`},
		{"a time that is none", answer{operation: "repos/get", body: changed(t, "repos/get", func(r map[string]any) { r["created_at"] = "yesterday" })}, "/created_at", "a time like 2006-01-02T15:04:05Z"},
		{"a URI that is relative", answer{operation: "repos/get", body: changed(t, "repos/get", func(r map[string]any) { r["html_url"] = "/acme/lab1" })}, "/html_url", "an absolute URI like https://host/path"},
		{"a user without what tells public from private", answer{operation: "users/get-by-username", body: changed(t, "users/get-by-username", func(u map[string]any) { delete(u, "user_view_type") })}, "", `the key "user_view_type", which tells the alternatives apart, is missing`},
		{"a public user with a private key", answer{operation: "users/get-by-username", body: changed(t, "users/get-by-username", func(u map[string]any) {
			u["user_view_type"] = "public"
			delete(u, "ldap_dn")
			delete(u, "two_factor_authentication")
		})}, "/business_plus", `unknown key "business_plus"`},
		{"an undocumented status", answer{operation: "git/get-ref", status: 202, body: goodRef}, "", "the status 202 is not documented for this operation: expected one of 200, 404, 409"},
		{"409 where no repository is meant", answer{operation: "orgs/get", status: 409, body: goodError}, "", "the status 409 is not documented"},
		{"304 without a condition", answer{operation: "repos/get-commit", request: request("GET", "", ""), status: 304, header: http.Header{}}, "", "the status 304 is not documented"},
		{"301 for a write", answer{operation: "pulls/create", status: 301, body: `{}`}, "", "the status 301 is not documented"},
		{"a redirect without its target", answer{operation: "pulls/list", status: 301, body: `{"message":"Moved Permanently"}`}, "", "without the header Location"},
		{"an undocumented error without a message", answer{operation: "pulls/list", status: 401, body: `{"documentation_url":"https://docs.github.com"}`}, "/message", `missing required key "message"`},
		{"an unknown key in an error", answer{operation: "pulls/list", status: 401, body: `{"message":"Bad credentials","hint":"x"}`}, "/hint", `unknown key "hint"`},
		{"a block outside 403 and 451", answer{operation: "repos/get", status: 404, body: `{"message":"Not Found","block":{}}`}, "/block", `unknown key "block"`},
		{"422 with errors of the wrong kind", answer{operation: "pulls/create", status: 422, body: `{"message":"Validation Failed","errors":[7],"documentation_url":"https://docs.github.com"}`}, "/errors/0", "found a number, expected an object"},
		{"no content type", answer{operation: "git/get-ref", header: http.Header{}, body: goodRef}, "", `the content type is "", expected application/json`},
		{"another content type", answer{operation: "git/get-ref", header: http.Header{"Content-Type": {"text/plain"}}, body: goodRef}, "", `the content type is "text/plain", expected application/json`},
		{"an undocumented error that is no JSON", answer{operation: "pulls/list", status: 401, header: http.Header{"Content-Type": {"text/plain"}}, body: "no"}, "", `the content type is "text/plain", expected application/json`},
		{"a body that is no JSON", answer{operation: "git/get-ref", body: `{"ref":`}, "", "expected JSON"},
		{"an empty body", answer{operation: "git/get-ref"}, "", "the body is empty, expected application/json"},
		{"a body with 204", answer{operation: "repos/check-collaborator", status: 204, body: `{}`}, "", "found a body of 2 bytes, expected none"},
		{"a body with 304", answer{operation: "pulls/list", request: request("GET", "If-None-Match", `"e"`), status: 304, body: `[]`}, "", "found a body of 2 bytes, expected none"},
		{"a body to HEAD", answer{operation: "git/get-ref", request: request("HEAD", "", ""), body: goodRef}, "", "expected none to a HEAD request"},
		{"a route that names another operation", answer{operation: "git/get-ref", request: request("POST", "", ""), body: goodRef}, "", "the request was a POST, expected GET /repos/{owner}/{repo}/git/ref/{ref}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			var refusal *Error
			g.Expect(errors.As(c.validate(t), &refusal)).To(BeTrue())
			g.Expect(refusal.Problems).To(HaveLen(1), "%v", refusal)
			g.Expect(refusal.Problems[0].Pointer).To(Equal(c.pointer))
			g.Expect(refusal.Problems[0].Text).To(ContainSubstring(c.want))
		})
	}
}

func TestValidateNamesTheOperationAndEveryProblem(t *testing.T) {
	g := NewWithT(t)
	err := answer{operation: "git/get-ref", body: `{"ref":7,"sha":"a","url":"https://github.example/r","object":{"type":"commit","url":"https://github.example/c"}}`}.validate(t)
	g.Expect(err).To(MatchError(Equal(strings.Join([]string{
		"openapi: git/get-ref, answer 200: not as GitHub's description " + loaded(t).Version() + " has it:",
		`	/node_id: missing required key "node_id"`,
		`	/object/sha: missing required key "sha"`,
		`	/ref: found a number, expected a string`,
		`	/sha: unknown key "sha": documented here are node_id, object, ref, url`,
	}, "\n"))))
}

func TestValidateBoundsTheLengthOfItsError(t *testing.T) {
	g := NewWithT(t)
	err := answer{operation: "repos/get", body: `{}`}.validate(t)
	g.Expect(err).To(MatchError(MatchRegexp(`\n\tand \d+ more$`)))
	g.Expect(strings.Count(err.Error(), "\n")).To(Equal(shownProblems + 1))
}

func TestValidateKeepsValuesOutOfItsErrors(t *testing.T) {
	const secret = "ghs_0123456789abcdefghijklmnopqrstuvwxyz"
	for _, body := range []string{
		strings.Replace(goodToken, `"token":"ghs_1"`, `"token":["`+secret+`"]`, 1),
		strings.Replace(goodToken, `"repository_selection":"all"`, `"repository_selection":"`+secret+`"`, 1),
		`{"token":"` + secret + `"`,
	} {
		g := NewWithT(t)
		err := answer{operation: "apps/create-installation-access-token", status: http.StatusCreated, body: body}.validate(t)
		g.Expect(err).To(BeAssignableToTypeOf(&Error{}))
		g.Expect(err.Error()).NotTo(ContainSubstring(secret))
	}
}

func TestValidateSaysHowToAddAnOperation(t *testing.T) {
	g := NewWithT(t)
	for _, err := range []error{
		loaded(t).Validate("repos/fly", http.StatusOK, nil, nil),
		loaded(t).ValidateRequest("repos/fly", nil, nil),
	} {
		g.Expect(err).To(MatchError(And(ContainSubstring(`"repos/fly"`), ContainSubstring("hack/openapi/operations.txt"))))
	}
}

// The race detector watches this one.
func TestValidateByManyAtOnce(t *testing.T) {
	v := loaded(t)
	var all sync.WaitGroup
	failures := make(chan error, 64)
	for _, a := range documentedAnswers(v)[:32] {
		raw := encode(t, sample(a.body.schema, 4))
		for range 2 {
			all.Go(func() { failures <- v.Validate(a.operation, a.status, a.header(), raw) })
		}
	}
	all.Wait()
	close(failures)
	for err := range failures {
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	}
}

func TestEveryExceptionHasAReasonAndAnOperation(t *testing.T) {
	v := loaded(t)
	for _, e := range exceptions {
		for _, status := range e.statuses {
			t.Run(http.StatusText(status), func(t *testing.T) {
				g := NewWithT(t)
				g.Expect(e.reason).NotTo(BeEmpty())
				used := 0
				for _, o := range v.operations {
					if exceptionFor(o, nil, status) != nil {
						used++
					}
				}
				g.Expect(used).To(BeNumerically(">", 0))
			})
		}
	}
}

func TestValidateRequest(t *testing.T) {
	const pull = `{"title":"Sync","head":"sync/main","base":"main","body":"b","draft":false,"maintainer_can_modify":true}`
	for _, c := range []struct {
		name, operation, body string
		request               *http.Request
		pointer, want         string // empty want: accepted
	}{
		{name: "a documented body", operation: "pulls/create", body: pull},
		{name: "a documented body of a request", operation: "pulls/create", body: pull, request: request("POST", "", "")},
		{name: "a key that GitHub ignores", operation: "pulls/create", body: strings.Replace(pull, `{`, `{"nick":1,`, 1)},
		{name: "a bare null", operation: "apps/create-installation-access-token", body: `null`},
		{name: "a bare null where a body is needed", operation: "pulls/create", body: "null\n"},
		{name: "no body where it is optional", operation: "apps/create-installation-access-token"},
		{name: "anything to an operation without a body", operation: "repos/get", body: `x`},
		{name: "labels as an object", operation: "issues/add-labels", body: `{"labels":["sync"]}`},
		{name: "labels as a list", operation: "issues/add-labels", body: `["sync"]`},
		{name: "labels as a list of numbers", operation: "issues/add-labels", body: `[1]`, want: "found an array, expected an object"},
		{name: "a repository that is internal to an enterprise", operation: "repos/create-in-org", body: `{"name":"n","visibility":"internal"}`},
		{name: "a visibility that does not exist", operation: "repos/create-in-org", body: `{"name":"n","visibility":"secret"}`, pointer: "/visibility", want: "internal"},
		{name: "a wrong type", operation: "pulls/create", body: strings.Replace(pull, `"draft":false`, `"draft":"no"`, 1), pointer: "/draft", want: "found a string, expected a boolean"},
		{name: "a wrong type deep inside", operation: "apps/create-installation-access-token", body: `{"permissions":{"contents":"admin"}}`, pointer: "/permissions/contents", want: `["read","write"]`},
		{name: "a missing required key", operation: "pulls/create", body: `{"title":"t","head":"h"}`, pointer: "/base", want: `missing required key "base"`},
		{name: "no body where one is needed", operation: "pulls/create", want: "the body is missing"},
		{name: "no JSON", operation: "pulls/create", body: `title=x`, want: "expected JSON"},
		{name: "another method", operation: "pulls/create", request: request("PATCH", "", ""), body: pull, want: "the request was a PATCH, expected POST"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			err := loaded(t).ValidateRequest(c.operation, c.request, []byte(c.body))
			if c.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			var refusal *Error
			g.Expect(errors.As(err, &refusal)).To(BeTrue(), "%v", err)
			g.Expect(refusal.Subject).To(Equal("request"))
			g.Expect(refusal.Problems).To(HaveLen(1), "%v", refusal)
			g.Expect(refusal.Problems[0].Pointer).To(Equal(c.pointer))
			g.Expect(refusal.Problems[0].Text).To(ContainSubstring(c.want))
		})
	}
}

// A description is read as the tests above expect only if numbers survive.
func TestLargeIDsAreIntegers(t *testing.T) {
	body := changed(t, "repos/get", func(r map[string]any) { r["id"] = json.Number("9007199254740993") })
	NewWithT(t).Expect(answer{operation: "repos/get", body: body}.validate(t)).To(Succeed())
}
