// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
)

// SuiteKey is the API key that clients under [TestClient] should be given where
// their format wants one.
const SuiteKey = "sk-test-0123456789"

// TestClient holds a client of a format to what [llm.Client] promises, and to what
// the strict [Server] accepts. Make a new client for each address that newClient is
// given, with [SuiteKey] as its key and no retries of its own.
//
// It is for clients that speak one of the four formats over HTTP. For a client that
// needs no server, such as a model in the process or one around other clients, see
// [TestInProcess].
func TestClient(t *testing.T, newClient func(baseURL string) llm.Client, w Wire) {
	s := suite{newClient: newClient, wire: w}
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"text", s.text},
		{"calls", s.calls},
		{"conversation", s.conversation},
		{"thinking", s.thinking},
		{"other vendors' data", s.foreign},
		{"tool names", s.toolNames},
		{"odd parts", s.oddParts},
		{"image", s.image},
		{"image of a tool", s.toolImage},
		{"another's turn", s.othersTurn},
		{"stop reasons", s.stops},
		{"errors by status", s.statuses},
		{"errors inside the stream", s.faults},
		{"stream without end", s.unfinished},
		{"cut connection", s.cut},
		{"cancel", s.cancel},
		{"leave early", s.leave},
		{"at once", s.atOnce},
		{"prefix", s.prefix},
	} {
		t.Run(part.name, part.run)
	}
}

type suite struct {
	newClient func(string) llm.Client
	wire      Wire
}

// start returns a client whose server plays turns.
func (s *suite) start(t *testing.T, turns ...Turn) (llm.Client, *Server, *Script) {
	t.Helper()
	brain := NewScript(turns...)
	srv := NewServer(brain, WithKey(SuiteKey))
	t.Cleanup(srv.Close)
	return s.newClient(srv.URL), srv, brain
}

func ask(text string) *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.UserText(text)}, CacheAnchor: -1}
}

// readReply reads one reply and holds the order of its events.
func readReply(t *testing.T, c llm.Client, req *llm.Request) (collect.Reply, error) {
	t.Helper()
	var col collect.Collector
	ended := false
	for ev, err := range c.Stream(t.Context(), req) {
		if ended {
			t.Errorf("%#v, %v after the end", ev, err)
		}
		if err != nil {
			if _, ok := errors.AsType[*llm.Error](err); !ok && t.Context().Err() == nil {
				t.Errorf("%v is no *llm.Error", err)
			}
			if strings.Contains(err.Error(), SuiteKey) {
				t.Errorf("the key is in the error: %v", err)
			}
			return collect.Reply{Usage: col.Usage()}, err
		}
		if err := col.Add(ev); err != nil {
			t.Fatalf("%#v: %v", ev, err)
		}
		_, ended = ev.(llm.Finish)
	}
	return col.Reply()
}

// request is the n-th one that the server understood, from 0.
func request(t *testing.T, brain *Script, n int) llm.Request {
	t.Helper()
	all := brain.Requests()
	if n >= len(all) {
		t.Fatalf("the server understood %d requests, want %d", len(all), n+1)
	}
	return all[n]
}

// exchange is the n-th one that reached the server, from 0.
func exchange(t *testing.T, srv *Server, n int) Exchange {
	t.Helper()
	all := srv.Exchanges()
	if n < 0 || n >= len(all) {
		t.Fatalf("%d requests reached the server, want more", len(all))
	}
	return all[n]
}

