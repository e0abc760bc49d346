package openai

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
)

// statusError is the error of a response that refuses the request.
func statusError(status int, header http.Header, body []byte) *llm.Error {
	e := wire.StatusError("", status, header, body, time.Now())
	e.Class = classify(status, wire.ParseFault(body))
	return e
}

// streamError is the error that stands in a stream, as an event of its own or as
// the error field of a chunk.
func streamError(body []byte) *llm.Error {
	f := wire.ParseFault(body)
	return &llm.Error{Class: classify(0, f), Code: f.Name(), Message: f.Message}
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

func classOfCode(code string) llm.Class {
	switch code {
	case "invalid_api_key", "authentication_error", "invalid_authentication", "unauthorized":
		return llm.ClassAuth
	case "permission_error", "permission_denied", "unsupported_country_region_territory":
		return llm.ClassPermission
	case "model_not_found", "not_found_error", "deploymentnotfound":
		return llm.ClassNotFound
	case "insufficient_balance", "access_terminated_error":
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
