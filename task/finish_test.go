// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
)

// B-42: refuse needs no gate; the tree is put back, nothing is stashed or committed,
// decisions stay.
func TestRefuse(t *testing.T) {
	r := newRig(t, join(writeCall("a.txt", "BAD"), writeCall("new/b.txt", "beta")), refuse())
	before, head := r.tree(), r.git("rev-parse", "HEAD")
	r.domain.hooks.write = func(string) { r.domain.s.Rules.Decide("alpha stays") }
	res := r.run()
	r.ends(res, task.Refused, task.PathRefused)
	r.same(before)
	if res.Preserved.Stash != "" || r.git("stash", "list") != "" || r.git("rev-parse", "HEAD") != head || res.Commit != "" || len(res.Files) > 0 {
		t.Errorf("result %+v", res)
	}
	if res.Detail != "33 is more than 25" || !cmp.Equal(res.Tally.Decisions, []string{"alpha stays", "alpha stays"}) {
		t.Errorf("detail %q, decisions %q", res.Detail, res.Tally.Decisions)
	}
	if want := []string{"run-start", "run-refused", "run-end"}; !cmp.Equal(r.kinds(), want) {
		t.Errorf("events %q, want %q", r.kinds(), want)
	}
}

// B-44: done is refused with the reasons, and the run goes on; the standing
// obligation does not keep it.
func TestFinish_RefusedWithReasons(t *testing.T) {
	r := newRig(t, write("b.txt", "beta"), finish(), check(), finish())
	res := r.run()
	r.ends(res, task.Done, task.PathDone)
	got := results(r.last(), task.FinishName)
	if len(got) != 1 || !got[0].IsError() || !strings.Contains(got[0].Body(), "has not run since") || !strings.Contains(got[0].Body(), "open obligation: check") {
		t.Errorf("the first finish answered %+v", got)
	}
	if res.Commit == "" || r.git("show", "-s", "--format=%s") != "write it" || !cmp.Equal(res.Files, []string{"b.txt"}) {
		t.Errorf("commit %q of %q", res.Commit, res.Files)
	}
	if body := r.git("show", "-s", "--format=%b"); !strings.Contains(body, "all is well") || !strings.Contains(body, "check passed: true") || !strings.Contains(body, "Fiducial-Run: r1") {
		t.Errorf("body %q", body)
	}
	if refs := r.git("for-each-ref", "refs/fiducial"); refs != "" {
		t.Errorf("the snapshot is still there: %s", refs)
	}
}

// B-46: with nothing touched, done is accepted, and there is no commit.
func TestFinish_NothingTouched(t *testing.T) {
	r := newRig(t, finish())
	head := r.git("rev-parse", "HEAD")
	res := r.run()
	r.ends(res, task.Done, task.PathDone)
	if res.Commit != "" || r.git("rev-parse", "HEAD") != head {
		t.Errorf("commit %q", res.Commit)
	}
}

// B-47: any other outcome is an error that says what there is.
func TestFinish_UnknownOutcome(t *testing.T) {
	r := newRig(t,
		llmtest.Call("finish", `{"outcome":"maybe","summary":"x"}`, "finish", `{"outcome":"done","summary":"  "}`, "finish", `{"summary":"x"}`),
		finish())
	r.ends(r.run(), task.Done, task.PathDone)
	for _, res := range results(r.last(), task.FinishName) {
		if !res.IsError() {
			t.Errorf("accepted: %+v", res)
		}
	}
}

