// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
)

// TestE171_Count: absent is not zero.
func TestE171_Count(t *testing.T) {
	var absent llm.Count
	for _, c := range []struct {
		got, want llm.Count
	}{
		{llm.N(-5), llm.N(0)},
		{absent.Plus(absent), absent},
		{absent.Plus(llm.N(0)), llm.N(0)},
		{llm.N(3).Plus(absent), llm.N(3)},
		{llm.N(3).Plus(llm.N(4)), llm.N(7)},
		{llm.N(math.MaxInt64).Plus(llm.N(1)), llm.N(math.MaxInt64)},
		{llm.N(math.MaxInt64 - 1).Plus(llm.N(1)), llm.N(math.MaxInt64)},
	} {
		if c.got != c.want {
			t.Errorf("got %+v, want %+v", c.got, c.want)
		}
	}
	if absent.Known() || absent.Value() != 0 || !llm.N(0).Known() || absent == llm.N(0) {
		t.Error("an absent count is taken for zero")
	}
}

func TestUsageJSON(t *testing.T) {
	for want, u := range map[string]llm.Usage{
		`{}`:                     {},
		`{"output":0}`:           {Output: llm.N(0)},
		`{"input":7,"output":0}`: {Input: llm.N(7), Output: llm.N(0)},
		`{"total":1,"cache_read":2,"cache_write":3,"reasoning":9223372036854775807}`: {
			Total: llm.N(1), CacheRead: llm.N(2), CacheWrite: llm.N(3), Reasoning: llm.N(math.MaxInt64),
		},
	} {
		data, err := json.Marshal(u)
		if err != nil || string(data) != want {
			t.Errorf("got %s, %v, want %s", data, err, want)
		}
		var got llm.Usage
		if err := json.Unmarshal(data, &got); err != nil || got != u {
			t.Errorf("%s: got %+v, %v", data, got, err)
		}
	}
	got := llm.Usage{Input: llm.N(1)}
	if err := json.Unmarshal([]byte(`{"input":null}`), &got); err != nil || got.Known() {
		t.Errorf("null is read as %+v, %v", got, err)
	}
	for _, bad := range []string{`{"input":"7"}`, `{"input":1.5}`, `{"input":99999999999999999999}`} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s was read as %+v", bad, got)
		}
	}
	if data, err := json.Marshal(llm.Count{}); err != nil || string(data) != "null" {
		t.Errorf("an absent count is written as %s, %v", data, err)
	}
}

// TestE172_Merge, S-128: the newest present value wins, an absent one erases
// nothing; field by field.
func TestE172_Merge(t *testing.T) {
	full := llm.Usage{
		Input: llm.N(1), Output: llm.N(2), Total: llm.N(3), CacheRead: llm.N(4), CacheWrite: llm.N(5), Reasoning: llm.N(6),
	}
	if got := full.Merge(llm.Usage{}); got != full {
		t.Errorf("nothing erased %+v", got)
	}
	if got := (llm.Usage{}).Merge(full); got != full {
		t.Errorf("everything set %+v", got)
	}
	zero := llm.Usage{
		Input: llm.N(0), Output: llm.N(0), Total: llm.N(0), CacheRead: llm.N(0), CacheWrite: llm.N(0), Reasoning: llm.N(0),
	}
	if got := full.Merge(zero); got != zero {
		t.Errorf("a zero that is present wins: %+v", got)
	}
	got := full.Merge(llm.Usage{Output: llm.N(20)})
	want := full
	want.Output = llm.N(20)
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := full.Plus(full); got.Input != llm.N(2) || got.Reasoning != llm.N(12) || got.CacheWrite != llm.N(10) {
		t.Errorf("the sum is %+v", got)
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("reset")
	err := fmt.Errorf("wrapped: %w", &llm.Error{Class: llm.ClassServer, Op: "x: stream", Status: 503, Code: "c", Message: "m", Err: cause})
	if got, want := err.Error(), "wrapped: x: stream: server (HTTP 503): c: m: reset"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if llm.ClassOf(err) != llm.ClassServer || !errors.Is(err, cause) || llm.ClassOf(cause) != llm.ClassUnknown {
		t.Errorf("class %s of %v", llm.ClassOf(err), err)
	}
	for _, c := range []struct {
		err  llm.Error
		want string
	}{
		{llm.Error{Class: llm.ClassQuota}, "llm: quota"},
		{llm.Error{Class: llm.ClassQuota, Code: "c"}, "llm: quota: c"},
		{llm.Error{Class: llm.ClassQuota, Message: "m", Err: errors.New("m")}, "llm: quota: m"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	// E-147, S-121
	retried := ""
	for _, class := range []llm.Class{
		llm.ClassUnknown, llm.ClassAuth, llm.ClassPermission, llm.ClassNotFound, llm.ClassInvalidRequest, llm.ClassContextOverflow,
		llm.ClassRateLimit, llm.ClassQuota, llm.ClassOverloaded, llm.ClassServer, llm.ClassTransport, llm.ClassStreamIncomplete,
		llm.ClassStreamIdle, llm.ClassMalformedStream, llm.ClassMalformedToolCall, llm.ClassContentFilter, llm.ClassTimeout,
		llm.ClassCancelled, "else",
	} {
		if (&llm.Error{Class: class}).Retryable() {
			retried += " " + string(class)
		}
	}
	want := " rate_limit overloaded server transport stream_incomplete stream_idle malformed_stream malformed_tool_call timeout"
	if retried != want {
		t.Errorf("retried are%s, want%s", retried, want)
	}
}

func TestResultBody(t *testing.T) {
	note := []llm.System{{Text: "n"}, {}, {Text: "o"}}
	for _, c := range []struct {
		r    llm.Result
		want string
	}{
		{llm.Result{}, ""},
		{llm.Result{Summary: "s"}, "s"},
		{llm.Result{Content: "c"}, "c"},
		{llm.Result{Summary: "s", Content: "c"}, "s\nc"},
		{llm.Result{Notes: note}, "n\no"},
		{llm.Result{Summary: "s", Content: "c", Notes: note}, "s\nc\nn\no"},
	} {
		if got := c.r.Body(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// What a program prints of a usage can be read.
func TestUsageAsText(t *testing.T) {
	for want, u := range map[string]llm.Usage{
		"unknown":                       {},
		"270 in, 15 out, 12 cached":     {Input: llm.N(270), Output: llm.N(15), Total: llm.N(285), CacheRead: llm.N(12)},
		"0 in":                          {Input: llm.N(0)},
		"7 in all, 3 reasoning":         {Total: llm.N(7), Reasoning: llm.N(3)},
		"9 out, 4 written to the cache": {Output: llm.N(9), CacheWrite: llm.N(4)},
	} {
		if got := fmt.Sprintf("%v", u); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := fmt.Sprint(llm.N(3), llm.Count{}); got != "3 unknown" {
		t.Errorf("got %q", got)
	}
}
