// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// A subject is one request that an invariant is about.
type subject struct {
	wire   string
	c      *wireCase
	inv    invariant
	n      int // from 1
	bodies [][]byte
	req    any
}

func (s *subject) body() []byte { return s.bodies[s.n-1] }

// invariants are what holds of every request, by the names of the format.
var invariants = map[string]func(s *subject) error{
	"tool_pairing":                 toolPairing,
	"no_empty_text":                noEmptyText,
	"no_bare_null":                 noBareNull,
	"ends_with_user":               endsWithUser,
	"tool_args_valid_json":         toolArgsValid,
	"valid_utf8_json":              validUTF8,
	"prefix_stable":                prefixStable,
	"cache_breakpoints_le_4":       breakpoints,
	"cache_lookback_20":            lookback,
	"responses_reasoning_adjacent": reasoningAdjacent,
	"tool_names_ok":                toolNames,
}

func (i invariant) judge(v *verdict, c *wireCase, tr *trace) {
	numbers, err := i.Request.of(len(tr.exchanges))
	if err != nil {
		v.at(i.Level, fmt.Sprintf("%s: %v", i.Name, err))
		return
	}
	var bodies [][]byte
	for _, e := range tr.exchanges {
		bodies = append(bodies, e.body)
	}
	for _, n := range numbers {
		s := &subject{wire: c.Provider.format(), c: c, inv: i, n: n, bodies: bodies}
		if s.req, err = parseJSON(s.body()); err == nil {
			err = invariants[i.Name](s)
		}
		if err != nil {
			v.at(i.Level, fmt.Sprintf("request %d: %s: %v", n, i.Name, err))
		}
	}
}

// list is what stands at a path, when it is a list.
func list(v any, path string) []any {
	got, _, _ := find(v, path)
	out, _ := got.([]any)
	return out
}

// text is what stands at a path, when it is a string.
func text(v any, path string) string {
	got, _, _ := find(v, path)
	out, _ := got.(string)
	return out
}

func has(v any, path string) bool {
	_, ok, err := find(v, path)
	return ok && err == nil
}

func toolPairing(s *subject) error {
	switch s.wire {
	case "anthropic":
		return pairAnthropic(list(s.req, "messages"))
	case "openai-chat":
		return pairChat(list(s.req, "messages"))
	case "openai-responses":
		return pairResponses(list(s.req, "input"))
	}
	return pairGemini(list(s.req, "contents"))
}

func pairAnthropic(messages []any) error {
	var open []string
	for i, m := range messages {
		var results []string
		other := false
		for _, b := range list(m, "content") {
			if text(b, "type") != "tool_result" {
				other = true
				continue
			}
			if other {
				return fmt.Errorf("messages[%d]: a result stands behind another block", i)
			}
			results = append(results, text(b, "tool_use_id"))
		}
		if err := samePairs(open, results); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		if len(results) > 0 && text(m, "role") != "user" {
			return fmt.Errorf("messages[%d]: results of role %q", i, text(m, "role"))
		}
		open = nil
		for _, b := range list(m, "content[?type=tool_use]") {
			open = append(open, text(b, "id"))
		}
	}
	return samePairs(open, nil)
}

// samePairs holds results against the calls that stand directly before them.
func samePairs(calls, results []string) error {
	a, b := slices.Sorted(slices.Values(calls)), slices.Sorted(slices.Values(results))
	if !slices.Equal(a, b) {
		return fmt.Errorf("calls %q have results %q", calls, results)
	}
	if n := len(slices.Compact(a)); n != len(calls) {
		return fmt.Errorf("two calls share an id: %q", calls)
	}
	return nil
}

func pairChat(messages []any) error {
	for i := 0; i < len(messages); {
		m := messages[i]
		if text(m, "role") == "tool" {
			return fmt.Errorf("messages[%d]: a result without its call", i)
		}
		var calls, results []string
		for _, call := range list(m, "tool_calls") {
			calls = append(calls, text(call, "id"))
		}
		i++
		for ; len(calls) > 0 && i < len(messages) && text(messages[i], "role") == "tool"; i++ {
			results = append(results, text(messages[i], "tool_call_id"))
		}
		if err := samePairs(calls, results); err != nil {
			return fmt.Errorf("messages[%d]: %w", i-1, err)
		}
	}
	return nil
}

