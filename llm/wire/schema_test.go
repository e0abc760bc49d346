// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm/wire"
)

// One schema that a provider refuses disables all tools: its top is made an object,
// and what is fit keeps its bytes.
func TestObjectSchema(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"fit":           {`{ "type" : "object", "properties":{"b":{},"a":{}} }`, ``},
		"no JSON":       {`{"type":`, ``},
		"no object":     {`[1]`, ``},
		"bare":          {`{"type":"object"}`, `{"type":"object","properties":{}}`},
		"empty":         {`{}`, `{"type":"object","properties":{}}`},
		"no type":       {`{"properties":{"a":{"type":"string"}},"required":["a"]}`, `{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`},
		"another type":  {`{"type":["object","null"],"properties":{}}`, `{"type":"object","properties":{}}`},
		"nulls":         {`{"type":"object","properties":null,"required":null}`, `{"type":"object","properties":{}}`},
		"alternatives":  {`{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]},{"properties":{"b":{},"a":{"type":"null"}}}]}`, `{"type":"object","properties":{"a":{},"b":{}}}`},
		"reference":     {`{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"x":{"const":1.10}},"required":["x"]}}}`, `{"type":"object","$defs":{"A":{"type":"object","properties":{"x":{"const":1.10}},"required":["x"]}},"required":["x"],"properties":{"x":{"const":1.10}}}`},
		"all of them":   {`{"allOf":[{"$ref":"#/definitions/A~1b"}],"definitions":{"A/b":{"properties":{"x":{}}}}}`, `{"type":"object","definitions":{"A/b":{"properties":{"x":{}}}},"properties":{"x":{}}}`},
		"in a circle":   {`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}`, `{"type":"object","$defs":{"A":{"$ref":"#/$defs/A"}},"properties":{}}`},
		"to nowhere":    {`{"$ref":"https://example.com/a.json"}`, `{"type":"object","properties":{}}`},
		"nested is not": {`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/x"}]}}}`, ``},
	} {
		want := c.want
		if want == "" {
			want = c.in
		}
		if got := wire.ObjectSchema(json.RawMessage(c.in)); string(got) != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestRename(t *testing.T) {
	upper := strings.ToUpper
	schema := json.RawMessage(`{"type":"object","required":["b","$a"],"properties":{"b":{"properties":{"c":{}}},"$a":{"default":1.0}}}`)
	want := `{"type":"object","required":["B","$A"],"properties":{"B":{"properties":{"c":{}}},"$A":{"default":1.0}}}`
	if got := string(wire.RenameProperties(schema, upper)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := wire.Properties(schema); !slices.Equal(got, []string{"b", "$a"}) {
		t.Errorf("properties %q", got)
	}
	for in, want := range map[string]string{
		`{"a":{"b":1.10},"c":"<é>"}`: `{"A":{"b":1.10},"C":"<é>"}`,
		`{"a":`:                      `{"a":`,
		`[1]`:                        `[1]`,
		`{"a":1} x`:                  `{"a":1} x`,
	} {
		if got := string(wire.RenameKeys(json.RawMessage(in), upper)); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
