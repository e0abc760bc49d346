// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/task"
)

// AC-15.9 (B-139, B-74, B-113 to B-115): three open revisits, one call with a list:
// three lines, none open, three decisions. Done is refused until then.
func TestAC15_9_ListResolves(t *testing.T) {
	t.Parallel()
	three := []in{{"key": "sleep", "item": "R1", "how": "fine"}, {"key": "sleep", "item": "R2"}, {"key": "sleep", "item": "firmware timing"}}
	p := playRun(t, divider(),
		calls(slices.Concat(proposed, []any{"record_constraint", in{
			"key": "sleep", "text": "at most 25 uA asleep", "source": "request", "affects": []string{"R1", "R2", "firmware  timing", "R1"},
		}, "check_drift", in{}}, finished)...),
		calls(slices.Concat([]any{"resolve_affected", in{"entries": three}}, finished)...))
	p.ends("done", "done")
	if got := p.answers("finish"); len(got) != 1 || strings.Count(got[0], "affects-revisit sleep affects") != 3 {
		t.Errorf("the first finish: %q", got)
	}
	// The last reply ended the run, so that its results are in no request: what it did
	// shows in the tally.
	if got := p.Tally.Decisions; len(got) != 3 || !strings.Contains(got[0], "sleep affects R1") || !strings.Contains(got[0], "fine") {
		t.Errorf("decisions %q", got)
	}
	if len(p.Tally.Open) > 0 || !cmp.Equal(p.Files, []string{"docs/SPEC.md", "docs/constraints.json"}) {
		t.Errorf("open %v, files %q", p.Tally.Open, p.Files)
	}
}

// AC-15.10 (B-140, B-116 to B-118): a match and a mismatch in one call; the mismatch is
// answered with what is still open. Malformed entries and repeated ones do not keep the
// others from being handled.
func TestAC15_10_Mismatch(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.must("record_constraint", in{"key": "sleep", "text": "low", "source": "s", "affects": []string{"R1", "R2"}})
	if text := b.must("check_drift", in{}); !strings.Contains(text, "DRIFT PASS") {
		t.Errorf("got %s", text)
	}
	text := b.must("resolve_affected", in{"entries": []in{{"key": "sleep", "item": "R1"}, {"key": "sleep", "item": "R7"}}})
	for _, want := range []string{"resolved: sleep affects R1", "error: nothing open says that sleep affects R7; open: sleep affects R2"} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer lacks %q: %s", want, text)
		}
	}
	if got := b.obliged(); !cmp.Equal(got, []string{"affects-revisit"}) {
		t.Errorf("open %q", got)
	}
	b.refuses("resolve_affected", in{}, "entries")
	b.refuses("resolve_affected", in{"key": "sleep", "item": "r2"}, "open: sleep affects R2")
	text = b.must("resolve_affected", in{"key": "x", "item": "y", "entries": []any{7, in{"key": "sleep"}, in{"key": "sleep", "item": "R2"}, in{"key": "sleep", "item": "R2"}}})
	for _, want := range []string{"entry 1 needs", "entry 2 needs", "resolved: sleep affects R2", "error: nothing open says that sleep affects R2; open: none"} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer lacks %q: %s", want, text)
		}
	}
	if len(b.obliged()) > 0 || len(b.rules.Tally().Decisions) != 2 {
		t.Errorf("open %q, decisions %q", b.obliged(), b.rules.Tally().Decisions)
	}
	b.must("record_constraint", in{"key": "sleep", "text": "low", "source": "s", "affects": []string{"R1"}})
	if text := b.must("resolve_affected", in{"key": "sleep", "item": "R1", "entries": []any{}}); !strings.Contains(text, "resolved") {
		t.Errorf("an empty list falls back to the single form: %s", text)
	}
}

// B-73, B-113: both places name it, a limit is held against the design at once, and a
// constraint that one place loses is drift. A bad one changes nothing.
func TestRecordConstraint(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.refuses("record_constraint", in{"key": "two words", "text": "x", "source": "s"}, "two words", "Nothing was changed")
	b.refuses("record_constraint", in{"key": "k", "text": "x", "source": "s", "limits": []in{{"kind": "count"}}}, "Nothing was changed")
	if _, err := os.Stat(b.path("docs")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a folder was made")
	}
	text := b.must("record_constraint", in{"key": "few", "text": "at most one resistor", "source": "s", "limits": []in{{"kind": "count", "parts": []string{"R*"}, "max": "1"}}})
	if !strings.Contains(text, "FAIL") {
		t.Errorf("the limit is broken: %s", text)
	}
	if !strings.Contains(b.bytes("docs/constraints.json"), `"few"`) || !strings.Contains(b.bytes("docs/SPEC.md"), "`few`") {
		t.Error("it is not in both places")
	}
	b.must("record_constraint", in{"key": "few", "text": "at most three resistors", "source": "s"})
	if spec := b.bytes("docs/SPEC.md"); strings.Count(spec, "few") != 1 || !strings.Contains(spec, "three") {
		t.Errorf("recording again replaces:\n%s", spec)
	}
	b.must("edit_file", in{"path": "docs/SPEC.md", "old": "`few`", "new": "`many`"})
	if text := b.must("check_drift", in{}); !strings.Contains(text, "DRIFT FAIL") || !strings.Contains(text, "few") || !strings.Contains(text, "many") {
		t.Errorf("got %s", text)
	}
	if text := b.prompt(); !strings.Contains(text, "- few: at most three resistors (s)") {
		t.Errorf("the prompt lacks it:\n%s", text)
	}
}

