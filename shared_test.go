// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// Nobody but the engine has a say in what it keeps and sends: what it is given it copies,
// and what it shows are copies (E-35, E-60, S-92).

// recorder keeps the bytes of each request as they were when it was sent.
type recorder struct {
	llm.Client
	sent   []string
	each   [][]string // its messages
	prefix []int      // how many are committed
}

func (r *recorder) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	data, err := json.Marshal(req)
	if err != nil {
		data = []byte(err.Error())
	}
	var each []string
	for _, m := range req.Messages {
		one, err := json.Marshal(m)
		if err != nil {
			one = []byte(err.Error())
		}
		each = append(each, string(one))
	}
	r.sent, r.each, r.prefix = append(r.sent, string(data)), append(r.each, each), append(r.prefix, req.Prefix)
	return r.Client.Stream(ctx, req)
}

// messages are those of request n as they were sent.
func (r *recorder) messages(t *testing.T, n int) []llm.Message {
	t.Helper()
	if n >= len(r.sent) {
		t.Fatalf("there are %d requests, no %d", len(r.sent), n)
	}
	var req llm.Request
	if err := json.Unmarshal([]byte(r.sent[n]), &req); err != nil {
		t.Fatal(err)
	}
	return req.Messages
}

func image(data string) llm.Message {
	return llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Image{Media: "image/png", Data: []byte(data)}}}
}

// E-35, E-60: what is sent of a pruned history is held against what hooks do to it as
// the history is, in this request and in the later ones.
func TestE60_WritingIntoWhatIsSentIsFound(t *testing.T) {
	t.Parallel()
	other := func(req *llm.Request) {
		r := req.Messages[2].Parts[0].(llm.Result)
		r.CallID = "other"
		req.Messages[2].Parts[0] = r
	}
	writes := map[string]func(req *llm.Request){
		"another call": other,
		"no results":   func(req *llm.Request) { req.Messages[len(req.Messages)-1] = llm.UserText("x") },
		"content": func(req *llm.Request) {
			req.Messages[2].Parts[0] = llm.Result{CallID: "1", Name: "shoot", Status: llm.StatusSuccess}
		},
		"behind the stubs": func(req *llm.Request) { req.Messages[0].Parts[0] = llm.Text{Text: "x"} },
	}
	for project, opt := range map[string]fiducial.Option{
		"images": fiducial.WithDropImages(), "pruned": fiducial.WithPruning(fiducial.PruneConfig{Protect: -1, Minimum: 1}),
	} {
		for name, write := range writes {
			n := 0
			h := &hooks{request: func(_ fiducial.Invocation, req *llm.Request) (fiducial.RequestAnswer, error) {
				if n++; n == 3 {
					write(req)
				}
				return nil, nil
			}}
			script := llmtest.NewScript(meteredShot("1", 3000), meteredShot("2", 6000), meteredShot("3", 9000), llmtest.Say("x"))
			model := &recorder{Client: script}
			l, out, err := fiducial.New(model, fiducial.WithTools(photographer()), fiducial.WithInterceptor(h), opt, fiducial.WithLoopGuard(0)).Run(t.Context(), llm.UserText("go"))
			if out.Reason != fiducial.Failed {
				t.Fatalf("%s, %s: %v, %v", project, name, out.Reason, err)
			}
			wantErr(t, err, fiducial.ErrInterceptor)
			out, err = l.Resume(t.Context())
			wantReason(t, out, err, fiducial.Finished)
			sendable(t, l.History())
			for i := range model.sent {
				sendable(t, model.messages(t, i))
			}
			equal(t, "images in the last request", imagesIn(model.messages(t, 3)), map[string][]int{"images": {6}}[project])
			equal(t, "images in the history", imagesIn(l.History()), []int{2, 4, 6})
		}
	}
}

