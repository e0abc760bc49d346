// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/tool"
)

type numbers struct {
	N      json.Number            `json:"n"`
	Maybe  *json.Number           `json:"maybe"`
	List   []json.Number          `json:"list,omitempty"`
	ByName map[string]json.Number `json:"byName,omitempty"`
	In     *struct {
		N json.Number `json:"n"`
	} `json:"in"`
}

// TestNumber: a json.Number is a number for the model, wherever it stands, and the text
// of one, which encoding/json would read, is refused (E-95).
func TestNumber(t *testing.T) {
	t.Parallel()
	made := tool.Must(tool.New("x", "", func(_ context.Context, v numbers) (numbers, error) { return v, nil }))
	simple := tool.Must(tool.New("y", "", func(_ context.Context, v struct {
		N     json.Number  `json:"n"`
		Maybe *json.Number `json:"maybe"`
	},
	) (string, error) {
		return v.N.String(), nil
	}))
	generated := tool.Generated(tool.Spec{Name: "z", Schema: simple.Spec().Schema}, tool.Traits{},
		func(_ context.Context, _ tool.Call, v struct {
			N     json.Number  `json:"n"`
			Maybe *json.Number `json:"maybe"`
		},
		) (string, error) {
			return v.N.String(), nil
		})
	if got, want := string(simple.Spec().Schema), `{"type":"object","properties":{"n":{"type":"number"},"maybe":{"type":["null","number"]}},"required":["n"],"additionalProperties":false}`; got != want {
		t.Errorf("schema %s, want %s", got, want)
	}
	s := server(t, made, simple, generated)
	for _, c := range []struct{ name, input, fault string }{
		{"x", `{"n":12345678901234567890.50,"maybe":1e3,"list":[1,2.5],"byName":{"a":-0.1},"in":{"n":7}}`, ""},
		{"x", `{"n":1,"maybe":null,"in":null}`, ""},
		{"x", `{"n":"12"}`, `"n" is the string "12" and must be a number`},
		{"x", `{"n":1,"maybe":"12"}`, `"maybe" is the string "12" and must be null or a number`},
		{"x", `{"n":1,"list":[1,"2"]}`, `"list[1]" is the string "2"`},
		{"x", `{"n":1,"byName":{"a":"2"}}`, `"byName.a" is the string "2"`},
		{"x", `{"n":1,"in":{"n":"2"}}`, `"in.n" is the string "2"`},
		{"y", `{"n":12.50}`, ""},
		{"y", `{"n":"12.50"}`, `"n" is the string "12.50" and must be a number`},
		{"y", `{"n":1,"maybe":"2"}`, `"maybe" is the string "2"`},
		{"y", `{"n":null}`, `"n" is null`},
		{"z", `{"n":12.50}`, ""},
		{"z", `{"n":"12.50"}`, `"n" is the string "12.50" and must be a number`},
	} {
		r := s.Execute(t.Context(), call(c.name, c.input))
		if (c.fault == "") != (r.Status == llm.StatusSuccess) || !strings.Contains(r.Summary, c.fault) {
			t.Errorf("%s %s: %s %q, want %q", c.name, c.input, r.Status, r.Summary, c.fault)
		}
	}
	if r := s.Execute(t.Context(), call("y", `{"n":12345678901234567890.50}`)); r.Summary != "12345678901234567890.50" {
		t.Errorf("digits are lost: %s", r.Summary)
	}
}

// TestBytesAlone: a list of numbers is no base64, also where nothing else asks for a
// second look.
func TestBytesAlone(t *testing.T) {
	t.Parallel()
	type hash []byte
	s := server(t, tool.Must(tool.New("x", "", func(_ context.Context, v struct {
		Data []byte `json:"data"`
		Hash hash   `json:"hash,omitempty"`
	},
	) (string, error) {
		return string(v.Data) + string(v.Hash), nil
	})))
	for input, ok := range map[string]bool{`{"data":"aGk=","hash":"aGk="}`: true, `{"data":[104,105]}`: false, `{"data":"aGk=","hash":[104]}`: false, `{"data":"?"}`: false} {
		if r := s.Execute(t.Context(), call("x", input)); (r.Status == llm.StatusSuccess) != ok {
			t.Errorf("%s: %s", input, r.Summary)
		}
	}
}

