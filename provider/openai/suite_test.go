// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

func TestChatClient(t *testing.T) {
	for _, flavor := range []openai.Flavor{openai.OpenAI, openai.Generic, openai.DeepSeek, openai.OpenRouter, openai.Mistral} {
		t.Run(string(flavor), func(t *testing.T) {
			llmtest.TestClient(t, func(base string) llm.Client {
				c, err := openai.NewChat("test-model",
					openai.WithBaseURL(base), openai.WithFlavor(flavor), openai.WithAPIKey(llmtest.SuiteKey))
				if err != nil {
					t.Fatal(err)
				}
				return c
			}, llmtest.WireOpenAIChat)
		})
	}
}

func TestResponsesClient(t *testing.T) {
	for _, flavor := range []openai.Flavor{openai.OpenAI, openai.Generic} {
		t.Run(string(flavor), func(t *testing.T) {
			llmtest.TestClient(t, func(base string) llm.Client {
				c, err := openai.NewResponses("gpt-5-mini",
					openai.WithBaseURL(base), openai.WithFlavor(flavor), openai.WithAPIKey(llmtest.SuiteKey))
				if err != nil {
					t.Fatal(err)
				}
				return c
			}, llmtest.WireOpenAIResponses)
		})
	}
}

// TestE186_BytePrefix: all of a request but the brackets at its end is the start of
// the next one, in both formats and for every flavor.
func TestE186_BytePrefix(t *testing.T) {
	clients := map[string]func(string) (llm.Client, error){"responses": responses("gpt-5")}
	for _, f := range []openai.Flavor{
		openai.OpenAI, openai.Azure, openai.Generic, openai.Ollama, openai.VLLM, openai.LlamaCPP,
		openai.LMStudio, openai.OpenRouter, openai.Groq, openai.DeepSeek, openai.Mistral, openai.DashScope,
	} {
		clients[string(f)] = chat(f)
	}
	for name, newClient := range clients {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 4))
			srv := llmtest.NewServer(llmtest.NewScript(
				llmtest.Call("read", `{"z":1.0,"a":"<&>"}`, "read", ``), llmtest.Say(llmtest.RandomText(r)),
				llmtest.Call("read.it", `{}`), llmtest.Say("bye")))
			defer srv.Close()
			c, err := newClient(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			req := ask(llmtest.RandomText(r))
			req.System, req.CacheKey = llmtest.RandomText(r), "k"
			req.Tools = []llm.Tool{{Name: "read"}, {Name: "read.it"}}
			for range 4 {
				reply, err := collect.Stream(t.Context(), c, req)
				if err != nil {
					t.Fatal(err)
				}
				req.Messages = append(req.Messages, reply.Message)
				var results []llm.Result
				for _, call := range reply.Message.Calls() {
					results = append(results, llm.Result{CallID: call.ID, Name: call.Name, Summary: llmtest.RandomText(r), Images: []llm.Image{pixel}})
				}
				if len(results) > 0 {
					req.Messages = append(req.Messages, llm.ToolResults(results...))
				}
				req.Messages = append(req.Messages, llm.UserText(llmtest.RandomText(r)))
			}
			all := srv.Exchanges()
			for i := 1; i < len(all); i++ {
				if before := bytes.TrimSuffix(all[i-1].Body, []byte("]}")); !bytes.HasPrefix(all[i].Body, before) {
					t.Errorf("request %d does not go on where this ended:\n%s\n%s", i+1, all[i-1].Body, all[i].Body)
				}
			}
		})
	}
}
