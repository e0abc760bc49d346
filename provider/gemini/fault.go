// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// A rpcError is an error in the form of all Google APIs,
// https://cloud.google.com/apis/design/errors.
type rpcError struct {
	Error struct {
		Code    int    `json:"code"`
		Status  string `json:"status"`
		Message string `json:"message"`
		Details []struct {
			Type       string `json:"@type"`
			Reason     string `json:"reason"`     // of an ErrorInfo
			RetryDelay string `json:"retryDelay"` // of a RetryInfo, such as 34s
			Violations []struct {
				QuotaID    string `json:"quotaId"`
				QuotaValue string `json:"quotaValue"`
			} `json:"violations"` // of a QuotaFailure
		} `json:"details"`
	} `json:"error"`
}

// readError reads an error, which may stand in an array.
func readError(body []byte) rpcError {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var e rpcError
	if json.Unmarshal(body, &e) != nil {
		return rpcError{}
	}
	return e
}

// statusError is the error of a response that refuses the request.
func statusError(status int, header http.Header, body []byte) *llm.Error {
	out := wire.StatusError("", status, header, body, time.Now())
	refine(out, readError(body))
	return out
}

// streamError is an error that stands in a stream.
func streamError(body []byte) *llm.Error {
	e := readError(body)
	f := wire.ParseFault(body)
	out := &llm.Error{Class: wire.Classify(e.Error.Code, f), Code: f.Name(), Message: f.Message}
	refine(out, e)
	return out
}

// refine makes an error as exact as Google is: its code is the canonical status,
// its class goes by that and by the reasons given, its wait by RetryInfo.
func refine(out *llm.Error, e rpcError) {
	if e.Error.Status != "" {
		out.Code = e.Error.Status
	}
	for _, d := range e.Error.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 && out.RetryAfter == 0 {
			out.RetryAfter = wait
		}
	}
	out.Class = classify(out, e)
	if m := retryIn.FindStringSubmatch(out.Message); m != nil && out.RetryAfter == 0 && out.Class == llm.ClassRateLimit {
		if wait, err := time.ParseDuration(m[1]); err == nil {
			out.RetryAfter = max(wait, 0)
		}
	}
}

// retryIn is how a message tells a wait where no RetryInfo does.
var retryIn = regexp.MustCompile(`retry in ((?:[0-9.]+(?:h|ms|m|s))+)`)

func classify(out *llm.Error, e rpcError) llm.Class {
	for _, d := range e.Error.Details {
		switch d.Reason {
		case "API_KEY_INVALID", "ACCESS_TOKEN_EXPIRED", "CREDENTIALS_MISSING":
			return llm.ClassAuth
		case "BILLING_DISABLED", "INSUFFICIENT_G1_CREDITS_BALANCE":
			return llm.ClassQuota
		}
		for _, v := range d.Violations {
			// What is given for a day, or not at all, does not come back by waiting.
			if strings.Contains(v.QuotaID, "PerDay") || v.QuotaValue == "0" {
				return llm.ClassQuota
			}
		}
	}
	if reply.NoCredit(out.Message) {
		return llm.ClassQuota
	}
	switch e.Error.Status {
	case "UNAUTHENTICATED":
		return llm.ClassAuth
	case "PERMISSION_DENIED":
		return llm.ClassPermission
	case "FAILED_PRECONDITION": // no billing, or a country that is not served
		return llm.ClassPermission
	case "NOT_FOUND":
		return llm.ClassNotFound
	case "RESOURCE_EXHAUSTED":
		if out.Class == llm.ClassQuota {
			return out.Class
		}
		return llm.ClassRateLimit
	case "UNAVAILABLE":
		return llm.ClassOverloaded
	case "INTERNAL", "UNKNOWN", "ABORTED", "DATA_LOSS", "DEADLINE_EXCEEDED":
		if wire.Overflow(out.Message) {
			return llm.ClassContextOverflow
		}
		return llm.ClassServer
	case "CANCELLED":
		return llm.ClassServer
	case "INVALID_ARGUMENT", "OUT_OF_RANGE":
		switch {
		case wire.Overflow(out.Message):
			return llm.ClassContextOverflow
		case strings.Contains(out.Message, "API key"):
			return llm.ClassAuth
		}
		return llm.ClassInvalidRequest
	}
	if out.Class == llm.ClassUnknown {
		return llm.ClassServer // it stood in a stream: the request had been accepted
	}
	return out.Class
}
