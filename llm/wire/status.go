// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
)

// MaxErrorBody is how much of an error's body is worth reading, in bytes.
const MaxErrorBody = 64 << 10

// maxMessage is how long a provider's message may be in an error, in bytes.
const maxMessage = 2048

// A Fault is what a provider says in the body of an error.
type Fault struct {
	Code    string // error.code, "" when absent; a number as its digits
	Type    string // error.type, or error.status
	Message string // error.message, else the whole body
}

// Name is the code, else the type (E-214). A code that is but a number says less
// than the type beside it.
func (f Fault) Name() string {
	if f.Code == "" || f.Type != "" && strings.Trim(f.Code, "0123456789") == "" {
		return f.Type
	}
	return f.Code
}

// ParseFault reads the body of an error: {"error": {...}}, the same in an array,
// {"error": "text"}, the fields at the top, or any other text, which then is the
// message.
func ParseFault(body []byte) Fault {
	raw := bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
		raw = list[0]
	}
	var top struct {
		Error json.RawMessage `json:"error"`
		faultJSON
	}
	if json.Unmarshal(raw, &top) != nil {
		return Fault{Message: llm.CutUTF8(UTF8(string(raw)), maxMessage)}
	}
	in := top.faultJSON
	var text string
	switch {
	case json.Unmarshal(top.Error, &text) == nil:
		in.Message = looseText(text)
	case len(top.Error) > 0 && top.Error[0] == '{':
		in = faultJSON{}
		if json.Unmarshal(top.Error, &in) != nil {
			in = faultJSON{}
		}
	}
	f := Fault{Code: in.code(), Type: string(in.Type), Message: string(in.Message)}
	if f.Type == "" {
		f.Type = string(in.Status)
	}
	if f.Message == "" && len(in.Detail) > 0 {
		f.Message = strings.Trim(string(in.Detail), `"`)
	}
	if f.Message == "" {
		f.Message = string(raw)
	}
	f.Message = llm.CutUTF8(UTF8(f.Message), maxMessage)
	return f
}

// faultJSON are the fields of an error. Servers put numbers and objects where others
// have texts; one of them must not cost the others.
type faultJSON struct {
	Code    json.RawMessage `json:"code"`
	Type    looseText       `json:"type"`
	Status  looseText       `json:"status"`
	Message looseText       `json:"message"`
	Detail  json.RawMessage `json:"detail"`
}

// looseText is a text, empty where something else stands.
type looseText string

func (t *looseText) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

func (f faultJSON) code() string {
	if s := strings.Trim(string(f.Code), `"`); s != "null" {
		return s
	}
	return ""
}

// StatusError is the error of a response whose status says that the request
// failed. Adapters refine its class where their provider is more exact; secrets
// are still to be masked.
func StatusError(op string, status int, header http.Header, body []byte, now time.Time) *llm.Error {
	f := ParseFault(body)
	return &llm.Error{
		Class: Classify(status, f), Op: op, Status: status,
		Code: f.Name(), Message: f.Message,
		RetryAfter: RetryAfter(header, now),
	}
}

// Classify gives the class of an error by its status, 0 for one inside a stream,
// and by the words that providers share. A 429 for lack of money is a matter of
// quota, which waiting does not mend; what reads like an overflow of the window
// is one only where the request itself was refused.
func Classify(status int, f Fault) llm.Class {
	switch name := strings.ToLower(f.Code + " " + f.Type); {
	case strings.Contains(name, "insufficient_quota"), strings.Contains(name, "billing"),
		strings.Contains(name, "insufficient_credit"), status == http.StatusPaymentRequired:
		return llm.ClassQuota
	case strings.Contains(name, "context_length_exceeded"), strings.Contains(name, "exceed_context_size"):
		return llm.ClassContextOverflow
	case strings.Contains(name, "overloaded"):
		return llm.ClassOverloaded
	case strings.Contains(name, "rate_limit"):
		return llm.ClassRateLimit
	case strings.Contains(name, "content_filter"), strings.Contains(name, "content_policy_violation"):
		return llm.ClassContentFilter
	}
	if status < 500 && status != http.StatusTooManyRequests && Overflow(f.Message) {
		return llm.ClassContextOverflow
	}
	if status == 0 {
		return classOfName(strings.ToLower(f.Code + " " + f.Type))
	}
	return classOfStatus(status)
}

