package gemini_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/gemini"
)

// A wireCase is one case of the folder that FIDUCIAL_CASES names, as far as an
// adapter alone can be held to it.
type wireCase struct {
	ID       string `json:"id"`
	Requires []string
	Provider struct{ Kind, Wire, Flavor, Model string }
	Run      struct {
		System string
		Tools  []struct {
			Name, Description string
			Schema            json.RawMessage
			Behavior          map[string]json.RawMessage
		}
		Options struct {
			MaxOutputTokens int `json:"max_output_tokens"`
			Stop            []string
		}
		Steps []struct{ Do, Input string }
	}
	Replies []struct {
		Status     int
		Headers    map[string]any
		Body       string
		BodyBase64 string `json:"body_base64"`
		Cut        *struct {
			AfterBytes *int `json:"after_bytes"`
			How        string
		}
	}
	Expect struct {
		ToolCalls []struct {
			Name, ID string
			Args     json.RawMessage
		} `json:"tool_calls"`
		Steps    []map[string]json.RawMessage
		Requests []map[string]json.RawMessage
	}
}

// readCases are the cases of some kinds of provider.
func readCases(t *testing.T, kinds ...string) []wireCase {
	t.Helper()
	dir := os.Getenv("FIDUCIAL_CASES")
	if dir == "" {
		t.Skip("FIDUCIAL_CASES names no folder")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in %s (%v)", dir, err)
	}
	var out []wireCase
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		var c wireCase
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		if c.Provider.Kind == "engine" {
			c.Provider.Kind = c.Provider.Wire
		}
		if slices.Contains(kinds, c.Provider.Kind) {
			out = append(out, c)
		}
	}
	return out
}

// A caseServer plays a case's replies and keeps the requests.
type caseServer struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

func serveCase(t *testing.T, c wireCase) *caseServer {
	s := &caseServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		n := len(s.bodies)
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		if n >= len(c.Replies) {
			http.Error(w, "no more replies", http.StatusTeapot)
			return
		}
		reply := c.Replies[n]
		out := []byte(reply.Body)
		if reply.BodyBase64 != "" {
			out, _ = base64.StdEncoding.DecodeString(reply.BodyBase64)
		}
		for k, v := range reply.Headers {
			switch v := v.(type) {
			case string:
				w.Header().Set(k, v)
			case map[string]any:
				ms, _ := v["http_date_in_ms"].(float64)
				w.Header().Set(k, time.Now().Add(time.Duration(ms)*time.Millisecond).UTC().Format(http.TimeFormat))
			}
		}
		w.WriteHeader(reply.Status)
		if reply.Cut == nil {
			_, _ = w.Write(out)
			return
		}
		if reply.Cut.AfterBytes != nil {
			out = out[:*reply.Cut.AfterBytes]
		}
		_, _ = w.Write(out)
		cut(t, w, reply.Cut.How)
	}))
	t.Cleanup(s.Close)
	return s
}