func mustReply(t *testing.T, c llm.Client, req *llm.Request) collect.Reply {
	t.Helper()
	r, err := readReply(t, c, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *suite) text(t *testing.T) {
	want := "Grüße, <b>日本</b> & 😀\n\tdone \u2028."
	c, srv, brain := s.start(t, Say(want))
	req := ask("say <it> & go 😀")
	req.System = "Be <terse> & exact."
	r := mustReply(t, c, req)
	if r.Message.Text() != want || r.Message.Role != llm.RoleAssistant || r.Message.Stop != llm.StopEndTurn {
		t.Errorf("got %+v, want the text %q", r.Message, want)
	}
	if n := srv.Totals(); r.Usage.Input.Value() != n.Input || r.Usage.Output.Value() != n.Output || n.Input == 0 {
		t.Errorf("usage %+v, want %+v", r.Usage, n)
	}
	seen := request(t, brain, 0)
	if seen.System != req.System || seen.Messages[0].Text() != req.Messages[0].Text() {
		t.Errorf("the server read %q and %q", seen.System, seen.Messages[0].Text())
	}
}

// argTexts are arguments whose digits, order and characters must survive.
var argTexts = []string{
	`{"z":1.0,"a":12345678901234567890,"m":{"b":[1e2,null],"a":"<&> 日😀"}}`,
	`{"path":"C:\\dir\\x","quote":"\"","line":"a\nb"}`,
	`{}`,
}

func (s *suite) tools() []llm.Tool {
	return []llm.Tool{
		{Name: "edit", Description: "Edit <it>", Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"number"},"a":{"type":"string"}},"required":["z"]}`)},
		{Name: "read", Description: "Read it", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
		{Name: "ping"},
	}
}

func (s *suite) calls(t *testing.T) {
	c, _, brain := s.start(t, Call("edit", argTexts[0], "edit", argTexts[1], "ping", argTexts[2]), Say("done"))
	req := ask("go")
	req.Tools = s.tools()
	m := mustReply(t, c, req).Message
	ids := map[string]bool{}
	for n, call := range m.Calls() {
		if call.ID == "" || ids[call.ID] {
			t.Errorf("call %d has id %q", n, call.ID)
		}
		ids[call.ID] = true
		input, err := call.Input()
		if err != nil || !sameJSON(input, []byte(argTexts[n])) {
			t.Errorf("call %d: got %s, %v; want %s", n, call.Args, err, argTexts[n])
		}
	}
	if m.CountCalls() != 3 || m.Stop != llm.StopToolUse {
		t.Fatalf("got %+v, want three calls", m)
	}
	req.Messages = append(req.Messages, m, resultsFor(m, "fine"))
	mustReply(t, c, req)
	seen := request(t, brain, 1).Messages
	n := 0
	for _, msg := range seen {
		for _, call := range msg.Calls() {
			if !sameJSON([]byte(call.Args), []byte(argTexts[n])) {
				t.Errorf("call %d was sent back with %s", n, call.Args)
			}
			n++
		}
	}
	if n != 3 || seen[len(seen)-1].Role != llm.RoleTool {
		t.Errorf("the server read %+v", seen)
	}
}

// sameJSON compares two JSON texts, numbers by their digits and objects by the
// order of their fields.
func sameJSON(a, b []byte) bool {
	flat := func(raw []byte) (out []json.Token, ok bool) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		for {
			t, err := dec.Token()
			if err != nil {
				return out, json.Valid(raw)
			}
			out = append(out, t)
		}
	}
	x, okX := flat(a)
	y, okY := flat(b)
	return okX && okY && fmt.Sprint(x) == fmt.Sprint(y)
}

func resultsFor(m llm.Message, text string) llm.Message {
	var out []llm.Result
	for n, c := range m.Calls() {
		r := llm.Result{CallID: c.ID, Name: c.Name, Status: llm.StatusSuccess, Summary: fmt.Sprintf("%s %d", text, n)}
		if n == 1 {
			r.Status = llm.StatusError
		}
		out = append(out, r)
	}
	return llm.ToolResults(out...)
}

func (s *suite) conversation(t *testing.T) {
	c, _, brain := s.start(t,
		Reply(llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{
			llm.Text{Text: "I will look."}, llm.Call{Name: "read", Args: `{"path":"a"}`}, llm.Call{Name: "read", Args: `{"path":"b"}`},
		}}),
		Call("edit", `{"z":1,"a":"x"}`), Say("Done."), Say("Bye."))
	req := ask("go")
	req.Tools = s.tools()
	for turn := range 4 {
		m := mustReply(t, c, req).Message
		req.Messages = append(req.Messages, m)
		switch {
		case m.CountCalls() > 0:
			req.Messages = append(req.Messages, resultsFor(m, "result"))
		case turn == 2:
			req.Messages = append(req.Messages, llm.UserText("and now?"))
		}
	}
	var texts []string
	last := request(t, brain, 3)
	for _, m := range last.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				texts = append(texts, p.Text)
			case llm.Call:
				texts = append(texts, p.Name+p.Args)
			case llm.Result:
				texts = append(texts, p.Name+" "+p.Summary)
			case llm.Image, llm.Thinking, llm.System:
			}
		}
	}
	want := `go|I will look.|read{"path":"a"}|read{"path":"b"}|read result 0|read result 1|edit{"z":1,"a":"x"}|edit result 0|Done.|and now?`
	if got := strings.Join(texts, "|"); got != want {
		t.Errorf("the server read\n%s\nwant\n%s", got, want)
	}
}

func (s *suite) thinking(t *testing.T) {
	c, srv, _ := s.start(t,
		Reply(llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{
			llm.Thinking{Text: "I should look.\n "}, llm.Text{Text: "Looking."}, llm.Call{Name: "read", Args: `{"path":"a"}`},
		}}),
		Say("Done."), Say("Bye."))
	req := ask("go")
	req.Tools = s.tools()
	first := mustReply(t, c, req).Message
	var thought llm.Thinking
	if len(first.Parts) > 0 {
		thought, _ = first.Parts[0].(llm.Thinking)
	}
	if thought.Text != "I should look.\n " {
		t.Fatalf("got %+v, want thinking first", first.Parts)
	}
	// What was stored must do as well as what came: the journal's form is JSON.
	data, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	var stored llm.Message
	if err := json.Unmarshal(data, &stored); err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, stored, resultsFor(first, "a"))
	req.Messages = append(req.Messages, mustReply(t, c, req).Message, llm.UserText("more"))
	mustReply(t, c, req) // the server verifies signatures
	if s.wire == WireAnthropic || s.wire == WireOpenAIResponses {
		if body := exchange(t, srv, 1).Body; !bytes.Contains(body, []byte(signatureOf(thought.Text))) {
			t.Error("the thinking was not sent back with its signature")
		}
	}
}

func (s *suite) foreign(t *testing.T) {
	c, srv, _ := s.start(t, Say("ok"))
	other := llm.Opaque{Vendor: "another", Data: json.RawMessage(`{"signature":"FOREIGN-DATA","encrypted_content":"FOREIGN-DATA"}`)}
	req := ask("go")
	req.Tools = s.tools()
	m := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{
		llm.Thinking{Text: "FOREIGN-THOUGHT", Opaque: other},
		llm.Text{Text: "Looking.", Opaque: other},
		llm.Call{ID: "functions.read:0", Name: "read", Args: `{"path":"a"}`, Opaque: other},
	}}
	req.Messages = append(req.Messages, m, resultsFor(m, "a"))
	mustReply(t, c, req)
	for _, word := range []string{"FOREIGN-DATA", "FOREIGN-THOUGHT"} {
		if bytes.Contains(exchange(t, srv, 0).Body, []byte(word)) {
			t.Errorf("%s was sent to another vendor", word)
		}
	}
}

// toolNames: entries of wire case 085.
func (s *suite) toolNames(t *testing.T) {
	long := "mcp__workspace__" + strings.Repeat("very_long_segment_", 6)
	req := ask("go")
	for _, name := range []string{"github.issues/create", "github_issues_create", long + "a", long + "b"} {
		req.Tools = append(req.Tools, llm.Tool{Name: name, Description: "Tool " + name})
	}
	turn := func(ctx context.Context, seen *llm.Request) iter.Seq2[llm.Event, error] {
		if len(seen.Tools) != len(req.Tools) {
			return Say("tools are missing")(ctx, seen)
		}
		return Call(seen.Tools[0].Name, "{}", seen.Tools[3].Name, "{}")(ctx, seen)
	}
	c, _, brain := s.start(t, turn, Say("done"))
	m := mustReply(t, c, req).Message
	if n := len(request(t, brain, 0).Tools); n != len(req.Tools) {
		t.Fatalf("the client sent %d tools of %d", n, len(req.Tools))
	}
	for n, call := range m.Calls() {
		if want := req.Tools[3*n].Name; call.Name != want {
			t.Errorf("call %d is for %q, want %q", n, call.Name, want)
		}
	}
	req.Messages = append(req.Messages, m, resultsFor(m, "x"))
	mustReply(t, c, req)
}

// oddParts is history that a provider refuses when it is sent as it stands.
func (s *suite) oddParts(t *testing.T) {
	c, _, _ := s.start(t, Say("ok"))
	req := ask("go")
	req.Tools = s.tools()
	m := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{
		llm.Text{Text: "\n"},
		llm.Thinking{Text: "no signature"},
		llm.Text{},
		llm.Call{ID: "a", Name: "read", Args: ``},
		llm.Call{ID: "b", Name: "read", Args: `{"path": "x`},
		llm.Call{ID: "c", Name: "gone", Args: `[1]`},
		llm.Call{ID: "d", Name: "read", Args: `{"path":"\ud83d"}`},
		llm.Text{Text: " "},
	}}
	results := llm.ToolResults(
		llm.Result{CallID: "a", Name: "read", Status: llm.StatusSuccess},
		llm.Result{CallID: "b", Name: "read", Status: llm.StatusError, Summary: "bad \xff\xfe bytes"},
		llm.Result{CallID: "c", Name: "gone", Status: llm.StatusUnknown},
		llm.Result{CallID: "d", Name: "read", Status: llm.StatusSuccess, Summary: "x", Notes: []llm.System{{Kind: "note", Text: "late"}}},
	)
	req.Messages = append(req.Messages, m, results,
		llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{}}, Stop: llm.StopMaxTokens},
		llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.System{Kind: "notice", Text: "Go on."}}})
	mustReply(t, c, req)
}

