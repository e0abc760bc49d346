// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/mask"
)

const (
	shapedSecret = "sk-ant-api03-" + "3f9a0b7c6d5e4f3a2b1c0d9e8f7a6b5c" // in two, since no published file may hold what looks like a key
	namedSecret  = "correct horse battery"
)

// pieces are the events of one block, whose text comes a few bytes at a time, runes
// whole.
func pieces(start llm.BlockStart, text string, size int) []llm.Event {
	events := []llm.Event{start}
	for text != "" {
		n := min(size, len(text))
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		events = append(events, llm.BlockDelta{Index: start.Index, Text: text[:n]})
		text = text[n:]
	}
	return append(events, llm.BlockStop{Index: start.Index})
}

// shownBlocks is what a reader of the deltas has before him when the first reply is
// complete.
func shownBlocks(ev *events) map[int]string {
	blocks := map[int]string{}
	for _, e := range ev.all {
		if d, ok := e.Data.(fiducial.Delta); ok {
			blocks[d.Block] += d.Text
		}
		if _, ok := e.Data.(fiducial.DraftReset); ok {
			clear(blocks)
		}
		if _, ok := e.Data.(fiducial.GenerationFinished); ok {
			break
		}
	}
	return blocks
}

func wantNoSecret(t *testing.T, ev *events) {
	t.Helper()
	for _, e := range ev.all {
		text := fmt.Sprintf("%+v", e.Data)
		for _, s := range []string{shapedSecret, namedSecret, shapedSecret[:20], shapedSecret[len(shapedSecret)-12:], "horse"} {
			if strings.Contains(text, s) {
				t.Errorf("a sink was shown %q: %s", s, text)
			}
		}
	}
}

// A secret that comes in pieces is shown to no sink, and what is shown is what the
// message holds.
func TestDeltasAreMasked(t *testing.T) {
	t.Parallel()
	text := "The key é is " + shapedSecret + " and the phrase is " + namedSecret + ".\nNo more."
	args := `{"key":"` + shapedSecret + `","note":"ü"}`
	maskers := map[string]fiducial.Masker{"stream": mask.New(namedSecret), "plain": plainMasker{mask.New(namedSecret)}}
	for name, m := range maskers {
		for size := 1; size < 2*len(text); size += 1 + size/4 {
			stream := pieces(llm.BlockStart{Kind: llm.BlockThinking}, text, size)
			stream = append(stream, pieces(llm.BlockStart{Index: 1}, text, size)...)
			stream = append(stream, pieces(llm.BlockStart{Index: 2, Kind: llm.BlockCall, ID: "c", Name: "look"}, args, size)...)
			stream = append(stream, llm.Finish{Stop: llm.StopToolUse})
			ev := &events{}
			p := &probe{}
			l, _ := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Break(nil, stream...), llmtest.Say("x")),
				fiducial.WithTools(p.tool("look")), fiducial.WithMask(m), fiducial.WithEvents(ev)), "go")
			wantNoSecret(t, ev)
			reply := l.History()[1]
			shown := shownBlocks(ev)
			equal(t, "thinking", shown[0], reply.Parts[0].(llm.Thinking).Text)
			equal(t, "text", shown[1], reply.Parts[1].(llm.Text).Text)
			equal(t, "args", shown[2], reply.Parts[2].(llm.Call).Args)
			equal(t, "runs", p.count(), 0) // its arguments hold a secret
			if name == "stream" && size == 1 && count[fiducial.Delta](ev) < 20 {
				t.Errorf("the reply came in %d pieces", count[fiducial.Delta](ev))
			}
		}
	}
}

// plainMasker hides that the masker can say what has settled.
type plainMasker struct{ fiducial.Masker }

// What was held back of a reply that broke is not shown with the next one.
func TestHeldDeltasEndWithTheirReply(t *testing.T) {
	t.Parallel()
	broken := []llm.Event{llm.BlockStart{}, llm.BlockDelta{Text: "One tw"}}
	whole := append(pieces(llm.BlockStart{}, "Three four", 3), llm.Finish{Stop: llm.StopEndTurn})
	ev := &events{}
	_, out := mustRun(t, fiducial.New(
		llmtest.NewScript(llmtest.Break(&llm.Error{Class: llm.ClassTransport}, broken...), llmtest.Break(nil, whole...)),
		fiducial.WithMask(mask.New()), fiducial.WithEvents(ev), fiducial.WithRetry(fiducial.RetryPolicy{Base: 1})), "go")
	equal(t, "answer", out.Text(), "Three four")
	equal(t, "shown", shownBlocks(ev)[0], "Three four")
	equal(t, "resets", count[fiducial.DraftReset](ev), 1)
}

// What a hook puts into a call reaches the tool, and no sink; wire data is shown up to
// where a secret may begin.
func TestOtherEventsAreMasked(t *testing.T) {
	t.Parallel()
	ev := &events{}
	got := ""
	h := &hooks{pre: func(_ fiducial.Invocation, call *llm.Call) (fiducial.ToolAnswer, error) {
		call.Args = `{"to":"` + shapedSecret + `"}`
		return fiducial.Continue{}, nil
	}}
	preview := "event: x " + shapedSecret[:20]
	stream := []llm.Event{llm.Unhandled{Vendor: "v", Type: "t", Preview: preview, Size: 900}, llm.BlockStart{Kind: llm.BlockCall, Name: "send"}, llm.BlockStop{}, llm.Finish{Stop: llm.StopToolUse}}
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Break(nil, stream...), llmtest.Say("x")), fiducial.WithTools(sendTool(&got)),
		fiducial.WithInterceptor(h), fiducial.WithMask(mask.New(namedSecret)), fiducial.WithEvents(ev)), "go")
	equal(t, "sent to", got, shapedSecret)
	wantNoSecret(t, ev)
	equal(t, "started", count[fiducial.ToolStarted](ev), 1)
	equal(t, "stream events", count[fiducial.StreamEvent](ev), 1)
}

// Random cuts of a long reply.
func TestDeltasOfALongReply(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("Plain words, then "+shapedSecret+" and "+namedSecret+".\n", 20)
	m := mask.New(namedSecret)
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		stream := []llm.Event{llm.BlockStart{}}
		for rest := text; rest != ""; {
			n := min(len(rest), 1+rnd.IntN(40))
			stream = append(stream, llm.BlockDelta{Text: rest[:n]})
			rest = rest[n:]
		}
		stream = append(stream, llm.BlockStop{}, llm.Finish{Stop: llm.StopEndTurn})
		ev := &events{}
		_, out := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Break(nil, stream...)), fiducial.WithMask(m), fiducial.WithEvents(ev)), "go")
		wantNoSecret(t, ev)
		equal(t, "shown", shownBlocks(ev)[0], out.Text())
	}
}
