// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"bytes"
	"context"
	"encoding/json"
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

const (
	plainSecret   = "sUp3rS3cretValue0123456789"
	escapedSecret = `\u0073Up3rS3cretValue012345678\u0039`
)

// No secret becomes history, a record or an event, wherever it stands.
func TestSecretsEverywhere(t *testing.T) {
	t.Parallel()
	data := json.RawMessage(`{"n":1,"t":"` + plainSecret + `","u":"` + escapedSecret + `"}`)
	notes := []llm.System{{Kind: plainSecret, Text: plainSecret, Data: data}}
	j, ev, p := folder(t), &events{}, &probe{}
	p.do = func(context.Context, tool.Call) (tool.Output, error) {
		return tool.Output{Summary: "s", Images: []llm.Image{{Media: plainSecret, Data: []byte("1")}}}, nil
	}
	h := &hooks{
		pre: func(inv fiducial.Invocation, _ *llm.Call) (fiducial.ToolAnswer, error) {
			inv.Note("mine", data)
			if inv.Ordinal == 0 {
				return nil, nil
			}
			return fiducial.Synthetic{Result: llm.Result{Summary: plainSecret, Notes: notes}}, nil
		},
	}
	reply := llm.AssistantCalls(
		llm.Call{ID: plainSecret + "1", Name: "look", Args: `{}`},
		llm.Call{ID: plainSecret + "2", Name: "look", Args: `{}`},
		llm.Call{ID: "3", Name: "look", Args: `{"a":"` + escapedSecret + `"}`},
		llm.Call{ID: "4", Name: plainSecret, Args: `{}`},
		llm.Call{ID: plainSecret + "5", Name: "look", Args: `{"a":"` + plainSecret + `"}`},
		llm.Call{ID: "6", Name: "look", Args: `{"a":"` + escapedSecret}, // not whole
	)
	reply.Stop = plainSecret // of no known kind, so that the run ends behind the calls
	l, out, err := fiducial.New(llmtest.NewScript(llmtest.Reply(reply)), fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h),
		fiducial.WithJournal(j, "r"), fiducial.WithMask(mask.New(plainSecret)), fiducial.WithEvents(ev)).
		Run(t.Context(), llm.Message{Role: llm.RoleUser, Parts: []llm.Part{notes[0], llm.Image{Media: plainSecret}}})
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "calls that ran", p.count(), 1)
	if err := machine.ValidateContext(l.History()); err != nil {
		t.Error(err)
	}
	var b bytes.Buffer
	if err := journal.Export(t.Context(), j, "r", &b); err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{
		"history": asJSON(t, l.History()), "journal": b.String(), "events": fmt.Sprintf("%+v", ev), "notes": string(l.Notes()[0].Data),
	}
	for name, s := range shown {
		if strings.Contains(s, plainSecret) || strings.Contains(s, escapedSecret) {
			t.Errorf("the %s: %s", name, s)
		}
	}
	equal(t, "note", shown["notes"], `{"n":1,"t":"[masked]","u":"[masked]"}`)
	equal(t, "ids of results", len(l.History()[2].Parts), 6)
	here := shown["history"]
	equal(t, "what is stored", asJSON(t, reopened(t, j, l, fiducial.WithTools(p.tool("look")), fiducial.WithMask(mask.New(plainSecret)))), here)
}

// Ids in a history that is given are masked alike in calls and results.
func TestMaskedIDsMatch(t *testing.T) {
	t.Parallel()
	a, b := plainSecret+"x", plainSecret
	history := []llm.Message{
		llm.UserText("go"), llm.AssistantCalls(llm.Call{ID: b, Name: "look"}, llm.Call{ID: a, Name: "look"}, llm.Call{ID: "[masked]", Name: "look"}),
		llm.ToolResults(llm.Result{CallID: b, Name: "look"}, llm.Result{CallID: a, Name: "look"}, llm.Result{CallID: "[masked]", Name: "look"}),
	}
	l, err := fiducial.New(llmtest.NewScript(), fiducial.WithHistory(history...), fiducial.WithMask(mask.New(plainSecret))).Lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := machine.ValidateContext(l.History()); err != nil {
		t.Error(err)
	}
	if s := asJSON(t, l.History()); strings.Contains(s, plainSecret) {
		t.Error(s)
	}
}