// B-37, B-36: calls behind an accepted finish still run, and the gates are looked
// at again.
func TestFinish_WithdrawnByALaterCall(t *testing.T) {
	r := newRig(t,
		join(writeCall("b.txt", "beta"), checkCall, finishCall, writeCall("b.txt", "BAD")),
		join(writeCall("b.txt", "better"), checkCall, finishCall))
	r.ends(r.run(), task.Done, task.PathDone)
	got := said(r.last(), "finish_withdrawn")
	if len(got) != 1 || !strings.Contains(got[0], "open obligation: check") {
		t.Errorf("told %q", got)
	}
	if data, _ := os.ReadFile(filepath.Join(r.dir, "b.txt")); string(data) != "better" {
		t.Errorf("b.txt is %q", data)
	}

	r = newRig(t, join(finishCall, []string{"look", `{}`})) // nothing undone
	r.ends(r.run(), task.Done, task.PathDone)
}

// B-48: a dry run shows the changes, puts them back and is a success without a
// commit, also when there is nothing to show.
func TestDryRun(t *testing.T) {
	r := newRig(t, join(writeCall("a.txt", "omega\n"), writeCall("b.txt", "beta\n"), checkCall, finishCall))
	before, head := r.tree(), r.git("rev-parse", "HEAD")
	r.cfg.DryRun = true
	res := r.run()
	r.ends(res, task.Done, task.PathDone)
	r.same(before)
	if !cmp.Equal(res.Files, []string{"a.txt", "b.txt"}) || !strings.Contains(res.Diff, "+omega") || len(res.Stats) != 2 {
		t.Errorf("files %q, diff %q", res.Files, res.Diff)
	}
	if res.Commit != "" || r.git("rev-parse", "HEAD") != head || r.git("stash", "list") != "" {
		t.Error("a dry run left something")
	}

	r = newRig(t, finish())
	r.cfg.DryRun = true
	r.ends(r.run(), task.Done, task.PathDone)
}

// B-50: a commit that fails fails the run, with preserve and restore.
func TestCommitFailed(t *testing.T) {
	r := newRig(t, join(writeCall("b.txt", "beta"), checkCall, finishCall))
	before := r.tree()
	hook := filepath.Join(r.dir, ".git", "hooks", "pre-commit")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho no beta here\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	res := r.run()
	r.ends(res, task.Failed, task.PathCommit)
	r.same(before)
	if !strings.Contains(res.Detail, "no beta here") || res.Commit != "" || len(res.Files) > 0 || !cmp.Equal(res.Tally.Touched, []string{"b.txt"}) {
		t.Errorf("result %+v (B-58)", res)
	}
	want := []string{"run-start", "run-failed", "work-preserved", "run-end"}
	if !cmp.Equal(r.kinds(), want) {
		t.Errorf("events %q, want %q (B-53)", r.kinds(), want)
	}
	// AC-15.16 (B-149): the stash has the run's name and its work.
	if list := r.git("stash", "list"); strings.Count(list, "fiducial failed run r1") != 1 || strings.Count(list, "fiducial") != 1 {
		t.Errorf("stash list %q", list)
	}
	r.git("stash", "apply", res.Preserved.Stash)
	if data, _ := os.ReadFile(filepath.Join(r.dir, "b.txt")); string(data) != "beta" {
		t.Errorf("the stash gave %q", data)
	}
}

// AC-15.17 (B-149): a failing run without changes stores nothing.
func TestFailure_NothingToPreserve(t *testing.T) {
	r := newRig(t, empty(), empty(), empty())
	res := r.run()
	r.ends(res, task.Failed, task.PathStalled)
	if res.Preserved.Stash != "" || r.git("stash", "list") != "" || r.count("work-preserved") != 0 {
		t.Errorf("preserved %+v", res.Preserved)
	}
}

// B-53: a failing preserve does not stop the restore.
func TestFailure_PreserveFails(t *testing.T) {
	r := newRig(t, write("b.txt", "beta"), empty(), empty(), empty())
	before := r.tree()
	r.domain.hooks.write = func(string) { // git stash store cannot write its log any more
		_ = os.RemoveAll(filepath.Join(r.dir, ".git", "logs"))
		r.file(".git/logs", "in the way")
	}
	res := r.run()
	r.ends(res, task.Failed, task.PathStalled)
	r.same(before)
	if len(res.Warnings) == 0 || !strings.Contains(strings.Join(res.Warnings, "\n"), "preserved") {
		t.Errorf("warnings %q, preserved %+v", res.Warnings, res.Preserved)
	}
	if r.count("work-preserved") != 0 || res.RestoreErr != nil {
		t.Errorf("events %q, restore %v", r.kinds(), res.RestoreErr)
	}
}

