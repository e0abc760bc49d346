// SPDX-License-Identifier: Apache-2.0

package llmtest_test

import (
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// The turn is that of the history, whoever asks and however often.
func TestByHistory(t *testing.T) {
	history := []llm.Message{llm.UserText("go")}
	for n, want := range []string{"one", "two", ""} {
		for range 2 {
			c := llmtest.ByHistory(llmtest.Say("one"), llmtest.Say("two")) // as in another process
			r, err := collect.Stream(t.Context(), c, &llm.Request{Messages: history, CacheAnchor: -1})
			if got := r.Message.Text(); got != want {
				t.Errorf("turn %d: got %q, want %q", n, got, want)
			}
			if over := llm.ClassOf(err) == llm.ClassInvalidRequest && strings.Contains(err.Error(), "request 3, and the script has 2 turns"); over != (want == "") {
				t.Errorf("turn %d: %v", n, err)
			}
		}
		history = append(history, llm.AssistantText("so"), llm.UserText("on"))
	}
}
