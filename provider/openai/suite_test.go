package openai_test

import (
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
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
