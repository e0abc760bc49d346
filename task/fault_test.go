// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/workspace"
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

// A run that could not be committed for want of a name is refused before it begins; a dry run makes no commit, and one
// with a committer to fall back on has a name.
func TestRun_Identity(t *testing.T) {
	for name, want := range map[string]bool{"plain": false, "dry": true, "fallback": true} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
			r := newRig(t, write("b.txt", "beta"), join(checkCall, finishCall))
			r.git("config", "--unset", "user.email")
			r.cfg.Committer = workspace.Identity{}
			switch name {
			case "dry":
				r.cfg.DryRun = true
			case "fallback":
				r.cfg.Committer = workspace.Identity{Name: "F", Email: "f@example.com"}
			}
			res, err := task.Run(t.Context(), r.cfg)
			if e, ok := errors.AsType[*workspace.PreflightError](err); want && (err != nil || res.Outcome != task.Done) ||
				!want && (!ok || e.Check != workspace.CheckIdentity || r.script.Left() != 2) {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
}
