// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// Whoever leaves the loop at the first event has given the message all the same: it is
// history, durable, and Resume answers it, in this process or another.
func TestLeavingAtTheFirstEventKeepsTheMessage(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for _, elsewhere := range []bool{false, true} {
			if elsewhere && !durable {
				continue
			}
			j := journal.NewMemory()
			asked := 0
			h := &hooks{prompt: func(fiducial.Invocation, *llm.Message) (fiducial.PromptAnswer, error) { asked++; return nil, nil }}
			engine := func() *fiducial.Locked {
				opts := []fiducial.Option{with(h)}
				if durable {
					opts = append(opts, fiducial.WithJournal(j, "r"))
				}
				return mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("answer")), opts...))
			}
			l := engine()
			for ev := range l.Stream(t.Context(), llm.UserText("go")) {
				if _, ok := ev.Data.(fiducial.RunStarted); !ok {
					t.Fatalf("the first event is a %T", ev.Data)
				}
				break
			}
			wantTexts(t, l.History(), "user: go")
			if elsewhere {
				if err := l.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				l = engine()
			}
			out, err := l.Resume(t.Context())
			wantReason(t, out, err, fiducial.Finished)
			equal(t, "answer", out.Text(), "answer")
			equal(t, "PromptSubmit asked", asked, 1)
		}
	}
}

// The caller's own context ends the taking in, too, and the error says what to do.
func TestAnEndedContextKeepsTheMessageOut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithJournal(journal.NewMemory(), "r")))
	err := last(l.Stream(ctx, llm.UserText("go")))
	wantErr(t, err, fiducial.ErrCancelled)
	equal(t, "messages", len(l.History()), 0)
}

// A reader who left in the middle of a reply is told, when it comes back, to drop what
// it showed of it, once.
func TestLeavingInAReplyResetsTheDraft(t *testing.T) {
	for _, panics := range []bool{false, true} {
		l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("one two"), llmtest.Say("three"), llmtest.Say("four"))))
		shown := ""
		show := func(ev fiducial.Event) {
			switch d := ev.Data.(type) {
			case fiducial.Delta:
				shown += d.Text
			case fiducial.DraftReset:
				shown = "|"
			default:
			}
		}
		func() {
			defer func() { _ = recover() }()
			for ev := range l.Stream(t.Context(), llm.UserText("go")) {
				show(ev)
				if _, ok := ev.Data.(fiducial.Delta); ok {
					if panics {
						panic("body")
					}
					break
				}
			}
		}()
		if shown == "" {
			t.Fatal("nothing was shown")
		}
		for range l.StreamResume(t.Context()) { // left before it was told
			break
		}
		var names []string
		for ev, err := range l.StreamResume(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			show(ev)
			switch ev.Data.(type) {
			case fiducial.RunStarted, fiducial.DraftReset, fiducial.GenerationStarted:
				names = append(names, eventName(ev))
			default:
			}
		}
		equal(t, "events", names, []string{"RunStarted", "DraftReset", "GenerationStarted"})
		equal(t, "shown", shown, "|three")
		equal(t, "history", texts(l.History())[1], "assistant: three")
		for ev := range l.Stream(t.Context(), llm.UserText("more")) {
			if _, ok := ev.Data.(fiducial.DraftReset); ok {
				t.Error("told twice")
			}
		}
	}
}
