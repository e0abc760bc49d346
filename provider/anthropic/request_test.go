// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

type wireBlock struct {
	Type         string
	Text         string
	ID           string
	Input        json.RawMessage
	ToolUseID    string          `json:"tool_use_id"`
	CacheControl json.RawMessage `json:"cache_control"`
}

type wireBody struct {
	System   []wireBlock
	Tools    []wireBlock
	Messages []struct {
		Role    string
		Content []wireBlock
	}
}

func parse(t *testing.T, body string) wireBody {
	t.Helper()
	var b wireBody
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return b
}

// checkHistory holds what the API refuses: unpaired calls, empty texts, marks where
// none may be, more than four of them.
func checkHistory(t *testing.T, n int, body string) {
	t.Helper()
	if !utf8.ValidString(body) || !json.Valid([]byte(body)) {
		t.Errorf("request %d is not valid JSON in UTF-8", n)
	}
	b := parse(t, body)
	marks := 0
	count := func(blocks []wireBlock) {
		for _, x := range blocks {
			if x.CacheControl == nil {
				continue
			}
			marks++
			if strings.HasSuffix(x.Type, "thinking") || x.Type == "text" && strings.TrimSpace(x.Text) == "" {
				t.Errorf("request %d: a mark on %+v", n, x)
			}
		}
	}
	count(b.System)
	count(b.Tools)
	var open []string
	for i, m := range b.Messages {
		count(m.Content)
		if len(m.Content) == 0 {
			t.Errorf("request %d: message %d is empty", n, i)
		}
		var calls []string
		for k, x := range m.Content {
			switch x.Type {
			case "text":
				if strings.TrimSpace(x.Text) == "" {
					t.Errorf("request %d: message %d has an empty text", n, i)
				}
			case "tool_use":
				calls = append(calls, x.ID)
				if len(x.Input) == 0 || x.Input[0] != '{' {
					t.Errorf("request %d: the input of %s is %s", n, x.ID, x.Input)
				}
			case "tool_result":
				if k >= len(open) || open[k] != x.ToolUseID {
					t.Errorf("request %d: message %d: result %d is for %s, open are %v", n, i, k, x.ToolUseID, open)
				}
			}
		}
		if len(open) > 0 && len(m.Content) < len(open) {
			t.Errorf("request %d: message %d leaves calls %v open", n, i, open)
		}
		open = calls
	}
	if marks > 4 {
		t.Errorf("request %d has %d marks", n, marks)
	}
}
