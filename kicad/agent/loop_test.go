// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

// A play is a whole run: a scripted model through the real loop, with the real
// kicad-cli and real git.
type play struct {
	*task.Result
	t      *testing.T
	dir    string
	script *llmtest.Script
}

// newPlay makes the project and says how to run it.
func newPlay(t *testing.T, files map[string]string, turns ...llmtest.Turn) (*play, task.Config) {
	t.Helper()
	p := &play{t: t, dir: t.TempDir(), script: llmtest.NewScript(turns...)}
	cli := kicadtest.CLI(t)
	kicadtest.Write(t, p.dir, files)
	git(t, p.dir, "init", "-q")
	git(t, p.dir, "config", "user.name", "T")
	git(t, p.dir, "config", "user.email", "t@example.org")
	git(t, p.dir, "add", "-A")
	git(t, p.dir, "commit", "-qm", "start")
	proj, err := project.Find(os.DirFS(p.dir), ".")
	if err != nil {
		t.Fatal(err)
	}
	runner, err := kicadcli.New(kicadcli.Options{Path: cli, Limit: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runner.Close() })
	bench, err := New(Options{Top: p.dir, Project: proj, CLI: runner})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := workspace.Open(t.Context(), p.dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p, task.Config{Client: p.script, Repo: repo, Run: "r1", Request: "x", Domain: bench}
}

func playRun(t *testing.T, files map[string]string, turns ...llmtest.Turn) *play {
	t.Helper()
	p, cfg := newPlay(t, files, turns...)
	var err error
	p.Result, err = task.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if n := p.script.Left(); n > 0 {
		t.Errorf("%d turns of the script were not asked for: %s", n, p.Detail)
	}
	return p
}

// answers are the results of a tool in the last request.
func (p *play) answers(name string) (texts []string) {
	reqs := p.script.Requests()
	for _, m := range reqs[len(reqs)-1].Messages {
		for _, part := range m.Parts {
			if r, ok := part.(llm.Result); ok && r.Name == name {
				texts = append(texts, r.Body())
			}
		}
	}
	return texts
}

func (p *play) ends(outcome task.Outcome, path task.Path) {
	p.t.Helper()
	if p.Outcome != outcome || p.Path != path {
		p.t.Fatalf("ended %s by %s: %s", p.Outcome, p.Path, p.Detail)
	}
	if got := git(p.t, p.dir, "status", "--porcelain"); got != "" {
		p.t.Errorf("the tree: %s", got)
	}
}

func calls(nameAndArgs ...any) llmtest.Turn {
	var all []string
	for i := 0; i < len(nameAndArgs); i += 2 {
		data, err := json.Marshal(nameAndArgs[i+1])
		if err != nil {
			panic(err)
		}
		all = append(all, nameAndArgs[i].(string), string(data))
	}
	return llmtest.Call(all...)
}

var (
	proposed = []any{"propose_change", in{"why": "w", "what": "x", "tasks": []string{"t"}, "files": []string{"p.kicad_sch"}}, "validate_change", in{}}
	finished = []any{"finish", in{"outcome": "done", "summary": "s"}}
	refusing = []any{"finish", in{"outcome": "refuse", "summary": "s"}}
)

func edits(path, old, now string) []any {
	return []any{"edit_file", in{"path": path, "old": old, "new": now}}
}

// AC-15.20 (B-145) through the loop: nothing was touched, so that done is accepted and
// there is no commit (B-46).
func TestLoop_AC15_20(t *testing.T) {
	t.Parallel()
	p := playRun(t, divider(), calls(slices.Concat(proposed, edits("p.kicad_sch", "(paper \"A4\")", "(papper \"A4\")"), finished)...))
	p.ends(task.Done, task.PathDone)
	if p.Commit != "" || len(p.Tally.Touched) > 0 || len(p.Tally.Open) > 0 {
		t.Errorf("commit %q, touched %q, open %v", p.Commit, p.Tally.Touched, p.Tally.Open)
	}
}

// AC-15.21 (B-146) through the loop: a project file's edit stands, and ERC is due.
func TestLoop_AC15_21(t *testing.T) {
	t.Parallel()
	p := playRun(t, divider(),
		calls(slices.Concat(proposed, edits("p.kicad_pro", "{\n}", "{ broken"), finished)...),
		calls(slices.Concat([]any{"run_erc", in{}}, finished)...))
	p.ends(task.Done, task.PathDone)
	if got := p.answers("finish"); len(got) != 1 || !strings.Contains(got[0], "run_erc") {
		t.Errorf("the first finish: %q", got)
	}
	if got := git(t, p.dir, "show", "--format=", "--name-only"); strings.TrimSpace(got) != "p.kicad_pro" {
		t.Errorf("committed %q", got)
	}
}

// AC-15.22 (B-147) through the loop: the sheet is mended in two edits, the first of
// which leaves it broken.
func TestLoop_AC15_22(t *testing.T) {
	t.Parallel()
	files := divider()
	files["p.kicad_sch"] = strings.Replace(strings.Replace(files["p.kicad_sch"], "(paper ", "(papper ", 1), "(generator ", "(generatr ", 1)
	p := playRun(t, files,
		calls(slices.Concat(proposed, edits("p.kicad_sch", "(papper ", "(paper "), finished)...),
		calls(slices.Concat(edits("p.kicad_sch", "(generatr ", "(generator "), []any{"run_erc", in{}}, finished)...))
	p.ends(task.Done, task.PathDone)
	if got := p.answers("edit_file"); !strings.Contains(got[0], "did not load before") {
		t.Errorf("the first edit: %q", got)
	}
	if got := p.answers("finish"); len(got) != 1 || !strings.Contains(got[0], "erc") {
		t.Errorf("the first finish: %q", got)
	}
	if p.Commit == "" || !cmp.Equal(p.Files, []string{"p.kicad_sch"}) {
		t.Errorf("commit %q of %q", p.Commit, p.Files)
	}
}

// AC-15.12 and AC-15.13 (B-141, B-142) through the loop: no repair cycle is counted,
// and a model that repeats itself gets on.
func TestLoop_AC15_12_13(t *testing.T) {
	t.Parallel()
	p := playRun(t, map[string]string{"p.kicad_pro": "{}\n", "p.kicad_pcb": kicadtest.Board},
		calls("run_erc", in{}, "search", in{"pattern": ""}), calls("search", in{"pattern": "GND"}), calls(refusing...))
	p.ends(task.Refused, task.PathRefused)
	if got := p.answers("run_erc"); len(got) != 1 || !strings.Contains(got[0], "pointless") || p.Tally.Repairs != 0 {
		t.Errorf("run_erc: %q, %d repairs", got, p.Tally.Repairs)
	}
	if got := p.answers("search"); len(got) != 2 || !strings.Contains(got[0], "non-empty") || !strings.Contains(got[1], "p.kicad_pcb:") {
		t.Errorf("search: %q", got)
	}
}

// B-82, B-178: before the proposal validates nothing can be edited, by whatever tool.
func TestLoop_Locked(t *testing.T) {
	t.Parallel()
	var all []any
	for _, name := range lockedTools {
		args := in{"path": "p.kicad_sch", "old": "4k7", "new": "5k6"}
		switch name {
		case toolWrite:
			args = in{"path": "x.md", "content": "x"}
		case toolRenameNet, toolRenameRef:
			args = in{"from": "OUT", "to": "MID"}
		case toolSetField:
			args = in{"reference": "R1", "field": "Value", "text": "1k"}
		case toolFixDocs:
			args = in{}
		case toolRecord:
			args = in{"key": "k", "text": "t", "source": "s"}
		case toolResolve:
			args = in{"key": "k", "item": "R1"}
		case toolDecide:
			args = in{"what": "w", "why": "y"}
		}
		all = append(all, name, args)
	}
	bad := []any{"propose_change", in{"why": "", "what": "x", "tasks": []string{"t"}, "files": []string{"p.kicad_sch"}}, "validate_change", in{}}
	p := playRun(t, divider(), calls(all...), calls(slices.Concat(bad, all)...), calls(finished...))
	p.ends(task.Done, task.PathDone)
	for _, name := range lockedTools {
		for _, got := range p.answers(name) {
			if !strings.Contains(got, "not available") || !strings.Contains(got, "validate_change") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	if p.Commit != "" || len(p.Tally.Touched) > 0 {
		t.Errorf("commit %q, touched %q", p.Commit, p.Tally.Touched)
	}
}

// Case 12: a child sheet that does not load at the start is skipped by kicad-cli; the
// check says which parts it does not speak of.
func TestCase12_BrokenFromTheStart(t *testing.T) {
	t.Parallel()
	files := kicadtest.Shared("p")
	files["blk.kicad_sch"] = strings.Replace(files["blk.kicad_sch"], "\t(symbol\n", "\t(symbl)\n\t(symbol\n", 1)
	b := newTable(t, files)
	if text := b.must("list_nets", in{}); strings.Contains(text, "R10.") {
		t.Skipf("kicad-cli reads the part behind the fault: %s", text)
	}
	b.must("edit_symbol", in{"reference": "R1", "field": "Value", "text": "2k"})
	text := b.must("run_erc", in{})
	if !strings.Contains(text, "leaves out 2 parts") || !strings.Contains(text, "R10, R20") {
		t.Errorf("got %s", text)
	}
	if v := strings.Join(b.Verification(), "\n"); !strings.Contains(v, "leaves out 2 parts") {
		t.Errorf("verification: %s", v)
	}
}