type (
	node  struct{ Next *node }
	nodes struct{ List []nodes }
	ever  struct {
		*ever //nolint:unused // its type is what counts
		N     int
	}
	four[T any] struct{ V [][][][]T }
	pointer     *int
	writer      interface{ Write() }
	inner       struct{ A int }
	outer       struct {
		inner `json:"in"`
		B     int
	}
	left  struct{ Name string }
	right struct{ Name string }
)

// TestNewRefusesTypes: what encoding/json could not read from what a model writes, or
// would read otherwise than the schema says, is refused with what to write instead.
func TestNewRefusesTypes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err        error
		field, why string
	}{
		"pointer to pointer": {refused[struct{ N **int }](), "N", "**int is a pointer to a pointer, and JSON has one null: take *int"},
		"three of them":      {refused[struct{ N []***int }](), "N", "***int is a pointer to a pointer, and JSON has one null: take **int"},
		"a named pointer":    {refused[struct{ N pointer }](), "N", "JSON has no form for type tool_test.pointer"},
		"a channel":          {refused[struct{ C chan int }](), "C", "JSON has no form for type chan int"},
		"a function":         {refused[struct{ F func() }](), "F", "JSON has no form for type func()"},
		"a complex number":   {refused[struct{ C complex64 }](), "C", "JSON has no form for type complex64"},
		"an address":         {refused[struct{ P uintptr }](), "P", "JSON has no form for type uintptr"},
		"an interface":       {refused[struct{ W writer }](), "W", "tool_test.writer is an interface, and JSON does not say which type to make"},
		"keys":               {refused[struct{ M map[int]string }](), "M", "map[int]string has keys that are no strings: take map[string]string"},
		"a cycle":            {refused[struct{ N node }](), "N.Next", "type tool_test.node contains itself"},
		"a cycle of lists":   {refused[nodes](), "List", "type tool_test.nodes contains itself"},
		"a deep type": {refused[struct {
			D four[four[four[four[four[four[four[int]]]]]]]
		}](), "", "the type is too big for a schema"},
		"an embedded cycle": {refused[struct{ E ever }](), "E.ever", "encoding/json cannot set the embedded *tool_test.ever, which is not exported"},
		"an own reader":     {refused[struct{ N *big.Int }](), "N", "big.Int reads JSON in its own way, so its schema is unknown; take a json.RawMessage, or give the schema by WithTypeSchema"},
		"a lent reader":     {refused[struct{ time.Time }](), "", "struct { time.Time } reads JSON in its own way, so its schema is unknown; take a json.RawMessage, or give the schema by WithTypeSchema"},
		"one name, lent": {refused[struct {
			left
			right
		}](), "Name", `several fields are called "Name"`},
		"a bad name": {refused[struct {
			A int `json:"größe"`
		}](), "A", `bad name "größe": models take names of 1 to 64 ASCII letters, digits, _, . and -`},
		"rules in a tag": {refused[struct {
			A int `json:"a" jsonschema:"minimum=3,required"`
		}](), "A", `the jsonschema tag "minimum=3,required" is no description: write in words what the field is`},
		"an empty tag": {refused[struct {
			A int `jsonschema:""`
		}](), "A", `the jsonschema tag "" is no description: write in words what the field is`},
		"no object": {refused[[]int](), "", "its input must be an object: take a struct or a map with string keys in the place of []int"},
		"a pointer": {refused[*inner](), "", "its input must be an object: take a struct or a map with string keys in the place of *tool_test.inner"},
	} {
		e, ok := errors.AsType[*tool.SpecError](c.err)
		if !ok || e.Tool != "x" || c.field != "" && e.Field != c.field || e.Err.Error() != c.why {
			t.Errorf("%s: got %v, want %q at %q", name, c.err, c.why, c.field)
		}
	}
}

type everything struct {
	A     int               `json:"a"`
	Upper int               `json:"A"`
	Any   any               `json:"any"`
	Raw   *json.RawMessage  `json:"raw"`
	At    time.Time         `json:"at"`
	Addr  netip.Addr        `json:"addr"`
	ByIP  map[netip.Addr]u8 `json:"byIP"`
	Pair  [2]u8             `json:"pair"`
	Deep  outer             `json:"deep"`
	Maybe *[]int            `json:"maybe"`
	pair[int]
	hidden int
}