func pairResponses(input []any) error {
	open := map[string]int{}
	for i, item := range input {
		id := text(item, "call_id")
		switch text(item, "type") {
		case "function_call":
			if open[id]++; open[id] > 1 {
				return fmt.Errorf("input[%d]: the call %q is made twice before its result", i, id)
			}
		case "function_call_output":
			if open[id]--; open[id] < 0 {
				return fmt.Errorf("input[%d]: the result %q has no call", i, id)
			}
		}
	}
	for id, n := range open {
		if n != 0 {
			return fmt.Errorf("the call %q has no result", id)
		}
	}
	return nil
}

func pairGemini(contents []any) error {
	var open []string
	for i, c := range contents {
		var calls, results []string
		for _, p := range list(c, "parts") {
			if has(p, "functionCall") {
				calls = append(calls, text(p, "functionCall.name"))
			}
			if has(p, "functionResponse") {
				results = append(results, text(p, "functionResponse.name"))
			}
		}
		if !slices.Equal(open, results) {
			return fmt.Errorf("contents[%d]: calls %q have responses %q", i, open, results)
		}
		if len(calls) > 0 && text(c, "role") != "model" {
			return fmt.Errorf("contents[%d]: calls of role %q", i, text(c, "role"))
		}
		open = calls
	}
	return unless(len(open) > 0, "calls %q have no responses", open)
}

func noEmptyText(s *subject) error {
	switch s.wire {
	case "anthropic":
		for i, m := range list(s.req, "messages") {
			if err := blocksNotEmpty(m); err != nil {
				return fmt.Errorf("messages[%d]: %w", i, err)
			}
		}
		for _, b := range list(s.req, "system") {
			if strings.TrimSpace(text(b, "text")) == "" {
				return errors.New("system: an empty block")
			}
		}
		return nil
	case "gemini":
		for i, c := range list(s.req, "contents") {
			parts := list(c, "parts")
			if len(parts) == 0 {
				return fmt.Errorf("contents[%d] has no parts", i)
			}
			for _, p := range parts {
				// A signature that came on an empty text goes back on one.
				if has(p, "text") && strings.TrimSpace(text(p, "text")) == "" && !has(p, "thoughtSignature") {
					return fmt.Errorf("contents[%d]: an empty text", i)
				}
			}
		}
		return nil
	}
	return fmt.Errorf("it is not meant for %s", s.wire)
}

func blocksNotEmpty(m any) error {
	if body, ok := m.(map[string]any)["content"].(string); ok {
		return unless(strings.TrimSpace(body) == "", "empty content")
	}
	blocks := list(m, "content")
	if len(blocks) == 0 {
		return errors.New("no content")
	}
	for _, b := range slices.Concat(blocks, list(m, "content[*].content[*]")) {
		if text(b, "type") == "text" && strings.TrimSpace(text(b, "text")) == "" {
			return errors.New("an empty text block")
		}
	}
	return nil
}

func noBareNull(s *subject) error {
	for i, m := range list(s.req, "messages") {
		if text(m, "role") != "assistant" {
			continue
		}
		if content, _, _ := find(m, "content"); content == nil && len(list(m, "tool_calls")) == 0 {
			return fmt.Errorf("messages[%d] has neither content nor calls", i)
		}
	}
	return nil
}

func endsWithUser(s *subject) error {
	var last any
	switch s.wire {
	case "gemini":
		last, _, _ = find(s.req, "contents[-1]")
	case "openai-responses":
		last, _, _ = find(s.req, "input[-1]")
		if text(last, "type") == "function_call_output" {
			return nil
		}
	default:
		last, _, _ = find(s.req, "messages[-1]")
	}
	role := text(last, "role")
	return unless(role != "user" && (role != "tool" || s.wire != "openai-chat"), "it ends with role %q", role)
}

