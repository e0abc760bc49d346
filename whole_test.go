// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// What cannot be written to a journal never becomes history: a reply is put right, and
// what a caller or a hook gives is refused. Else the run could never be stored again (S-86, S-90).

// folder is a journal that writes what it is given.
func folder(t *testing.T) journal.Journal {
	t.Helper()
	j, err := journal.OpenFolder(t.TempDir(), journal.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// reopened is the history of a run as a new process finds it.
func reopened(t *testing.T, j journal.Journal, l *fiducial.Locked, opts ...fiducial.Option) []llm.Message {
	t.Helper()
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := fiducial.New(llmtest.NewScript(), append(opts, fiducial.WithJournal(j, "r"))...).Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l.History()
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// streamed is a model whose first answer is these events.
type streamed struct {
	events []llm.Event
	then   llm.Client
}

func (s *streamed) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	if s.events == nil {
		return s.then.Stream(ctx, req)
	}
	events := s.events
	s.events = nil
	return func(yield func(llm.Event, error) bool) {
		for _, ev := range events {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

func TestReplyThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	data := func(s string) llm.Opaque { return llm.Opaque{Vendor: "v", Data: json.RawMessage(s)} }
	text := func(o llm.Opaque) []llm.Event {
		return []llm.Event{llm.BlockStart{}, llm.BlockDelta{Text: "x"}, llm.BlockStop{Opaque: o}, llm.Finish{Stop: llm.StopEndTurn}}
	}
	cases := map[string]struct {
		events   []llm.Event
		want     string // in the reply
		warnings int
	}{
		"title not UTF-8":    {text(data("{\"title\":\"caf\xe9\"}")), `"data":{"title":"caf` + "\uFFFD" + `"}`, 0},
		"vendor not UTF-8":   {text(llm.Opaque{Vendor: "v\xff", Data: []byte("1")}), `"vendor":"v` + "\uFFFD", 0},
		"vendor data":        {text(data("{nope")), `{"type":"text","text":"x"}`, 1},
		"empty vendor data":  {text(data("")), `"opaque":{"vendor":"v","data":null}`, 0},
		"nested vendor data": {text(data(strings.Repeat("[", 9999) + strings.Repeat("]", 9999))), `{"type":"text","text":"x"}`, 1},
		"nothing but vendor data": {
			[]llm.Event{llm.BlockStart{}, llm.BlockStop{Opaque: data("nope")}, llm.Finish{Stop: llm.StopEndTurn}},
			`"parts":[]`, 1,
		},
		"vendor data of a call": {
			[]llm.Event{llm.BlockStart{Kind: llm.BlockCall, ID: "q", Name: "look"}, llm.BlockStop{Opaque: data("nope")}, llm.Finish{Stop: llm.StopToolUse}},
			`"id":"q"`, 1,
		},
		"stop reason": {[]llm.Event{llm.BlockStart{}, llm.BlockStop{}, llm.Finish{Stop: "we\xffird"}}, `"stop":"we` + "\uFFFD" + `ird"`, 0},
		"ids that were different": {[]llm.Event{
			llm.BlockStart{Index: 0, Kind: llm.BlockCall, ID: "a\xff", Name: "look"},
			llm.BlockStop{Index: 0},
			llm.BlockStart{Index: 1, Kind: llm.BlockCall, ID: "a\xfe", Name: "look"},
			llm.BlockStop{Index: 1},
			llm.Finish{Stop: llm.StopToolUse},
		}, "\"id\":\"a\uFFFDx\"", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, ev, p := folder(t), &events{}, &probe{}
			model := &streamed{c.events, llmtest.NewScript(llmtest.Say("y"), llmtest.Say("y"))}
			opts := []fiducial.Option{fiducial.WithTools(p.tool("look"))}
			l, out, err := fiducial.New(model, append(opts, fiducial.WithJournal(j, "r"), fiducial.WithEvents(ev),
				fiducial.WithRetry(fiducial.RetryPolicy{Attempts: 1}))...).Run(t.Context(), llm.UserText("go"))
			wantReason(t, out, err, fiducial.Finished)
			if got := asJSON(t, l.History()[1]); !strings.Contains(got, c.want) {
				t.Errorf("the reply is %s, want %s in it", got, c.want)
			}
			equal(t, "warnings", count[fiducial.Warning](ev), c.warnings)
			out, err = l.Run(t.Context(), llm.UserText("go on"))
			wantReason(t, out, err, fiducial.Finished)
			here := asJSON(t, l.History())
			equal(t, "what is stored", asJSON(t, reopened(t, j, l, opts...)), here)
		})
	}
}

var badNote = llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.System{Kind: "k", Text: "t", Data: json.RawMessage("{bad")}}}

// A prompt hook's message is refused before anything is accepted.
func TestPromptThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	h := &hooks{prompt: func(fiducial.Invocation, *llm.Message) (fiducial.PromptAnswer, error) {
		return fiducial.ContinueWith{Messages: []llm.Message{badNote}}, nil
	}}
	j := folder(t)
	l, out, err := fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithInterceptor(h), fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Failed)
	wantErr(t, err, fiducial.ErrInterceptor)
	equal(t, "messages", len(l.History()), 0)
	*h = hooks{}
	out, err = l.Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, reopened(t, j, l), "user: go", "assistant: x")
}

func TestInputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	j := folder(t)
	l, out, err := fiducial.New(llmtest.NewScript(llmtest.Say("x"), llmtest.Say("x")), fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	out, err = l.Run(t.Context(), badNote)
	wantReason(t, out, err, fiducial.Failed)
	wantErr(t, err, fiducial.ErrState)
	wantErr(t, l.Send(t.Context(), "k", badNote), fiducial.ErrState)
	wantErr(t, l.Send(t.Context(), "\xff", llm.UserText("x")), fiducial.ErrState)
	e, err := l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, e.Append(t.Context(), badNote), fiducial.ErrState)
	wantErr(t, e.ReplaceHistory(t.Context(), []llm.Message{badNote}), fiducial.ErrState)
	if l, err = e.Lock(); err != nil {
		t.Fatal(err)
	}
	out, err = l.Run(t.Context(), llm.UserText("good"))
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, reopened(t, j, l), "user: go", "assistant: x", "user: good", "assistant: x")
	_, err = fiducial.New(llmtest.NewScript(), fiducial.WithHistory(badNote)).Lock()
	wantErr(t, err, fiducial.ErrConfig)
}

// What a hook leaves that cannot be written, or is the engine's, is the hook's failure,
// and the run goes on when it is resumed without it.
func TestHookThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	add := []llm.Message{badNote}
	note := func(kind, data string) *hooks {
		return &hooks{after: func(inv fiducial.Invocation, _ llm.Message) (fiducial.ResponseAnswer, error) {
			inv.Note(kind, json.RawMessage(data))
			return nil, nil
		}}
	}
	cases := map[string]*hooks{
		"pending history": {pending: func(fiducial.Invocation) ([]llm.Message, error) { return add, nil }},
		"pre request": {request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
			return fiducial.ContinueWith{Messages: add}, nil
		}},
		"yield": {request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
			return fiducial.Yield{Messages: add}, nil
		}},
		"after response": {after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) {
			return fiducial.ContinueWith{Messages: add}, nil
		}},
		"synthetic": {pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) {
			return fiducial.Synthetic{Result: llm.Result{Notes: []llm.System{{Data: json.RawMessage("bad")}}}}, nil
		}},
		"note that is not JSON": note("mine", "{bad"),
		"note without a kind":   note("", "1"),
		"note of the engine":    note("lock", `{"x":1}`),
		"note for the engine":   note("extra", `[{"role":"assistant","parts":[]}]`),
		"note of the journal":   note(journal.RepairedNote, ""),
	}
	for name, h := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j, p := folder(t), &probe{}
			model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
			opts := []fiducial.Option{fiducial.WithTools(p.tool("look")), fiducial.WithJournal(j, "r")}
			l, out, err := fiducial.New(model, append(opts, fiducial.WithInterceptor(h))...).Run(t.Context(), llm.UserText("go"))
			wantReason(t, out, err, fiducial.Failed)
			wantErr(t, err, fiducial.ErrInterceptor)
			if !strings.Contains(err.Error(), string(fiducial.HookContract)) {
				t.Errorf("%v, want a %s", err, fiducial.HookContract)
			}
			*h = hooks{}
			out, err = l.Resume(t.Context())
			wantReason(t, out, err, fiducial.Finished)
			equal(t, "notes", len(l.Notes()), 0)
			equal(t, "messages stored", len(reopened(t, j, l, opts[:1]...)), 4)
		})
	}
}

// A result of an executor is put right, for what the call did is done.
func TestResultThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	j, p := folder(t), &probe{}
	p.do = func(context.Context, tool.Call) (tool.Output, error) {
		return tool.Output{Summary: "s\xff", Images: []llm.Image{{Media: "image/\xff", Data: []byte("1")}}}, nil
	}
	opts := []fiducial.Option{fiducial.WithTools(p.tool("look"))}
	l, out, err := fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")), append(opts, fiducial.WithJournal(j, "r"))...).
		Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	here := asJSON(t, l.History())
	equal(t, "what is stored", asJSON(t, reopened(t, j, l, opts...)), here)
}

// choosy is a journal that refuses one word for good.
type choosy struct {
	journal.Journal
	word string
}

func (c choosy) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	l, err := c.Journal.Acquire(ctx, run, owner)
	return choosyLease{l, c.word}, err
}

type choosyLease struct {
	journal.Lease
	word string
}

func (c choosyLease) Append(ctx context.Context, m journal.Mark, bodies ...journal.Body) error {
	for _, b := range bodies {
		if s, ok := b.(journal.Step); ok && strings.Contains(fmt.Sprintf("%+v", s), c.word) {
			return &journal.Error{Kind: journal.KindInvalid, Op: "append", Err: errors.New("no such word")}
		}
	}
	return c.Lease.Append(ctx, m, bodies...)
}

// What a journal refuses for good is not in the way of what comes behind it (S-90).
func TestRefusedForGood(t *testing.T) {
	t.Parallel()
	j := choosy{journal.NewMemory(), "poison"}
	model := llmtest.NewScript(llmtest.Say("x"), llmtest.Say("poison"), llmtest.Say("y"), llmtest.Say("z"))
	l, out, err := fiducial.New(model, fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	out, err = l.Run(t.Context(), llm.UserText("poison"))
	wantReason(t, out, err, fiducial.Failed)
	wantErr(t, err, journal.ErrInvalid)
	out, err = l.Run(t.Context(), llm.UserText("say it"))
	wantReason(t, out, err, fiducial.Failed)
	wantErr(t, err, journal.ErrInvalid)
	out, err = l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	out, err = l.Run(t.Context(), llm.UserText("on"))
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, reopened(t, j, l), "user: go", "assistant: x", "user: say it", "assistant: y", "user: on", "assistant: z")
}
