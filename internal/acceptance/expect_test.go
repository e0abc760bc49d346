// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
)

// A verdict is what a case's expectations found wrong.
type verdict struct{ failures, warnings []string }

func (v *verdict) fail(format string, args ...any) {
	v.failures = append(v.failures, fmt.Sprintf(format, args...))
}

func (v *verdict) at(level, text string) {
	if level == "should" {
		v.warnings = append(v.warnings, text)
		return
	}
	v.failures = append(v.failures, text)
}

// judge holds the traces of all repeats against the case.
func judge(c *wireCase, traces []*trace) *verdict {
	v := &verdict{}
	for i, tr := range traces {
		one := &verdict{}
		judgeTrace(one, c, tr, traces)
		if len(traces) > 1 {
			for j := range one.failures {
				one.failures[j] = fmt.Sprintf("repeat %d: %s", i+1, one.failures[j])
			}
		}
		v.failures = append(v.failures, one.failures...)
		v.warnings = append(v.warnings, one.warnings...)
	}
	return v
}

func judgeTrace(v *verdict, c *wireCase, tr *trace, all []*trace) {
	v.failures = append(v.failures, tr.faults...)
	v.warnings = append(v.warnings, tr.remarks...)
	e := c.Expect
	if n := len(tr.exchanges); e.HTTPRequests != nil && !e.HTTPRequests.holds(n) {
		v.fail("http_requests: %d, want %s", n, e.HTTPRequests)
	}
	for i, want := range e.Steps {
		if i >= len(tr.steps) {
			v.fail("step %d did not happen", i+1)
			continue
		}
		for _, p := range want.check(tr.steps[i]) {
			v.fail("step %d: %s", i+1, p)
		}
	}
	if e.ToolCalls != nil {
		v.failures = append(v.failures, checkCalls(*e.ToolCalls, tr.calls)...)
	}
	for name, want := range e.ToolRuns {
		if n := tr.runs[name]; !want.holds(n) {
			v.fail("tool_runs: %s entered %d times, want %s", name, n, want)
		}
	}
	for _, a := range e.Requests {
		a.judge(v, tr, all)
	}
	for _, i := range e.Invariants {
		i.judge(v, c, tr)
	}
	// What no case has to ask for.
	if len(tr.exchanges) > 0 {
		invariant{Request: which{all: true}, Name: "tool_pairing"}.judge(v, c, tr)
	}
	for i, s := range tr.steps {
		if s.err != nil && strings.Contains(s.err.Error(), apiKey) {
			v.fail("step %d: the error shows the key: %v", i+1, s.err)
		}
	}
	for _, d := range e.Delays {
		if err := d.check(tr.exchanges); err != nil {
			v.fail("delays: %v", err)
		}
	}
}

// check says what of the step is not as expected.
func (e stepExpectation) check(got stepResult) []string {
	var bad []string
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if e.Outcome != nil && !slices.ContainsFunc(got.outcomes, func(o string) bool { return slices.Contains(e.Outcome, o) }) {
		say("outcome %v, want %v (error: %v)", got.outcomes, e.Outcome, got.err)
	}
	if e.StopReason != nil && !slices.Contains(e.StopReason, got.stop) {
		say("stop_reason %q, want %v", got.stop, e.StopReason)
	}
	for _, text := range []struct {
		name string
		got  string
		want *string
	}{{"final_text", got.text, e.FinalText}, {"text_stream", got.stream, e.TextStream}, {"reasoning_text", got.reasoning, e.Reasoning}} {
		if text.want != nil && text.got != *text.want {
			say("%s %.500q, want %.500q", text.name, text.got, *text.want)
		}
	}
	if n := e.FinalTextLen; n != nil && len(got.text) != *n && utf8.RuneCountInString(got.text) != *n {
		say("final_text_len %d, want %d", len(got.text), *n)
	}
	for _, not := range e.FinalTextNot {
		if strings.Contains(got.text, not) {
			say("final_text contains %q", not)
		}
	}
	if e.Usage != nil {
		if err := e.Usage.check(got.usage); err != nil && (!got.last.Known() || e.Usage.check(got.last) != nil) {
			say("usage: %v", err)
		}
	}
	if e.Error != nil {
		bad = append(bad, e.Error.check(got.err)...)
	}
	if e.MaxMS != nil && got.took.Milliseconds() > int64(*e.MaxMS) {
		say("it took %d ms, more than %d", got.took.Milliseconds(), *e.MaxMS)
	}
	if e.AnyOf != nil {
		var all []string
		for _, one := range e.AnyOf {
			p := one.check(got)
			if p == nil {
				return bad
			}
			all = append(all, strings.Join(p, ", "))
		}
		say("none of any_of holds: %s", strings.Join(all, " | "))
	}
	return bad
}

