// Copyright The Sluice Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/sluice-dev/sluice/internal/githubsim/openapi"
)

//go:embed update.sh
var updateScript string

// small is a description with what trimming has to tell apart: wanted and
// unwanted operations, prose, a property called description, a discriminator,
// a recursive schema, and components that nothing wanted reaches.
const small = `{
 "openapi": "3.0.3",
 "info": {"title": "Small", "version": "1.2.3", "description": "prose", "license": {"name": "MIT"}},
 "servers": [{"url": "https://api.github.example"}],
 "paths": {
  "/things/{thing_id}": {
   "get": {"operationId": "things/get", "summary": "prose", "tags": ["things"], "x-github": {"a": 1},
    "parameters": [{"$ref": "#/components/parameters/thing-id"}, {"name": "q", "in": "query", "schema": {"type": "string"}}],
    "responses": {
     "200": {"description": "prose", "headers": {"Link": {"schema": {"type": "string"}}},
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/thing"}, "examples": {"default": {"$ref": "#/components/examples/thing"}}}}},
     "204": {"description": "prose"},
     "404": {"$ref": "#/components/responses/not_found"}}},
   "delete": {"operationId": "things/delete", "responses": {"204": {"description": ""}}}
  },
  "/things": {
   "post": {"operationId": "things/create",
    "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9223372036854775807}}}, "example": {"size": 1}}}},
    "responses": {"201": {"description": "prose"}}}
  }
 },
 "components": {
  "parameters": {"thing-id": {"name": "thing_id", "in": "path", "required": true, "schema": {"type": "string"}}},
  "examples": {"thing": {"value": {"description": "x"}}},
  "headers": {},
  "responses": {"not_found": {"description": "prose", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/basic-error"}}}}},
  "schemas": {
   "basic-error": {"type": "object", "title": "prose", "properties": {"message": {"type": "string", "example": "x"}}},
   "validation-error": {"type": "object"},
   "validation-error-simple": {"type": "object"},
   "thing": {"type": "object", "required": ["description"], "x-github-breaking-changes": [{"patch": {}}],
    "properties": {
     "description": {"type": "string", "description": "prose", "default": "x"},
     "example": {"type": "array", "items": {"$ref": "#/components/schemas/thing"}},
     "owner": {"oneOf": [{"$ref": "#/components/schemas/user"}, {"type": "string"}], "discriminator": {"propertyName": "kind", "mapping": {"user": "#/components/schemas/user", "bot": "#/components/schemas/bot"}}},
     "labels": {"type": "object", "additionalProperties": {"type": "string", "title": "prose"}},
     "closed": {"type": "object", "additionalProperties": false}}},
   "user": {"type": "object"},
   "bot": {"type": "object"},
   "unreached": {"type": "object"}
  }
 }
}`

const trimmedSmall = `{
 "components": {
  "responses": {
   "not_found": {
    "content": {
     "application/json": {
      "schema": {
       "$ref": "#/components/schemas/basic-error"
      }
     }
    },
    "description": ""
   }
  },
  "schemas": {
   "basic-error": {
    "properties": {
     "message": {
      "type": "string"
     }
    },
    "type": "object"
   },
   "bot": {
    "type": "object"
   },
   "thing": {
    "properties": {
     "closed": {
      "additionalProperties": false,
      "type": "object"
     },
     "description": {
      "type": "string"
     },
     "example": {
      "items": {
       "$ref": "#/components/schemas/thing"
      },
      "type": "array"
     },
     "labels": {
      "additionalProperties": {
       "type": "string"
      },
      "type": "object"
     },
     "owner": {
      "discriminator": {
       "mapping": {
        "bot": "#/components/schemas/bot",
        "user": "#/components/schemas/user"
       },
       "propertyName": "kind"
      },
      "oneOf": [
       {
        "$ref": "#/components/schemas/user"
       },
       {
        "type": "string"
       }
      ]
     }
    },
    "required": [
     "description"
    ],
    "type": "object"
   },
   "user": {
    "type": "object"
   },
   "validation-error": {
    "type": "object"
   },
   "validation-error-simple": {
    "type": "object"
   }
  }
 },
 "info": {
  "license": {
   "name": "MIT"
  },
  "title": "GitHub REST API, trimmed",
  "version": "1.2.3"
 },
 "openapi": "3.0.3",
 "paths": {
  "/things": {
   "post": {
    "operationId": "things/create",
    "requestBody": {
     "content": {
      "application/json": {
       "schema": {
        "properties": {
         "size": {
          "maximum": 9223372036854775807,
          "type": "integer"
         }
        },
        "type": "object"
       }
      }
     },
     "required": true
    },
    "responses": {
     "201": {
      "description": ""
     }
    }
   }
  },
  "/things/{thing_id}": {
   "get": {
    "operationId": "things/get",
    "parameters": [
     {
      "in": "path",
      "name": "thing_id",
      "required": true,
      "schema": {
       "type": "string"
      }
     }
    ],
    "responses": {
     "200": {
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/thing"
        }
       }
      },
      "description": ""
     },
     "204": {
      "description": ""
     },
     "404": {
      "$ref": "#/components/responses/not_found"
     }
    }
   }
  }
 }
}
`