// E-60: a request is the hook's own while it is asked; what it does to it later, between
// two attempts above all, has no say.
func TestE60_AKeptRequestHasNoSay(t *testing.T) {
	t.Parallel()
	var kept *llm.Request
	h := &hooks{request: func(_ fiducial.Invocation, req *llm.Request) (fiducial.RequestAnswer, error) {
		kept = req
		req.Messages = append([]llm.Message{image("abc")}, req.Messages...)
		return nil, nil
	}}
	evil := func() {
		kept.System, kept.CacheKey, kept.Prefix = "evil", "evil", 7
		kept.Tools[0].Description = "evil"
		*kept.Settings.Temperature = 2
		for _, m := range kept.Messages {
			if i, ok := m.Parts[0].(llm.Image); ok {
				i.Data[0] = 'X'
			}
			m.Parts[0] = llm.Text{Text: "evil"}
		}
		kept.Messages = kept.Messages[:0:0]
	}
	sink := fiducial.EventFunc(func(ev fiducial.Event) {
		switch ev.Data.(type) {
		case fiducial.GenerationStarted, fiducial.GenerationRetry:
			evil()
		default:
		}
	})
	warm := 0.5
	p := &probe{}
	model := &recorder{Client: llmtest.NewScript(llmtest.Fail(&llm.Error{Class: llm.ClassServer}), llmtest.Say("x"))}
	l, _ := mustRun(t, fiducial.New(model, fiducial.WithSystem("good"), fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h),
		fiducial.WithSettings(llm.Settings{Temperature: &warm}), fiducial.WithEvents(sink), fiducial.WithRetry(fiducial.RetryPolicy{Base: 1})), "go")
	equal(t, "requests", len(model.sent), 2)
	for _, sent := range model.sent {
		equal(t, "sent", sent, model.sent[0])
	}
	if strings.Contains(model.sent[0], "evil") || !strings.Contains(model.sent[0], "YWJj") { // abc
		t.Errorf("sent: %s", model.sent[0])
	}
	wantTexts(t, l.History(), "user: go", "assistant: x")
	equal(t, "the caller's own", warm, 0.5)
}

// E-60: a change of the settings is for one request, and never the caller's variable.
func TestE60_SettingsOfOneRequest(t *testing.T) {
	t.Parallel()
	warm, stop := 0.5, []string{"a"}
	n := 0
	h := &hooks{request: func(_ fiducial.Invocation, req *llm.Request) (fiducial.RequestAnswer, error) {
		if n++; n%2 == 1 {
			*req.Settings.Temperature = 1
			req.Settings.Stop[0] = "hook"
		}
		return nil, nil
	}}
	model := &recorder{Client: llmtest.NewScript(llmtest.Say("x"), llmtest.Say("x"), llmtest.Say("x"), llmtest.Say("x"))}
	set := llm.Settings{Temperature: &warm, Stop: stop}
	l, _ := mustRun(t, fiducial.New(model, fiducial.WithSettings(set), fiducial.WithInterceptor(h)), "go")
	run := func() {
		t.Helper()
		if _, err := l.Run(t.Context(), llm.UserText("go")); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if err := l.SetSettings(set); err != nil {
		t.Fatal(err)
	}
	run()
	equal(t, "the caller's own", fmt.Sprint(warm, stop), "0.5 [a]")
	warm, stop[0] = 0.7, "caller"
	run()
	for i, want := range []string{"hook", "a", "hook", "a"} {
		var req llm.Request
		if err := json.Unmarshal([]byte(model.sent[i]), &req); err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprint("stop of request ", i), req.Settings.Stop, []string{want})
		equal(t, fmt.Sprint("temperature of request ", i), *req.Settings.Temperature, map[string]float64{"hook": 1, "a": 0.5}[want])
	}
}

