// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// statusError is the error of a response that refuses the request.
func statusError(status int, header http.Header, body []byte) *llm.Error {
	e := wire.StatusError("", status, header, body, time.Now())
	e.Class = classify(status, wire.ParseFault(body))
	e.RetryAfter = wait(e)
	return e
}

// streamError is the error that stands in a stream, as an event of its own or as
// the error field of a chunk.
func streamError(body []byte) *llm.Error {
	f := wire.ParseFault(body)
	e := &llm.Error{Class: classify(0, f), Code: f.Name(), Message: f.Message}
	e.RetryAfter = wait(e)
	return e
}

var tryAgain = regexp.MustCompile(`try again in ((?:[0-9.]+(?:h|ms|m|s))+)`)

// wait is how long an error asks to wait, by its headers, else by the words in
// which OpenAI and Groq tell it, also inside of streams.
func wait(e *llm.Error) time.Duration {
	if e.RetryAfter != 0 || e.Class != llm.ClassRateLimit {
		return e.RetryAfter
	}
	if m := tryAgain.FindStringSubmatch(e.Message); m != nil {
		if d, err := time.ParseDuration(m[1]); err == nil && d > 0 {
			return d
		}
	}
	return 0
}

// classify gives the class of an error; a status of 0 means that it stood in a
// stream. Codes: https://platform.openai.com/docs/guides/error-codes.
func classify(status int, f wire.Fault) llm.Class {
	if status == 0 { // gateways put the status of the server behind them in the code
		if n, err := strconv.Atoi(f.Code); err == nil && n >= 400 && n < 600 {
			status = n
		}
	}
	message := strings.ToLower(f.Message)
	if f.Code == "string_above_max_length" && !strings.Contains(message, "'messages") && !strings.Contains(message, "'input") {
		return llm.ClassInvalidRequest // a name or a description: no shorter conversation helps
	}
	if c := exact(strings.ToLower(f.Code+" "+f.Type), message); c != llm.ClassUnknown {
		return c
	}
	class := wire.Classify(status, f)
	switch class { //nolint:exhaustive // the others are exact already
	case llm.ClassRateLimit:
		// A single request beyond the limit per minute never passes.
		if strings.Contains(message, "request too large") {
			return llm.ClassContextOverflow
		}
		return class
	case llm.ClassInvalidRequest, llm.ClassServer, llm.ClassUnknown:
		if wire.Overflow(f.Message) {
			return llm.ClassContextOverflow
		}
	default:
		return class
	}
	if c := classOfCode(strings.ToLower(f.Code)); c != llm.ClassUnknown {
		return c
	}
	if status != 0 {
		return class
	}
	if c := classOfCode(strings.ToLower(f.Type)); c != llm.ClassUnknown {
		return c
	}
	return llm.ClassServer // the request had been accepted
}

// exact is the class of what single servers say, whatever the status.
func exact(name, message string) llm.Class {
	has := func(text string, words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case has(name, "exceeded_current_quota", "insufficient_balance", "arrearage"), // Moonshot, DeepSeek, DashScope
		has(message, "key limit exceeded"), // OpenRouter
		reply.NoCredit(message):
		return llm.ClassQuota
	case has(name, "tool_use_failed", "output_parse_failed"), // Groq
		has(message, "error parsing tool call"): // Ollama
		return llm.ClassMalformedToolCall
	case has(message, "range of input length should be", // DashScope
		"model's context length is only",     // vLLM
		"`inputs` must have less than",       // text-generation-inference
		"this model context window limit ("): // Cloudflare
		return llm.ClassContextOverflow
	}
	return llm.ClassUnknown
}

func classOfCode(code string) llm.Class {
	switch code {
	case "invalid_api_key", "authentication_error", "invalid_authentication", "unauthorized":
		return llm.ClassAuth
	case "permission_error", "permission_denied", "unsupported_country_region_territory":
		return llm.ClassPermission
	case "model_not_found", "not_found_error", "deploymentnotfound":
		return llm.ClassNotFound
	case "access_terminated_error":
		return llm.ClassQuota
	case "string_above_max_length", "context_window_exceeded", "context_too_long":
		return llm.ClassContextOverflow
	case "server_error", "internal_error", "internal_server_error", "internalservererror", "api_error", "upstream_error",
		"vector_store_timeout", "timeout", "bad_gateway":
		return llm.ClassServer
	case "service_unavailable", "slow_down", "unavailable_error", "capacity_exceeded", "server_is_overloaded":
		return llm.ClassOverloaded
	case "too_many_requests":
		return llm.ClassRateLimit
	case "invalid_request_error", "invalid_prompt", "invalid_request", "bad_request", "badrequesterror", "invalid_image":
		return llm.ClassInvalidRequest
	case "content_policy_violation", "responsibleaipolicyviolation", "data_inspection_failed", "cyber_policy_violation":
		return llm.ClassContentFilter
	}
	return llm.ClassUnknown
}
