// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// E-60: what one hook adds before a request counts when the hooks behind it let the
// request pass; when one pauses or yields all are asked again, and it is added once.
func TestAddedOnceThoughAnotherHookStops(t *testing.T) {
	for name, stop := range map[string]fiducial.RequestAnswer{"pause": fiducial.Pause{}, "yield": fiducial.Yield{}} {
		n := 0
		first := &hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
			return fiducial.ContinueWith{Messages: []llm.Message{llm.UserText("added")}}, nil
		}}
		second := &hooks{request: func(_ fiducial.Invocation, req *llm.Request) (fiducial.RequestAnswer, error) {
			equal(t, name+": what it sees", texts(req.Messages), []string{"user: go", "user: added"})
			if n++; n < 4 {
				return stop, nil
			}
			return nil, nil
		}}
		model := llmtest.NewScript(llmtest.Say("x"))
		l, out, err := fiducial.New(model, fiducial.WithInterceptor(first, second)).Run(t.Context(), llm.UserText("go"))
		for out.Reason == fiducial.Paused || out.Reason == fiducial.Yielded {
			out, err = l.Resume(t.Context())
		}
		wantReason(t, out, err, fiducial.Finished)
		wantTexts(t, l.History(), "user: go", "user: added", "assistant: x")
		wantTexts(t, model.Requests()[0].Messages, "user: go", "user: added")
	}
}

// E-198: Append shows its message to the observers, who may refuse it and read the
// engine.
func TestObserversSeeWhatIsAppended(t *testing.T) {
	var e *fiducial.Engine
	var seen []string
	refuse := false
	e = fiducial.New(llmtest.NewScript(), fiducial.WithObserver(func(m llm.Message) error {
		seen = append(seen, texts([]llm.Message{m})...)
		if refuse || len(e.History()) > 1 {
			return errors.New("no")
		}
		return nil
	}))
	returns(t, "Append", func() {
		if err := e.Append(context.Background(), llm.UserText("a")); err != nil {
			t.Error(err)
		}
	})
	refuse = true
	wantErr(t, e.Append(t.Context(), llm.UserText("b")), fiducial.ErrHistory)
	equal(t, "seen", seen, []string{"user: a", "user: b"})
	wantTexts(t, e.History(), "user: a")
}

// staleClient feeds its second attempt into the yield function of the first.
type staleClient struct {
	attempts int
	kept     func(llm.Event, error) bool
}

func (c *staleClient) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if c.attempts++; c.attempts == 1 {
			c.kept = yield
			yield(llm.BlockStart{}, nil)
			yield(nil, &llm.Error{Class: llm.ClassTransport})
			return
		}
		for _, ev := range []llm.Event{llm.BlockStart{}, llm.BlockDelta{Text: "old"}, llm.BlockStop{}} {
			if c.kept(ev, nil) {
				panic("it is listened to")
			}
		}
		for _, ev := range []llm.Event{llm.BlockStart{}, llm.BlockDelta{Text: "new"}, llm.BlockStop{}, llm.Finish{Stop: llm.StopEndTurn}} {
			yield(ev, nil)
		}
	}
}

// S-127: nothing of an attempt that is over becomes part of the next.
func TestAnAttemptThatIsOverIsOver(t *testing.T) {
	_, out, err := fiducial.New(&staleClient{}, fiducial.WithRetry(fiducial.RetryPolicy{Base: 1})).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "answer", out.Text(), "new")
}