type u8 uint8

type pair[T any] struct{ Left, Right T }

// TestNewTakesTypes: the schema says what encoding/json reads, so that a call which fits
// it runs.
func TestNewTakesTypes(t *testing.T) {
	t.Parallel()
	x := tool.Must(tool.New("x", "", func(_ context.Context, v everything) (string, error) {
		return fmt.Sprint(v.A, v.Upper, v.Any, v.At.Year(), v.Addr, v.ByIP, v.Pair, v.Deep.A, v.Deep.B, v.Maybe == nil, v.Left, v.Right, v.hidden), nil
	}))
	const want = `{"type":"object","properties":{"a":{"type":"integer"},"A":{"type":"integer"},"any":true,"raw":true,` +
		`"at":{"type":"string","format":"date-time"},"addr":{"type":"string"},` +
		`"byIP":{"type":"object","additionalProperties":{"type":"integer","minimum":0,"maximum":255}},` +
		`"pair":{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":2,"maxItems":2},` +
		`"deep":{"type":"object","properties":{"in":{"type":"object","properties":{"A":{"type":"integer"}},"required":["A"],"additionalProperties":false},` +
		`"B":{"type":"integer"}},"required":["in","B"],"additionalProperties":false},` +
		`"maybe":{"type":["null","array"],"items":{"type":"integer"}},"Left":{"type":"integer"},"Right":{"type":"integer"}},` +
		`"required":["a","A","any","at","addr","byIP","pair","deep","Left","Right"],"additionalProperties":false}`
	if got := string(x.Spec().Schema); got != want {
		t.Errorf("schema\n got %s\nwant %s", got, want)
	}
	r := server(t, x).Execute(t.Context(), call("x", `{"a":1,"A":2,"any":[3],"raw":{},"at":"2026-11-30T00:00:00Z","addr":"::1",`+
		`"byIP":{"::1":4},"pair":[5,6],"deep":{"in":{"A":7},"B":8},"Left":9,"Right":10}`))
	if want := "1 2 [3] 2026 ::1 map[::1:4] [5 6] 7 8 true 9 10 0"; r.Summary != want {
		t.Errorf("got %s %q, want %q", r.Status, r.Summary, want)
	}
}

// TestOwnSchemasWithin: a schema of one's own holds behind a pointer and in an embedded
// struct, and opens what would be refused.
func TestOwnSchemasWithin(t *testing.T) {
	t.Parallel()
	type mode string
	x := tool.Must(tool.New("x", "", func(context.Context, struct {
		Mode *mode    `json:"mode" jsonschema:"how"`
		N    **int    `json:"n"`
		Big  *big.Int `json:"big"`
		inner
	},
	) (string, error) {
		return "", nil
	},
		tool.WithTypeSchema[mode](&jsonschema.Schema{Type: "string", Enum: []any{"fast"}}),
		tool.WithTypeSchema[*int](&jsonschema.Schema{Type: "integer"}),
		tool.WithTypeSchema[big.Int](&jsonschema.Schema{Type: "integer"}),
		tool.WithTypeSchema[inner](&jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"A": {Type: "integer", Description: "lent"}}}),
	))
	const want = `{"type":"object","properties":{"mode":{"type":["null","string"],"description":"how","enum":["fast",null]},"n":{"type":["null","integer"]},` +
		`"big":{"type":["null","integer"]},"A":{"type":"integer","description":"lent"}},"additionalProperties":false}`
	if got := string(x.Spec().Schema); got != want {
		t.Errorf("schema\n got %s\nwant %s", got, want)
	}
	e, ok := errors.AsType[*tool.SpecError](refused[struct{ inner }](tool.WithTypeSchema[inner](&jsonschema.Schema{Type: "string"})))
	if !ok || !strings.Contains(e.Error(), "must be that of an object") {
		t.Errorf("got %v", e)
	}
}

// TestOptions: each option is a trait, and they add up.
func TestOptions(t *testing.T) {
	t.Parallel()
	x := tool.Must(tool.New("x", "", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Idempotent(), tool.Exclusive()))
	if got, want := x.Traits(), (tool.Traits{Idempotent: true, Exclusive: true}); got != want || !got.Repeatable() {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
