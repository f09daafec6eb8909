// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Template fields, per place. Templates allow {{ .field }} of these and
// nothing else: no functions, no pipelines.
var (
	// NameTemplateFields are for repositories.provision.nameTemplate.
	NameTemplateFields = []string{"recipient", "project"}
	// TitleTemplateFields are for pullRequest.title.
	TitleTemplateFields = []string{"branch", "sha", "project"}
	// BodyTemplateFields are for pullRequest.body.
	BodyTemplateFields = []string{"branch", "sha", "project", "files", "count"}
)

var action = regexp.MustCompile(`\{\{-?\s*(.*?)\s*-?\}\}`)

// CheckTemplate returns an error that names the first thing a template may not
// hold and lists what it may.
func CheckTemplate(text string, fields []string) error {
	for _, m := range action.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], ".") || !slices.Contains(fields, m[1][1:]) {
			return fmt.Errorf("%s is not known: use {{ .%s }}", m[0], strings.Join(fields, " }}, {{ ."))
		}
	}
	rest := action.ReplaceAllString(text, "")
	if strings.Contains(rest, "{{") || strings.Contains(rest, "}}") {
		return fmt.Errorf("unbalanced braces in %q: write {{ .field }}", text)
	}
	return nil
}

// Render fills a template that CheckTemplate accepted. Unknown fields stay as
// they are written.
func Render(text string, values map[string]string) string {
	return action.ReplaceAllStringFunc(text, func(a string) string {
		name := strings.TrimPrefix(action.FindStringSubmatch(a)[1], ".")
		if v, ok := values[name]; ok {
			return v
		}
		return a
	})
}