// check compares one usage. A count that the provider did not state is 0 where it
// stated others.
func (e usageExpect) check(got llm.Usage) error {
	if e.Known != nil && got.Known() != *e.Known {
		return fmt.Errorf("known is %t: %+v", got.Known(), got)
	}
	for _, n := range []struct {
		name string
		want *int64
		got  llm.Count
	}{
		{"input_total", e.InputTotal, got.Input},
		{"output_total", e.OutputTotal, got.Output},
		{"cache_read", e.CacheRead, got.CacheRead},
		{"cache_write", e.CacheWrite, got.CacheWrite},
		{"reasoning", e.Reasoning, got.Reasoning},
	} {
		if n.want == nil {
			continue
		}
		if !got.Known() || n.got.Value() != *n.want {
			return fmt.Errorf("%s is %d, want %d", n.name, n.got.Value(), *n.want)
		}
	}
	return nil
}

func (e errorExpect) check(got error) []string {
	if got == nil {
		return []string{"there was no error"}
	}
	var bad []string
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if class := classOf(got); e.Class != nil && !slices.Contains(e.Class, class) {
		say("error class %q, want %v: %v", class, e.Class, got)
	}
	of, _ := errors.AsType[*llm.Error](got)
	if of == nil {
		of = &llm.Error{Class: llm.ClassInvalidRequest} // nothing that a provider said
	}
	if e.Retryable != nil && of.Retryable() != *e.Retryable {
		say("retryable %t, want %t: %v", of.Retryable(), *e.Retryable, got)
	}
	if e.HTTPStatus != nil && of.Status != *e.HTTPStatus {
		say("http_status %d, want %d", of.Status, *e.HTTPStatus)
	}
	for _, text := range e.MessageContains {
		if !strings.Contains(got.Error(), text) {
			say("the error %q does not contain %q", got, text)
		}
	}
	if e.RetryAfterMS != nil && of.RetryAfter.Milliseconds() != *e.RetryAfterMS {
		say("retry_after_ms %d, want %d", of.RetryAfter.Milliseconds(), *e.RetryAfterMS)
	}
	return bad
}

func checkCalls(want []callExpect, got []seenCall) []string {
	var bad []string
	if len(want) != len(got) {
		bad = append(bad, fmt.Sprintf("tool_calls: %d, want %d: %v", len(got), len(want), got))
	}
	for i := range min(len(want), len(got)) {
		if err := want[i].check(got[i]); err != nil {
			bad = append(bad, fmt.Sprintf("tool_calls[%d]: %v", i, err))
		}
	}
	return bad
}

func (e callExpect) check(got seenCall) error {
	switch {
	case got.name != e.Name:
		return fmt.Errorf("name %q, want %q", got.name, e.Name)
	case got.id == "":
		return errors.New("it has no id")
	case e.ID != "" && got.id != e.ID:
		return fmt.Errorf("id %q, want %q", got.id, e.ID)
	}
	for _, text := range e.ArgsRawContains {
		if !strings.Contains(got.args, text) {
			return fmt.Errorf("args %q do not contain %q", got.args, text)
		}
	}
	if e.Args == nil {
		return nil
	}
	want, err := parseJSON(e.Args)
	if err != nil {
		return err
	}
	text := got.args
	if strings.TrimSpace(text) == "" {
		text = llm.EmptyInput
	}
	args, err := parseJSON([]byte(text))
	if err != nil {
		return err
	}
	return unless(!reflect.DeepEqual(args, want), "args %s, want %s", text, e.Args)
}

