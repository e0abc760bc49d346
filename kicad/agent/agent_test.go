package agent

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bundled "github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/workspace"
	"github.com/fiducial-dev/fiducial/tool"
)

// table is a bench over a repository, with its tools at hand.
type table struct {
	*Bench
	t     *testing.T
	dir   string
	tools *tool.Server
	rules *task.Rules
}

// newTable begins a run on the bundled project, or on files.
func newTable(t *testing.T, files map[string]string) *table {
	t.Helper()
	cli := kicadtest.CLI(t)
	dir := t.TempDir()
	if files == nil {
		if err := bundled.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "-q")
	git(t, dir, "config", "user.name", "T")
	git(t, dir, "config", "user.email", "t@example.org")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "start")
	proj, err := project.Find(os.DirFS(dir), ".")
	if err != nil {
		t.Fatal(err)
	}
	runner, err := kicadcli.New(kicadcli.Options{Path: cli})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runner.Close() })
	b, err := New(Options{Top: dir, Project: proj, CLI: runner})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := workspace.Open(t.Context(), dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := repo.Snapshot(t.Context(), "r1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	rules := task.NewRules(task.RulesConfig{})
	setup, err := b.Begin(t.Context(), &task.Session{Run: "r1", Request: "x", Rules: rules, Snapshot: snap, Event: func(string, any) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	server, err := tool.NewServer(setup.Tools...)
	if err != nil {
		t.Fatal(err)
	}
	return &table{Bench: b, t: t, dir: dir, tools: server, rules: rules}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// call runs a tool; ok says whether it succeeded.
func (b *table) call(name string, args any) (text string, ok bool) {
	b.t.Helper()
	input, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	res := b.tools.Execute(context.Background(), tool.Call{ID: "c", Name: name, Input: input})
	return res.Body(), res.Status == llm.StatusSuccess
}

func (b *table) must(name string, args any) string {
	b.t.Helper()
	text, ok := b.call(name, args)
	if !ok {
		b.t.Fatalf("%s %v: %s", name, args, text)
	}
	return text
}

func (b *table) refuses(name string, args any, words ...string) string {
	b.t.Helper()
	before := git(b.t, b.dir, "status", "--porcelain=v1")
	text, ok := b.call(name, args)
	if ok {
		b.t.Fatalf("%s %v was not refused: %s", name, args, text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			b.t.Errorf("%s %v: the answer lacks %q: %s", name, args, w, text)
		}
	}
	if after := git(b.t, b.dir, "status", "--porcelain=v1"); after != before {
		b.t.Errorf("%s %v was refused and changed the tree:\n%s", name, args, after)
	}
	return text
}

type in map[string]any

func TestRenameNet(t *testing.T) {
	b := newTable(t, nil)
	text := b.must("rename_net", in{"from": "/STATUS", "to": "HEARTBEAT"})
	t.Log(text)
	t.Log(b.must("run_erc", in{}))
	t.Log(b.must("run_drc", in{}))
	t.Log(git(t, b.dir, "diff", "--stat"))
	b.refuses("rename_net", in{"from": "HEARTBEAT", "to": "BUTTON"}, "exists")
	b.refuses("rename_net", in{"from": "HEARTBEAT", "to": "UPDI"}, "exists")
	b.refuses("rename_net", in{"from": "NOPE", "to": "X"})
	t.Log(b.must("list_nets", in{"filter": "HEART"}))
	t.Log(b.must("list_symbols", in{}))
	t.Log(b.must("rename_reference", in{"from": "U2", "to": "U9"}))
	t.Log(b.must("edit_symbol", in{"reference": "R1", "field": "Value", "text": "470"}))
	t.Log(b.must("run_erc", in{}))
	t.Log(b.must("run_drc", in{}))
	text, ok := b.call("edit_symbol", in{"reference": "R1", "field": "Footprint", "text": "Resistor_SMD:R_0805_2012Metric"})
	t.Log(text, ok)
	text, ok = b.call("run_drc", in{})
	t.Log(text, ok)
	text, ok = b.call("edit_file", in{"path": "beacon.kicad_sch", "old": "(label \"VIN\"", "new": "(labl \"VIN\""})
	t.Log(text, ok)
	text, ok = b.call("edit_file", in{"path": "beacon.kicad_pcb", "old": "(version 20241229)", "new": "(version 20241229))"})
	t.Log(text, ok)
}