// cut breaks the connection off.
func cut(t *testing.T, w http.ResponseWriter, how string) {
	rc := http.NewResponseController(w)
	if err := rc.Flush(); err != nil || how == "end" {
		return
	}
	time.Sleep(50 * time.Millisecond)
	conn, _, err := rc.Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && how == "rst" {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

// A caseRun is what an adapter made of a case, without an engine.
type caseRun struct {
	calls   []llm.Call
	replies []collect.Reply
	err     error
	bodies  []string
}

// play drives the adapter through a case the way an engine would: calls are
// answered by the scripted tools, failures that may pass are tried again.
func play(t *testing.T, c wireCase, client llm.Client, s *caseServer) caseRun {
	t.Helper()
	var run caseRun
	req := llm.Request{System: c.Run.System, CacheAnchor: -1}
	req.Settings.MaxTokens, req.Settings.Stop = c.Run.Options.MaxOutputTokens, c.Run.Options.Stop
	for _, tool := range c.Run.Tools {
		lt := llm.Tool{Name: tool.Name, Description: tool.Description}
		if string(tool.Schema) != "null" {
			lt.Schema = tool.Schema
		}
		req.Tools = append(req.Tools, lt)
	}
	slices.SortFunc(req.Tools, func(a, b llm.Tool) int { return strings.Compare(a.Name, b.Name) })
	for _, step := range c.Run.Steps {
		if step.Do != "start" && step.Do != "user" {
			t.Skipf("a step %q needs the engine", step.Do)
		}
		req.Messages = append(req.Messages, llm.UserText(step.Input))
		for len(s.bodies) < len(c.Replies) {
			reply, err := collect.Stream(t.Context(), client, &req)
			if err != nil {
				if e := new(llm.Error); asError(err, &e) && e.Retryable() && len(s.bodies) < len(c.Replies) {
					continue
				}
				run.err = err
				break
			}
			run.replies = append(run.replies, reply)
			req.Messages = append(req.Messages, reply.Message)
			if reply.Message.Stop != llm.StopToolUse {
				break
			}
			var results []llm.Result
			for _, call := range reply.Message.Calls() {
				run.calls = append(run.calls, call)
				results = append(results, answer(t, c, call))
			}
			req.Messages = append(req.Messages, llm.ToolResults(results...))
		}
	}
	run.bodies = s.bodies
	return run
}

// answer does what a case's tool does.
func answer(t *testing.T, c wireCase, call llm.Call) llm.Result {
	t.Helper()
	r := llm.Result{CallID: call.ID, Name: call.Name, Status: llm.StatusSuccess}
	for _, tool := range c.Run.Tools {
		if tool.Name != call.Name {
			continue
		}
		for kind, raw := range tool.Behavior {
			switch kind {
			case "returns":
				_ = json.Unmarshal(raw, &r.Content)
			case "returns_by":
				var by map[string]map[string]string
				var args map[string]any
				_ = json.Unmarshal(raw, &by)
				_ = json.Unmarshal([]byte(call.EchoArgs()), &args)
				for arg, texts := range by {
					r.Content = texts[fmt.Sprint(args[arg])]
				}
			case "returns_parts":
				var parts []struct {
					Type, Text string
					Media      string `json:"media_type"`
					Data       []byte `json:"data_base64"`
				}
				_ = json.Unmarshal(raw, &parts)
				for _, p := range parts {
					r.Content += p.Text
					if p.Type == "image" {
						r.Images = append(r.Images, llm.Image{Media: p.Media, Data: p.Data})
					}
				}
			}
		}
		return r
	}
	t.Fatalf("the model called %q", call.Name)
	return r
}

// compare holds a run against what the case expects.
func compare(t *testing.T, c wireCase, run caseRun) {
	t.Helper()
	for i, want := range c.Expect.ToolCalls {
		if i >= len(run.calls) {
			t.Fatalf("calls: got %d, want %d", len(run.calls), len(c.Expect.ToolCalls))
		}
		got := run.calls[i]
		if got.Name != want.Name || want.ID != "" && got.ID != want.ID {
			t.Errorf("call %d: got %s %s, want %s %s", i, got.Name, got.ID, want.Name, want.ID)
		}
		if diff := cmp.Diff(plain(t, want.Args), plain(t, json.RawMessage(got.EchoArgs()))); diff != "" {
			t.Errorf("call %d: arguments (-want +got):\n%s", i, diff)
		}
	}
	last := len(c.Expect.Steps) - 1
	if last < 0 {
		return
	}
	if got, want := stepFaults(t, c.Expect.Steps[last], run), "[]"; got != want {
		t.Error(got)
	}
}

// stepFaults are the expectations of a step that do not hold.
func stepFaults(t *testing.T, want map[string]json.RawMessage, run caseRun) string {
	t.Helper()
	var faults []string
	var reply collect.Reply
	if n := len(run.replies); n > 0 {
		reply = run.replies[n-1]
	}
	for key, raw := range want {
		var text string
		_ = json.Unmarshal(raw, &text)
		switch key {
		case "outcome":
			if (text == "error") != (run.err != nil) && text != "" {
				faults = append(faults, fmt.Sprintf("outcome: error %v, want %s", run.err, text))
			}
		case "final_text":
			if got := reply.Message.Text(); got != text {
				faults = append(faults, fmt.Sprintf("final text: got %q, want %q", got, text))
			}
		case "stop_reason":
			if got := string(reply.Message.Stop); !strings.Contains(string(raw), `"`+got+`"`) {
				faults = append(faults, fmt.Sprintf("stop reason: got %s, want %s", got, raw))
			}
		case "error":
			faults = append(faults, errorFaults(t, raw, run.err)...)
		case "usage":
			faults = append(faults, usageFaults(t, raw, reply.Usage)...)
		case "any_of":
			var list []map[string]json.RawMessage
			if err := json.Unmarshal(raw, &list); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(list, func(w map[string]json.RawMessage) bool { return stepFaults(t, w, run) == "[]" }) {
				faults = append(faults, fmt.Sprintf("none of %s", raw))
			}
		}
	}
	return fmt.Sprint(faults)
}

func errorFaults(t *testing.T, raw json.RawMessage, err error) []string {
	t.Helper()
	var want struct {
		Class     json.RawMessage
		Retryable *bool
		Status    int    `json:"http_status"`
		Contains  string `json:"message_contains"`
	}
	if e := json.Unmarshal(raw, &want); e != nil {
		t.Fatal(e)
	}
	e := new(llm.Error)
	if !asError(err, &e) {
		return []string{fmt.Sprintf("error: got %v, want %s", err, raw)}
	}
	if !strings.Contains(string(want.Class), `"`+string(e.Class)+`"`) ||
		want.Retryable != nil && *want.Retryable != e.Retryable() ||
		want.Status != 0 && want.Status != e.Status || !strings.Contains(e.Message, want.Contains) {
		return []string{fmt.Sprintf("error: got %+v, want %s", e, raw)}
	}
	return nil
}

func usageFaults(t *testing.T, raw json.RawMessage, got llm.Usage) []string {
	t.Helper()
	var want map[string]any
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	counts := map[string]llm.Count{
		"input_total": got.Input, "output_total": got.Output,
		"cache_read": got.CacheRead, "cache_write": got.CacheWrite, "reasoning": got.Reasoning,
	}
	var faults []string
	for k, v := range want {
		if k == "known" {
			if got.Known() != v {
				faults = append(faults, fmt.Sprintf("usage: got %+v, want known %v", got, v))
			}
			continue
		}
		if n, _ := v.(float64); counts[k].Value() != int64(n) {
			faults = append(faults, fmt.Sprintf("usage %s: got %d, want %v", k, counts[k].Value(), v))
		}
	}
	return faults
}

func asError(err error, to **llm.Error) bool {
	e, ok := errorsAs(err)
	if ok {
		*to = e
	}
	return ok
}

func plain(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// TestCases plays the public bug reports against the adapter.
func TestCases(t *testing.T) {
	for _, c := range readCases(t, "gemini") {
		t.Run(c.ID, func(t *testing.T) {
			if len(c.Requires) > 0 {
				t.Skipf("an adapter alone does not offer %v", c.Requires)
			}
			s := serveCase(t, c)
			client, err := gemini.New(c.Provider.Model, gemini.WithBaseURL(s.URL))
			if err != nil {
				t.Fatal(err)
			}
			run := play(t, c, client, s)
			compare(t, c, run)
			holdRequests(t, c, run.bodies)
		})
	}
}
