// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/provider/anthropic"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

func TestClient(t *testing.T) {
	for name, opts := range map[string][]anthropic.Option{
		"three marks": nil,
		"four marks":  {anthropic.WithFourthMark()},
		"no marks":    {anthropic.WithoutCache()},
	} {
		t.Run(name, func(t *testing.T) {
			llmtest.TestClient(t, func(baseURL string) llm.Client {
				return newClient(t, baseURL, opts...)
			}, llmtest.WireAnthropic)
		})
	}
}

// TestE186_BytePrefix: without marks, all of a request but the brackets at its end
// is the start of the next one.
func TestE186_BytePrefix(t *testing.T) {
	replytest.CheckPrefix(t, func(base string) (llm.Client, error) {
		return newClient(t, base, anthropic.WithoutCache()), nil
	})
}

func newClient(t testing.TB, baseURL string, opts ...anthropic.Option) *anthropic.Client {
	t.Helper()
	c, err := anthropic.New("claude-sonnet-4-5", append([]anthropic.Option{
		anthropic.WithBaseURL(baseURL), anthropic.WithAPIKey(llmtest.SuiteKey),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
