// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
)

// An op holds for the first body and not for the second.
func TestOpsCanFail(t *testing.T) {
	untried := map[string]bool{}
	for op := range ops {
		untried[op] = true
	}
	for op := range bodyOps {
		untried[op] = true
	}
	for _, c := range []struct{ op, path, value, good, bad string }{
		{"eq", "a", `1.10`, `{"a":1.10}`, `{"a":1.1}`},
		{"eq", "a[*].b", `[1,2]`, `{"a":[{"b":1},{"c":0},{"b":2}]}`, `{"a":[{"b":1}]}`},
		{"eq", "a", `null`, `{"a":null}`, `{}`},
		{"ne", "a", `1`, `{}`, `{"a":1}`},
		{"exists", "a.b", ``, `{"a":{"b":null}}`, `{"a":{}}`},
		{"absent", "a[-1].b", ``, `{"a":[{"b":1},{}]}`, `{"a":[{"b":1}]}`},
		{"is_null", "a", ``, `{"a":null}`, `{"a":0}`},
		{"is_null", "a", ``, `{"a":null}`, `{}`},
		{"contains", "a", `"<x>"`, `{"a":{"b":"1<x>2"}}`, `{"a":"y"}`},
		{"contains", "a", `"x"`, `{"a":["x"]}`, `{}`},
		{"contains", "a", `2`, `{"a":[1,2]}`, `{"a":[1]}`},
		{"not_contains", "a", `"x"`, `{"a":["y"]}`, `{"a":[{"text":"1x"}]}`},
		{"match", "a", `"^x.z$"`, `{"a":[{"text":"xy"},{"text":"z"}]}`, `{"a":"xz"}`},
		{"len_eq", "a[?k=v]", `2`, `{"a":[{"k":"v"},{"k":1},{"k":"v"}]}`, `{"a":[{"k":"v"}]}`},
		{"len_eq", "a[?k=true][0].b", `1`, `{"a":[{"k":true,"b":[0]}]}`, `{"a":[{"k":false,"b":[0]}]}`},
		{"len_le", "a", `2`, `{"a":"éé"}`, `{"a":"ééé"}`},
		{"len_ge", "a", `1`, `{"a":{"b":1}}`, `{"a":{}}`},
		{"bytes_le", "a", `4`, `{"a":[{"text":"éé"}]}`, `{"a":"ééé"}`},
		{"unique", "a[*]", ``, `{"a":["1",1]}`, `{"a":["x","x"]}`},
		{"all_match", "a", `"^\\d+$"`, `{"a":["1",22]}`, `{"a":["1","x"]}`},
		{"all_eq", "a[*].b[*]", `1`, `{"a":[{"b":[1,1]},{"b":[1]}]}`, `{"a":[{"b":[1]},{"b":[2]}]}`},
		{"json_eq", "a", `{"x":1}`, `{"a":"{ \"x\": 1 }"}`, `{"a":"{\"x\":2}"}`},
		{"json_eq", "a", `{"x":1}`, `{"a":{"x":1}}`, `{"a":"{"}`},
		{"valid_json", "a", ``, `{"a":"[1]"}`, `{"a":"[1"}`},
		{"eq_path", "a", `"b[0]"`, `{"a":1,"b":[1]}`, `{"a":1,"b":[]}`},
		{"not_starts_with", "a", `"x"`, `{"a":"yx"}`, `{"a":"xy"}`},
		{"raw_contains", "", `"\"a\":1"`, `{"a":1}`, `{"a": 1}`},
		{"raw_not_contains", "", `"\\u003c"`, `{"a":"<"}`, `{"a":"\u003c"}`},
	} {
		a := assertion{Request: which{n: 1}, Path: c.path, Op: c.op}
		if c.value != "" {
			a.Value = json.RawMessage(c.value)
		}
		if err := a.validate(); err != nil {
			t.Fatal(err)
		}
		try := func(body string) []string { return a.check(&trace{exchanges: []exchange{{body: []byte(body)}}}, nil) }
		if got := try(c.good); got != nil {
			t.Errorf("%s of %s: %q", c.op, c.good, got)
		}
		if got := try(c.bad); got == nil {
			t.Errorf("%s of %s holds", c.op, c.bad)
		}
		delete(untried, c.op)
	}
	// The others compare bodies.
	two := &trace{exchanges: []exchange{{body: []byte("{}")}, {body: []byte("{}")}, {body: []byte("{ }")}}}
	same := assertion{Request: which{n: 2}, Op: "same_body", Value: json.RawMessage("1")}
	if got := same.check(two, nil); got != nil {
		t.Error(got)
	}
	same.Value = json.RawMessage("3")
	if same.check(two, nil) == nil {
		t.Error("two bodies that differ are the same")
	}
	repeats := assertion{Request: which{n: 1}, Op: "same_across_repeats"}
	if got := repeats.check(two, []*trace{two, two}); got != nil {
		t.Error(got)
	}
	if repeats.check(two, []*trace{two}) == nil || repeats.check(two, []*trace{two, {exchanges: two.exchanges[2:]}}) == nil {
		t.Error("repeats that differ, or were not there, are the same")
	}
	delete(untried, "same_body")
	delete(untried, "same_across_repeats")
	for op := range untried {
		t.Errorf("nobody tried whether %s can fail", op)
	}
}

