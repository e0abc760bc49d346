// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
)

// E-214, and the shapes of compatible servers.
func TestStatusError(t *testing.T) {
	for _, tt := range []struct {
		name, body    string
		status        int
		class         llm.Class
		code, message string
	}{
		{"anthropic", `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, 429, llm.ClassRateLimit, "rate_limit_error", "slow"},
		{"openai quota", `{"error":{"message":"no money","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, 429, llm.ClassQuota, "insufficient_quota", "no money"},
		{"openai overflow", `{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`, 400, llm.ClassContextOverflow, "context_length_exceeded", "too long"},
		{"llama.cpp overflow", `{"error":{"code":400,"message":"request (12 tokens) exceeds the available context size (8 tokens), try increasing it","type":"exceed_context_size_error","n_ctx":8}}`, 400, llm.ClassContextOverflow, "exceed_context_size_error", "request (12 tokens) exceeds the available context size (8 tokens), try increasing it"},
		{"gemini in an array", `[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]`, 503, llm.ClassOverloaded, "UNAVAILABLE", "busy"},
		{"ollama", `{"error":"model \"x\" not found"}`, 404, llm.ClassNotFound, "", `model "x" not found`},
		{"vllm", `{"object":"error","message":"This model's maximum context length is 10 tokens.","type":"BadRequestError","param":null,"code":400}`, 400, llm.ClassContextOverflow, "BadRequestError", "This model's maximum context length is 10 tokens."},
		{"fastapi", `{"detail":"Not authenticated"}`, 401, llm.ClassAuth, "", "Not authenticated"},
		{"proxy page", "<html>502</html>", 502, llm.ClassServer, "", "<html>502</html>"},
		{"empty", "", 500, llm.ClassServer, "", ""},
		{"not implemented", "", 501, llm.ClassInvalidRequest, "", ""},
		{"too many bytes", "<html>413</html>", 413, llm.ClassContextOverflow, "", "<html>413</html>"},
		{"early", "", 425, llm.ClassTransport, "", ""},
		{"plain refusal", `{"error":{"message":"bad tool","type":"invalid_request_error"}}`, 400, llm.ClassInvalidRequest, "invalid_request_error", "bad tool"},
		{"a limit by tokens a minute is no overflow", `{"error":{"message":"Request too large for model with limit 6000 TPM","code":"rate_limit_exceeded"}}`, 429, llm.ClassRateLimit, "rate_limit_exceeded", "Request too large for model with limit 6000 TPM"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := StatusError("op", tt.status, http.Header{}, []byte(tt.body), time.Time{})
			if got.Class != tt.class || got.Code != tt.code || got.Message != tt.message || got.Status != tt.status {
				t.Errorf("got %+v; want %s %q %q", got, tt.class, tt.code, tt.message)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		header http.Header
		want   time.Duration
	}{
		{"none", http.Header{}, 0},
		{"seconds", http.Header{"Retry-After": {"7"}}, 7 * time.Second},
		{"part of a second", http.Header{"Retry-After": {"0.25"}}, 250 * time.Millisecond},
		{"milliseconds first", http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"1500"}}, 1500 * time.Millisecond},
		{"date", http.Header{"Retry-After": {"Mon, 30 Nov 2026 12:00:03 GMT"}}, 3 * time.Second},
		{"date by the server's clock", http.Header{"Retry-After": {"Mon, 30 Nov 2026 13:00:03 GMT"}, "Date": {"Mon, 30 Nov 2026 13:00:00 GMT"}}, 3 * time.Second},
		{"date in the past", http.Header{"Retry-After": {"Mon, 30 Nov 2026 11:00:00 GMT"}}, 0},
		{"negative", http.Header{"Retry-After": {"-1"}}, 0},
		{"nonsense", http.Header{"Retry-After": {"soon"}}, 0},
		{"not a number", http.Header{"Retry-After": {"NaN"}}, 0},
		{"for ever", http.Header{"Retry-After": {"1e30"}}, math.MaxInt64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := RetryAfter(tt.header, now); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// E-191, E-260.
func TestMask(t *testing.T) {
	m := NewMask("sk-secret/1", "")
	in := `Post "https://u:pw@h.example/v1/x?key=AIza&alt=sse": key sk-secret/1 or sk-secret%2F1 refused`
	got := m.Text(in)
	for _, secret := range []string{"sk-secret", "AIza", "pw", "alt=sse"} {
		if strings.Contains(got, secret) {
			t.Errorf("%q is still in %q", secret, got)
		}
	}
	if !strings.Contains(got, "h.example/v1/x") {
		t.Errorf("the address is gone: %q", got)
	}
}

var fit = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

// The names of wire case 085.
func TestNames(t *testing.T) {
	long := "mcp__workspace__" + strings.Repeat("very_long_segment_", 6)
	names := []string{"github.issues/create", "github_issues_create", long + "a", long + "b", "größe", "9lives", "", "read_file"}
	var tools []llm.Tool
	for _, n := range names {
		tools = append(tools, llm.Tool{Name: n})
	}
	a, b := NewNames(tools), NewNames(nil)
	seen := map[string]bool{}
	for _, n := range names {
		w := a.Wire(n)
		if !fit.MatchString(w) || seen[w] || a.Real(w) != n {
			t.Errorf("%q: wire %q, back %q", n, w, a.Real(w))
		}
		if other := b.Wire(n); other != w {
			t.Errorf("%q: %q without the tools, %q with them", n, other, w)
		}
		seen[w] = true
	}
	if a.Wire("read_file") != "read_file" || a.Real("unknown") != "unknown" {
		t.Error("fit and unknown names must stay")
	}
	stolen := NewNames([]llm.Tool{{Name: "a.b"}, {Name: NewNames(nil).Wire("a.b")}})
	if w := stolen.Wire("a.b"); stolen.Real(w) != "a.b" || w == NewNames(nil).Wire("a.b") {
		t.Errorf("a tool that is called like the hashed name of another took it: %q", w)
	}
}

func TestIDs(t *testing.T) {
	m := NewIDs(40)
	first := m.Call("call_1")
	if first != "call_1" || m.Result("call_1") != first {
		t.Errorf("a fit id must stay: %q", first)
	}
	again := m.Call("call_1")
	if again == first || m.Result("call_1") != again {
		t.Errorf("the second call_1 is sent as %q, its result as %q", again, m.Result("call_1"))
	}
	odd := m.Call("functions.read:0")
	long := m.Call(strings.Repeat("x", 99))
	for _, id := range []string{first, again, odd, long, m.Call("")} {
		if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`).MatchString(id) {
			t.Errorf("%q is no id", id)
		}
	}
	if n := NewIDs(9); len(n.Call("call_1234567")) != 9 {
		t.Error("an id of 9 bytes was wanted")
	}
	if other := NewIDs(40); other.Call("functions.read:0") != odd {
		t.Error("the id must depend on nothing but what stands before it")
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("<a> & \"b\" \\ \n\t\x00\u2028 \xff 日😀")
	f.Fuzz(func(t *testing.T, s string) {
		out := AppendString(nil, s)
		var back string
		if err := json.Unmarshal(out, &back); err != nil || !utf8.Valid(out) {
			t.Fatalf("%q: %v", out, err)
		}
		if utf8.ValidString(s) && back != s {
			t.Errorf("%q came back as %q", s, back)
		}
		if bytes.Contains(out, []byte(`\u003c`)) && strings.Contains(s, "<") && !strings.Contains(s, `\u003c`) {
			t.Errorf("HTML escape in %q", out)
		}
	})
}

func TestJSON(t *testing.T) {
	var j JSON
	j.Open('{')
	j.Field("a", "<&>\x01")
	j.Key("b")
	j.Open('[')
	j.Int(-1)
	j.Float(0.1)
	j.Bool(true)
	j.Raw([]byte(`{"z":1, "y":2}`))
	j.Open('{')
	j.Close('}')
	j.Close(']')
	j.Field("c", "")
	j.Close('}')
	want := `{"a":"<&>\u0001","b":[-1,0.1,true,{"z":1, "y":2},{}],"c":""}`
	if got := string(j.Bytes()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRepair(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": "\ud83d\ude00", "b":1.0}`: `{"a": "\ud83d\ude00", "b":1.0}`,
		`{"a":"\ud83d"}`:                 `{"a":"\ufffd"}`,
		`{"a":"\uDE00x"}`:                `{"a":"\ufffdx"}`,
		`{"a":"\ud83d\ud83d\ude00"}`:     `{"a":"\ufffd\ud83d\ude00"}`,
		`{"a":"\\ud83d"}`:                `{"a":"\\ud83d"}`,
		"{\"a\":\"\xff\"}":               "{\"a\":\"\uFFFD\"}",
	} {
		if got := Repair(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

// Servers' own words for a conversation that is too long, and words that are not.
func TestOverflow(t *testing.T) {
	for message, want := range map[string]bool{
		"The input (9012 tokens) is longer than the model's context length (8192 tokens).":                 true,
		"the input length exceeds the context length":                                                      true,
		"This model's maximum prompt length is 131072 but the request contains 537812 tokens.":             true,
		"Invalid request: Your request exceeded model token limit: 65536 (requested: 78000)":               true,
		"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs`": true,
		"prompt token count of 135321 exceeds the limit of 128000":                                         true,
		"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292":         true,
		"Too many input tokens": true,
		"The input (12345 tokens) exceeds the model's maximum of 8192":         true,
		"max_tokens (100000) exceeds the model's maximum output tokens (8192)": false,
		"The max_output_tokens of your prompt exceeds the model's maximum":     false,
		"Tool description exceeds max length":                                  false,
		"max_tokens: must be at most 8192":                                     false,
		"Unsupported parameter: 'max_tokens'":                                  false,
		"temperature must be between 0 and the limit of 2":                     false,
		"Invalid prompt: your prompt was flagged":                              false,
		"The model does not support a context of this length":                  false,
	} {
		if got := Overflow(message); got != want {
			t.Errorf("%q: %t", message, got)
		}
	}
}

func TestAnyIDs(t *testing.T) {
	ids := AnyIDs()
	long := "call_1__thought__" + strings.Repeat("Ab+/", 40) + "=="
	for _, id := range []string{"functions.read:0", long} {
		if got := ids.Call(id); got != id {
			t.Errorf("%s became %s", id, got)
		}
		if got := ids.Result(id); got != id {
			t.Errorf("the result of %s goes to %s", id, got)
		}
	}
	if got := ids.Call(long); got == long {
		t.Error("an id is used twice")
	}
	if got := ids.Call(""); got == "" {
		t.Error("a call has no id")
	}
}