func (s *suite) image(t *testing.T) {
	c, _, brain := s.start(t, Say("a dot"))
	img := llm.Image{Media: "image/png", Data: []byte("\x89PNG\r\n\x1a\n\x00\xff")}
	req := &llm.Request{CacheAnchor: -1, Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "what?"}, img}}}}
	mustReply(t, c, req)
	found := false
	seen := request(t, brain, 0).Messages
	for _, m := range seen {
		for _, p := range m.Parts {
			if got, ok := p.(llm.Image); ok {
				found = found || got.Media == img.Media && bytes.Equal(got.Data, img.Data)
			}
		}
	}
	if !found {
		t.Errorf("the server read %+v", seen)
	}
}

// toolImage: a picture from a tool reaches the model, or it is told of; beside an
// error, too, it does no harm.
func (s *suite) toolImage(t *testing.T) {
	c, _, _ := s.start(t, Say("a dot"))
	img := []llm.Image{{Media: "image/png", Data: []byte("\x89PNG\r\n\x1a\n\x00\xff")}}
	m := llm.AssistantCalls(llm.Call{ID: "a", Name: "read", Args: "{}"}, llm.Call{ID: "b", Name: "read", Args: "{}"})
	req := ask("go")
	req.Tools = s.tools()
	req.Messages = append(req.Messages, m, llm.ToolResults(
		llm.Result{CallID: "a", Name: "read", Status: llm.StatusSuccess, Images: img},
		llm.Result{CallID: "b", Name: "read", Status: llm.StatusError, Summary: "half", Images: img}))
	mustReply(t, c, req)
}

