// SPDX-License-Identifier: Apache-2.0

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

// patience is how long a test waits for kicad-cli: the product's limits are for a computer that does little else.
const patience = 5 * time.Minute

// table is a bench over a repository, with its tools at hand.
type table struct {
	*Bench
	t     *testing.T
	dir   string
	tools *tool.Server
	rules *task.Rules

	system string
}

// again is the same run as another process takes it up.
func (b *table) again() *table {
	b.t.Helper()
	repo, err := workspace.Open(b.t.Context(), b.dir, workspace.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	snap, err := repo.Reopen(b.t.Context(), "r1")
	if err != nil {
		b.t.Fatal(err)
	}
	proj, err := project.Find(os.DirFS(b.dir), ".")
	if err != nil {
		b.t.Fatal(err)
	}
	bench, err := New(Options{Top: b.dir, Project: proj, CLI: b.cli})
	if err != nil {
		b.t.Fatal(err)
	}
	rules := task.NewRules(task.RulesConfig{})
	setup, err := bench.Begin(b.t.Context(), &task.Session{
		Run: "r1", Request: "x", Rules: rules, Snapshot: snap, Resumed: true, Event: func(string, any) {},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = bench.Close() })
	server, err := tool.NewServer(setup.Tools...)
	if err != nil {
		b.t.Fatal(err)
	}
	return &table{Bench: bench, t: b.t, dir: b.dir, tools: server, rules: rules, system: setup.System}
}

// newTable begins a run on the bundled project, or on files.
func newTable(t *testing.T, files map[string]string) *table {
	t.Helper()
	return newTableWith(t, files, kicadtest.CLI(t))
}

// newTableWith is newTable with a kicad-cli.
func newTableWith(t *testing.T, files map[string]string, cli string) *table {
	t.Helper()
	return newTableAt(t, files, cli, ".")
}

// newTableAt is newTableWith for the project of a file.
func newTableAt(t *testing.T, files map[string]string, cli, at string) *table {
	t.Helper()
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
	proj, err := project.Find(os.DirFS(dir), at)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := kicadcli.New(kicadcli.Options{Path: cli, Templates: "/usr/share/kicad/template", Limit: patience})
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
	rules.Unlock()
	session := &task.Session{Run: "r1", Request: "x", Rules: rules, Snapshot: snap, Event: func(string, any) {}}
	setup, err := b.Begin(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	server, err := tool.NewServer(setup.Tools...)
	if err != nil {
		t.Fatal(err)
	}
	return &table{Bench: b, t: t, dir: dir, tools: server, rules: rules, system: setup.System}
}

func (b *table) path(name string) string { return filepath.Join(b.dir, filepath.FromSlash(name)) }

func (b *table) bytes(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(b.path(name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// put writes a file as an editor outside of the run would.
func (b *table) put(name, text string) {
	b.t.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// obliged are the kinds of the open obligations.
func (b *table) obliged() (kinds []string) {
	for _, o := range b.rules.Open() {
		kinds = append(kinds, o.Kind)
	}
	return kinds
}

// closed are the reasons of the gates.
func (b *table) closed() (reasons []string) {
	for _, name := range []string{obligeERC, obligeDRC} {
		reasons = append(reasons, (&checkGate{b.Bench, name}).Closed(b.t.Context())...)
	}
	return reasons
}

func (b *table) drawn(want ...string) {
	b.t.Helper()
	if got := strings.Fields(git(b.t, b.dir, "diff", "--name-only")); strings.Join(got, " ") != strings.Join(want, " ") {
		b.t.Errorf("changed %q, want %q", got, want)
	}
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

// stub is a kicad-cli that runs before first, a piece of shell in which $last is
// the file, and then the real one.
func stub(t *testing.T, first string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kicad-cli")
	text := "#!/bin/sh\nfor last; do :; done\n" + first + "\nexec " + kicadtest.CLI(t) + " \"$@\"\n"
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// divider is a project of two resistors, with PWR_FLAG missing: ERC has findings.
func divider() map[string]string {
	return map[string]string{"p.kicad_pro": "{\n}\n", "p.kicad_sch": kicadtest.Divider("p").String()}
}
