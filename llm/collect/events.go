// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"context"
	"iter"

	"github.com/fiducial-dev/fiducial/llm"
)

// Events yields a whole reply as the events of a stream: for clients that have no
// wire to read, such as a planner or a scripted model.
func Events(r Reply) iter.Seq2[llm.Event, error] {
	parts, stop, usage := r.Message.Parts, r.Message.Stop, r.Usage
	if !usage.Known() { // what is not told is not kept
		return func(yield func(llm.Event, error) bool) {
			_ = blocks(parts, yield) && yield(llm.Finish{Stop: stop}, nil)
		}
	}
	return func(yield func(llm.Event, error) bool) {
		_ = blocks(parts, yield) && yield(llm.UsageReport{Usage: usage}, nil) && yield(llm.Finish{Stop: stop}, nil)
	}
}

// blocks yields the blocks of a reply, and reports whether more is wanted.
func blocks(parts []llm.Part, yield func(llm.Event, error) bool) bool {
	for i, p := range parts {
		start, text, opaque, ok := blockOf(i, p)
		if !ok {
			continue
		}
		if !yield(start, nil) || text != "" && !yield(llm.BlockDelta{Index: i, Text: text}, nil) ||
			!yield(llm.BlockStop{Index: i, Opaque: opaque}, nil) {
			return false
		}
	}
	return true
}

func blockOf(i int, p llm.Part) (start llm.BlockStart, text string, opaque llm.Opaque, ok bool) {
	switch p := p.(type) {
	case llm.Text:
		return llm.BlockStart{Index: i, Kind: llm.BlockText}, p.Text, p.Opaque, true
	case llm.Thinking:
		return llm.BlockStart{Index: i, Kind: llm.BlockThinking}, p.Text, p.Opaque, true
	case llm.Call:
		return llm.BlockStart{Index: i, Kind: llm.BlockCall, ID: p.ID, Name: p.Name}, p.Args, p.Opaque, true
	case llm.Image, llm.System, llm.Result:
	}
	return llm.BlockStart{}, "", llm.Opaque{}, false
}

// Stream reads one request of a client to its end. It is for callers that want a
// reply and no engine.
func Stream(ctx context.Context, client llm.Client, req *llm.Request) (Reply, error) {
	var c Collector
	for ev, err := range client.Stream(ctx, req) {
		if err != nil {
			return Reply{Usage: c.Usage()}, err
		}
		if err := c.Add(ev); err != nil {
			return Reply{Usage: c.Usage()}, err
		}
	}
	return c.Reply()
}
