// SPDX-License-Identifier: Apache-2.0

package collect_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
)

func text(i int) llm.Event     { return llm.BlockStart{Index: i, Kind: llm.BlockText} }
func thinking(i int) llm.Event { return llm.BlockStart{Index: i, Kind: llm.BlockThinking} }
func call(i int, id, n string) llm.Event {
	return llm.BlockStart{Index: i, Kind: llm.BlockCall, ID: id, Name: n}
}
func delta(i int, s string) llm.Event   { return llm.BlockDelta{Index: i, Text: s} }
func stop(i int) llm.Event              { return llm.BlockStop{Index: i} }
func finish(s llm.StopReason) llm.Event { return llm.Finish{Stop: s} }

func signed(i int, data string) llm.Event {
	return llm.BlockStop{Index: i, Opaque: llm.Opaque{Vendor: "v", Data: json.RawMessage(data)}}
}

func gather(c *collect.Collector, events ...llm.Event) (collect.Reply, error) {
	for _, ev := range events {
		if err := c.Add(ev); err != nil {
			return collect.Reply{}, err
		}
	}
	return c.Reply()
}

func assistant(stop llm.StopReason, parts ...llm.Part) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Parts: parts, Stop: stop}
}

func TestReplies(t *testing.T) {
	opaque := llm.Opaque{Vendor: "v", Data: json.RawMessage(`"sig"`)}
	for name, c := range map[string]struct {
		events []llm.Event
		want   llm.Message
	}{
		"S-127 an empty end of turn": {[]llm.Event{finish(llm.StopEndTurn)}, assistant(llm.StopEndTurn)},
		"E-168 a call is joined from its deltas": {
			[]llm.Event{call(0, "c", "look"), delta(0, `{"a":`), delta(0, ""), delta(0, `1`), delta(0, `}`), stop(0), finish(llm.StopToolUse)},
			assistant(llm.StopToolUse, llm.Call{ID: "c", Name: "look", Args: `{"a":1}`}),
		},
		"S-127 empty arguments are arguments": {
			[]llm.Event{call(0, "c", "look"), stop(0), finish(llm.StopToolUse)},
			assistant(llm.StopToolUse, llm.Call{ID: "c", Name: "look"}),
		},
		"E-126 arguments that are no JSON are kept as they are": {
			[]llm.Event{call(0, "c", "look"), delta(0, "{nope"), stop(0), finish(llm.StopToolUse)},
			assistant(llm.StopToolUse, llm.Call{ID: "c", Name: "look", Args: "{nope"}),
		},
		"E-163 blocks interleave": {
			[]llm.Event{
				text(0), delta(0, "a"), delta(0, "b"), call(1, "c", "look"), delta(1, "{"), text(2), delta(0, "c"), delta(1, "}"),
				call(3, "d", "look"), delta(0, "d"), stop(1), stop(3), stop(0), stop(2), finish(llm.StopToolUse),
			},
			assistant(llm.StopToolUse, llm.Text{Text: "abcd"}, llm.Call{ID: "c", Name: "look", Args: "{}"}, llm.Call{ID: "d", Name: "look"}),
		},
		"the order is that of the indexes, however far apart": {
			[]llm.Event{
				text(math.MaxInt), delta(math.MaxInt, "last"), stop(math.MaxInt), text(7), delta(7, "b"), stop(7),
				text(math.MinInt), delta(math.MinInt, "first"), stop(math.MinInt), finish(llm.StopEndTurn),
			},
			assistant(llm.StopEndTurn, llm.Text{Text: "first"}, llm.Text{Text: "b"}, llm.Text{Text: "last"}),
		},
		"E-164 a second stop is ignored": {
			[]llm.Event{thinking(0), delta(0, "hm"), signed(0, `"sig"`), stop(0), finish(llm.StopEndTurn)},
			assistant(llm.StopEndTurn, llm.Thinking{Text: "hm", Opaque: opaque}),
		},
		"E-166 empty text is no part": {
			[]llm.Event{text(0), stop(0), text(1), delta(1, "x"), stop(1), finish(llm.StopEndTurn)},
			assistant(llm.StopEndTurn, llm.Text{Text: "x"}),
		},
		"E-167 thinking without text stands when it is signed, and only then": {
			[]llm.Event{thinking(0), signed(0, `"sig"`), thinking(1), stop(1), finish(llm.StopEndTurn)},
			assistant(llm.StopEndTurn, llm.Thinking{Opaque: opaque}),
		},
		"E-160 unhandled events are passed over": {
			[]llm.Event{llm.Unhandled{Type: "ping"}, llm.Failover{}, text(0), delta(0, "x"), stop(0), finish(llm.StopEndTurn)},
			assistant(llm.StopEndTurn, llm.Text{Text: "x"}),
		},
		"ids are made where there are none, and where one is used twice": {
			[]llm.Event{
				call(0, "", "a"), stop(0), call(1, "x", "b"), stop(1), call(2, "x", "c"), stop(2), call(3, "call_7_0", "d"), stop(3),
				finish(llm.StopToolUse),
			},
			assistant(llm.StopToolUse, llm.Call{ID: "call_7_0", Name: "a"}, llm.Call{ID: "x", Name: "b"},
				llm.Call{ID: "call_7_2", Name: "c"}, llm.Call{ID: "call_7_3", Name: "d"}),
		},
	} {
		got, err := gather(&collect.Collector{Seed: 7}, c.events...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got.Message); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestS127_Malformed: streams that break the rules. E-162 asks that a delta for a
// block that was never started open it; S-127 forbids it, and adapters whose wire
// does so open the block themselves.
func TestS127_Malformed(t *testing.T) {
	for name, events := range map[string][]llm.Event{
		"a delta before its block":     {delta(0, "x")},
		"a delta after its block":      {text(0), stop(0), delta(0, "x")},
		"a stop before its block":      {stop(0)},
		"a block twice":                {text(0), stop(0), text(0)},
		"an unknown kind of block":     {llm.BlockStart{Kind: 9}},
		"an open block at the end":     {text(0), finish(llm.StopEndTurn)},
		"something after the end":      {finish(llm.StopEndTurn), text(0)},
		"the end twice":                {finish(llm.StopEndTurn), finish(llm.StopEndTurn)},
		"an end without a stop reason": {finish("")},
		"a pointer to an event":        {text(0), delta(0, "do not "), &llm.BlockDelta{Text: "ever "}, delta(0, "delete"), stop(0), finish(llm.StopEndTurn)},
		"no event":                     {nil},
		"tool use without calls":       {text(0), delta(0, "x"), stop(0), finish(llm.StopToolUse)},
	} {
		var c collect.Collector
		_, err := gather(&c, events...)
		if llm.ClassOf(err) != llm.ClassMalformedStream {
			t.Errorf("%s: %v", name, err)
		}
		// It is no reply, whatever comes after.
		for _, ev := range []llm.Event{stop(0), finish(llm.StopEndTurn)} {
			_ = c.Add(ev)
		}
		if r, err := c.Reply(); llm.ClassOf(err) != llm.ClassMalformedStream {
			t.Errorf("%s: afterwards it is the reply %+v, %v", name, r, err)
		}
	}
}

// TestE133_NoReplyWithoutFinish: what was collected is dropped (E-165), its usage
// counts (E-172).
func TestE133_NoReplyWithoutFinish(t *testing.T) {
	for _, events := range [][]llm.Event{
		nil,
		{text(0), delta(0, "half")},
		{call(0, "c", "look"), delta(0, "{}"), stop(0)},
	} {
		var c collect.Collector
		events = append(events, llm.UsageReport{Usage: llm.Usage{Input: llm.N(7)}})
		r, err := gather(&c, events...)
		if llm.ClassOf(err) != llm.ClassStreamIncomplete || r.Message.Parts != nil {
			t.Errorf("%+v, %v", r, err)
		}
		if c.Usage().Input != llm.N(7) || c.Begun() != (len(events) > 1) {
			t.Errorf("usage %+v, begun %v", c.Usage(), c.Begun())
		}
	}
}

// TestE172_UsageMerges, S-128: an absent count erases nothing, a later one wins.
func TestE172_UsageMerges(t *testing.T) {
	r, err := gather(new(collect.Collector),
		llm.UsageReport{Usage: llm.Usage{Input: llm.N(10), CacheRead: llm.N(8), Output: llm.N(1)}},
		llm.UsageReport{},
		llm.UsageReport{Usage: llm.Usage{Output: llm.N(5)}},
		finish(llm.StopEndTurn))
	want := llm.Usage{Input: llm.N(10), CacheRead: llm.N(8), Output: llm.N(5)}
	if err != nil || r.Usage != want {
		t.Errorf("got %+v, %v, want %+v", r.Usage, err, want)
	}
}

type client struct {
	events []llm.Event
	err    error
}

func (c client) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for _, ev := range c.events {
			if !yield(ev, nil) {
				return
			}
		}
		if c.err != nil {
			yield(nil, c.err)
		}
	}
}