// judge tries the assertion on the requests it is about.
func (a assertion) judge(v *verdict, tr *trace, all []*trace) {
	for _, text := range a.check(tr, all) {
		v.at(a.Level, text)
	}
}

func (a assertion) check(tr *trace, all []*trace) []string {
	if a.AnyOf != nil {
		return a.checkGroups(tr, all)
	}
	numbers, err := a.Request.of(len(tr.exchanges))
	if err != nil {
		if a.IfPresent {
			return nil
		}
		return []string{fmt.Sprintf("%s %s: %v", a.Op, a.Path, err)}
	}
	var bad []string
	for _, n := range numbers {
		if err := a.one(n, tr, all); err != nil {
			bad = append(bad, fmt.Sprintf("request %d: %s %s: %v", n, a.Path, a.Op, err))
		}
	}
	return bad
}

func (a assertion) checkGroups(tr *trace, all []*trace) []string {
	var why []string
	for _, group := range a.AnyOf {
		var bad []string
		for _, in := range group {
			if in.Level != "should" {
				bad = append(bad, in.check(tr, all)...)
			}
		}
		if bad == nil {
			return nil
		}
		why = append(why, strings.Join(bad, ", "))
	}
	return []string{"no group of any_of holds: " + strings.Join(why, " | ")}
}

// of are the numbers of the requests that are meant, of n.
func (w which) of(n int) ([]int, error) {
	switch {
	case n == 0:
		return nil, errors.New("there was no request")
	case w.last:
		return []int{n}, nil
	case w.all:
		out := make([]int, n)
		for i := range out {
			out[i] = i + 1
		}
		return out, nil
	case w.n > n:
		return nil, fmt.Errorf("request %d was not made", w.n)
	}
	return []int{w.n}, nil
}

func (a assertion) one(n int, tr *trace, all []*trace) error {
	body := tr.exchanges[n-1].body
	var want any
	if a.Value != nil {
		var err error
		if want, err = parseJSON(a.Value); err != nil {
			return err
		}
	}
	if f, ok := bodyOps[a.Op]; ok {
		others, err := a.others(n, want, tr, all)
		if err != nil {
			return err
		}
		return f(body, want, others)
	}
	req, err := parseJSON(body)
	if err != nil {
		return err
	}
	got, there, err := find(req, a.Path)
	if err != nil {
		return err
	}
	return ops[a.Op](point{got, there, want, req})
}

// others are the bodies that same_body and same_across_repeats compare with.
func (a assertion) others(n int, want any, tr *trace, all []*trace) ([][]byte, error) {
	var out [][]byte
	switch a.Op {
	case "same_body":
		m, err := number(want)
		if err != nil {
			return nil, err
		}
		if m < 1 || int(m) > len(tr.exchanges) {
			return nil, fmt.Errorf("request %d was not made", m)
		}
		out = append(out, tr.exchanges[m-1].body)
	case "same_across_repeats":
		for _, other := range all {
			if n > len(other.exchanges) {
				return nil, errors.New("another repeat did not make it")
			}
			out = append(out, other.exchanges[n-1].body)
		}
		if len(all) < 2 {
			return nil, errors.New("the case was not repeated")
		}
	}
	return out, nil
}

// check holds the time between the end of one reply and the next request.
func (d delay) check(got []exchange) error {
	from, to := d.Between[0], d.Between[1]
	if from < 1 || to < 1 || to > len(got) || from > len(got) {
		return fmt.Errorf("requests %d and %d were not both made", from, to)
	}
	ms := got[to-1].arrived.Sub(got[from-1].ended).Milliseconds()
	if d.MinMS != nil && ms < *d.MinMS || d.MaxMS != nil && ms > *d.MaxMS {
		return fmt.Errorf("%d ms between %d and %d, want %s to %s", ms, from, to, bound(d.MinMS), bound(d.MaxMS))
	}
	return nil
}

func bound(n *int64) string {
	if n == nil {
		return "any"
	}
	return json.Number(fmt.Sprint(*n)).String()
}
