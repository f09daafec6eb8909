// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package githubsim

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// response is what a handler answers.
type response struct {
	status int
	body   any // nil: no body
	header http.Header
}

func ok(body any) response { return response{status: http.StatusOK, body: body} }

func noContent() response { return response{status: http.StatusNoContent} }

// created answers 201 with the address of what was made.
func created(body any, location string) response {
	r := response{status: http.StatusCreated, body: body}
	if location != "" {
		r.header = http.Header{"Location": {location}}
	}
	return r
}

const docsURL = "https://docs.github.com/rest"

// refuse answers with GitHub's error shape.
func refuse(status int, message string) response {
	return response{status: status, body: map[string]any{"message": message, "documentation_url": docsURL, "status": strconv.Itoa(status)}}
}

// refusal is refuse for functions that may not refuse.
func refusal(status int, message string) *response {
	r := refuse(status, message)
	return &r
}

// invalid answers 422 with one error of the given resource; empty parts are
// left out.
func invalid(resource, field, code, message string) response {
	e := map[string]any{"resource": resource, "code": code}
	if field != "" {
		e["field"] = field
	}
	if message != "" {
		e["message"] = message
	}
	return unprocessable("Validation Failed", e)
}

// unprocessable answers 422 with a list of errors: objects or texts.
func unprocessable(message string, errors ...any) response {
	r := refuse(http.StatusUnprocessableEntity, message)
	if body, isObject := r.body.(map[string]any); isObject && len(errors) > 0 {
		body["errors"] = errors
	}
	return r
}

// broken answers what the simulator could not do: a fault of its own.
func broken(err error) response { return refuse(http.StatusInternalServerError, err.Error()) }

var notFound = refuse(http.StatusNotFound, "Not Found")

// call is one REST request being answered; the server's lock is held.
type call struct {
	*http.Request
	actor actor
	body  map[string]any // nil: none, or a bare null
	list  []any          // a body that is a list, where the operation takes one
}

// given reports whether the body has a key with something in it.
func (c *call) given(key string) bool { return c.body[key] != nil }

// text returns a text of the body, "" when absent.
func (c *call) text(key string) string {
	s, isText := c.body[key].(string)
	if !isText {
		return ""
	}
	return s
}

// flag returns a boolean of the body.
func (c *call) flag(key string, byDefault bool) bool {
	b, isFlag := c.body[key].(bool)
	if !isFlag {
		return byDefault
	}
	return b
}

// texts returns a list of texts of the body.
func (c *call) texts(key string) []string { return texts(c.body[key]) }

func texts(value any) []string {
	list, isList := value.([]any)
	if !isList {
		return nil
	}
	var out []string
	for _, v := range list {
		if text, isText := v.(string); isText {
			out = append(out, text)
		}
	}
	return out
}

// numbers returns a list of whole numbers of the body.
func (c *call) numbers(key string) []int64 {
	list, isList := c.body[key].([]any)
	if !isList {
		return nil
	}
	var out []int64
	for _, v := range list {
		if n, isNumber := v.(float64); isNumber {
			out = append(out, int64(n))
		}
	}
	return out
}

// number returns a whole number of the path, 0 when it is none.
func (c *call) number(name string) int64 {
	id, err := strconv.ParseInt(c.PathValue(name), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// Pages of lists.
const (
	defaultPage = 30
	largestPage = 100
)

// pageSize returns how many entries a page has.
func (c *call) pageSize() int {
	if n, err := strconv.Atoi(c.URL.Query().Get("per_page")); err == nil && n > 0 {
		return min(n, largestPage)
	}
	return defaultPage
}

// page cuts a list as per_page and page say, and links the other pages. The
// links have the by-id form, as GitHub's do.
func page[T any](s *Server, c *call, r *repo, list []T) ([]T, http.Header) {
	per, number := c.pageSize(), 1
	if n, err := strconv.Atoi(c.URL.Query().Get("page")); err == nil && n > 0 {
		number = n
	}
	start := min((number-1)*per, len(list))
	end := min(start+per, len(list))
	last := max((len(list)+per-1)/per, 1)
	path := c.URL.EscapedPath()
	if r != nil {
		path = s.byID(c, r)
	}
	var links []string
	link := func(n int, rel string) {
		q := c.URL.Query()
		q.Set("page", strconv.Itoa(n))
		links = append(links, fmt.Sprintf(`<%s%s?%s>; rel=%q`, s.baseURL, path, q.Encode(), rel))
	}
	if number > 1 {
		link(min(number-1, last), "prev")
	}
	if number < last {
		link(number+1, "next")
		link(last, "last")
	}
	if number > 1 {
		link(1, "first")
	}
	header := http.Header{}
	if len(links) > 0 {
		header.Set("Link", strings.Join(links, ", "))
	}
	return list[start:end], header
}

// byID returns the path of the request in the form /repositories/{id}/...
func (s *Server) byID(c *call, r *repo) string {
	path := c.URL.EscapedPath()
	if strings.HasPrefix(path, "/repositories/") {
		return path
	}
	parts := strings.SplitN(path, "/", 5) // "", repos, owner, name, rest
	rest := ""
	if len(parts) == 5 {
		rest = "/" + parts[4]
	}
	return fmt.Sprintf("/repositories/%d%s", r.id, rest)
}

// redirect leads from a former name to the by-id form.
func (s *Server) redirect(c *call, r *repo) response {
	status := http.StatusMovedPermanently
	if c.Method != http.MethodGet && c.Method != http.MethodHead {
		status = http.StatusTemporaryRedirect
	}
	location := s.baseURL + s.byID(c, r)
	if c.URL.RawQuery != "" {
		location += "?" + c.URL.RawQuery
	}
	return response{status: status, header: http.Header{"Location": {location}},
		body: map[string]any{"message": "Moved Permanently", "url": location, "documentation_url": docsURL + "/guides/getting-started-with-the-rest-api#http-redirects"}}
}

// escapePath escapes each segment of a path.
func escapePath(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}