// TestStream reads a client to its end; usage counts also when it breaks.
func TestStream(t *testing.T) {
	whole := collect.Reply{
		Message: assistant(llm.StopToolUse, llm.Thinking{Text: "hm"}, llm.Text{Text: "look"}, llm.Call{ID: "c", Name: "look", Args: "{}"}),
		Usage:   llm.Usage{Input: llm.N(1), Output: llm.N(2)},
	}
	var events []llm.Event
	for ev := range collect.Events(whole) {
		events = append(events, ev)
	}
	got, err := collect.Stream(t.Context(), client{events: events}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole.Message, got.Message); diff != "" || got.Usage != whole.Usage {
		t.Errorf("usage %+v (-want +got):\n%s", got.Usage, diff)
	}
	broken := errors.New("broken")
	got, err = collect.Stream(t.Context(), client{events: events[:len(events)-1], err: broken}, nil)
	if !errors.Is(err, broken) || got.Usage != whole.Usage || got.Message.Parts != nil {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = collect.Stream(t.Context(), client{events: append(events[:len(events)-1:len(events)-1], delta(0, "late"))}, nil)
	if llm.ClassOf(err) != llm.ClassMalformedStream || got.Usage != whole.Usage {
		t.Errorf("%+v, %v", got, err)
	}
	for range collect.Events(whole) { // breaking out is allowed everywhere
		break
	}
}

// FuzzCollector: no events make it panic, a reply is only what ends in Finish, and
// its text is what the deltas were.
func FuzzCollector(f *testing.F) {
	f.Add([]byte{0, 3, 3, 9, 15, 12, 4, 10, 6, 7, 8})
	f.Add([]byte{2, 5, 11, 8, 12})
	f.Fuzz(func(t *testing.T, script []byte) {
		c := collect.Collector{Seed: 5}
		texts := map[int]string{}
		closed, failed, finished := map[int]bool{}, false, false
		for _, b := range script {
			i := int(b / 8 % 4)
			var ev llm.Event
			switch b % 8 {
			case 0, 1, 2:
				ev = llm.BlockStart{Index: i, Kind: llm.BlockKind(b % 8), ID: strings.Repeat("x", int(b/32))}
			case 3, 4:
				ev = delta(i, strings.Repeat("d", int(b%5)))
			case 5:
				ev = stop(i)
			case 6:
				ev = llm.UsageReport{Usage: llm.Usage{Output: llm.N(int64(b))}}
			case 7:
				ev = finish([]llm.StopReason{llm.StopEndTurn, llm.StopToolUse, llm.StopMaxTokens, ""}[i])
			}
			if err := c.Add(ev); err != nil {
				failed = true
				if llm.ClassOf(err) != llm.ClassMalformedStream {
					t.Fatal(err)
				}
				continue
			}
			switch ev := ev.(type) {
			case llm.BlockDelta:
				texts[ev.Index] += ev.Text
			case llm.BlockStop:
				closed[ev.Index] = true
			case llm.Finish:
				finished = true
			default:
			}
		}
		r, err := c.Reply()
		if err == nil && (failed || !finished) {
			t.Fatalf("failed %v, finished %v, and there is the reply %+v", failed, finished, r)
		}
		if err != nil {
			return
		}
		want, got := 0, 0
		for _, s := range texts {
			want += len(s)
		}
		ids := map[string]bool{}
		for _, p := range r.Message.Parts {
			switch p := p.(type) {
			case llm.Text:
				got += len(p.Text)
			case llm.Thinking:
				got += len(p.Text)
			case llm.Call:
				got += len(p.Args)
				if p.ID == "" || ids[p.ID] {
					t.Fatalf("id %q", p.ID)
				}
				ids[p.ID] = true
			default:
				t.Fatalf("the reply holds a %T", p)
			}
		}
		if got != want || (r.Message.Stop == llm.StopToolUse && len(ids) == 0) {
			t.Fatalf("%d bytes of %d, %+v", got, want, r.Message)
		}
	})
}