// othersTurn: a turn that another vendor's model began goes on here, with thinking
// asked for (B-27).
func (s *suite) othersTurn(t *testing.T) {
	c, _, _ := s.start(t, Say("ok"))
	m := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{
		llm.Thinking{Text: "mine", Opaque: llm.Opaque{Vendor: "another", Data: json.RawMessage(`{"x":1}`)}},
		llm.Call{ID: "a", Name: "read", Args: "{}"},
	}}
	req := ask("go")
	req.Tools = s.tools()
	req.Settings.ThinkingBudget, req.Settings.MaxTokens = 2048, 4096
	req.Messages = append(req.Messages, m, resultsFor(m, "a"))
	mustReply(t, c, req)
}

func (s *suite) stops(t *testing.T) {
	for _, stop := range []llm.StopReason{llm.StopEndTurn, llm.StopMaxTokens} {
		c, _, _ := s.start(t, Reply(llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "so"}}, Stop: stop}))
		if got := mustReply(t, c, ask("go")).Message; got.Stop != stop || got.Text() != "so" {
			t.Errorf("got %+v, want stop %s", got, stop)
		}
	}
}

func (s *suite) statuses(t *testing.T) {
	for _, class := range []llm.Class{
		llm.ClassAuth, llm.ClassPermission, llm.ClassNotFound, llm.ClassInvalidRequest, llm.ClassContextOverflow,
		llm.ClassRateLimit, llm.ClassQuota, llm.ClassOverloaded, llm.ClassServer,
	} {
		if class == llm.ClassQuota && s.wire == WireGemini {
			continue // told by the same status and code as a rate limit
		}
		t.Run(string(class), func(t *testing.T) {
			message := "no, for " + SuiteKey
			if class == llm.ClassContextOverflow {
				message = overflowMessage(s.wire, 20, 10)
			}
			c, srv, _ := s.start(t, Fail(&llm.Error{Class: class, Message: message, RetryAfter: 7 * time.Second}))
			_, err := readReply(t, c, ask("go"))
			e, _ := errors.AsType[*llm.Error](err)
			if e == nil || e.Class != class || e.Status < 400 || e.RetryAfter != 7*time.Second || e.Message == "" {
				t.Errorf("got %+v, want class %s with a status, a wait of 7 s and a message", e, class)
			}
			if n := len(srv.Exchanges()); n != 1 {
				t.Errorf("%d requests, want 1: the engine alone retries", n)
			}
		})
	}
}

