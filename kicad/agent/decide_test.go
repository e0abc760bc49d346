// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

// B-72: a constraint that changes opens the log of decisions, and only a decision that names it closes it.
func TestB72_DecisionLog(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	record := func(key, text string) string {
		return b.must("record_constraint", in{"key": key, "text": text, "source": "s"})
	}
	record("few", "at most two resistors")
	record("few", "at most two resistors")
	record("low", "low")
	if got := b.obliged(); slices.Contains(got, "decision-log") {
		t.Fatalf("a new constraint, or the same again, opens %q", got)
	}
	if text := record("few", "at most three resistors"); !strings.Contains(text, "said before: at most two resistors") {
		t.Errorf("got %s", text)
	}
	record("low", "lower")
	if text := b.must("record_decision", in{"what": "three resistors", "why": "the budget"}); !strings.Contains(text, "Still to be recorded, each by its name: why few, low changed") {
		t.Errorf("got %s", text)
	}
	b.must("record_decision", in{"what": "more resistors", "why": "few was too tight", "affects": []string{"low-pass"}})
	if got := b.rules.Open(); !slices.ContainsFunc(got, func(o task.Obligation) bool { return o.Kind == "decision-log" && o.Detail == "low" }) ||
		slices.ContainsFunc(got, func(o task.Obligation) bool { return o.Detail == "few" }) {
		t.Errorf("open %v", got)
	}
	b.must("record_decision", in{"what": "lower still", "why": "heat", "affects": []string{"low"}})
	if got := b.obliged(); slices.Contains(got, "decision-log") {
		t.Errorf("open %q", got)
	}
	log := b.bytes("docs/DECISIONS.md")
	for i, line := range []string{"three resistors", "more resistors", "lower still"} {
		if !strings.Contains(log, "- DEC-"+strconv.Itoa(i+1)+", ") || !strings.Contains(log, line) {
			t.Errorf("the log lacks %q:\n%s", line, log)
		}
	}
}

// B-72 through the loop: done is refused while the log lacks the decision.
func TestLoop_B72(t *testing.T) {
	t.Parallel()
	record := func(text string) []any {
		return []any{"record_constraint", in{"key": "few", "text": text, "source": "s"}}
	}
	p := playRun(t, divider(),
		calls(slices.Concat(proposed, record("two"), record("three"), []any{"check_drift", in{}}, finished)...),
		calls(slices.Concat([]any{"record_decision", in{"what": "few is three", "why": "w"}}, finished)...))
	p.ends(task.Done, task.PathDone)
	if got := p.answers("finish"); len(got) != 1 || !strings.Contains(got[0], "decision-log few") {
		t.Errorf("the first finish: %q", got)
	}
	if !cmp.Equal(p.Files, []string{"docs/DECISIONS.md", "docs/SPEC.md", "docs/constraints.json"}) {
		t.Errorf("files %q", p.Files)
	}
}

// antenna is a project whose registry waits for the board that is there now.
func antenna() map[string]string {
	files := divider()
	files["p.kicad_pcb"] = kicadtest.Board
	files["docs/SPEC.md"] = "# S\n\n| Key | Constraint | Source |\n|---|---|---|\n| ant | keep clear | s |\n"
	files["docs/constraints.json"] = `{"version":1,"constraints":[{"key":"ant","text":"keep clear","source":"s","affects":["layout of the antenna"],"deferred":["layout of the antenna"]}]}` + "\n"
	return files
}

// B-79, B-81: what a run looked at again is not opened once more by the process that takes the run up, what it had
// not looked at is, also of a constraint that the run itself recorded. The run is copied at each request and goes on
// from there.
func TestLoop_ResumeAndRevisits(t *testing.T) {
	t.Parallel()
	cli := kicadtest.CLI(t)
	dir, copies := t.TempDir(), t.TempDir()
	kicadtest.Write(t, dir, antenna())
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "T"}, {"config", "user.email", "t@example.org"}, {"add", "-A"}, {"commit", "-qm", "start"}} {
		git(t, dir, args...)
	}
	script := []llmtest.Turn{
		calls(slices.Concat(proposed, []any{"resolve_affected", in{"key": "ant", "item": "layout of the antenna", "how": "kept clear"}})...),
		calls("record_constraint", in{"key": "esd", "text": "guard it", "source": "s", "affects": []string{"R1", "R2"}}),
		calls("resolve_affected", in{"key": "esd", "item": "R1"}),
		calls("resolve_affected", in{"key": "esd", "item": "R2"}, "check_drift", in{}, "finish", in{"outcome": "done", "summary": "s"}),
	}
	run := func(dir, journals string, resume bool, turns ...llmtest.Turn) *task.Result {
		t.Helper()
		proj, err := project.Find(os.DirFS(dir), ".")
		if err != nil {
			t.Fatal(err)
		}
		runner, err := kicadcli.New(kicadcli.Options{Path: cli, Limit: patience})
		if err != nil {
			t.Fatal(err)
		}
		defer runner.Close()
		bench, err := New(Options{Top: dir, Project: proj, CLI: runner})
		if err != nil {
			t.Fatal(err)
		}
		repo, err := workspace.Open(t.Context(), dir, workspace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		j, err := journal.OpenFolder(journals, journal.FolderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		do := task.Run
		if resume {
			do = task.Resume
		}
		res, err := do(t.Context(), task.Config{Client: llmtest.NewScript(turns...), Repo: repo, Run: "r1", Request: "x", Domain: bench, Journal: j})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	journals := filepath.Join(t.TempDir(), "j")
	watched := make([]llmtest.Turn, len(script))
	for i, turn := range script {
		watched[i] = func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
			at := filepath.Join(copies, strconv.Itoa(i))
			for name, from := range map[string]string{"tree": dir, "journal": journals} {
				if err := os.CopyFS(filepath.Join(at, name), os.DirFS(from)); err != nil {
					t.Error(err)
				}
			}
			return turn(ctx, req)
		}
	}
	if res := run(dir, journals, false, watched...); res.Outcome != task.Done {
		t.Fatalf("the run that is not cut off: %s", res.Detail)
	}
	for i := range script {
		at := filepath.Join(copies, strconv.Itoa(i))
		res := run(filepath.Join(at, "tree"), filepath.Join(at, "journal"), true, script[i:]...)
		if res.Outcome != task.Done || len(res.Tally.Open) > 0 {
			t.Errorf("cut off at request %d: %s, %s, open %v", i+1, res.Outcome, res.Detail, res.Tally.Open)
		}
		if got := len(res.Tally.Decisions); got != 3 {
			t.Errorf("cut off at request %d: %d decisions", i+1, got)
		}
	}
}