func TestAssertionsOfManyRequests(t *testing.T) {
	tr := &trace{exchanges: []exchange{{body: []byte(`{"a":1}`)}, {body: []byte(`{"a":2}`)}}}
	one := func(w which) assertion {
		return assertion{Request: w, Path: "a", Op: "eq", Value: json.RawMessage("2")}
	}
	for name, c := range map[string]struct {
		a    assertion
		want int
	}{
		"all":        {one(which{all: true}), 1},
		"last":       {one(which{last: true}), 0},
		"missing":    {one(which{n: 3}), 1},
		"if present": {assertion{Request: which{n: 3}, Path: "a", Op: "eq", Value: json.RawMessage("2"), IfPresent: true}, 0},
		"any of":     {assertion{AnyOf: [][]assertion{{one(which{n: 1})}, {one(which{n: 2})}}}, 0},
		"none of":    {assertion{AnyOf: [][]assertion{{one(which{n: 1})}, {one(which{n: 2}), one(which{n: 1})}}}, 1},
	} {
		if got := c.a.check(tr, nil); len(got) != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	v := &verdict{}
	soft := one(which{n: 1})
	soft.Level = "should"
	if soft.judge(v, tr, nil); len(v.failures) != 0 || len(v.warnings) != 1 {
		t.Errorf("a should: %+v", v)
	}
}

func TestStepExpectationsCanFail(t *testing.T) {
	known := llm.Usage{Input: llm.N(30), Output: llm.N(10), CacheRead: llm.N(5), CacheWrite: llm.N(6), Reasoning: llm.N(7)}
	refused := fmt.Errorf("run: %w", &llm.Error{Class: llm.ClassRateLimit, Status: 429, Message: "slow down", RetryAfter: 2 * time.Second})
	good := stepResult{outcomes: []string{"completed"}, stop: "end_turn", text: "héllo", stream: "héllo", reasoning: "hm", usage: known, took: time.Second}
	failed := stepResult{outcomes: []string{"error"}, err: refused}
	for _, c := range []struct {
		want string
		on   stepResult
		bad  string // the same field, otherwise
	}{
		{`{"outcome":["stopped","completed"]}`, good, `{"outcome":"error"}`},
		{`{"stop_reason":"end_turn"}`, good, `{"stop_reason":["loop","budget"]}`},
		{`{"final_text":"héllo"}`, good, `{"final_text":""}`},
		{`{"final_text_len":5}`, good, `{"final_text_len":7}`},
		{`{"final_text_not":["x"]}`, good, `{"final_text_not":["x","ll"]}`},
		{`{"text_stream":"héllo"}`, good, `{"text_stream":"hé"}`},
		{`{"reasoning_text":"hm"}`, good, `{"reasoning_text":""}`},
		{`{"max_ms":1000}`, good, `{"max_ms":999}`},
		{`{"usage":{"known":true,"input_total":30,"output_total":10}}`, good, `{"usage":{"known":false}}`},
		{`{"usage":{"cache_read":5}}`, good, `{"usage":{"cache_read":0}}`},
		{`{"usage":{"cache_write":6}}`, good, `{"usage":{"cache_write":5}}`},
		{`{"usage":{"reasoning":7}}`, good, `{"usage":{"reasoning":8}}`},
		{`{"usage":{"input_total":30}}`, good, `{"usage":{"input_total":31}}`},
		{`{"usage":{"output_total":10}}`, good, `{"usage":{"output_total":9}}`},
		{`{"usage":{"known":false}}`, failed, `{"usage":{"input_total":0}}`},
		{`{"error":{"class":["quota","rate_limit"]}}`, failed, `{"error":{"class":"quota"}}`},
		{`{"error":{"retryable":true}}`, failed, `{"error":{"retryable":false}}`},
		{`{"error":{"http_status":429}}`, failed, `{"error":{"http_status":400}}`},
		{`{"error":{"message_contains":"slow"}}`, failed, `{"error":{"message_contains":"fast"}}`},
		{`{"error":{"retry_after_ms":2000}}`, failed, `{"error":{"retry_after_ms":0}}`},
		{`{"outcome":"error"}`, failed, `{"error":{"class":"server"}}`},
		{`{"any_of":[{"outcome":"error"},{"final_text":"héllo"}]}`, good, `{"any_of":[{"outcome":"error"},{"outcome":"completed","final_text":"x"}]}`},
	} {
		try := func(text string) []string {
			var e stepExpectation
			if err := errors.Join(strict([]byte(text), &e), e.validate()); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return e.check(c.on)
		}
		if got := try(c.want); got != nil {
			t.Errorf("%s: %q", c.want, got)
		}
		if try(c.bad) == nil {
			t.Errorf("%s holds", c.bad)
		}
	}
	var e stepExpectation
	if err := strict([]byte(`{"error":{"class":"server"}}`), &e); err != nil || e.check(good) == nil {
		t.Errorf("an error is expected, there is none, and it holds (%v)", err)
	}
}

// The sum over a step counts, or its last reply: the format does not say which.
func TestUsageOfTheStepOrItsLastReply(t *testing.T) {
	n := int64(10)
	e := stepExpectation{Usage: &usageExpect{InputTotal: &n}}
	for _, c := range []struct {
		sum, last int64
		ok        bool
	}{{10, 5, true}, {15, 10, true}, {15, 5, false}} {
		got := e.check(stepResult{usage: llm.Usage{Input: llm.N(c.sum)}, last: llm.Usage{Input: llm.N(c.last)}})
		if (got == nil) != c.ok {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestClassesOfErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&llm.Error{Class: llm.ClassQuota}, "quota"},
		{&journal.DamageError{}, "store_corrupt"},
		{&journal.FormatError{}, "store_corrupt"},
		{&fiducial.Error{Kind: fiducial.KindCancelled, Err: &llm.Error{Class: llm.ClassTransport}}, "cancelled"},
		{&fiducial.Error{Kind: fiducial.KindConfig}, "invalid_request"},
		{io.EOF, "unknown"},
	} {
		if got := classOf(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

func TestToolCallsCanFail(t *testing.T) {
	got := []seenCall{{"id1", "read", `{"n":1.10}`}, {"id2", "now", ""}}
	for want, ok := range map[string]bool{
		`[{"name":"read","args":{"n":1.10}},{"name":"now","args":{}}]`:           true,
		`[{"name":"read","id":"id1","args_raw_contains":"1.10"},{"name":"now"}]`: true,
		`[{"name":"read","args":{"n":1.1}},{"name":"now"}]`:                      false,
		`[{"name":"read","id":"id2"},{"name":"now"}]`:                            false,
		`[{"name":"now"},{"name":"read"}]`:                                       false,
		`[{"name":"read"}]`:                                                      false,
		`[{"name":"read","args_raw_contains":["1.10","x"]},{"name":"now"}]`:      false,
		`[]`: false,
	} {
		var calls []callExpect
		if err := strict([]byte(want), &calls); err != nil {
			t.Fatal(err)
		}
		if bad := checkCalls(calls, got); (bad == nil) != ok {
			t.Errorf("%s: %q", want, bad)
		}
	}
	if err := (callExpect{Name: "x"}).check(seenCall{name: "x"}); err == nil {
		t.Error("a call without an id is one")
	}
}

func TestCountsAndDelaysCanFail(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	tr := &trace{
		exchanges: []exchange{{body: []byte("{}"), arrived: at(0), ended: at(10)}, {body: []byte("{}"), arrived: at(110), ended: at(120)}},
		runs:      map[string]int{"read": 2}, steps: []stepResult{{}},
	}
	for expect, ok := range map[string]bool{
		`{"http_requests":2,"tool_runs":{"read":{"min":1,"max":2},"other":0}}`: true,
		`{"http_requests":1}`:                                      false,
		`{"http_requests":{"min":3}}`:                              false,
		`{"tool_runs":{"read":1}}`:                                 false,
		`{"tool_runs":{"other":1}}`:                                false,
		`{"steps":[{},{}]}`:                                        false,
		`{"delays":[{"between":[1,2],"min_ms":100,"max_ms":100}]}`: true,
		`{"delays":[{"between":[1,2],"min_ms":101}]}`:              false,
		`{"delays":[{"between":[1,2],"max_ms":99}]}`:               false,
		`{"delays":[{"between":[2,3],"max_ms":99}]}`:               false,
	} {
		c := &wireCase{}
		if err := strict([]byte(expect), &c.Expect); err != nil {
			t.Fatal(err)
		}
		if v := judge(c, []*trace{tr}); (len(v.failures) == 0) != ok {
			t.Errorf("%s: %q", expect, v.failures)
		}
	}
	if v := judge(&wireCase{}, []*trace{{steps: []stepResult{{err: errors.New("bad key " + apiKey)}}}}); len(v.failures) != 1 {
		t.Errorf("an error that shows the key passes: %+v", v)
	}
	orphan := &trace{exchanges: []exchange{{body: []byte(`{"messages":[{"role":"tool","tool_call_id":"a"}]}`)}}}
	if v := judge(&wireCase{Provider: providerSpec{Kind: "openai-chat"}}, []*trace{orphan}); len(v.failures) != 1 {
		t.Errorf("an unpaired request passes: %+v", v)
	}
	if v := judge(&wireCase{}, []*trace{{faults: []string{"request 2 is one too many"}}}); len(v.failures) != 1 {
		t.Errorf("a fault of the play passes: %+v", v)
	}
}

// What the runner does not know is an error, never passed over.
func TestUnknownWordsAreRefused(t *testing.T) {
	const base = `{"format":1,"id":"x","provider":{"kind":"anthropic","model":"m"},"run":{"steps":[{"do":"start","input":"a"}]},"replies":[],"expect":{}}`
	if _, err := parseCase([]byte(base)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, with string }{
		{`"id":"x"`, `"id":"x","colour":1`},
		{`"format":1`, `"format":2`},
		{`"anthropic"`, `"cohere"`},
		{`"replies":[]`, `"replies":[{"status":200,"bodi":"x"}]`},
		{`"replies":[]`, `"replies":[{"status":200,"cut":{"how":"bite"}}]`},
		{`"replies":[]`, `"replies":[{"body":"a","body_base64":"YQ=="}]`},
		{`"replies":[]`, `"replies":[{"cut":{"how":"eof"},"stall":{"keepalive":":"}}]`},
		{`"replies":[]`, `"replies":[{"repeat_forever":true},{}]`},
		{`"model":"m"`, `"model":"m","flavor":"vanilla"`},
		{`"expect":{}}`, `"expect":{}} {}`},
		{`"do":"start"`, `"do":"begin"`},
		{`"do":"start"`, `"do":"store","op":"burn"`},
		{`"input":"a"`, `"input":"a","interrupt":{"on":"lunch","how":"cancel"}`},
		{`"input":"a"`, `"input":"a","interrupt":{"on":"tool_start","how":"ask"}`},
		{`"steps":[`, `"limits":{"max_tokens":1},"steps":[`},
		{`"run":{`, `"requires":["telepathy"],"run":{`},
		{`"expect":{}`, `"expect":{"requests":[{"request":1,"op":"resembles"}]}`},
		{`"expect":{}`, `"expect":{"requests":[{"any_of":[[{"request":1,"op":"resembles"}]]}]}`},
		{`"expect":{}`, `"expect":{"requests":[{"op":"exists","path":"a"}]}`},
		{`"expect":{}`, `"expect":{"requests":[{"request":0,"op":"exists","path":"a"}]}`},
		{`"expect":{}`, `"expect":{"invariants":[{"request":"all","name":"nice"}]}`},
		{`"expect":{}`, `"expect":{"steps":[{"outcome":"happy"}]}`},
		{`"expect":{}`, `"expect":{"steps":[{"error":{"class":"bad"}}]}`},
		{`"expect":{}`, `"expect":{"steps":[{"stop_reason":"bored"}]}`},
		{`"expect":{}`, `"expect":{"steps":[{"any_of":[{"outcome":"happy"}]}]}`},
		{`"expect":{}`, `"expect":{"steps":[{},{}]}`},
		{`"expect":{}`, `"expect":{"http_requests":{"about":3}}`},
	} {
		text := strings.Replace(base, c.old, c.with, 1)
		if _, err := parseCase([]byte(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestLackingFeaturesAreNamed(t *testing.T) {
	for _, c := range []*wireCase{
		{Requires: []string{"exec-tool"}},
		{Requires: []string{"durable-store", "exec-tool"}},
		{Run: runSpec{Tools: []toolSpec{{Behavior: behavior{Exec: new(string)}}}}},
		{Expect: expectation{Processes: []json.RawMessage{nil}}},
	} {
		if c.lacks() == "" {
			t.Errorf("%+v applies", c)
		}
	}
	if why := (&wireCase{Requires: []string{"durable-store", "idle-timeout"}}).lacks(); why != "" {
		t.Error(why)
	}
}

// The server sends what the case says, and breaks where it says.
func TestServerIsExact(t *testing.T) {
	text := func(s string) *string { return &s }
	at := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		reply reply
		want  string
		err   error // nil: any end is in order; io.EOF: any error
	}{
		"plain":  {reply{Body: text("ab\r\n\ufeffc")}, "ab\r\n\ufeffc", nil},
		"base64": {reply{BodyBase64: text("/wA=")}, "\xff\x00", nil},
		"parts":  {reply{BodyParts: []bodyPart{{Text: text("a")}, {Repeat: "xy", Times: 3}}}, "axyxyxy", nil},
		"chunks": {reply{Body: text("abcdef"), Chunks: []int{1, 2}}, "abcdef", nil},
		"bytes":  {reply{Body: text("abc"), ChunkEvery: 1}, "abc", nil},
		"end":    {reply{Body: text("abcdef"), Cut: &cut{at(2), "end"}}, "ab", nil},
		"eof":    {reply{Body: text("abcdef"), Cut: &cut{at(3), "eof"}}, "abc", io.ErrUnexpectedEOF},
		"rst":    {reply{Body: text("abcdef"), Cut: &cut{nil, "rst"}}, "abcdef", io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			c.reply.Status = 200
			s := newCaseServer(&wireCase{Provider: providerSpec{Kind: "anthropic"}, Replies: []reply{c.reply}}, func() {})
			defer s.stop()
			got, err := post(t, s.URL)
			if got != c.want || (err == nil) != (c.err == nil) || errors.Is(c.err, io.ErrUnexpectedEOF) && !errors.Is(err, c.err) {
				t.Errorf("got %q and %v", got, err)
			}
			if _, err := post(t, s.URL); err != nil {
				t.Error(err)
			}
			if len(s.faults) != 1 || !strings.Contains(s.faults[0], "one too many") {
				t.Errorf("faults %q", s.faults)
			}
		})
	}
}

func post(t *testing.T, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func TestTemplates(t *testing.T) {
	got, err := fillTemplate([]byte(`a {{wire_name:Two words}} {{wire_name:B}}`), []byte(`{"tools":[{"function":{"name":"x_1","description":"Two words"}},{"function":{"name":"y","description":"B"}}]}`))
	if string(got) != "a x_1 y" || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := fillTemplate([]byte(`{{wire_name:C}}`), []byte(`{"tools":[{"name":"x","description":"B"}]}`)); err == nil {
		t.Error("a name that is not there is filled in")
	}
}

func TestStoreOps(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	for op, want := range map[string]string{"truncate_tail": "one\ntwo\nth", "nul_fill_middle": "one\ntwo\n\x00\x00\x00\x00\nthree\n"} {
		if err := os.WriteFile(file, []byte("one\ntwo\nthree\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := damage(file, stepSpec{Op: op, Bytes: 4}); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(file); string(got) != want {
			t.Errorf("%s: %q", op, got)
		}
	}
}

// A dead process can neither store nor ask.
func TestTheDeadAreSilent(t *testing.T) {
	dir := t.TempDir()
	store, err := openStore(t.Context(), "file", filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	p := &process{store: store, http: &http.Transport{}}
	s := mortalStore{store, p}
	if err := s.Create(t.Context(), runName, journal.Header{}); err != nil {
		t.Fatal(err)
	}
	lease, err := s.Acquire(t.Context(), runName, "me")
	if err != nil {
		t.Fatal(err)
	}
	note := journal.Note{Kind: "n"}
	if err := lease.Append(t.Context(), journal.Mark{}, note); err != nil {
		t.Fatal(err)
	}
	if err := p.kill(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1", nil)
	_, sent := p.RoundTrip(req) //nolint:bodyclose // there is no response
	for name, err := range map[string]error{
		"append": lease.Append(t.Context(), journal.Mark{}, note), "create": s.Create(t.Context(), "x", journal.Header{}),
		"offer": s.Offer(t.Context(), runName, "k", llm.UserText("x")), "send": sent,
	} {
		if !errors.Is(err, errDead) {
			t.Errorf("%s: %v", name, err)
		}
	}
	after, err := openStore(t.Context(), "file", filepath.Join(dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if info, err := after.Stat(context.WithoutCancel(t.Context()), runName); err != nil || info.Head != 2 {
		t.Errorf("the copy has %+v, %v", info, err)
	}
	if l, err := after.Acquire(t.Context(), runName, "next"); err != nil {
		t.Errorf("the next process: %v", err)
	} else if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
