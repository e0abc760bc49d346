// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

// parameters is a schema as it is sent, "" when none is.
func parameters(t *testing.T, schema string) string {
	t.Helper()
	e := replytest.Serve(t, 400, "application/json", `{}`)
	req := replytest.Ask("go")
	req.Tools = []llm.Tool{{Name: "t", Schema: json.RawMessage(schema)}}
	_, _ = collect.Stream(t.Context(), client(t, "gemini-2.5-pro", e.URL), req)
	var body struct {
		Tools []struct {
			Functions []struct{ Parameters json.RawMessage } `json:"functionDeclarations"`
		}
	}
	if err := json.Unmarshal(e.Body, &body); err != nil {
		t.Fatalf("%s: %v", e.Body, err)
	}
	return string(body.Tools[0].Functions[0].Parameters)
}

// TestSchemas: what the subset lacks is put in other words or left out; names,
// order and digits stay.
func TestSchemas(t *testing.T) {
	for name, tt := range map[string]struct{ p, want string }{
		"plain": {
			`{"type":"string","description":"a < b"}`, `{"type":"string","description":"a < b"}`,
		},
		"escapes":        {`{"type":"string","description":"a \u003c b","pattern":"^\u003c$"}`, `{"type":"string","pattern":"^<$","description":"a < b"}`},
		"null in a list": {`{"type":["null","string"]}`, `{"type":"string","nullable":true}`},
		"two types":      {`{"type":["string","integer"],"description":"d"}`, `{"anyOf":[{"type":"string","description":"d"},{"type":"integer","description":"d"}]}`},
		"anyOf null":     {`{"anyOf":[{"type":"integer","format":"int64"},{"type":"null"}],"description":"d"}`, `{"type":"integer","nullable":true,"format":"int64","description":"d"}`},
		"oneOf":          {`{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"number"}}]}`, `{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"number"}}]}`},
		"allOf": {
			`{"allOf":[{"$ref":"#/$defs/A"},{"properties":{"y":{"type":"string"}},"required":["y"]}]}`,
			`{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"string"}},"required":["x","y"]}`,
		},
		"a reference with words": {`{"$ref":"#/$defs/A","description":"mine"}`, `{"type":"object","properties":{"x":{"type":"string"}},"required":["x"],"description":"mine"}`},
		"a reference to nothing": {`{"$ref":"#/$defs/None"}`, `{"type":"string"}`},
		"const":                  {`{"const":"fast"}`, `{"type":"string","enum":["fast"]}`},
		"a number's enum":        {`{"type":"integer","enum":[1,2.50],"description":"n"}`, `{"type":"integer","description":"n One of 1, 2.50."}`},
		"const without a type":   {`{"const":3}`, `{"type":"number","description":"One of 3."}`},
		"an empty word":          {`{"type":"string","enum":["","a"]}`, `{"type":"string","enum":["a"]}`},
		"formats":                {`{"type":"string","format":"uri"}`, `{"type":"string"}`},
		"known formats":          {`{"type":"string","format":"date-time"}`, `{"type":"string","format":"date-time"}`},
		"bounds":                 {`{"type":"integer","exclusiveMinimum":0,"maximum":9}`, `{"type":"integer","minimum":1,"maximum":9}`},
		"bounds of numbers":      {`{"type":"number","exclusiveMaximum":1.50}`, `{"type":"number","maximum":1.50,"description":"Less than 1.50."}`},
		"a map":                  {`{"type":"object","additionalProperties":{"type":"string"},"propertyNames":{"pattern":"x"}}`, `{"type":"object"}`},
		"a tuple":                {`{"type":"array","prefixItems":[{"type":"string"}],"minItems":2}`, `{"type":"array","items":{"type":"string"},"minItems":2}`},
		"required of nothing":    {`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"boolean"}},"required":["gone","a"]}`, `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"boolean"}},"required":["a"]}`},
		"true":                   {`true`, `{"type":"string"}`},
	} {
		t.Run(name, func(t *testing.T) {
			schema := `{"type":"object","properties":{"p":` + tt.p + `},"$defs":{"A":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}}`
			want := `{"type":"object","properties":{"p":` + tt.want + `}}`
			if got := parameters(t, schema); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
	for _, none := range []string{``, `{}`, `{"type":"object"}`, `{"type":"object","properties":{}}`} {
		if got := parameters(t, none); got != "" {
			t.Errorf("%q: got %s, want none", none, got)
		}
	}
}

// TestEndlessSchema: a schema that holds itself ends, and so does one that doubles
// at every step.
func TestEndlessSchema(t *testing.T) {
	got := parameters(t, `{"type":"object","properties":{"next":{"$ref":"#"}}}`)
	if n := strings.Count(got, `"next"`); n < 2 || n > 20 {
		t.Errorf("the schema is put in itself %d times: %s", n, got)
	}
	if got = parameters(t, `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"p":{"$ref":"#/$defs/B"}}},"B":{"$ref":"#/$defs/B"}}}`); got == "" {
		t.Error("a schema is lost")
	}
	wide := `{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#"},"c":{"$ref":"#"},"d":{"$ref":"#"}}}`
	if got = parameters(t, wide); len(got) > 1<<20 {
		t.Errorf("the schema has %d bytes", len(got))
	}
}