func toolArgsValid(s *subject) error {
	var args []any
	switch s.wire {
	case "anthropic":
		args = list(s.req, "messages[*].content[?type=tool_use][*].input")
		if n := len(list(s.req, "messages[*].content[?type=tool_use][*]")); n != len(args) {
			return errors.New("a call without input")
		}
	case "openai-chat":
		args = list(s.req, "messages[*].tool_calls[*].function.arguments")
	case "openai-responses":
		args = list(s.req, "input[?type=function_call][*].arguments")
	default:
		args = list(s.req, "contents[*].parts[*].functionCall.args")
	}
	for _, a := range args {
		if strings.HasPrefix(s.wire, "openai") {
			written, ok := a.(string)
			if !ok {
				return fmt.Errorf("the arguments %s are no string", jsonText(a))
			}
			var err error
			if a, err = parseJSON([]byte(written)); err != nil {
				return fmt.Errorf("the arguments %q: %w", written, err)
			}
		}
		if _, ok := a.(map[string]any); !ok {
			return fmt.Errorf("the arguments %s are no object", jsonText(a))
		}
	}
	return nil
}

var surrogate = regexp.MustCompile(`\\*\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|\\*\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

func validUTF8(s *subject) error {
	body := s.body()
	switch {
	case !utf8.Valid(body):
		return errors.New("the body is no UTF-8")
	case !json.Valid(body):
		return errors.New("the body is no JSON")
	}
	for _, m := range surrogate.FindAll(body, -1) {
		slashes := len(m) - len(bytes.TrimLeft(m, `\`))
		if slashes%2 == 1 && len(m)-slashes < len(`uD800\uDC00`) {
			return fmt.Errorf("half of a surrogate pair: %s", m)
		}
	}
	if s.inv.AllowReplacementChar || replacedBefore(s.c) {
		return nil
	}
	if bytes.Contains(body, []byte("\uFFFD")) || bytes.Contains(bytes.ToLower(body), []byte(`\ufffd`)) {
		return errors.New("U+FFFD in the body that was not in the input")
	}
	return nil
}

// replacedBefore reports whether the case itself holds a U+FFFD.
func replacedBefore(c *wireCase) bool {
	data, err := json.Marshal(struct {
		Run     runSpec
		Replies []reply
	}{c.Run, nil})
	if err != nil || bytes.Contains(data, []byte("\uFFFD")) {
		return true
	}
	for _, r := range c.Replies {
		if b, _ := r.bytes(); bytes.Contains(b, []byte("\uFFFD")) {
			return true
		}
	}
	return false
}

func prefixStable(s *subject) error {
	if s.n == 1 {
		return nil
	}
	diff := llmtest.PrefixChanged(s.bodies[s.n-2], s.body())
	return unless(diff != "", "%s", diff)
}

// A mark is a cache breakpoint: on which block of all blocks of the messages.
type mark struct{ message, block int }

// messageBlocks are the blocks of all messages in order, without their marks, and
// the marks by their place.
func messageBlocks(req any) (blocks []any, marks []mark) {
	for i, m := range list(req, "messages") {
		for _, b := range list(m, "content") {
			block, _ := b.(map[string]any)
			if has(block, "cache_control") || len(list(block, "content[*].cache_control")) > 0 {
				marks = append(marks, mark{i, len(blocks)})
			}
			blocks = append(blocks, unmarked(block))
		}
	}
	return blocks, marks
}

func unmarked(block map[string]any) any {
	out := map[string]any{}
	for k, v := range block {
		if k != "cache_control" {
			out[k] = v
		}
	}
	return out
}

func breakpoints(s *subject) error {
	if s.wire != "anthropic" {
		return fmt.Errorf("it is not meant for %s", s.wire)
	}
	n := bytes.Count(s.body(), []byte(`"cache_control":`))
	if n > 4 {
		return fmt.Errorf("%d breakpoints", n)
	}
	messages := list(s.req, "messages")
	tail := false
	for i, m := range messages {
		for _, b := range list(m, "content") {
			if !has(b, "cache_control") {
				continue
			}
			tail = tail || i >= len(messages)-2
			switch kind := text(b, "type"); {
			case kind == "thinking", kind == "redacted_thinking":
				return fmt.Errorf("messages[%d]: a breakpoint on %s", i, kind)
			case kind == "text" && strings.TrimSpace(text(b, "text")) == "":
				return fmt.Errorf("messages[%d]: a breakpoint on an empty text", i)
			}
		}
	}
	return unless(!tail, "no breakpoint in the last two messages")
}

func lookback(s *subject) error {
	if s.n == 1 {
		return nil
	}
	before, err := parseJSON(s.bodies[s.n-2])
	if err != nil {
		return err
	}
	old, oldMarks := messageBlocks(before)
	blocks, marks := messageBlocks(s.req)
	for _, m := range marks {
		for _, o := range oldMarks {
			if o.block <= m.block && m.block-o.block <= 20 && o.block < len(blocks) &&
				reflect.DeepEqual(old[:o.block+1], blocks[:o.block+1]) {
				return nil
			}
		}
	}
	return fmt.Errorf("marks %v reach none of %v", marks, oldMarks)
}

// reasoningAdjacent holds each reasoning item against what followed it in the
// response that it came with.
func reasoningAdjacent(s *subject) error {
	followers := map[string]any{}
	for _, r := range s.c.Replies {
		body, err := r.bytes()
		if err != nil {
			return err
		}
		for _, items := range responseOutputs(body) {
			for i, item := range items {
				if key := reasoningKey(item); key != "" && i+1 < len(items) {
					followers[key] = items[i+1]
				}
			}
		}
	}
	input := list(s.req, "input")
	for i, item := range input {
		if text(item, "type") != "reasoning" {
			continue
		}
		if i+1 == len(input) {
			return fmt.Errorf("input[%d]: nothing follows", i)
		}
		want, ok := followers[reasoningKey(item)]
		if !ok {
			return fmt.Errorf("input[%d]: no response had this reasoning", i)
		}
		if err := sameItem(want, input[i+1]); err != nil {
			return fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	return nil
}

func reasoningKey(item any) string {
	if text(item, "type") != "reasoning" {
		return ""
	}
	if key := text(item, "encrypted_content"); key != "" {
		return key
	}
	return text(item, "id")
}

// responseOutputs are the outputs of the responses that a body ends with.
func responseOutputs(body []byte) [][]any {
	var out [][]any
	for line := range bytes.Lines(body) {
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		ev, err := parseJSON(bytes.TrimSpace(data))
		if err != nil {
			continue
		}
		if items := list(ev, "response.output"); len(items) > 0 {
			out = append(out, items)
		}
	}
	return out
}

func sameItem(want, got any) error {
	kind, name := text(want, "type"), text(got, "type")
	if name == "" {
		name = "message" // the short form of a message has no type
	}
	if kind != name {
		return fmt.Errorf("%s follows, and it was %s", name, kind)
	}
	switch kind {
	case "function_call":
		return unless(text(want, "name") != text(got, "name") || text(want, "arguments") != text(got, "arguments"),
			"another call follows: %s", jsonText(got))
	case "message":
		content, _, _ := find(got, "content")
		wanted, _, _ := find(want, "content")
		return unless(contentText(content) != contentText(wanted), "another message follows: %s", jsonText(got))
	}
	return nil
}

var fitName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func toolNames(s *subject) error {
	seen := map[string]bool{}
	for _, tl := range toolsOf(s.req) {
		name, _ := tl["name"].(string)
		if !fitName.MatchString(name) {
			return errors.New("the name " + strconv.Quote(name) + " is not fit")
		}
		if seen[name] {
			return errors.New("two tools are called " + name)
		}
		seen[name] = true
	}
	return nil
}