// Who is shown a message may redact it, and changes nothing but what he was shown.
func TestWhatIsShownIsACopy(t *testing.T) {
	t.Parallel()
	redact := func(m llm.Message) {
		for i, p := range m.Parts {
			if r, ok := p.(llm.Result); ok && len(r.Images) > 0 {
				r.Images[0].Data[0] = 'X'
				r.Images[0] = llm.Image{Media: "x"}
			}
			m.Parts[i] = llm.Text{Text: "redacted"}
		}
	}
	sink := fiducial.EventFunc(func(ev fiducial.Event) {
		switch ev := ev.Data.(type) {
		case fiducial.GenerationFinished:
			redact(ev.Message)
		case fiducial.Steered:
			for i := range ev.Messages {
				redact(ev.Messages[i])
				ev.Messages[i] = llm.Message{}
			}
		case fiducial.ToolFinished:
			redact(llm.ToolResults(ev.Result))
		case fiducial.RunFinished:
			redact(llm.Message{Parts: ev.Outcome.Answer})
		default:
		}
	})
	all := func(h []llm.Message) {
		for i := range h {
			redact(h[i])
			h[i] = llm.Message{}
		}
	}
	for name, opts := range map[string][]fiducial.Option{
		"sink":     {fiducial.WithEvents(sink)},
		"observer": {fiducial.WithObserver(func(m llm.Message) error { redact(m); return nil })},
		"checkpoint": {fiducial.WithCheckpoint(func(c machine.Checkpoint) error {
			sendable(t, c.History[:len(c.History)-c.History[len(c.History)-1].CountCalls()]) // each time what there is
			all(c.History)
			return nil
		})},
		"notice": {fiducial.WithNotice(func(_ context.Context, h []llm.Message) (string, error) { all(h); return "", nil })},
		"hooks": {fiducial.WithInterceptor(&hooks{
			after: func(_ fiducial.Invocation, m llm.Message) (fiducial.ResponseAnswer, error) {
				redact(m)
				return nil, nil
			},
			post: func(_ fiducial.Invocation, _ llm.Call, r llm.Result) (fiducial.PostAnswer, error) {
				redact(llm.ToolResults(r))
				return nil, nil
			},
			exit: func(_ fiducial.Invocation, out fiducial.Outcome, _ error) error {
				redact(llm.Message{Parts: out.Answer})
				return nil
			},
		})},
	} {
		model := &recorder{Client: llmtest.NewScript(llmtest.Call("shoot", ""), llmtest.Say("x"), llmtest.Say("y"))}
		l := mustLock(t, fiducial.New(model, append(opts, fiducial.WithTools(photographer()))...))
		if err := l.Send(t.Context(), "", llm.UserText("sent")); err != nil {
			t.Fatal(err)
		}
		out, err := l.Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Finished)
		equal(t, name, out.Text(), "x")
		redact(llm.Message{Parts: out.Answer})
		out, err = l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
		equal(t, name+", once more", out.Text(), "x")
		wantTexts(t, l.History(), "user: go", "user: sent", "assistant: shoot()", "tool: success=a picture", "assistant: x")
		sent := model.messages(t, 1)
		wantTexts(t, sent, "user: go", "user: sent", "assistant: shoot()", "tool: success=a picture")
		equal(t, "image", string(sent[3].Parts[0].(llm.Result).Images[0].Data), string(make([]byte, 9000)))
	}
}

// What a caller does to his messages later changes nothing: they may be used again.
func TestWhatIsGivenIsCopied(t *testing.T) {
	t.Parallel()
	change := func(messages ...llm.Message) {
		for _, m := range messages {
			if i, ok := m.Parts[0].(llm.Image); ok {
				i.Data[0] = 'X'
			}
			m.Parts[0] = nil
		}
	}
	given := map[string]llm.Message{}
	give := func(name string) llm.Message {
		m := image("abc")
		m.Parts = append(m.Parts, llm.Text{Text: name}, llm.System{Kind: "k", Text: "t", Data: json.RawMessage(`{}`)})
		given[name] = m
		return m
	}
	once := map[string]bool{}
	add := func(name string) []llm.Message {
		if once[name] {
			return nil
		}
		once[name] = true
		return []llm.Message{give(name)}
	}
	h := &hooks{
		prompt: func(_ fiducial.Invocation, m *llm.Message) (fiducial.PromptAnswer, error) {
			m.Parts[1] = llm.Text{Text: "changed by the hook"}
			given["prompt pointer"] = *m
			return fiducial.ContinueWith{Messages: add("prompt")}, nil
		},
		pending: func(fiducial.Invocation) ([]llm.Message, error) { return add("pending"), nil },
		request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
			return fiducial.ContinueWith{Messages: add("request")}, nil
		},
		after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) {
			return fiducial.ContinueWith{Messages: add("after")}, nil
		},
		pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) {
			for _, m := range given { // in the middle of the run
				change(m)
			}
			r := llm.Result{Summary: "made", Images: []llm.Image{{Media: "image/png", Data: []byte("abc")}}, Notes: []llm.System{{Kind: "k", Text: "n"}}}
			given["synthetic"] = llm.ToolResults(r)
			return fiducial.Synthetic{Result: r}, nil
		},
		post: func(fiducial.Invocation, llm.Call, llm.Result) (fiducial.PostAnswer, error) {
			r := given["synthetic"].Parts[0].(llm.Result)
			r.Images[0].Data[0], r.Notes[0].Text = 'X', "changed"
			return nil, nil
		},
	}
	p := &probe{}
	model := &recorder{Client: llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"), llmtest.Say("y"), llmtest.Say("z"))}
	eng := fiducial.New(model, fiducial.WithInterceptor(h), fiducial.WithTools(p.tool("look")), fiducial.WithHistory(give("history"), llm.AssistantText("ok")))
	change(given["history"])
	if err := eng.Append(t.Context(), give("append")); err != nil {
		t.Fatal(err)
	}
	change(given["append"])
	l := mustLock(t, eng)
	if err := l.Send(t.Context(), "", give("send")); err != nil {
		t.Fatal(err)
	}
	change(given["send"])
	run := give("run")
	out, err := l.Run(t.Context(), run)
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "the caller's own, after the hook", texts([]llm.Message{{Parts: run.Parts[1:2]}})[0], ": run")
	want := []string{
		"user: history [t]", "assistant: ok", "user: append [t]", "user: changed by the hook [t]", "user: prompt [t]", "user: send [t]", "user: pending [t]", "user: request [t]",
		"assistant: look()", "tool: success=made\nn", "user: after [t]", "assistant: x",
	}
	wantTexts(t, l.History(), want...)
	for _, m := range given {
		m.Parts[0] = nil
	}
	wantTexts(t, l.History(), want...)
	for i, m := range l.History() {
		img, ok := m.Parts[0].(llm.Image)
		if r, is := m.Parts[0].(llm.Result); is {
			img, ok = r.Images[0], true
		}
		if ok && string(img.Data) != "abc" {
			t.Errorf("image of message %d: %q", i, img.Data)
		}
	}
}

