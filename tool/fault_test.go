// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/tool"
)

type address struct {
	Zip  string `json:"zip"`
	City string `json:"city,omitempty"`
}

type parcel struct {
	To    address            `json:"to"`
	Via   []address          `json:"via,omitempty"`
	Tags  []string           `json:"tags,omitempty"`
	Note  string             `json:"note,omitempty"`
	Gift  *bool              `json:"gift,omitempty"`
	Codes *[]int             `json:"codes,omitempty"`
	Count uint8              `json:"count,omitempty"`
	Size  int                `json:"size,omitempty"`
	Rates map[string]float64 `json:"rates,omitempty"`
	Speed speed              `json:"speed,omitempty"`
	Rows  [][]string         `json:"rows,omitempty"`
}

type speed string

// E-95: a refusal tells all that is wrong, each at its place and in plain words.
func TestE95_FaultsAreTold(t *testing.T) {
	entered := false
	s := server(t, tool.Must(tool.New("send", "", func(context.Context, parcel) (string, error) { entered = true; return "sent", nil },
		tool.WithTypeSchema[speed](&jsonschema.Schema{Type: "string", Enum: []any{"fast", "slow"}}))))
	const ok = `"to":{"zip":"3000"}`
	for _, c := range []struct{ input, want string }{
		{`{` + ok + `}`, ""},
		{`{` + ok + `,"gift":null,"codes":null,"tags":[],"rates":{"a":1.5},"speed":"slow","rows":[["x"]]}`, ""},
		{`{"to":{"zip":3000}}`, `"to.zip" is the number 3000 and must be a string`},
		{`{"to":{"city":"Bern"}}`, `"to.zip" is missing`},
		{`{"to":{"zip":"1","Zip":"2"}}`, `"to.Zip" is not known`},
		{`{"to":null}`, `"to" is null and must be an object`},
		{`{` + ok + `,"note":null}`, `"note" is null and must be a string (leave it out when there is none)`},
		{`{` + ok + `,"tags":null}`, `"tags" is null and must be an array (leave it out when there is none)`},
		{`{` + ok + `,"rows":[null]}`, `"rows[0]" is null and must be an array`},
		{`{` + ok + `,"tags":["a",null,7]}`, `"tags[1]" is null and must be a string, "tags[2]" is the number 7 and must be a string`},
		{`{` + ok + `,"via":[{"zip":"1"},{"zip":true,"more":1}]}`, `"via[1].more" is not known, "via[1].zip" is the boolean true and must be a string`},
		{`{` + ok + `,"count":300}`, `"count" is the number 300 and must be at most 255`},
		{`{` + ok + `,"size":1.5}`, `"size" is the number 1.5 and must be an integer`},
		{`{` + ok + `,"size":99999999999999999999}`, `"size" is the number 99999999999999999999 and does not fit in int`},
		{`{` + ok + `,"size":1e999}`, `the number 1e999 does not fit in float64`},
		{`{` + ok + `,"rates":{"a b":"x"}}`, `"rates["a b"]" is the string "x" and must be a number`},
		{`{` + ok + `,"speed":"warp"}`, `"speed" is the string "warp" and must be one of "fast" | "slow"`},
		{`{` + ok + `,"gift":"yes"}`, `"gift" is the string "yes" and must be null or a boolean`},
		{`{"to":{"zip":"1","zip":"2"}}`, `"to.zip" is given more than once`},
		{`{` + ok + `,"via":[{"zip":"1","city":"a","city":"a","city":"b"}]}`, `"via[0].city" is given more than once`},
		{`{"note":3,"to":{},"x":1}`, `"x" is not known, "note" is the number 3 and must be a string, "to.zip" is missing`},
		{`{` + ok + `,"a1":1,"a2":1,"a3":1,"a4":1,"a5":1,"a6":1,"a7":1,"a8":1,"a9":1,"b1":1}`, `"a8" is not known, and 2 more`},
	} {
		entered = false
		r := s.Execute(t.Context(), call("send", c.input))
		if c.want == "" {
			if r.IsError() || !entered {
				t.Errorf("%s: %s", c.input, r.Summary)
			}
			continue
		}
		if r.Status != llm.StatusError || entered || !strings.HasPrefix(r.Summary, "invalid arguments for send: ") ||
			!strings.Contains(r.Summary, c.want+". The tool was not run. Expected: {") {
			t.Errorf("%s:\n got %s\nwant %s", c.input, r.Summary, c.want)
		}
	}
	long := strings.Repeat("é", 50_000)
	if r := s.Execute(t.Context(), call("send", `{"to":{"zip":"1"},"`+long+`":1,"gift":"`+long+`"}`)); len(r.Summary) > 2000 || !r.IsError() {
		t.Errorf("%d bytes: what a model wrote is repeated whole", len(r.Summary))
	}
}

