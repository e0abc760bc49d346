// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"fmt"
	"strings"
	"testing"
)

// A sample is a body that an invariant accepts, and ones that it refuses.
type sample struct {
	wire, name string
	before     string // the request before, if the invariant looks at it
	good       string
	bad        []string
	replies    string
}

const (
	antUse    = `{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}},{"type":"tool_use","id":"b","name":"x","input":{}}]}`
	antResult = `{"type":"tool_result","tool_use_id":"%s","content":"x"}`
)

func ant(messages ...string) string { return `{"messages":[` + strings.Join(messages, ",") + `]}` }

func antUser(blocks ...string) string {
	return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
}

func result(id string) string { return fmt.Sprintf(antResult, id) }

func samples() []sample {
	chatUse := `{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}}]}`
	chatRes := `{"role":"tool","tool_call_id":"a","content":"x"}`
	gemUse := `{"role":"model","parts":[{"functionCall":{"name":"x","args":{}}},{"functionCall":{"name":"y","args":{}}}]}`
	return []sample{
		{"anthropic", "tool_pairing", "", ant(antUse, antUser(result("b"), result("a"), `{"type":"text","text":"x"}`)), []string{
			ant(antUse), ant(antUse, antUser(result("a"))), ant(antUse, antUser(result("a"), result("b"), result("c"))),
			ant(antUse, antUser(`{"type":"text","text":"x"}`, result("a"), result("b"))),
			ant(antUse, antUser(result("a"), result("a"))),
			ant(antUse, antUser(result("a"), result("b")), antUser(result("a"))),
			ant(antUse, `{"role":"assistant","content":[`+result("a")+`,`+result("b")+`]}`),
		}, ""},
		{"openai-chat", "tool_pairing", "", ant(chatUse, chatRes, chatUse, chatRes), []string{
			ant(chatUse), ant(chatRes), ant(chatUse, `{"role":"user","content":"x"}`, chatRes), ant(chatUse, chatRes, chatRes),
		}, ""},
		{"openai-responses", "tool_pairing", "", `{"input":[{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a"}]}`, []string{
			`{"input":[{"type":"function_call","call_id":"a"}]}`, `{"input":[{"type":"function_call_output","call_id":"a"},{"type":"function_call","call_id":"a"}]}`,
			`{"input":[{"type":"function_call","call_id":"a"},{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a"},{"type":"function_call_output","call_id":"a"}]}`,
		}, ""},
		{"gemini", "tool_pairing", "", `{"contents":[` + gemUse + `,{"role":"user","parts":[{"functionResponse":{"name":"x"}},{"functionResponse":{"name":"y"}}]}]}`, []string{
			`{"contents":[` + gemUse + `]}`, `{"contents":[` + gemUse + `,{"role":"user","parts":[{"functionResponse":{"name":"x"}}]},{"role":"user","parts":[{"functionResponse":{"name":"y"}}]}]}`,
			`{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"x"}}]}]}`,
		}, ""},
		{"anthropic", "no_empty_text", "", ant(antUser(`{"type":"text","text":"x"}`)), []string{
			ant(antUser(`{"type":"text","text":" \n"}`)), ant(antUser()), ant(`{"role":"user","content":""}`),
			ant(antUser(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":""}]}`)),
			`{"system":[{"type":"text","text":""}],"messages":[]}`,
		}, ""},
		{"gemini", "no_empty_text", "", `{"contents":[{"parts":[{"text":"x"},{"text":"","thoughtSignature":"s"}]}]}`, []string{
			`{"contents":[{"parts":[]}]}`, `{"contents":[{"parts":[{"text":""}]}]}`,
		}, ""},
		{"openai-chat", "no_bare_null", "", ant(chatUse, `{"role":"assistant","content":""}`), []string{
			ant(`{"role":"assistant","content":null}`), ant(`{"role":"assistant"}`), ant(`{"role":"assistant","content":null,"tool_calls":[]}`),
		}, ""},
		{"openai-chat", "ends_with_user", "", ant(chatUse, chatRes), []string{ant(chatUse)}, ""},
		{"anthropic", "ends_with_user", "", ant(antUser()), []string{ant(antUse)}, ""},
		{"gemini", "ends_with_user", "", `{"contents":[{"role":"user"}]}`, []string{`{"contents":[{"role":"model"}]}`}, ""},
		{"openai-responses", "ends_with_user", "", `{"input":[{"type":"function_call_output"}]}`, []string{`{"input":[{"type":"function_call"}]}`, `{"input":[{"role":"assistant"}]}`}, ""},
		{"anthropic", "tool_args_valid_json", "", ant(antUse), []string{ant(strings.Replace(antUse, `"input":{}`, `"input":"{}"`, 1)), ant(strings.Replace(antUse, `,"input":{}`, ``, 1))}, ""},
		{"openai-chat", "tool_args_valid_json", "", ant(chatUse), []string{ant(strings.Replace(chatUse, `"{}"`, `""`, 1)), ant(strings.Replace(chatUse, `"{}"`, `"[]"`, 1)), ant(strings.Replace(chatUse, `"{}"`, `{}`, 1))}, ""},
		{"openai-responses", "tool_args_valid_json", "", `{"input":[{"type":"function_call","arguments":"{}"}]}`, []string{`{"input":[{"type":"function_call","arguments":"{"}]}`}, ""},
		{"gemini", "tool_args_valid_json", "", `{"contents":[` + gemUse + `]}`, []string{`{"contents":[` + strings.Replace(gemUse, `"args":{}`, `"args":[]`, 1) + `]}`}, ""},
		{"anthropic", "valid_utf8_json", "", `{"a":"é😀\ud83d\ude00\\ud83d"}`, []string{"{\"a\":\"\xff\"}", `{"a":"\ud83d"}`, `{"a":"\\\ude00"}`, `{"a":"\uFFFD"}`, "{\"a\":\"\uFFFD\"}"}, ""},
		{
			"anthropic", "prefix_stable", `{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"a"}],"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`,
			`{"system":[{"type":"text","text":"s"}],"tools":[{"name":"a"}],"messages":[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","content":[{"type":"text","text":"y"}]}]}`,
			[]string{
				`{"system":[{"type":"text","text":"t"}],"tools":[{"name":"a"}],"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`,
				`{"system":[{"type":"text","text":"s"}],"tools":[{"name":"b"}],"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`,
				`{"system":[{"type":"text","text":"s"}],"tools":[{"name":"a"}],"messages":[{"role":"user","content":[{"text":"x","type":"text"}]}]}`,
				`{"system":[{"type":"text","text":"s"}],"tools":[{"name":"a"}],"messages":[]}`,
			},
			"",
		},
		{"anthropic", "cache_breakpoints_le_4", "", ant(antUser(marked(1)), antUser(plain(2))), []string{
			ant(antUser(plain(1))), ant(antUser(marked(1)), antUser(plain(2)), antUser(plain(3))),
			ant(antUser(marked(1), marked(2), marked(3), marked(4), marked(5))),
			ant(antUser(marked(1), `{"type":"thinking","cache_control":{}}`)), ant(antUser(marked(1), `{"type":"text","text":" ","cache_control":{}}`)),
		}, ""},
		{"anthropic", "cache_lookback_20", ant(antUser(marked(0))), ant(antUser(plain(0)), antUser(many(19)...), antUser(marked(20))), []string{
			ant(antUser(plain(0)), antUser(many(20)...), antUser(marked(21))), ant(antUser(plain(9)), antUser(marked(1))), ant(antUser(plain(0))),
		}, ""},
		{"openai-responses", "responses_reasoning_adjacent", "", `{"input":[{"type":"reasoning","encrypted_content":"e"},{"type":"function_call","name":"x","arguments":"{}"}]}`, []string{
			`{"input":[{"type":"reasoning","encrypted_content":"e"}]}`, `{"input":[{"type":"reasoning","encrypted_content":"e"},{"role":"user","content":"x"}]}`,
			`{"input":[{"type":"reasoning","encrypted_content":"e"},{"type":"function_call","name":"y","arguments":"{}"}]}`,
			`{"input":[{"type":"reasoning","encrypted_content":"f"},{"type":"function_call","name":"x","arguments":"{}"}]}`,
		}, `data: {"response":{"output":[{"type":"reasoning","encrypted_content":"e"},{"type":"function_call","name":"x","arguments":"{}"}]}}` + "\n\n"},
		{"gemini", "tool_names_ok", "", `{"tools":[{"functionDeclarations":[{"name":"a-1"},{"name":"b"}]}]}`, []string{
			`{"tools":[{"functionDeclarations":[{"name":"a"},{"name":"a"}]}]}`, `{"tools":[{"functionDeclarations":[{"name":"a.b"}]}]}`,
			`{"tools":[{"name":"` + strings.Repeat("a", 65) + `"}]}`, `{"tools":[{"function":{"name":"é"}}]}`,
		}, ""},
	}
}

func plain(n int) string  { return fmt.Sprintf(`{"type":"text","text":"%d"}`, n) }
func marked(n int) string { return fmt.Sprintf(`{"type":"text","text":"%d","cache_control":{}}`, n) }

func many(n int) []string {
	var out []string
	for i := range n {
		out = append(out, plain(i))
	}
	return out
}

func TestInvariantsCanFail(t *testing.T) {
	tried := map[string]bool{}
	for _, s := range samples() {
		tried[s.name] = true
		try := func(body string) []string {
			c := &wireCase{Provider: providerSpec{Kind: s.wire}}
			if s.replies != "" {
				c.Replies = []reply{{Body: &s.replies}}
			}
			tr := &trace{exchanges: []exchange{{body: []byte(body)}}}
			if s.before != "" {
				tr.exchanges = append([]exchange{{body: []byte(s.before)}}, tr.exchanges...)
			}
			v := &verdict{}
			invariant{Request: which{last: true}, Name: s.name}.judge(v, c, tr)
			return v.failures
		}
		if got := try(s.good); got != nil {
			t.Errorf("%s, %s: %q", s.wire, s.name, got)
		}
		for _, bad := range s.bad {
			if try(bad) == nil {
				t.Errorf("%s, %s holds for %s", s.wire, s.name, bad)
			}
		}
	}
	for name := range invariants {
		if !tried[name] {
			t.Errorf("nobody tried whether %s can fail", name)
		}
	}
}