func TestConvertKeepsWhatValidationReads(t *testing.T) {
	g := NewWithT(t)
	text, err := convert([]byte(small), []string{"things/create", "things/get"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(Equal(trimmedSmall))
}

func TestConvertIsDeterministic(t *testing.T) {
	g := NewWithT(t)
	for range 20 {
		text, err := convert([]byte(small), []string{"things/get", "things/create"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(Equal(trimmedSmall))
	}
}

func TestConvertOfItsOwnResultChangesOnlyTheProse(t *testing.T) {
	g := NewWithT(t)
	text, err := convert([]byte(trimmedSmall), []string{"things/create", "things/get"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(Equal(trimmedSmall))
}

func TestConvertRefuses(t *testing.T) {
	schema := func(text string) string {
		return strings.Replace(small, `"user": {"type": "object"}`, `"user": `+text, 1)
	}
	for _, c := range []struct {
		name, text string
		ids        []string
		want       []string
	}{
		{"what is no JSON", `{`, nil, []string{"reading the description"}},
		{"operations that are missing, all at once", small, []string{"things/get", "things/fly", "things/swim"},
			[]string{"operation things/fly is not in the description", "operation things/swim is not in the description"}},
		{"a keyword that nobody decided about", schema(`{"type":"object","unevaluatedProperties":false}`), []string{"things/get"},
			[]string{`#/components/schemas/user: the keyword "unevaluatedProperties" is new to hack/openapi`}},
		{"a reference that leads nowhere", schema(`{"$ref":"#/components/schemas/nobody"}`), []string{"things/get"},
			[]string{`the reference "#/components/schemas/nobody" leads to no component`}},
		{"a reference outside the document", schema(`{"$ref":"other.json#/a"}`), []string{"things/get"},
			[]string{`the reference "other.json#/a" leads to no component`}},
		{"a reference to another kind of component", schema(`{"$ref":"#/components/parameters/thing-id"}`), []string{"things/get"},
			[]string{`leads to a kind of component that hack/openapi does not keep`}},
		{"a schema that is none", schema(`{"items":7}`), []string{"things/get"}, []string{"#/components/schemas/user/items: expected a schema"}},
		{"alternatives that are no list", schema(`{"anyOf":{}}`), []string{"things/get"}, []string{"#/components/schemas/user/anyOf: expected a list of schemas"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := convert([]byte(c.text), c.ids)
			for _, want := range c.want {
				g.Expect(err).To(MatchError(ContainSubstring(want)))
			}
		})
	}
}

func TestRunWritesTheTrimmedDescription(t *testing.T) {
	g := NewWithT(t)
	operations := make([]string, 0, len(wanted()))
	for i, id := range wanted() {
		operations = append(operations, fmt.Sprintf(`"/p%d":{"get":{"operationId":%q,"responses":{}}}`, i, id))
	}
	_, rest, found := strings.Cut(small, `"components": {`)
	g.Expect(found).To(BeTrue())
	in, out := filepath.Join(t.TempDir(), "in.json"), filepath.Join(t.TempDir(), "out.json")
	text := `{"openapi":"3.0.3","info":{},"paths":{` + strings.Join(operations, ",") + `},"components": {` + rest
	g.Expect(os.WriteFile(in, []byte(text), 0o600)).To(Succeed())
	g.Expect(run(in, out)).To(Succeed())
	g.Expect(out).To(BeAnExistingFile())

	g.Expect(run("", out)).To(MatchError(ContainSubstring("both -in and -out are needed")))
	g.Expect(run(filepath.Join(t.TempDir(), "none.json"), out)).To(MatchError(os.ErrNotExist))
}

func TestParseOperationsSkipsCommentsAndEmptyLines(t *testing.T) {
	NewWithT(t).Expect(parseOperations("# why\n\n  a/b  \nc/d\n#e/f\n")).To(Equal([]string{"a/b", "c/d"}))
}

// The lists and the committed description must not drift apart: whoever changes
// one without running update.sh learns it here.
func TestCommittedDescriptionIsTrimmedToTheList(t *testing.T) {
	g := NewWithT(t)
	v, err := openapi.Load()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(v.Operations()).To(Equal(wanted()), "run hack/openapi/update.sh")
	g.Expect(updateScript).To(ContainSubstring("\nversion=" + v.Version() + "\n"))
}