// B-53, B-43: a failing restore does not stop the end of the run, the snapshot
// stays, and this holds for a refusal and a dry run as well.
func TestFailure_RestoreFails(t *testing.T) {
	for name, turns := range map[string][]llmtest.Turn{
		"failed":  {write("a.txt", "omega"), empty(), empty(), empty()},
		"refused": {write("a.txt", "omega"), refuse()},
		"dry":     {write("a.txt", "omega"), join(checkCall, finishCall)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, turns...)
			r.cfg.DryRun = name == "dry"
			r.domain.hooks.write = func(string) { // what the snapshot holds of a.txt is lost
				oid := r.git("rev-parse", "HEAD:a.txt")
				if err := os.Remove(filepath.Join(r.dir, ".git", "objects", oid[:2], oid[2:])); err != nil {
					t.Error(err)
				}
			}
			res := r.run()
			if res.RestoreErr == nil {
				t.Fatal("the restore did not fail")
			}
			if r.count("restore-failed") != 1 || r.count("run-end") != 1 {
				t.Errorf("events %q", r.kinds())
			}
			want := []string{"run-start", "user", "user", "run-failed", "work-preserved", "restore-failed", "run-end"}
			if got := r.kinds(); name == "failed" && !cmp.Equal(got, want) {
				t.Errorf("events %q, want %q", got, want)
			}
			if refs := r.git("for-each-ref", "refs/fiducial"); refs == "" {
				t.Error("the snapshot was released though the tree is not whole")
			}
		})
	}
}

// B-59: somebody else's commit is reported and never dropped.
func TestForeignCommit(t *testing.T) {
	r := newRig(t, write("b.txt", "beta"), join(checkCall, finishCall))
	r.domain.hooks.write = func(string) {
		r.file("theirs.txt", "mine")
		r.git("add", "theirs.txt")
		r.git("commit", "-qm", "foreign")
	}
	res := r.run()
	r.ends(res, task.Failed, task.PathForeignHead)
	if r.git("show", "-s", "--format=%s") != "foreign" {
		t.Error("the foreign commit is gone")
	}
	if res.Restored == nil || !res.Restored.HeadMoved {
		t.Errorf("restored %+v", res.Restored)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "theirs.txt")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "b.txt")); err == nil {
		t.Error("b.txt was not put away")
	}
}

// B-29, B-60: a provider's refusal fails the run as provider error.
func TestProviderError(t *testing.T) {
	r := newRig(t, write("b.txt", "beta"), llmtest.Fail(&llm.Error{Class: llm.ClassAuth, Op: "x", Message: "no such key"}))
	before := r.tree()
	res := r.run()
	r.ends(res, task.Failed, task.PathProvider)
	r.same(before)
	if !strings.Contains(res.Detail, "no such key") {
		t.Errorf("detail %q", res.Detail)
	}
}

// B-26: an attempt that runs out of time is made again, three times; the fourth
// fails the run. A reply resets the count, and no attempt is a turn (B-24).
func TestRequestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := llmtest.Wait()
		rules := task.NewRules(task.RulesConfig{})
		script := llmtest.NewScript(wait, wait, wait, look(1), wait, wait, wait, wait)
		out, err := engineOf(t, rules, script, 3*time.Second)
		if err == nil || script.Left() != 0 {
			t.Fatalf("ended %+v, %v, %d turns left", out, err, script.Left())
		}
		if got := rules.Tally().Turns; got != 1 {
			t.Errorf("%d turns, want 1", got)
		}
	})
}