func (s *suite) faults(t *testing.T) {
	for _, class := range []llm.Class{llm.ClassOverloaded, llm.ClassServer} {
		c, _, _ := s.start(t, Break(&llm.Error{Class: class, Message: "busy"},
			llm.BlockStart{Index: 0}, llm.BlockDelta{Index: 0, Text: "half"}))
		_, err := readReply(t, c, ask("go"))
		e, _ := errors.AsType[*llm.Error](err)
		if e == nil || e.Class != class || e.Status != 0 || !strings.Contains(e.Message, "busy") {
			t.Errorf("got %+v, want class %s without a status", e, class)
		}
	}
}

func (s *suite) unfinished(t *testing.T) {
	c, _, _ := s.start(t, Break(nil, llm.BlockStart{Index: 0}, llm.BlockDelta{Index: 0, Text: "half"}, llm.BlockStop{Index: 0}))
	if _, err := readReply(t, c, ask("go")); llm.ClassOf(err) != llm.ClassStreamIncomplete {
		t.Errorf("got %v, want class stream_incomplete", err)
	}
}

func (s *suite) cut(t *testing.T) {
	c, _, _ := s.start(t, Break(&llm.Error{Class: llm.ClassTransport}, llm.BlockStart{Index: 0}, llm.BlockDelta{Index: 0, Text: "half"}))
	_, err := readReply(t, c, ask("go"))
	if e, _ := errors.AsType[*llm.Error](err); e == nil || e.Class != llm.ClassTransport && e.Class != llm.ClassStreamIncomplete {
		t.Errorf("got %v, want a broken connection", err)
	}
	dead := s.newClient("http://127.0.0.1:1")
	if _, err := readReply(t, dead, ask("go")); llm.ClassOf(err) != llm.ClassTransport {
		t.Errorf("nobody there: got %v, want class transport", err)
	}
}

