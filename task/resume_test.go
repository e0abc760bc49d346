// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

// crash copies the repository as it is in the middle of a run: what a process that
// is killed leaves behind. The journal is a folder beside it.
type crash struct {
	*rig
	journal, copies string
	n               int
}

func newCrash(t *testing.T, turns ...llmtest.Turn) *crash {
	c := &crash{rig: newRig(t, turns...), journal: t.TempDir(), copies: t.TempDir()}
	c.cfg.Journal = c.open(c.journal)
	return c
}

func (c *crash) open(dir string) journal.Journal {
	c.t.Helper()
	j, err := journal.OpenFolder(dir, journal.FolderOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return j
}

// snap takes a copy now.
func (c *crash) snap() {
	to := filepath.Join(c.copies, fmt.Sprint(c.n))
	c.n++
	for name, from := range map[string]string{"tree": c.dir, "journal": c.journal} {
		if err := os.CopyFS(filepath.Join(to, name), os.DirFS(from)); err != nil {
			c.t.Error(err)
		}
	}
}

// revive is the n-th copy as another process finds it.
func (c *crash) revive(n int, turns ...llmtest.Turn) *rig {
	c.t.Helper()
	at := filepath.Join(c.copies, fmt.Sprint(n))
	r := &rig{t: c.t, dir: filepath.Join(at, "tree")}
	repo, err := workspace.Open(c.t.Context(), r.dir, workspace.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	r.domain, r.script = &texts{dir: r.dir}, llmtest.NewScript(turns...)
	r.cfg = c.cfg
	r.cfg.Client, r.cfg.Repo, r.cfg.Domain, r.cfg.Journal = r.script, repo, r.domain, c.open(filepath.Join(at, "journal"))
	r.cfg.Event = func(kind string, data any) { r.events = append(r.events, event{kind, data}) }
	return r
}

func (r *rig) resume() *task.Result {
	r.t.Helper()
	res, err := task.Resume(r.t.Context(), r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// A run that is killed at any request goes on: no write is made twice, and what is
// committed was checked in the process that commits it.
func TestResume_AtEveryRequest(t *testing.T) {
	var c *crash
	script := []llmtest.Turn{write("b.txt", "beta"), check(), join(writeCall("sub/c.txt", "gamma")), join(checkCall, finishCall)}
	watched := make([]llmtest.Turn, len(script))
	for i, turn := range script {
		watched[i] = func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
			c.snap()
			return turn(ctx, req)
		}
	}
	c = newCrash(t, watched...)
	c.ends(c.run(), task.Done, task.PathDone)
	for n := range c.n {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := c.revive(n, script[n:]...)
			r.t = t
			res := r.resume()
			r.ends(res, task.Done, task.PathDone)
			if got := r.git("show", "--format=", "--name-only"); got != "b.txt\nsub/c.txt" {
				t.Errorf("committed %q", got)
			}
			if res.Tally.Turns != 4 {
				t.Errorf("%d turns in all, want 4", res.Tally.Turns)
			}
			if writes := results(r.last(), "write"); len(writes) != 2 {
				t.Errorf("%d writes", len(writes))
			}
		})
	}
}

// A run that is killed behind an accepted finish looks at the gates again: checks
// are due in the new process, and the model is told.
func TestResume_AfterFinish(t *testing.T) {
	c := newCrash(t, join(writeCall("b.txt", "beta"), checkCall, finishCall))
	c.domain.hooks.seal = func() error { c.snap(); return nil }
	c.ends(c.run(), task.Done, task.PathDone)
	r := c.revive(0, join(checkCall, finishCall))
	res := r.resume()
	r.ends(res, task.Done, task.PathDone)
	if got := said(r.last(), "finish_withdrawn"); len(got) != 1 {
		t.Errorf("told %q", got)
	}
	if res.Commit == "" {
		t.Error("nothing was committed")
	}
}

// What a killed call had written and nobody noted still counts.
func TestResume_UnnotedWriteIsDue(t *testing.T) {
	c := newCrash(t, write("b.txt", "BAD"), refuse())
	c.domain.hooks.write = func(name string) { c.file(name, "BAD"); c.snap() }
	c.run()
	r := c.revive(0, finish(), join(writeCall("b.txt", "beta"), checkCall, finishCall))
	r.domain.hooks.begin = func() error { r.domain.s.Rules.Touch("b.txt"); return nil } // as a domain must
	r.ends(r.resume(), task.Done, task.PathDone)
	if got := results(r.last(), task.FinishName); len(got) != 1 || !got[0].IsError() {
		t.Errorf("the finish before a check answered %+v", got)
	}
	if got := results(r.last(), "write"); len(got) != 1 || got[0].Status != llm.StatusUnknown {
		t.Errorf("the call that was killed answered %+v", got)
	}
}

// A run that is killed behind its commit is done.
func TestResume_AfterCommit(t *testing.T) {
	for _, giveUp := range []bool{false, true} {
		c := newCrash(t, join(writeCall("b.txt", "beta"), checkCall, finishCall))
		event := c.cfg.Event
		c.cfg.Event = func(kind string, data any) {
			event(kind, data)
			if kind == "run-committed" {
				c.snap()
			}
		}
		c.ends(c.run(), task.Done, task.PathDone)
		r := c.revive(0)
		end := task.Resume
		if giveUp {
			r.cfg.Domain, end = nil, task.GiveUp
		}
		res, err := end(t.Context(), r.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if res.Outcome != task.Done || res.Commit == "" || res.Commit != r.git("rev-parse", "HEAD") {
			t.Errorf("give up %t: %+v", giveUp, res)
		}
		if refs := r.git("for-each-ref", "refs/fiducial"); refs != "" {
			t.Errorf("the snapshot is still there: %s", refs)
		}
	}
}

// A run that stalled and was killed before the tree was put back puts it back.
func TestResume_AfterStall(t *testing.T) {
	c := newCrash(t, write("b.txt", "beta"), empty(), empty(), empty())
	before := c.tree()
	event := c.cfg.Event
	c.cfg.Event = func(kind string, data any) {
		event(kind, data)
		if kind == "run-failed" {
			c.snap()
		}
	}
	c.ends(c.run(), task.Failed, task.PathStalled)
	r := c.revive(0)
	r.ends(r.resume(), task.Failed, task.PathStalled)
	r.same(before)
}

// Giving up keeps the changes and puts the tree back.
func TestGiveUp(t *testing.T) {
	c := newCrash(t, write("b.txt", "beta"), func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
		return refuse()(ctx, req)
	})
	before := c.tree()
	c.domain.hooks.write = func(name string) { c.file(name, "half"); c.snap() }
	c.run()
	r := c.revive(0)
	res, err := task.GiveUp(t.Context(), r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if res.Outcome != task.Failed || res.Path != task.PathCancelled || res.Preserved.Stash == "" {
		t.Errorf("result %+v", res)
	}
	r.same(before)
	if !strings.Contains(r.git("stash", "show", "--include-untracked", "--name-only", res.Preserved.Stash), "b.txt") {
		t.Error("the stash lacks b.txt")
	}
	if _, err := task.GiveUp(t.Context(), r.cfg); err == nil {
		t.Error("it was given up twice")
	}
}
