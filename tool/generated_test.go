// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/tool"
)

type cutArgs struct {
	Text string `json:"text"`
	At   *int   `json:"at,omitempty"`
}

const cutSchema = `{
	"type": "object",
	"properties": {"text": {"type": "string"}, "at": {"type": ["null", "integer"]}},
	"required": ["text"],
	"additionalProperties": false
}`

const cutCompact = `{"type":"object","properties":{"text":{"type":"string"},"at":{"type":["null","integer"]}},"required":["text"],"additionalProperties":false}`

func cutTool(t *testing.T) (tool.Tool, *int) {
	t.Helper()
	ran := 0
	return tool.Generated(
		tool.Spec{Name: "cut", Description: "Cut cuts.", Schema: json.RawMessage(cutSchema)},
		tool.Traits{ReadOnly: true},
		func(ctx context.Context, call tool.Call, in cutArgs) (string, error) {
			ran++
			if c, ok := tool.FromContext(ctx); !ok || c.ID != call.ID {
				t.Errorf("FromContext gave %+v, %v; the call is %+v", c, ok, call)
			}
			at := 1
			if in.At != nil {
				at = *in.At
			}
			return in.Text[:at], nil
		},
	), &ran
}

// TestGeneratedSpec: the definition is the given one, twice the same (E-98).
func TestGeneratedSpec(t *testing.T) {
	cut, _ := cutTool(t)
	again, _ := cutTool(t)
	want := tool.Spec{Name: "cut", Description: "Cut cuts.", Schema: json.RawMessage(cutCompact)}
	if diff := cmp.Diff(want, cut.Spec()); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(cut.Spec(), again.Spec()); diff != "" {
		t.Errorf("spec made again (-first +second):\n%s", diff)
	}
	if !cut.Traits().ReadOnly {
		t.Error("the traits are lost")
	}
}

func TestGeneratedRun(t *testing.T) {
	for _, tt := range []struct{ input, want string }{
		{`{"text":"abc"}`, "a"},
		{`{"text":"abc","at":2}`, "ab"},
		{`{"at":null,"text":"abc"}`, "a"},
	} {
		cut, _ := cutTool(t)
		out, err := cut.Run(t.Context(), tool.Call{ID: "1", Input: json.RawMessage(tt.input)})
		if err != nil || out.Summary != tt.want {
			t.Errorf("%s: got %q, %v; want %q", tt.input, out.Summary, err, tt.want)
		}
	}
}

// TestGeneratedRefuses: what does not fit is answered with what is expected, and
// the method is not entered (E-95).
func TestGeneratedRefuses(t *testing.T) {
	for _, input := range []string{`{}`, `{"text":1}`, `{"text":null}`, `{"text":"abc","at":"2"}`, `{"text":"abc","more":1}`, `[]`} {
		cut, ran := cutTool(t)
		_, err := cut.Run(t.Context(), tool.Call{Input: json.RawMessage(input)})
		e, ok := errors.AsType[*tool.Error](err)
		if !ok || e.Kind != tool.InvalidArgument || !strings.HasSuffix(e.Message, "Expected: "+cutCompact) {
			t.Errorf("%s: got %v, want an invalid argument that ends with the schema", input, err)
		}
		if *ran > 0 {
			t.Errorf("%s: the function ran", input)
		}
	}
}

// TestGeneratedNoArguments: any input counts as empty (E-94).
func TestGeneratedNoArguments(t *testing.T) {
	now := tool.Generated(
		tool.Spec{Name: "now", Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)},
		tool.Traits{},
		func(context.Context, tool.Call, struct{}) (int, error) { return 7, nil },
	)
	for _, input := range []string{``, `{}`, `{"x":1}`, `not JSON`} {
		out, err := now.Run(t.Context(), tool.Call{Input: json.RawMessage(input)})
		if err != nil || out.Summary != "7" {
			t.Errorf("%q: got %q, %v; want 7", input, out.Summary, err)
		}
	}
}

func TestGeneratedBadSchema(t *testing.T) {
	for _, schema := range []string{``, `{`, `{"type":"string"}`, `{"type":"object","required":3}`} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("schema %q was taken", schema)
				}
			}()
			tool.Generated(tool.Spec{Name: "bad", Schema: json.RawMessage(schema)}, tool.Traits{},
				func(context.Context, tool.Call, struct{}) (int, error) { return 0, nil })
		}()
	}
}
