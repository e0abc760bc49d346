// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/mask"
	"github.com/fiducial-dev/fiducial/tool"
)

// A call whose arguments held a secret does not run, also when a sink panics at the
// first event about the reply and the run is taken up again.
func TestSecretCallAndAPanicOfTheSink(t *testing.T) {
	var args string
	armed := true
	sink := fiducial.EventFunc(func(ev fiducial.Event) {
		switch d := ev.Data.(type) {
		case fiducial.GenerationFinished, fiducial.Warning, fiducial.CacheMiss:
			if armed {
				armed = false
				panic("sink")
			}
		case fiducial.ToolStarted:
			t.Errorf("started %v", d)
		default:
		}
	})
	model := llmtest.NewScript(llmtest.Call("send", `{"to":"`+plainSecret+`"}`), llmtest.Say("x"))
	l := mustLock(t, fiducial.New(model, fiducial.WithTools(sendTool(&args)), fiducial.WithMask(mask.New(plainSecret)), fiducial.WithEvents(sink)))
	func() {
		defer func() { equal(t, "panic", recover(), any("sink")) }()
		_, _ = l.Run(t.Context(), llm.UserText("go"))
	}()
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "what the tool was given", args, "")
	paired(t, model)
}

// written is all that a journal holds of a run, as text.
func written(t *testing.T, j journal.Journal, run string) string {
	t.Helper()
	var b strings.Builder
	for rec, err := range j.Read(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%+v\n", rec.Body)
	}
	return b.String()
}

// escapes is s with each of its characters as an escape of JSON.
func escapes(s string) string {
	var b strings.Builder
	for _, c := range s {
		fmt.Fprintf(&b, `\u%04x`, c)
	}
	return b.String()
}

