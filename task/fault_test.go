// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
)

// faulty is a domain whose judge stops working.
type faulty struct {
	*texts
	err error
}

func (f *faulty) Fault() error { return f.err }

// A judge that does not work ends the run as failed before the model is asked again,
// with its own words, whether the model has refused, is done, or has more to do.
func TestFault(t *testing.T) {
	refuse := llmtest.Call("finish", `{"outcome":"refuse","summary":"the check fails"}`)
	for name, turn := range map[string]llmtest.Turn{"refused": refuse, "done": join(checkCall, finishCall), "more to do": check()} {
		t.Run(name, func(t *testing.T) {
			d := &faulty{}
			r := newRig(t, write("b.txt", "beta"), func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
				d.err = errors.New("the judge was killed")
				return turn(ctx, req)
			})
			d.texts = r.domain
			r.cfg.Domain = d
			res := r.run()
			r.ends(res, task.Failed, task.PathEnvironment)
			if res.Err == nil || res.Detail != "the judge was killed" || res.Preserved.Stash == "" || r.script.Left() != 0 {
				t.Errorf("detail %q, error %v, stash %q", res.Detail, res.Err, res.Preserved.Stash)
			}
		})
	}
}

// A judge that works does nothing.
func TestFault_None(t *testing.T) {
	r := newRig(t, write("b.txt", "beta"), join(checkCall, finishCall))
	r.cfg.Domain = &faulty{texts: r.domain}
	r.ends(r.run(), task.Done, task.PathDone)
}
