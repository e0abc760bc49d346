// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"net/http"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

// FuzzChat feeds streams to the decoder: it never breaks the rules of its events,
// and the borders between reads do not matter (E-217).
func FuzzChat(f *testing.F) {
	for _, s := range []string{
		replytest.Stream(delta(`{"content":"hi"}`), ends("stop"), "[DONE]"),
		replytest.Stream(delta(`{"reasoning_content":"h","tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":"{\"a\""}},{"index":0,"id":"b","function":{"name":"g"}}]}`), ends("tool_calls")),
		replytest.Stream(`{"error":{"message":"x","code":502}}`),
		replytest.Stream(delta(`{"content":[{"type":"thinking","thinking":[{"text":"t"}]}],"reasoning_details":[{"type":"a","index":0,"text":"x"}]}`), ends("length")),
		replytest.Stream(delta(`{"tool_calls":[{"function":{"name":"f","arguments":{}}},{}]}`), `{"choices":[],"usage":{"prompt_tokens":1}}`),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) { replytest.CheckStream(t, body, newFuzzChat) })
}

// FuzzResponses does the same for the other format.
func FuzzResponses(f *testing.F) {
	for _, s := range []string{
		replytest.Stream(created, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"hi"}`, completed),
		replytest.Stream(item("added", "0", `{"type":"function_call","call_id":"c","name":"f","arguments":""}`),
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{"}`,
			`{"type":"response.incomplete","response":{"output":[{"type":"function_call","arguments":"{"}]}}`),
		replytest.Stream(item("done", "1", `{"type":"reasoning","summary":[{"text":"x"}],"encrypted_content":"e"}`), completed),
		replytest.Stream(`{"type":"error","message":"x"}`),
		replytest.Stream(`{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}}`),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) { replytest.CheckStream(t, body, newFuzzResponses) })
}

func newFuzzChat(h *http.Client) (llm.Client, error) {
	return openai.NewChat("m", openai.WithBaseURL("http://localhost"), openai.WithHTTPClient(h))
}

func newFuzzResponses(h *http.Client) (llm.Client, error) {
	return openai.NewResponses("m", openai.WithBaseURL("http://localhost"), openai.WithHTTPClient(h))
}
