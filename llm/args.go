// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// EmptyInput is what a call with no arguments means.
const EmptyInput = "{}"

// Input returns the call's arguments as one JSON object. Text that is empty or
// white space means the empty object (E-126). Text that is not JSON, or is JSON
// but no object, is an [*ArgumentError]; the text itself stays in c.Args.
func (c Call) Input() (json.RawMessage, error) {
	text := strings.TrimSpace(c.Args)
	if text == "" {
		return json.RawMessage(EmptyInput), nil
	}
	if raw := json.RawMessage(text); raw[0] == '{' && json.Valid(raw) {
		return raw, nil
	}
	return nil, &ArgumentError{Tool: c.Name, Problem: problem(text)}
}

// EchoArgs is what goes back to a provider for this call: the model's own text
// when it is a JSON object, else {} (E-126), so that the request is accepted.
func (c Call) EchoArgs() string {
	text := strings.TrimSpace(c.Args)
	if text != "" && text[0] == '{' && json.Valid([]byte(text)) {
		return c.Args
	}
	return EmptyInput
}

// An ArgumentError says why a call's arguments are no JSON object.
type ArgumentError struct {
	Tool    string
	Problem string
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("the arguments of %s are not a JSON object: %s", e.Tool, e.Problem)
}

func problem(text string) string {
	dec := json.NewDecoder(strings.NewReader(text))
	var v json.RawMessage
	if err := dec.Decode(&v); err != nil {
		return fmt.Sprintf("%v, in %s", err, quote(text))
	}
	if rest := strings.TrimSpace(text[dec.InputOffset():]); rest != "" {
		return fmt.Sprintf("text after the value: %s", quote(rest))
	}
	kind := "a number"
	switch v = bytes.TrimSpace(v); v[0] {
	case '[':
		kind = "an array"
	case '"':
		kind = "a string"
	case 't', 'f':
		kind = "a boolean"
	case 'n':
		kind = "null"
	}
	return fmt.Sprintf("%s was given: %s", kind, quote(text))
}

// quote shows at most 200 bytes of text, cut at a character.
func quote(text string) string {
	if cut := CutUTF8(text, 200); cut != text {
		return fmt.Sprintf("%q (cut)", cut)
	}
	return fmt.Sprintf("%q", text)
}

// CutUTF8 returns the longest prefix of s that has at most n bytes and does not
// end inside a character.
func CutUTF8(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
