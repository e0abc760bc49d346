// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	oai "github.com/openai/openai-go/v3"
	oairesponses "github.com/openai/openai-go/v3/responses"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

// TestSDKTypes: what is sent is what the SDK's own request types hold: read into
// them and written again, nothing is lost.
func TestSDKTypes(t *testing.T) {
	half := 0.5
	req := replytest.Ask("go")
	req.System, req.CacheKey = "Be brief.", "k"
	req.Settings = llm.Settings{MaxTokens: 5, Temperature: &half, Effort: "low", Sequential: true}
	req.Tools = []llm.Tool{{Name: "read", Description: "d", Schema: json.RawMessage(
		`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`)}}
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{
			llm.Thinking{Text: "t", Opaque: llm.Opaque{Vendor: "openai", Data: json.RawMessage(`{"type":"reasoning","summary":[{"type":"summary_text","text":"t"}],"encrypted_content":"e"}`)}},
			llm.Text{Text: "Looking."},
			llm.Call{ID: "c", Name: "read", Args: `{"path":"a"}`},
		}},
		llm.ToolResults(llm.Result{CallID: "c", Name: "read", Status: llm.StatusSuccess, Summary: "A", Images: []llm.Image{pixel}}),
		llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "and?"}, pixel}})
	for name, tt := range map[string]struct {
		newClient func(string) (llm.Client, error)
		into      interface {
			json.Marshaler
			json.Unmarshaler
		}
	}{
		"chat":      {chat(openai.OpenAI), &oai.ChatCompletionNewParams{}},
		"responses": {responses("gpt-5"), &oairesponses.ResponseNewParams{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := replytest.Serve(t, 400, "application/json", `{}`)
			c, err := tt.newClient(e.URL)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = collect.Stream(t.Context(), c, req)
			if err := json.Unmarshal(e.Body, tt.into); err != nil {
				t.Fatal(err)
			}
			again, err := json.Marshal(tt.into)
			if err != nil {
				t.Fatal(err)
			}
			var want, got map[string]any
			if err := json.Unmarshal(e.Body, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(again, &got); err != nil {
				t.Fatal(err)
			}
			delete(want, "stream") // the SDK's methods add it
			// The SDK always writes the id of a reasoning item; the server, which stored
			// none, knows none.
			noID := cmpopts.IgnoreMapEntries(func(k string, v any) bool { return k == "id" && v == "" })
			if diff := cmp.Diff(want, got, noID); diff != "" {
				t.Errorf("sent (-), read by the SDK (+):\n%s", diff)
			}
		})
	}
}
