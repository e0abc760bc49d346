// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
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
		t.Run(name, func(t *testing.T) { replytest.CheckPrefix(t, newClient) })
	}
}