// A hook may use again what it answered for one call, also while it is asked about the
// next one.
func TestSyntheticResultsAreCopied(t *testing.T) {
	t.Parallel()
	notes := []llm.System{{Kind: "k", Data: json.RawMessage(`{"n":0}`)}}
	h := &hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) {
		notes[0].Data[5]++
		return fiducial.Synthetic{Result: llm.Result{Summary: "made", Notes: notes}}, nil
	}}
	p := &probe{}
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", "", "look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h)), "go")
	for i, want := range []string{`{"n":1}`, `{"n":2}`} {
		equal(t, "note", string(l.History()[2].Parts[i].(llm.Result).Notes[0].Data), want)
	}
}

// A checkpoint that is recovered stays the caller's.
func TestRecoveredHistoryIsCopied(t *testing.T) {
	t.Parallel()
	saved := machine.Checkpoint{History: []llm.Message{image("abc"), llm.AssistantText("ok")}}
	model := &recorder{Client: llmtest.NewScript(llmtest.Say("x"))}
	l := mustLock(t, fiducial.New(model, fiducial.WithRecovery(saved)))
	saved.History[0].Parts[0].(llm.Image).Data[0] = 'X'
	saved.History[1].Parts[0] = nil
	if _, err := l.Run(t.Context(), llm.UserText("go")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(model.sent[0], "YWJj") {
		t.Error(model.sent[0])
	}
}

// A tool may use its buffer again.
func TestResultsAreCopied(t *testing.T) {
	t.Parallel()
	buffer := []byte("abc")
	p := &probe{do: func(context.Context, tool.Call) (tool.Output, error) {
		buffer[0]++
		return tool.Output{Summary: "s", Images: []llm.Image{{Media: "image/png", Data: buffer}}}, nil
	}}
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Call("look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look"))), "go")
	for at, want := range map[int]string{2: "bbc", 4: "cbc"} {
		equal(t, "image", string(l.History()[at].Parts[0].(llm.Result).Images[0].Data), want)
	}
}