// The schema of a field tells whether null fits: for pointers alone, as in
// generated tools; a schema of one's own stands as it is.
func TestNullFitsPointersOnly(t *testing.T) {
	type own []string
	type args struct {
		A []string            `json:"a"`
		B *[]string           `json:"b"`
		C map[string][]string `json:"c"`
		D [][2][]int          `json:"d"`
		E own                 `json:"e"`
		F []byte              `json:"f"`
		G any                 `json:"g"`
		H *struct{ A []int }  `json:"h"`
	}
	x := tool.Must(tool.New("x", "", func(context.Context, args) (string, error) { return "", nil },
		tool.WithTypeSchema[own](&jsonschema.Schema{Types: []string{"null", "array"}, Items: &jsonschema.Schema{Type: "string"}})))
	const want = `{"a":{"type":"array","items":{"type":"string"}},` +
		`"b":{"type":["null","array"],"items":{"type":"string"}},` +
		`"c":{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}},` +
		`"d":{"type":"array","items":{"type":"array","items":{"type":"array","items":{"type":"integer"}},"minItems":2,"maxItems":2}},` +
		`"e":{"type":["null","array"],"items":{"type":"string"}},` +
		`"f":{"type":"string","contentEncoding":"base64"},` +
		`"g":true,` +
		`"h":{"type":["null","object"],"properties":{"A":{"type":"array","items":{"type":"integer"}}},"required":["A"],"additionalProperties":false}}`
	var got struct {
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(x.Spec().Schema, &got); err != nil {
		t.Fatal(err)
	}
	if string(got.Properties) != want {
		t.Errorf("\n got %s\nwant %s", got.Properties, want)
	}
}

// What a schema says beyond types is told, too; where only the validator knows the
// fault, its place is told without the names of schemas.
func TestFaultsOfOnesOwnSchema(t *testing.T) {
	one, two := 1, 2
	low := 0.5
	str := func() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }
	s := server(t, tool.Must(tool.New("x", "", func(context.Context, map[string]any) (string, error) { return "", nil },
		tool.WithSchema(&jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{
			"name":  {Type: "string", MinLength: &two, Pattern: "^[a-z]+$"},
			"list":  {Type: "array", MinItems: &one, MaxItems: &two, Items: str()},
			"share": {Type: "number", ExclusiveMinimum: &low},
			"level": {Enum: []any{1, 2, nil}},
			"map":   {Type: "object", PropertyNames: &jsonschema.Schema{Enum: []any{"a"}}, AdditionalProperties: str()},
			"deep":  {Type: "object", Properties: map[string]*jsonschema.Schema{"odd/one": {Not: str()}}},
			"either": {
				Type: "object", Properties: map[string]*jsonschema.Schema{"a": str(), "b": str()},
				OneOf: []*jsonschema.Schema{{Required: []string{"a"}}, {Required: []string{"b"}}},
			},
		}}))))
	for input, want := range map[string]string{
		`{"name":"ab","list":["x"],"share":0.6,"level":2,"map":{"a":"x"},"deep":{"odd/one":1},"either":{"a":"x"},"free":[1]}`: "",
		`{"level":null}`:            "",
		`{"name":"A"}`:              `"name" has 1 characters and must have at least 2, "name" is the string "A" and must match ^[a-z]+$`,
		`{"list":[]}`:               `"list" has 0 items and must have at least 1`,
		`{"list":["a","b",3]}`:      `"list" has 3 items and must have at most 2, "list[2]" is the number 3 and must be a string`,
		`{"share":0.5}`:             `"share" is the number 0.5 and must be more than 0.5`,
		`{"level":3}`:               `"level" is the number 3 and must be one of 1 | 2 | null`,
		`{"map":{"a":1}}`:           `"map.a" is the number 1 and must be a string`,
		`{"map":{"b":"x"}}`:         `"map.b" is not known`,
		`{"deep":{"odd/one":"x"}}`:  `"deep["odd/one"]" is not right: not: `,
		`{"either":{}}`:             `"either" is not right: oneOf: `,
		`{"free":{"a":1,"a":1}}`:    `"free.a" is given more than once`,
		`{"free":[0,{"a":1,"a":2}]`: "unexpected end",
	} {
		r := s.Execute(t.Context(), call("x", input))
		if want == "" && r.IsError() || want != "" && (!r.IsError() || !strings.Contains(r.Summary, want)) || strings.Contains(r.Summary, "validating") {
			t.Errorf("%s:\n got %s\nwant %s", input, r.Summary, want)
		}
	}
}
