// SPDX-License-Identifier: Apache-2.0

// Package llmtest helps to test what is built on package llm without a model:
// clients that play a script ([NewScript], [ByHistory]), a server that speaks the
// formats of the providers ([NewServer]), recordings of real exchanges ([NewRecorder],
// [NewReplayer]), and suites for clients ([TestClient], [TestInProcess]).
package llmtest

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
)

// A Turn is what a [Script] does with one request. It is an [llm.Client], too, that
// does the same with every request: a function that looks at the request is a model.
type Turn func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error]

// Stream plays the turn.
func (t Turn) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return t(ctx, req)
}

// Describe tells that this is no provider.
func (t Turn) Describe() llm.Model { return llm.Model{Vendor: "script", Name: "script"} }

// ByHistory is a client that finds its turn in the request: the first one while the
// model has said nothing, the second after its first message, and so on. It keeps no
// count of its own, so that a run which goes on in a second process, or whose request
// is sent again, gets the turn that is due, where a [Script] starts at its first or plays
// its next. A request beyond the last turn is an error.
func ByHistory(turns ...Turn) Turn {
	return func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
		n := 0
		for _, m := range req.Messages {
			if m.Role == llm.RoleAssistant {
				n++
			}
		}
		if n >= len(turns) {
			return beyond(n+1, len(turns))(ctx, req)
		}
		return turns[n](ctx, req)
	}
}

func beyond(request, turns int) Turn {
	return Fail(&llm.Error{
		Class: llm.ClassInvalidRequest, Op: "llmtest", Message: fmt.Sprintf("request %d, and the script has %d turns", request, turns),
	})
}

// A Script is an [llm.Client] that answers the n-th request with its n-th turn
// and remembers every request. A request beyond the script is an error, so that a
// run that asks too often fails its test.
type Script struct {
	mu       sync.Mutex
	turns    []Turn
	requests []llm.Request
}

// NewScript returns a client that plays turns in order.
func NewScript(turns ...Turn) *Script { return &Script{turns: turns} }

// Stream plays the next turn.
func (s *Script) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.requests)
	s.requests = append(s.requests, *req)
	if n >= len(s.turns) {
		return beyond(n+1, len(s.turns))(ctx, req)
	}
	return s.turns[n](ctx, req)
}

// Describe tells that this is no provider.
func (s *Script) Describe() llm.Model { return llm.Model{Vendor: "script", Name: "script"} }

// Requests is every request so far, in order.
func (s *Script) Requests() []llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]llm.Request(nil), s.requests...)
}

// Left is how many turns were not played.
func (s *Script) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(len(s.turns)-len(s.requests), 0)
}

// Reply is a turn that answers with a whole message.
func Reply(m llm.Message) Turn { return ReplyUsage(m, llm.Usage{}) }

// ReplyUsage is a turn that answers with a whole message and tells its cost.
func ReplyUsage(m llm.Message, u llm.Usage) Turn {
	return func(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
		return collect.Events(collect.Reply{Message: m, Usage: u})
	}
}

// Say is a turn that ends with a text.
func Say(text string) Turn { return Reply(llm.AssistantText(text)) }

// Call is a turn of calls; args are name and JSON arguments by turns. Ids are
// left to package collect.
func Call(nameAndArgs ...string) Turn {
	if len(nameAndArgs)%2 != 0 {
		panic("llmtest: Call takes name and arguments by turns")
	}
	var calls []llm.Call
	for i := 0; i < len(nameAndArgs); i += 2 {
		calls = append(calls, llm.Call{Name: nameAndArgs[i], Args: nameAndArgs[i+1]})
	}
	return Reply(llm.AssistantCalls(calls...))
}

// Fail is a turn that fails before its first event.
func Fail(err error) Turn { return Break(err) }

// Break is a turn that yields events and then fails with err. With a nil err the
// stream just ends, without a [llm.Finish] unless events holds one.
func Break(err error, events ...llm.Event) Turn {
	return func(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) {
			for _, ev := range events {
				if !yield(ev, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
			}
		}
	}
}

// Wait is a turn that yields events and then waits until ctx ends.
func Wait(events ...llm.Event) Turn {
	return func(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) {
			for _, ev := range events {
				if !yield(ev, nil) {
					return
				}
			}
			<-ctx.Done()
			yield(nil, context.Cause(ctx))
		}
	}
}