// patience is how long one thing may take that should take no time.
const patience = 5 * time.Second

// read reads a reply in a goroutine, calls each after each event and leaves when that
// returns false. It returns the error that ended the reply. A client that waits for the
// end of a reply before it yields anything, or that does not hear the end of its
// context, fails the test.
func read(t *testing.T, c llm.Client, each func(cancel context.CancelCauseFunc) bool) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) }) // not before: who leaves must not need it
	first := make(chan struct{})
	begun := sync.OnceFunc(func() { close(first) })
	ended := make(chan error, 1)
	go func() {
		for _, err := range c.Stream(ctx, ask("go")) {
			begun()
			if err != nil {
				ended <- err
				return
			}
			if !each(cancel) {
				break
			}
		}
		ended <- nil
	}()
	select {
	case <-first:
	case err := <-ended:
		return err
	case <-time.After(patience):
		t.Fatalf("no event within %v, and the server has begun its reply: events must be yielded as they come", patience)
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		t.Fatalf("the reply has not ended within %v after its context ended or its reader left", patience)
	}
	return nil
}

// cancel: E-190.
func (s *suite) cancel(t *testing.T) {
	c, _, _ := s.start(t, Wait(llm.BlockStart{Index: 0}, llm.BlockDelta{Index: 0, Text: "half"}))
	cause := errors.New("enough")
	came := false
	err := read(t, c, func(cancel context.CancelCauseFunc) bool {
		came = true
		cancel(cause)
		return true
	})
	if !came {
		t.Fatalf("nothing came: %v", err)
	}
	if err != nil && !errors.Is(err, cause) && !errors.Is(err, context.Canceled) && llm.ClassOf(err) != llm.ClassCancelled {
		t.Errorf("got %v, want the cancel", err)
	}
}

func (s *suite) leave(t *testing.T) {
	gone := make(chan struct{})
	turn := func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) {
			defer close(gone)
			Wait(llm.BlockStart{Index: 0}, llm.BlockDelta{Index: 0, Text: "half"})(ctx, req)(yield)
		}
	}
	c, _, _ := s.start(t, turn)
	if err := read(t, c, func(context.CancelCauseFunc) bool { return false }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Error("the request is still open after its reader left")
	}
}

func (s *suite) atOnce(t *testing.T) {
	turn := func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
		return Say("to "+req.Messages[0].Text())(ctx, req)
	}
	turns := make([]Turn, 8)
	for i := range turns {
		turns[i] = turn
	}
	c, _, _ := s.start(t, turns...)
	var wg sync.WaitGroup
	for i := range turns {
		wg.Go(func() {
			word := fmt.Sprint("n", i)
			r, err := collect.Stream(t.Context(), c, ask(word))
			if err != nil || r.Message.Text() != "to "+word {
				t.Errorf("%s: got %q, %v", word, r.Message.Text(), err)
			}
		})
	}
	wg.Wait()
}

// prefix: E-186, over random conversations.
func (s *suite) prefix(t *testing.T) {
	for seed := uint64(0); seed < 20 && !t.Failed(); seed++ {
		s.prefixOf(t, rand.New(rand.NewPCG(seed, 4)))
	}
}

