// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unicode"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/task/workspace"
	"github.com/fiducial-dev/fiducial/tool"
)

// commit ends a run that is done (B-49, B-50). A cancel ends the commit, whose hooks
// may hang, and nothing else.
func (r *runner) commit(cancellable, ctx context.Context, s *Session) {
	res := &r.result
	if err := r.seal(ctx, s); err != nil {
		r.warn("the last entries: %v", err)
		r.cfg.Event("seal-failed", map[string]any{"error": err.Error()})
	}
	if others := r.narrow(ctx); len(others) > 0 {
		r.fail(PathForeignEdit, fmt.Errorf("somebody else changed %s after the run had written it; nothing is committed, and all of it is kept", strings.Join(others, ", ")))
		r.failed(ctx)
		return
	}
	if err := r.show(ctx); err != nil { // what would be committed is not known
		r.fail(PathCommit, err)
		r.failed(ctx)
		return
	}
	if len(res.Files) == 0 {
		res.Outcome = Done
		r.release(ctx)
		return
	}
	c, err := r.snap.Commit(cancellable, r.message(), workspace.CommitOptions{Fallback: r.cfg.Committer})
	if err != nil {
		path := PathCommit
		if e, ok := errors.AsType[*workspace.Error](err); ok && e.Kind == workspace.KindHeadMoved {
			path = PathForeignHead
		}
		if cancellable.Err() != nil {
			path = PathCancelled
		}
		r.fail(path, err)
		r.failed(ctx)
		return
	}
	res.Outcome, res.Commit = Done, c.Commit
	if len(c.HookStaged) > 0 {
		r.warn("a pre-commit hook changed %s; that is in the tree and not in the commit, since it was not verified", strings.Join(c.HookStaged, ", "))
	}
	r.cfg.Event("run-committed", map[string]any{"commit": c.Commit, "files": c.Paths})
	r.release(ctx)
}

// seal is the domain's, with a panic as an error: it is too late to fail the run.
func (r *runner) seal(ctx context.Context, s *Session) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &tool.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	return r.cfg.Domain.Seal(ctx, s)
}

// dry ends a dry run that is done: its changes are shown, and reverted (B-48).
func (r *runner) dry(ctx context.Context) {
	r.result.Outcome = Done
	if err := r.show(ctx); err != nil {
		r.warn("what changed cannot be told: %v", err)
	}
	r.putBack(ctx)
}

// putBack restores the tree after a run that is not kept. What somebody else wrote
// over the run's files is preserved first.
func (r *runner) putBack(ctx context.Context) {
	if len(r.narrow(ctx)) > 0 {
		r.preserve(ctx)
	}
	r.restore(ctx)
}

// landed ends a run that a process died behind the commit of.
func (r *runner) landed(ctx context.Context, commit string) {
	res := &r.result
	res.Outcome, res.Path, res.Commit, res.Detail = Done, PathDone, commit, "the run had made its commit when it was interrupted"
	if r.cfg.Domain != nil { // giving a run up needs none
		if err := r.cfg.Domain.Close(); err != nil {
			r.warn("closing: %v", err)
		}
	}
	r.release(context.WithoutCancel(ctx))
	r.cfg.Event("run-end", r.end())
}

// show notes what the run changed. Without an error Files holds all of it.
func (r *runner) show(ctx context.Context) error {
	res := &r.result
	changes, err := r.snap.Changed(ctx)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if !c.Ignored { // no part of the commit
			res.Files = append(res.Files, c.Path)
		}
	}
	if len(res.Files) == 0 {
		return nil
	}
	if res.Stats, err = r.snap.DiffStat(ctx); err != nil {
		r.warn("diff: %v", err)
	}
	if res.Diff, err = r.snap.Diff(ctx); err != nil {
		r.warn("diff: %v", err)
	}
	return nil
}

