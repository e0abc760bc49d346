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
	return func(yield func(llm.Event, error) bool) {
		for i, p := range r.Message.Parts {
			start, text, opaque, ok := blockOf(i, p)
			if !ok {
				continue
			}
			if !yield(start, nil) {
				return
			}
			if text != "" && !yield(llm.BlockDelta{Index: i, Text: text}, nil) {
				return
			}
			if !yield(llm.BlockStop{Index: i, Opaque: opaque}, nil) {
				return
			}
		}
		if r.Usage.Known() && !yield(llm.UsageReport{Usage: r.Usage}, nil) {
			return
		}
		yield(llm.Finish{Stop: r.Message.Stop}, nil)
	}
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