func (s *suite) prefixOf(t *testing.T, r *rand.Rand) {
	var turns []Turn
	for range 8 {
		turns = append(turns, Reply(randomReply(r)))
	}
	turns = append(turns, Say("end"))
	c, srv, _ := s.start(t, turns...)
	req := ask("go")
	req.System = "Be terse."
	req.Tools = s.tools()
	for range turns {
		m := mustReply(t, c, req).Message
		req.Messages = append(req.Messages, m)
		if m.CountCalls() > 0 {
			req.Messages = append(req.Messages, resultsFor(m, RandomText(r)))
		}
		if m.CountCalls() == 0 || r.IntN(4) == 0 {
			req.Messages = append(req.Messages, llm.UserText("next "+RandomText(r)))
		}
	}
	all := srv.Exchanges()
	for i := 1; i < len(all); i++ {
		if why := PrefixChanged(all[i-1].Body, all[i].Body); why != "" {
			t.Fatalf("request %d: %s", i+1, why)
		}
	}
	for _, client := range []llm.Client{s.newClient(srv.URL), c} {
		if _, err := readReply(t, client, req); llm.ClassOf(err) != llm.ClassInvalidRequest {
			t.Fatalf("the script is over, which the server says with HTTP 400: got %v, want class invalid_request", err)
		}
	}
	if n := len(srv.Exchanges()); !bytes.Equal(exchange(t, srv, n-1).Body, exchange(t, srv, n-2).Body) {
		t.Error("the same request has another body from another client")
	}
}

func randomReply(r *rand.Rand) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopEndTurn}
	if r.IntN(2) == 0 {
		m.Parts = append(m.Parts, llm.Thinking{Text: RandomText(r)})
	}
	if r.IntN(2) == 0 {
		m.Parts = append(m.Parts, llm.Text{Text: RandomText(r)})
	}
	for range r.IntN(4) {
		m.Parts = append(m.Parts, llm.Call{Name: "edit", Args: argTexts[r.IntN(len(argTexts))]})
		m.Stop = llm.StopToolUse
	}
	if m.Stop == llm.StopEndTurn {
		m.Parts = append(m.Parts, llm.Text{Text: "so " + RandomText(r)})
	}
	return m
}

// RandomText is a text of characters that encoders like to change.
func RandomText(r *rand.Rand) string {
	pool := []rune("ab <>&\"\\/\n\t日😀é\u2028\u00a0{}[]:,0")
	var b strings.Builder
	b.WriteByte('x')
	for range r.IntN(30) {
		b.WriteRune(pool[r.IntN(len(pool))])
	}
	return b.String()
}

// PrefixChanged compares two bodies of one conversation, in any of the formats:
// everything that the older says of system, tools and conversation must stand in
// the newer one with the same bytes, cache marks aside. It returns what differs,
// "" for nothing.
func PrefixChanged(older, newer []byte) string {
	var a, b map[string]json.RawMessage
	if err := json.Unmarshal(unmarked(older), &a); err != nil {
		return err.Error()
	}
	if err := json.Unmarshal(unmarked(newer), &b); err != nil {
		return err.Error()
	}
	for _, key := range []string{"system", "tools", "instructions", "systemInstruction"} {
		if !bytes.Equal(a[key], b[key]) {
			return fmt.Sprintf("%s: %s became %s", key, a[key], b[key])
		}
	}
	for _, key := range []string{"messages", "input", "contents"} {
		var x, y []json.RawMessage
		if a[key] == nil {
			continue
		}
		if json.Unmarshal(a[key], &x) != nil || json.Unmarshal(b[key], &y) != nil || len(x) > len(y) {
			return fmt.Sprintf("%s: %d messages became %d", key, len(x), len(y))
		}
		for i := range x {
			if !bytes.Equal(x[i], y[i]) {
				return fmt.Sprintf("%s %d: %s became %s", key, i, x[i], y[i])
			}
		}
	}
	return ""
}

func unmarked(body []byte) []byte {
	return bytes.ReplaceAll(body, []byte(`,"cache_control":{"type":"ephemeral"}`), nil)
}