// message is the commit's: the request, what was done, how it was verified.
func (r *runner) message() string {
	subject := strings.Join(strings.Fields(r.cfg.Request), " ")
	if cut := llm.CutUTF8(subject, 72); cut != subject {
		subject = llm.CutUTF8(subject, 69) + "..."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", subject)
	if f := r.result.Tally.Finish; f != nil && f.Summary != "" {
		// The model's words are indented, so that none can pass for ours or for a
		// trailer.
		fmt.Fprintf(&b, "\n%s\n", indented(f.Summary))
	}
	if len(r.result.Verification) > 0 {
		fmt.Fprintf(&b, "\nVerified:\n%s\n", list(r.result.Verification))
	}
	fmt.Fprintf(&b, "\nFiducial-Run: %s\n", r.cfg.Run)
	return b.String()
}

// indented is a model's text for a commit: without control characters, each line
// indented.
func indented(text string) string {
	clean := strings.Map(func(c rune) rune {
		if c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
			return -1
		}
		return c
	}, text)
	return "  " + strings.ReplaceAll(clean, "\n", "\n  ")
}

// narrow tells the snapshot what the run wrote, where the domain knows it, and
// returns the files of the run that somebody else has changed since.
func (r *runner) narrow(ctx context.Context) []string {
	w, ok := r.cfg.Domain.(Recorder)
	if !ok {
		return nil
	}
	paths, complete := w.Wrote()
	if !complete {
		return w.Overwritten()
	}
	r.snap.Narrow(paths)
	foreign, err := r.snap.Foreign(ctx)
	if err != nil {
		r.warn("whether somebody else changed files meanwhile cannot be told: %v", err)
	}
	if len(foreign) > 0 && !r.foreignTold {
		r.foreignTold = true
		r.warn("changed by somebody else during the run, and left as it is: %s", strings.Join(foreign, ", "))
	}
	return w.Overwritten()
}

// failed keeps what the run changed and puts the tree back, in this order, each
// whatever becomes of the other (B-53).
func (r *runner) failed(ctx context.Context) {
	res := &r.result
	res.Outcome, res.Files, res.Commit = Failed, nil, ""
	r.cfg.Event("run-failed", map[string]any{"path": res.Path, "detail": res.Detail})
	r.narrow(ctx)
	r.preserve(ctx)
	r.restore(ctx)
}

// preserve keeps what the run changed, and what somebody else wrote over it.
func (r *runner) preserve(ctx context.Context) {
	res := &r.result
	kept, err := r.snap.Preserve(ctx, "") // as a failed run
	res.Preserved = kept
	switch {
	case err != nil:
		r.warn("the changes could not be preserved: %v", err)
	case kept.Stash != "":
		r.cfg.Event("work-preserved", map[string]any{"stash": kept.Stash, "message": kept.Message, "files": kept.Files})
	}
}

// restore puts the tree back. While it is not whole the snapshot stays.
func (r *runner) restore(ctx context.Context) {
	restored, err := r.snap.Restore(ctx)
	r.result.Restored = &restored
	if e, ok := errors.AsType[*workspace.Error](err); ok && e.Kind == workspace.KindHeadMoved {
		// Nothing can be mended here: these paths are the other commit's now, and what
		// the run had made of them is preserved.
		r.warn("%v", err)
		err = nil
	}
	if err != nil {
		r.result.RestoreErr = err
		r.cfg.Event("restore-failed", map[string]any{"error": err.Error()})
		return
	}
	r.release(ctx)
}

func (r *runner) release(ctx context.Context) {
	if err := r.snap.Release(ctx); err != nil {
		r.warn("the snapshot stays under refs/fiducial/%s: %v", r.cfg.Run, err)
	}
}

func (r *runner) end() map[string]any {
	res := &r.result
	m := map[string]any{
		"outcome": res.Outcome, "path": res.Path, "turns": res.Tally.Turns, "budget": res.Tally.Budget,
		"usage": res.Tally.Usage, "files": res.Files,
	}
	if res.Commit != "" {
		m["commit"] = res.Commit
	}
	if res.Detail != "" {
		m["detail"] = res.Detail
	}
	return m
}
