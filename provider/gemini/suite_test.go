// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/provider/gemini"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

func TestClient(t *testing.T) {
	for _, model := range []string{"gemini-2.5-pro", "gemini-3-pro-preview"} {
		t.Run(model, func(t *testing.T) {
			llmtest.TestClient(t, func(base string) llm.Client {
				c, err := gemini.New(model, gemini.WithBaseURL(base), gemini.WithAPIKey(llmtest.SuiteKey))
				if err != nil {
					t.Fatal(err)
				}
				return c
			}, llmtest.WireGemini)
		})
	}
}

// TestE186_BytePrefix: all of a request but the brackets at its end is the start of
// the next one.
func TestE186_BytePrefix(t *testing.T) {
	for _, model := range []string{"gemini-2.5-pro", "gemini-3-pro"} {
		t.Run(model, func(t *testing.T) {
			replytest.CheckPrefix(t, func(base string) (llm.Client, error) {
				return gemini.New(model, gemini.WithBaseURL(base))
			})
		})
	}
}