// classOfName is for errors inside a stream, which have no status.
func classOfName(name string) llm.Class {
	for _, c := range []struct {
		word  string
		class llm.Class
	}{
		{"unavailable", llm.ClassOverloaded},
		{"resource_exhausted", llm.ClassRateLimit},
		{"server_error", llm.ClassServer},
		{"internal", llm.ClassServer},
		{"api_error", llm.ClassServer},
		{"timeout", llm.ClassServer},
		{"authentication", llm.ClassAuth},
		{"permission", llm.ClassPermission},
		{"not_found", llm.ClassNotFound},
		{"invalid", llm.ClassInvalidRequest},
	} {
		if strings.Contains(name, c.word) {
			return c.class
		}
	}
	return llm.ClassUnknown
}

func classOfStatus(status int) llm.Class {
	switch status {
	case http.StatusUnauthorized:
		return llm.ClassAuth
	case http.StatusForbidden:
		return llm.ClassPermission
	case http.StatusNotFound:
		return llm.ClassNotFound
	case http.StatusTooManyRequests:
		return llm.ClassRateLimit
	case http.StatusRequestEntityTooLarge:
		// More bytes than the server reads: as with tokens, only a shorter conversation helps.
		return llm.ClassContextOverflow
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return llm.ClassTransport
	case http.StatusServiceUnavailable, 529: // 529 is what Anthropic answers when overloaded
		return llm.ClassOverloaded
	case http.StatusNotImplemented:
		return llm.ClassInvalidRequest // E-147: never again by itself
	}
	switch {
	case status >= 500:
		return llm.ClassServer
	case status >= 400:
		return llm.ClassInvalidRequest
	}
	return llm.ClassUnknown
}

// overflowWords are how providers say that a conversation is too long, in lower
// case: Anthropic, OpenAI, Gemini, vLLM, llama.cpp, LM Studio, Ollama, Mistral,
// Groq, OpenRouter, SGLang, xAI, Moonshot, text-generation-inference, Copilot,
// Cohere, Bedrock, Zhipu and Volcengine, as their servers answered in 2026.
var overflowWords = []string{
	"prompt is too long", "input is too long", "input length and `max_tokens` exceed context limit",
	"maximum context length", "context length exceeded", "exceeds the context window", "exceeds the model's context",
	"exceed context limit", "exceeds the available context size", "context window exceed", "exceeds context window",
	"exceeds the maximum number of tokens allowed", "input token count", "exceed_context_size",
	"context size has been exceeded", "greater than the context length", "longer than the maximum model length",
	"exceeds the maximum allowed input length", "too large for model with", "prompt too long", "reduce the length of the messages",
	"trying to keep the first", "longer than the model's context length", "input length exceeds the context length",
	"maximum prompt length", "exceeded model token limit", "`inputs` tokens + `max_new_tokens` must be",
	"prompt token count of", "tokens in the prompt cannot exceed", "too many input tokens",
	"input tokens exceeded", "number of input tokens exceeds", "prompt exceeds max length", "exceed max message tokens",
	"exceeds maximum input length",
	"input exceeds the maximum", "maximum input tokens", "exceeds the limit of the model's context",
}

// looseWords say the same of whatever is too long: it depends on what that is.
var looseWords = []string{"exceeds max length", "exceeds the model's maximum", "exceed the model's maximum"}

// Overflow reports whether message is how a provider says that the conversation
// exceeds the model's window.
func Overflow(message string) bool {
	low := strings.ToLower(message)
	for _, w := range overflowWords {
		if strings.Contains(low, w) {
			return true
		}
	}
	has := func(word string) bool { return strings.Contains(low, word) }
	return slices.ContainsFunc(looseWords, has) && slices.ContainsFunc([]string{"input", "prompt", "context", "messages", "conversation"}, has) &&
		!slices.ContainsFunc([]string{"max_tokens", "max_completion_tokens", "max_output_tokens", "output tokens", "completion tokens"}, has)
}