// Data in which the secret is no string stay readable.
func TestMaskedNumber(t *testing.T) {
	t.Parallel()
	m := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.System{Kind: "k", Data: json.RawMessage(`{"pin":1234567890}`)}}}
	l, err := fiducial.New(llmtest.NewScript(), fiducial.WithHistory(m), fiducial.WithMask(mask.New("1234567890"))).Lock()
	if err != nil {
		t.Fatal(err)
	}
	note, _ := l.History()[0].Parts[0].(llm.System)
	equal(t, "data", string(note.Data), `"{\"pin\":[masked]}"`)
}

func TestSecretInAName(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]fiducial.Option{
		"run":   fiducial.WithJournal(journal.NewMemory(), plainSecret),
		"owner": fiducial.WithOwner(plainSecret),
		"label": fiducial.WithLabels(map[string]string{"a": "b", "l": plainSecret}),
		"key":   fiducial.WithLabels(map[string]string{plainSecret: "b"}),
	} {
		_, err := fiducial.New(llmtest.NewScript(), opt, fiducial.WithMask(mask.New(plainSecret))).Lock()
		wantErr(t, err, fiducial.ErrConfig)
		if err != nil && strings.Contains(err.Error(), plainSecret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Notes of this process are there when they are stored, and may be asked for while a run
// takes them up (with -race).
func TestNotesOfThisProcess(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory()
	h := &hooks{after: func(inv fiducial.Invocation, _ llm.Message) (fiducial.ResponseAnswer, error) {
		inv.Note("mine", []byte(`1`))
		return nil, nil
	}}
	for n := 1; n <= 3; n++ {
		l, err := fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithInterceptor(h), fiducial.WithJournal(j, "r")).Lock()
		if err != nil {
			t.Fatal(err)
		}
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-stop:
					return
				default:
					l.Notes()
				}
			}
		}()
		out, err := l.Run(t.Context(), llm.UserText("go"))
		close(stop)
		<-ended
		wantReason(t, out, err, fiducial.Finished)
		equal(t, "notes", len(l.Notes()), n)
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A secret whose escapes come behind what was shown already is not shown, and what
// stands around it is.
func TestEscapedSecretIsNotShown(t *testing.T) {
	t.Parallel()
	args := `{"a":"some words ` + escapedSecret + ` and more","b":"` + strings.Repeat("word ", 20) + `"}`
	var pieces []llm.Event
	pieces = append(pieces, llm.BlockStart{Kind: llm.BlockCall, ID: "1", Name: "look"})
	for _, c := range args {
		pieces = append(pieces, llm.BlockDelta{Text: string(c)})
	}
	pieces = append(pieces, llm.BlockStop{}, llm.Finish{Stop: llm.StopEndTurn})
	for _, m := range []fiducial.Masker{mask.New(plainSecret), plainMasker{mask.New(plainSecret)}} {
		var shown strings.Builder
		sink := fiducial.EventFunc(func(ev fiducial.Event) {
			if d, ok := ev.Data.(fiducial.Delta); ok {
				shown.WriteString(d.Text)
			}
		})
		p := &probe{}
		_, out, err := fiducial.New(&streamed{pieces, nil}, fiducial.WithTools(p.tool("look")), fiducial.WithMask(m), fiducial.WithEvents(sink)).
			Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Finished)
		equal(t, "shown", shown.String(), strings.ReplaceAll(args, escapedSecret, "[masked]"))
		equal(t, "runs", p.count(), 0)
	}
}