// Ctrl-C: what the run changed is kept, the tree is put back.
func TestCancel(t *testing.T) {
	r := newRig(t, write("b.txt", "beta"), llmtest.Wait())
	before := r.tree()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.domain.hooks.write = func(string) { time.AfterFunc(100*time.Millisecond, cancel) }
	res, err := task.Run(ctx, r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.ends(res, task.Failed, task.PathCancelled)
	r.same(before)
	if res.Preserved.Stash == "" {
		t.Error("nothing was preserved")
	}
}

// A domain that fails or panics leaves no half-edited tree behind.
func TestDomainFails(t *testing.T) {
	for name, begin := range map[string]func() error{
		"error": func() error { return errTest },
		"panic": func() error { panic("begin") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			before := r.tree()
			r.domain.hooks.begin = func() error { r.file("b.txt", "half"); return begin() }
			r.ends(r.run(), task.Failed, task.PathInternal)
			r.same(before)
		})
	}
}

// B-49, B-61: a failing last entry and a failing close are warnings.
func TestSealAndCloseFail(t *testing.T) {
	for name, seal := range map[string]func() error{
		"error": func() error { return errTest },
		"panic": func() error { panic("seal") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, join(writeCall("b.txt", "beta"), checkCall, finishCall))
			r.domain.hooks.seal, r.domain.hooks.close = seal, func() error { return errTest }
			res := r.run()
			r.ends(res, task.Done, task.PathDone)
			if len(res.Warnings) != 2 || r.count("seal-failed") != 1 || res.Commit == "" {
				t.Errorf("warnings %q, events %q", res.Warnings, r.kinds())
			}
		})
	}
}

// B-2, B-3: a refusal to begin writes nothing, and makes no event.
func TestPreflight_WritesNothing(t *testing.T) {
	r := newRig(t)
	r.file("dirty.txt", "x")
	if _, err := task.Run(t.Context(), r.cfg); err == nil {
		t.Fatal("it began on a dirty tree")
	}
	if len(r.kinds()) > 0 {
		t.Errorf("events %q", r.kinds())
	}
	if _, err := os.Stat(filepath.Join(r.dir, ".fiducial")); err == nil {
		t.Error(".fiducial was made")
	}
	r.cfg.AllowDirty = true
	r.script = llmtest.NewScript(join(writeCall("b.txt", "beta"), checkCall, finishCall))
	r.cfg.Client = r.script
	res := r.run()
	r.ends(res, task.Done, task.PathDone)
	if got := r.git("show", "--format=", "--name-only"); got != "b.txt" {
		t.Errorf("committed %q; the commit holds only the run's own", got)
	}
}

// A second run in the same tree is refused and names the first.
func TestTwoRuns(t *testing.T) {
	r := newRig(t, write("b.txt", "beta"), refuse())
	var second error
	r.domain.hooks.write = func(string) {
		cfg := r.cfg
		cfg.Run, cfg.AllowDirty, cfg.Domain = "r2", true, &texts{dir: r.dir}
		_, second = task.Run(t.Context(), cfg)
	}
	r.ends(r.run(), task.Refused, task.PathRefused)
	if second == nil || !strings.Contains(second.Error(), "r1") {
		t.Errorf("the second run: %v", second)
	}
}

// B-62: the transcript has the run's events, in order, with every reply and result.
func TestEvents(t *testing.T) {
	r := newRig(t, join(writeCall("b.txt", "beta"), checkCall, finishCall))
	r.cfg.Header = map[string]any{"board": "none"}
	r.run()
	var all []string
	for _, e := range r.events {
		all = append(all, e.kind)
	}
	want := []string{"run-start", "assistant", "tool", "tool", "tool", "run-committed", "run-end"}
	if !cmp.Equal(all, want) {
		t.Errorf("events %q, want %q", all, want)
	}
	if s := r.event("run-start"); s["board"] != "none" || s["request"] != "write it" {
		t.Errorf("run-start %v", s)
	}
}
