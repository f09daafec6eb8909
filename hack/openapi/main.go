// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

// Command openapi trims GitHub's OpenAPI description to the operations that the
// simulator serves and those listed in operations.txt: their request bodies and
// answers, and the schemas these reach. Prose, examples, headers and query parameters are dropped. The same
// input gives the same bytes.
//
// update.sh fetches the description and runs it.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sluice-dev/sluice/internal/githubsim/operations"
)

//go:embed operations.txt
var operationsFile string

func main() {
	in := flag.String("in", "", "GitHub's OpenAPI description, as JSON")
	out := flag.String("out", "", "where to write the trimmed description")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	if in == "" || out == "" {
		return errors.New("both -in and -out are needed; hack/openapi/update.sh passes them")
	}
	raw, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	text, err := convert(raw, wanted())
	if err != nil {
		return fmt.Errorf("trimming %s: %w", in, err)
	}
	return os.WriteFile(out, text, 0o644)
}

// wanted returns the operationIds to keep, sorted and without repetitions.
func wanted() []string {
	ids := slices.Concat(operations.IDs, parseOperations(operationsFile))
	slices.Sort(ids)
	return slices.Compact(ids)
}

// parseOperations returns the lines of an operations file that are neither
// empty nor comments.
func parseOperations(text string) []string {
	var ids []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			ids = append(ids, line)
		}
	}
	return ids
}

// convert returns the trimmed description as text that is diffable (a line for
// each value) and deterministic (keys sorted by encoding/json).
func convert(raw []byte, ids []string) ([]byte, error) {
	// Numbers are kept as they are written: limits may exceed a float64.
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var doc object
	if err := decoder.Decode(&doc); err != nil {
		return nil, fmt.Errorf("reading the description: %w", err)
	}
	trimmed, err := trim(doc, ids)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(trimmed); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}
