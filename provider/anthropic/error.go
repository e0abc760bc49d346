// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// refine gives the class of an error whose type the API names, in a response or
// inside a stream alike (https://platform.claude.com/docs/en/api/errors). The
// class that was found by status holds for other types.
func refine(class llm.Class, code, message string) llm.Class {
	if reply.NoCredit(message) {
		return llm.ClassQuota
	}
	switch code {
	case "authentication_error":
		return llm.ClassAuth
	case "permission_error":
		return llm.ClassPermission
	case "billing_error":
		return llm.ClassQuota
	case "not_found_error":
		return llm.ClassNotFound
	case "rate_limit_error":
		return llm.ClassRateLimit
	case "overloaded_error":
		return llm.ClassOverloaded
	case "api_error", "timeout_error":
		return llm.ClassServer
	case "request_too_large":
		return llm.ClassContextOverflow
	case "invalid_request_error":
		switch {
		case wire.Overflow(message):
			return llm.ClassContextOverflow
		case strings.Contains(message, "credit balance is too low"):
			return llm.ClassQuota // an empty account is told as a 400
		}
		return llm.ClassInvalidRequest
	}
	return class
}