// B-78 to B-80: what is about a board waits for one, a reference never does; it is
// opened once, by the first run that has the board, and again when that run fails.
func TestDeferral(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	text := b.must("record_constraint", in{"key": "ant", "text": "keep clear", "source": "s", "affects": []string{"R1", "layout of the antenna"}})
	if !strings.Contains(text, "Deferred") || !strings.Contains(text, "layout of the antenna") {
		t.Errorf("got %s", text)
	}
	b.must("resolve_affected", in{"key": "ant", "item": "R1"})
	if slices.Contains(b.obliged(), "affects-revisit") {
		t.Errorf("open %v", b.rules.Open())
	}
	files := divider()
	for _, name := range []string{"docs/constraints.json", "docs/SPEC.md"} {
		files[name] = b.bytes(name)
	}
	again := newTable(t, files) // no board yet
	if len(again.obliged()) > 0 || again.bytes("docs/constraints.json") != files["docs/constraints.json"] {
		t.Errorf("open %v", again.rules.Open())
	}
	files["p.kicad_pcb"] = kicadtest.Board
	first := newTable(t, files)
	if open := first.rules.Open(); len(open) != 1 || open[0].Detail != "ant affects layout of the antenna" {
		t.Fatalf("open %v", open)
	}
	if !strings.Contains(first.system, "to be looked at again, for resolve_affected: ant affects layout of the antenna") {
		t.Error("the prompt does not say so (B-9)")
	}
	if !cmp.Equal(first.rules.Touched(), []string{"docs/constraints.json"}) {
		t.Errorf("touched %q", first.rules.Touched())
	}
	taken := first.again()
	if open := taken.rules.Open(); !slices.ContainsFunc(open, func(o task.Obligation) bool { return o.Detail == "ant affects layout of the antenna" }) {
		t.Errorf("a run that is taken up has lost it: %v", open)
	}
	kept := first.bytes("docs/constraints.json")
	if _, err := first.session.Snapshot.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if first.bytes("docs/constraints.json") != files["docs/constraints.json"] {
		t.Error("a failed run keeps the registry as it made it (B-80)")
	}
	files["docs/constraints.json"] = kept
	if second := newTable(t, files); len(second.obliged()) > 0 {
		t.Errorf("opened twice: %v", second.rules.Open())
	}
}

// B-120: a line is appended, what stands there stays, and nothing is due but what the
// kind of file calls for.
func TestRecordDecision(t *testing.T) {
	t.Parallel()
	files := divider()
	files["docs/DECISIONS.md"] = "# Log\r\n\r\n- old"
	files["docs/BOM.md"] = "| Refdes | Value |\n|---|---|\n| R1 | 10k |\n| R2 | 4k7 |\n"
	b := newTable(t, files)
	b.now = func() time.Time { return time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC) }
	b.must("record_decision", in{"what": "no\nfuse", "why": "USB limits", "affects": []string{"R1"}})
	got, ok := strings.CutPrefix(b.bytes("docs/DECISIONS.md"), files["docs/DECISIONS.md"])
	if !ok || got != "\r\n- DEC-1, 2026-11-30, run r1: no fuse Why: USB limits Affects: R1\r\n" {
		t.Errorf("got %q", got)
	}
	if len(b.obliged()) > 0 || !cmp.Equal(b.rules.Tally().Decisions, []string{"DEC-1: no fuse"}) {
		t.Errorf("open %q, decisions %q", b.obliged(), b.rules.Tally().Decisions)
	}
	b.refuses("record_decision", in{"what": "x", "why": " "}, "nothing was written")
}

// A new file of an edit that a kill cut off is taken off again.
func TestResume_HalfANewFile(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	if err := b.base.get(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := b.newOrEdit(t.Context(), "docs/constraints.json")
	if err != nil || !e.fresh {
		t.Fatal(e, err)
	}
	e.new = []byte("{}")
	if _, err := b.intend([]*edit{e}); err != nil {
		t.Fatal(err)
	}
	if err := b.Bench.put(e, e.new); err != nil {
		t.Fatal(err)
	}
	r := b.again()
	if _, err := os.Stat(r.path("docs/constraints.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// What a person saved since the kill is not written over by taking the edit back.
func TestResume_LeavesWhatAPersonSavedSince(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	if err := b.base.get(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := b.newOrEdit(t.Context(), "docs/constraints.json")
	if err != nil {
		t.Fatal(err)
	}
	e.new = []byte("{}")
	if _, err := b.intend([]*edit{e}); err != nil {
		t.Fatal(err)
	}
	if err := b.Bench.put(e, []byte("a person's")); err != nil {
		t.Fatal(err)
	}
	r := b.again()
	if got, err := os.ReadFile(r.path("docs/constraints.json")); string(got) != "a person's" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Tools write no settings of programs, no programs, no pipes are read, and no mask
// is written for a secret.
func TestWriting_NotWhatProgramsRun(t *testing.T) {
	t.Parallel()
	files := divider()
	files[".husky/pre-commit"] = "exit 0\n"
	files["build.sh"] = "exit 0\n"
	files["docs/a.md"] = "a\n"
	b := newTable(t, files)
	if err := os.Chmod(b.path("build.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.refuses("edit_file", in{"path": ".husky/pre-commit", "old": "exit 0", "new": "exit 1"}, "begin with a dot")
	b.refuses("edit_file", in{"path": "build.sh", "old": "exit 0", "new": "exit 1"}, "program")
	b.refuses("write_file", in{"path": ".gitattributes", "content": "* filter=x\n"}, "begin with a dot")
	b.refuses("edit_file", in{"path": "docs/a.md", "old": "a", "new": "[masked]"}, "secret")
}
