// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

// TestPropertyNames: names of properties that the API refuses go out as others; the
// tool gets its own, and the model reads what it wrote.
func TestPropertyNames(t *testing.T) {
	long := strings.Repeat("n", 65)
	schema := fmt.Sprintf(`{"type":"object","properties":{"$top":{"type":"integer"},"fit.name":{"type":"string"},%q:{}},"required":["$top","fit.name"]}`, long)
	req := ask()
	req.Tools = []llm.Tool{{Name: "list", Schema: json.RawMessage(schema)}, {Name: "other", Schema: json.RawMessage(`{"type":"object","properties":{"a":{}}}`)}}

	e := replytest.Serve(t, 200, stream, whole)
	if _, err := collect.Stream(t.Context(), newClient(t, e.URL), req); err != nil {
		t.Fatal(err)
	}
	var sent struct {
		Tools []struct {
			InputSchema struct {
				Properties map[string]json.RawMessage
				Required   []string
			} `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(e.Body, &sent); err != nil {
		t.Fatal(err)
	}
	got := sent.Tools[0].InputSchema
	fit := regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	for name := range got.Properties {
		if !fit.MatchString(name) {
			t.Errorf("the name %q is not fit", name)
		}
	}
	top := got.Required[0]
	if len(got.Properties) != 3 || got.Properties[top] == nil || got.Required[1] != "fit.name" {
		t.Fatalf("schema %+v", got)
	}

	// The model answers in the names that it was given, in pieces.
	reply := replytest.Stream(
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"list","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"fit.name\":\"x\",\"`+top[:3]+`"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"`+top[3:]+`\":1.0}"}}`,
		stop0, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, theEnd)
	e = replytest.Serve(t, 200, stream, reply)
	c := newClient(t, e.URL)
	r, err := collect.Stream(t.Context(), c, req)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range r.Message.Calls() {
		if want := `{"fit.name":"x","$top":1.0}`; call.Args != want {
			t.Errorf("args %s, want %s", call.Args, want)
		}
	}
	req.Messages = append(req.Messages, r.Message, llm.ToolResults(llm.Result{CallID: "a", Name: "list", Status: llm.StatusSuccess, Summary: "ok"}))
	if _, err := collect.Stream(t.Context(), c, req); err != nil {
		t.Fatal(err)
	}
	if want := `"input":{"fit.name":"x","` + top + `":1.0}`; !strings.Contains(string(e.Body), want) {
		t.Errorf("%s is not in %s", want, e.Body)
	}
}