// E-80: bytes behind a committed tool or message that a hook writes to are found, and
// put back for the next request; a tool keeps its own schema.
func TestE80_BytesOfThePrefix(t *testing.T) {
	t.Parallel()
	look := tool.Must(tool.New("look", "", func(context.Context, struct{ A int }) (string, error) { return "x", nil }))
	schema := string(look.Spec().Schema)
	for name, write := range map[string]func(req *llm.Request){
		"schema": func(req *llm.Request) { copy(req.Tools[0].Schema, `{"type":"OBJECT"`) },
		"image":  func(req *llm.Request) { req.Messages[0].Parts[0].(llm.Image).Data[0] = 'X' },
		"name":   func(req *llm.Request) { req.Tools[0].Name = "other" },
	} {
		n := 0
		h := &hooks{request: func(_ fiducial.Invocation, req *llm.Request) (fiducial.RequestAnswer, error) {
			if n++; n == 1 {
				write(req)
			}
			return nil, nil
		}}
		model := &recorder{Client: llmtest.NewScript(llmtest.Say("x"), llmtest.Say("y"))}
		eng := fiducial.New(model, fiducial.WithTools(look), fiducial.WithInterceptor(h), fiducial.WithHistory(image("abc"), llm.AssistantText("nice")))
		l, _, err := eng.Run(t.Context(), llm.UserText("go"))
		wantErr(t, err, fiducial.ErrPrefix)
		out, err := l.Resume(t.Context())
		if wantReason(t, out, err, fiducial.Finished); err != nil {
			t.Error(name)
		}
		if eng, err = l.Unlock(); err != nil {
			t.Fatal(err)
		}
		mustRun(t, eng, "on")
		equal(t, "the tool's own schema", string(look.Spec().Schema), schema)
		for i, sent := range model.sent {
			if !strings.Contains(sent, "YWJj") || !strings.Contains(sent, strings.ReplaceAll(schema, " ", "")) || strings.Contains(sent, "other") {
				t.Errorf("%s: request %d: %s", name, i, sent)
			}
		}
	}
	spec := look.Spec()
	model := &recorder{Client: llmtest.NewScript(llmtest.Say("x"))}
	l := mustLock(t, fiducial.New(model, fiducial.WithTools(look)))
	before := string(spec.Schema)
	spec.Schema[1] = ' ' // whoever wrote the tool does this to a locked engine
	out, err := l.Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	if !strings.Contains(model.sent[0], before) {
		t.Error(model.sent[0])
	}
}

// Bytes behind the prefix are the history's, too.
func TestE35_BytesBehindThePrefix(t *testing.T) {
	t.Parallel()
	n := 0
	h := &hooks{request: func(_ fiducial.Invocation, req *llm.Request) (fiducial.RequestAnswer, error) {
		if n++; n == 2 {
			req.Messages[0].Parts[0].(llm.Image).Data[0] = 'X'
		}
		return nil, nil
	}}
	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x"), llmtest.Say("y")), fiducial.WithInterceptor(h)))
	if _, err := l.Run(t.Context(), image("abc")); err != nil {
		t.Fatal(err)
	}
	_, err := l.Run(t.Context(), llm.UserText("go"))
	wantErr(t, err, fiducial.ErrInterceptor)
	equal(t, "history", string(l.History()[0].Parts[0].(llm.Image).Data), "abc")
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
}

// What a hook, or a reader of a hooked engine's history, writes into it is found at the
// next request, and nothing of it was ever the engine's.
func TestWritingIntoTheShownHistory(t *testing.T) {
	t.Parallel()
	p := &probe{}
	wrote := false
	write := func(h []llm.Message) {
		last := h[len(h)-1]
		if !wrote && last.CountCalls() > 0 {
			last.Parts[0] = llm.Text{Text: "no call"}
			wrote = true
		}
	}
	var l *fiducial.Locked
	for name, opts := range map[string][]fiducial.Option{
		"after": {fiducial.WithInterceptor(&hooks{after: func(inv fiducial.Invocation, _ llm.Message) (fiducial.ResponseAnswer, error) {
			write(inv.History)
			return nil, nil
		}})},
		"pre": {fiducial.WithInterceptor(&hooks{pre: func(inv fiducial.Invocation, _ *llm.Call) (fiducial.ToolAnswer, error) {
			write(inv.History)
			return nil, nil
		}})},
	} {
		wrote = false
		model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
		l = mustLock(t, fiducial.New(model, append(opts, fiducial.WithTools(p.tool("look")))...))
		_, err := l.Run(t.Context(), llm.UserText("go"))
		if wantErr(t, err, fiducial.ErrInterceptor); name == "" {
			t.Error(name)
		}
		wantTexts(t, l.History(), "user: go", "assistant: look()", "tool: success=ok")
		out, err := l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
		paired(t, model)
	}
}