// Replies in which a secret stands in two parts, or in arguments that are no JSON:
// nobody who joins the texts, or reads the escapes, finds it in history, journal or
// events.
func TestSecretsInTheGapsOfAReply(t *testing.T) {
	esc := escapes(plainSecret)
	first, rest := plainSecret[:9], plainSecret[9:]
	two := func(parts ...llm.Part) llmtest.Turn {
		return llmtest.Reply(llm.Message{Role: llm.RoleAssistant, Stop: llm.StopEndTurn, Parts: parts})
	}
	for name, turn := range map[string]llmtest.Turn{
		"two texts":           two(llm.Text{Text: "a " + first}, llm.Text{Text: rest + " b"}),
		"three texts":         two(llm.Text{Text: first}, llm.Text{Text: rest[:3]}, llm.Text{Text: rest[3:]}),
		"a call between them": two(llm.Text{Text: first}, llm.Call{ID: "1", Name: "look", Args: "{}"}, llm.Text{Text: rest}),
		"a wrong escape":      llmtest.Call("look", `{"a":"`+esc+` \q"}`),
		"a raw line":          llmtest.Call("look", "{\"a\":\"x\n"+esc+"\"}"),
		"other quotes":        llmtest.Call("look", `{'a':'`+esc+`'}`),
		"no quotes":           llmtest.Call("look", esc),
		"cut in an escape":    llmtest.Reply(llm.Message{Role: llm.RoleAssistant, Stop: llm.StopMaxTokens, Parts: []llm.Part{llm.Call{Name: "look", Args: `{"a":"` + esc + `\u00`}}}),
		"escaped in part":     llmtest.Call("look", `{"a":"`+first+`\`+rest+` \q"}`),
		"Unhandled":           llmtest.Break(nil, llm.Unhandled{Vendor: plainSecret, Type: plainSecret}, llm.BlockStart{}, llm.BlockDelta{Text: "x"}, llm.BlockStop{}, llm.Finish{Stop: llm.StopEndTurn}),
		"Failover": llmtest.Break(nil, llm.Failover{From: llm.Model{Vendor: plainSecret, Name: plainSecret, Host: plainSecret}, To: llm.Model{Host: plainSecret}},
			llm.BlockStart{}, llm.BlockDelta{Text: "x"}, llm.BlockStop{}, llm.Finish{Stop: llm.StopEndTurn}),
		"a vendor": two(llm.Text{Text: "x", Opaque: llm.Opaque{Vendor: plainSecret, Data: json.RawMessage(`"x"`)}}),
	} {
		j, ev, p := journal.NewMemory(), &events{}, &probe{}
		l, out, err := fiducial.New(llmtest.NewScript(turn, llmtest.Say("x"), llmtest.Say("x")), fiducial.WithTools(p.tool("look")),
			fiducial.WithMask(mask.New(plainSecret)), fiducial.WithJournal(j, "r"), fiducial.WithEvents(ev), fiducial.WithRetry(fiducial.RetryPolicy{Attempts: 1})).
			Run(t.Context(), llm.UserText("go"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var shown, joined strings.Builder
		for _, e := range ev.all {
			if d, ok := e.Data.(fiducial.Delta); ok {
				shown.WriteString(d.Text)
			}
		}
		for _, m := range l.History() {
			for _, part := range m.Parts {
				if text, ok := part.(llm.Text); ok {
					joined.WriteString(text.Text)
				}
			}
		}
		for where, s := range map[string]string{
			"history": fmt.Sprintf("%+v", l.History()), "the texts": joined.String(), "journal": written(t, j, "r"),
			"events": fmt.Sprintf("%+v", ev.all), "the answer": out.Text(), "what was shown": shown.String(),
		} {
			if strings.Contains(s, plainSecret) || strings.Contains(s, esc) || strings.Contains(s, first+`\`+rest) {
				t.Errorf("%s: a secret in %s: %q", name, where, s)
			}
		}
		if strings.Contains(name, "escape") || strings.Contains(name, "quotes") {
			equal(t, name+": runs", p.count(), 0)
		}
		sendable(t, l.History())
	}
}

// Texts that hold no secret stay apart, and are shown as they are.
func TestTextsWithoutASecretStayApart(t *testing.T) {
	ev := &events{}
	parts := []llm.Part{llm.Text{Text: "one "}, llm.Text{Text: "two " + plainSecret}, llm.Text{Text: "three"}}
	l, _, err := fiducial.New(llmtest.NewScript(llmtest.Reply(llm.Message{Role: llm.RoleAssistant, Stop: llm.StopEndTurn, Parts: parts})),
		fiducial.WithMask(mask.New(plainSecret)), fiducial.WithEvents(ev)).Run(t.Context(), llm.UserText("go"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]string{}
	for _, e := range ev.all {
		if d, ok := e.Data.(fiducial.Delta); ok {
			got[d.Block] += d.Text
		}
	}
	want := map[int]string{0: "one ", 1: "two [masked]", 2: "three"}
	equal(t, "shown", got, want)
	for i, p := range l.History()[1].Parts {
		equal(t, "part", p, llm.Part(llm.Text{Text: want[i]}))
	}
}

// What hooks and tools say is masked wherever it goes.
func TestSecretsInWhatHooksSay(t *testing.T) {
	j, ev := journal.NewMemory(), &events{}
	h := &hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
		return fiducial.Yield{Reason: "wants " + plainSecret}, nil
	}}
	_, out, err := fiducial.New(llmtest.NewScript(), fiducial.WithMask(mask.New(plainSecret)), fiducial.WithJournal(j, "r"), fiducial.WithEvents(ev), with(h)).
		Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Yielded)
	if s := fmt.Sprintf("%+v %+v", out, ev.all); strings.Contains(s, plainSecret) {
		t.Errorf("the reason of a Yield: %s", s)
	}

	ctx, cancel := context.WithCancel(t.Context())
	p := &probe{do: func(context.Context, tool.Call) (tool.Output, error) {
		cancel()
		return tool.Output{Summary: plainSecret[:9], Content: plainSecret[9:] + " and more"}, nil
	}}
	h = &hooks{post: func(fiducial.Invocation, llm.Call, llm.Result) (fiducial.PostAnswer, error) {
		return nil, errors.New("with " + plainSecret)
	}}
	ev = &events{}
	l, _, err := fiducial.New(llmtest.NewScript(llmtest.Call("look", "")), fiducial.WithMask(mask.New(plainSecret)), fiducial.WithEvents(ev), with(h),
		fiducial.WithTools(p.tool("look"))).Run(ctx, llm.UserText("go"))
	wantErr(t, err, fiducial.ErrCancelled)
	equal(t, "warnings", count[fiducial.Warning](ev), 1)
	for _, e := range ev.all {
		if w, ok := e.Data.(fiducial.Warning); ok && strings.Contains(w.Text, plainSecret) {
			t.Errorf("the warning after a cancel: %s", w.Text)
		}
	}
	r, _ := l.History()[2].Parts[0].(llm.Result)
	equal(t, "the result", r.Summary+r.Content, "[masked] and more")
}

// A key is what a message is found by, so that one with a secret is refused, as a run's
// name is; a recovered history is masked as one that is given.
func TestSecretsInKeysAndRecoveredHistories(t *testing.T) {
	j := journal.NewMemory()
	m := fiducial.WithMask(mask.New(plainSecret))
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), m, fiducial.WithJournal(j, "r")), "go")
	err := l.Send(t.Context(), "mail-"+plainSecret, llm.UserText("hi"))
	wantErr(t, err, fiducial.ErrState)
	if strings.Contains(err.Error(), plainSecret) {
		t.Error(err)
	}

	saved := machine.Checkpoint{
		History: []llm.Message{llm.UserText(plainSecret), llm.AssistantCalls(llm.Call{ID: plainSecret, Name: "look", Args: `{"a":"` + escapedSecret + `"}`})},
		Pending: &machine.PendingOperation{Kind: machine.PendingTools, Op: 2}, Sequence: 2,
	}
	p := &probe{}
	l, _ = mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), m, fiducial.WithRecovery(saved), fiducial.WithTools(p.tool("look"))), "go")
	if s := fmt.Sprintf("%+v", l.History()); strings.Contains(s, plainSecret) || strings.Contains(s, escapedSecret) {
		t.Errorf("recovered: %s", s)
	}
	sendable(t, l.History())
}
