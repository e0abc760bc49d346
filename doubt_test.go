// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// lostIn is the journal of a process that was lost in a call which had its effect and
// may be repeated. The second process owns the run.
func lostIn(t *testing.T) journal.Journal {
	t.Helper()
	j := journal.NewMemory()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	entered := make(chan struct{})
	gone := make(chan struct{})
	p := &probe{do: func(context.Context, tool.Call) (tool.Output, error) {
		close(entered)
		<-gone
		return tool.Output{Summary: "late"}, nil
	}}
	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Call("put", "")), fiducial.WithTools(p.tool("put", tool.ReadOnly())), fiducial.WithJournal(j, "r")))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = l.Run(ctx, llm.UserText("go")) // it ends superseded
	}()
	<-entered
	j.Expire("r")
	t.Cleanup(func() { close(gone); cancel(); <-done })
	return j
}

// S-78, S-170: the model is never told that a call was not executed which may have been.
func TestS170_NobodySaysNotExecutedOfACallThatRan(t *testing.T) {
	skip := &hooks{pre: func(inv fiducial.Invocation, _ *llm.Call) (fiducial.ToolAnswer, error) {
		if !inv.MayHaveRun {
			t.Error("the hook is not told that the call may have run")
		}
		return fiducial.Skip{Reason: "denied"}, nil
	}}
	pause := &hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) { return fiducial.Pause{}, nil }}
	run := func(l *fiducial.Locked) error {
		_, err := l.Run(t.Context(), llm.UserText("on"))
		return err
	}
	for name, c := range map[string]struct {
		hook *hooks
		do   func(l *fiducial.Locked) error
	}{
		"run":           {&hooks{}, run},
		"open, run":     {&hooks{}, func(l *fiducial.Locked) error { return first(l.Open(t.Context()), run(l)) }},
		"skip":          {skip, func(l *fiducial.Locked) error { _, err := l.Resume(t.Context()); return err }},
		"paused, given": {pause, func(l *fiducial.Locked) error { _, err := l.Resume(t.Context()); return first(err, run(l)) }},
	} {
		t.Run(name, func(t *testing.T) {
			p := &probe{}
			l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("ok"), llmtest.Say("ok")), fiducial.WithTools(p.tool("put", tool.ReadOnly())),
				fiducial.WithInterceptor(c.hook), fiducial.WithJournal(lostIn(t), "r")))
			if err := c.do(l); err != nil {
				t.Fatal(err)
			}
			r, ok := l.History()[2].Parts[0].(llm.Result)
			if !ok || r.Status != llm.StatusUnknown || !strings.HasPrefix(r.Summary, "outcome unknown: it was started") {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
