// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	fiducial "github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/workspace"
	"github.com/fiducial-dev/fiducial/tool"
)

// texts is a domain of text files. A file that holds the word BAD fails the check,
// which is due after every write.
type texts struct {
	dir string
	s   *task.Session

	hooks struct {
		begin, seal, close func() error
		write              func(name string)
	}
	closed  int
	checked bool
}

type fileInput struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func (d *texts) Begin(_ context.Context, s *task.Session) (*task.Setup, error) {
	d.s = s
	if f := d.hooks.begin; f != nil {
		if err := f(); err != nil {
			return nil, err
		}
	}
	return &task.Setup{
		System: "You keep texts.", Prompt: s.Request,
		Tools: []tool.Tool{
			tool.Must(tool.New("write", "Writes a file.", d.write, tool.Exclusive())),
			tool.Must(tool.New("remove", "Removes a file.", d.remove, tool.Exclusive())),
			tool.Must(tool.New("check", "Checks all files.", d.check, tool.Exclusive())),
			tool.Must(tool.New("look", "Looks.", d.look, tool.ReadOnly())),
			tool.Must(tool.New("unlock", "Unlocks.", d.unlock, tool.Exclusive())),
		},
		Locked: []string{"remove"}, UnlockHint: "Call unlock first.", Batching: "Put calls together.",
		Gates: []task.Gate{d}, Standing: []string{"log"},
	}, nil
}

type lookInput struct {
	N int `json:"n,omitempty"`
}

func (d *texts) look(_ context.Context, in lookInput) (string, error) {
	return fmt.Sprintf("seen %d", in.N), nil
}

func (d *texts) write(_ context.Context, in fileInput) (string, error) {
	if d.hooks.write != nil {
		d.hooks.write(in.Name)
	}
	p := filepath.Join(d.dir, in.Name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		return "", err
	}
	d.s.Rules.Touch(in.Name)
	d.s.Rules.Oblige(task.Obligation{Kind: "check", Opener: in.Name}, task.Obligation{Kind: "log"})
	d.checked = false
	return "written", os.WriteFile(p, []byte(in.Text), 0o644)
}

func (d *texts) remove(_ context.Context, in fileInput) (string, error) {
	d.s.Rules.Touch(in.Name)
	d.s.Rules.Oblige(task.Obligation{Kind: "check", Opener: in.Name})
	d.checked = false
	return "removed", os.Remove(filepath.Join(d.dir, in.Name))
}

func (d *texts) check(context.Context, struct{}) (string, error) {
	bad, err := d.bad()
	if err != nil {
		return "", err
	}
	if len(bad) > 0 {
		d.s.Rules.Repair()
		return "", tool.Errorf(tool.Failed, "bad: %v", bad)
	}
	d.checked = true
	d.s.Rules.MeetKind("check")
	return "clean", nil
}

func (d *texts) bad() (bad []string, err error) {
	err = filepath.WalkDir(d.dir, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), "."):
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(p)
		if strings.Contains(string(data), "BAD") {
			bad = append(bad, e.Name())
		}
		return err
	})
	return bad, err
}

func (d *texts) unlock(context.Context, struct{}) (string, error) {
	d.s.Rules.Unlock()
	return "unlocked", nil
}

func (d *texts) Name() string { return "check" }

func (d *texts) Closed(context.Context) []string {
	if len(d.s.Rules.Touched()) > 0 && !d.checked {
		return []string{"it has not run since the last write"}
	}
	return nil
}

func (d *texts) Seal(_ context.Context, s *task.Session) error {
	s.Rules.MeetKind("log")
	if d.hooks.seal != nil {
		return d.hooks.seal()
	}
	return nil
}

func (d *texts) Verification() []string { return []string{fmt.Sprintf("check passed: %t", d.checked)} }

func (d *texts) Close() error {
	d.closed++
	if d.hooks.close != nil {
		return d.hooks.close()
	}
	return nil
}

// rig is a repository with a run's configuration.
type rig struct {
	t      *testing.T
	dir    string
	cfg    task.Config
	domain *texts
	script *llmtest.Script

	mu     sync.Mutex
	events []event
}

type event struct {
	kind string
	data any
}

// newRig makes a repository that holds a.txt, committed.
func newRig(t *testing.T, turns ...llmtest.Turn) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir()}
	r.file("a.txt", "alpha\n")
	r.git("init", "-q")
	r.git("config", "user.name", "T")
	r.git("config", "user.email", "t@example.org")
	r.git("add", "-A")
	r.git("commit", "-qm", "start")
	repo, err := workspace.Open(t.Context(), r.dir, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.domain = &texts{dir: r.dir}
	r.script = llmtest.NewScript(turns...)
	r.cfg = task.Config{
		Client: r.script, Repo: repo, Run: "r1", Request: "write it", Domain: r.domain, Model: "script",
		Event: func(kind string, data any) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, event{kind, data})
		},
	}
	return r
}

func (r *rig) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(r.t.Context()), "git", args...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *rig) file(name, text string) {
	r.t.Helper()
	p := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) run() *task.Result {
	r.t.Helper()
	res, err := task.Run(r.t.Context(), r.cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// kinds are the kinds of the events that are the run's own.
func (r *rig) kinds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, e := range r.events {
		if e.kind != "assistant" && e.kind != "tool" {
			all = append(all, e.kind)
		}
	}
	return all
}

func (r *rig) count(kind string) (n int) {
	for _, k := range r.kinds() {
		if k == kind {
			n++
		}
	}
	return n
}

func (r *rig) event(kind string) map[string]any {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.kind == kind {
			m, _ := e.data.(map[string]any)
			return m
		}
	}
	r.t.Fatalf("no event %s", kind)
	return nil
}

// tree is every file of the working tree with mode and content, .git and ours aside.
func (r *rig) tree() string {
	r.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(r.dir, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == ".git" || e.Name() == ".fiducial"):
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		fmt.Fprintf(&b, "%s %v %q\n", strings.TrimPrefix(p, r.dir), info.Mode(), data)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return b.String()
}

func (r *rig) same(before string) {
	r.t.Helper()
	if now := r.tree(); now != before {
		r.t.Errorf("the tree is\n%s\nwant\n%s", now, before)
	}
}

func (r *rig) ends(res *task.Result, outcome task.Outcome, path task.Path) {
	r.t.Helper()
	if res.Outcome != outcome || res.Path != path {
		r.t.Fatalf("ended %s by %s (%s), want %s by %s", res.Outcome, res.Path, res.Detail, outcome, path)
	}
	if n := r.script.Left(); n > 0 {
		r.t.Errorf("%d turns of the script were not asked for", n)
	}
	if ends := r.count("run-end"); ends != 1 {
		r.t.Errorf("%d run-end events", ends)
	}
	if r.domain.closed != 1 {
		r.t.Errorf("the domain was closed %d times", r.domain.closed)
	}
}

// said are the texts that the program put into the conversation as a user, of one
// kind.
func said(req llm.Request, kind string) (texts []string) {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if s, ok := p.(llm.System); ok && s.Kind == kind {
				texts = append(texts, s.Text)
			}
		}
	}
	return texts
}

// results are the results of a tool in a request.
func results(req llm.Request, name string) (all []llm.Result) {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if res, ok := p.(llm.Result); ok && res.Name == name {
				all = append(all, res)
			}
		}
	}
	return all
}

func (r *rig) last() llm.Request {
	r.t.Helper()
	all := r.script.Requests()
	if len(all) == 0 {
		r.t.Fatal("no request was made")
	}
	return all[len(all)-1]
}

// The turns that scripts are made of.
func look(n int) llmtest.Turn { return llmtest.Call("look", fmt.Sprintf(`{"n":%d}`, n)) }

func write(name, text string) llmtest.Turn { return llmtest.Call(writeCall(name, text)...) }

func writeCall(name, text string) []string {
	data, err := json.Marshal(fileInput{name, text})
	if err != nil {
		panic(err)
	}
	return []string{"write", string(data)}
}

func join(calls ...[]string) llmtest.Turn { return llmtest.Call(slices.Concat(calls...)...) }

var (
	checkCall  = []string{"check", `{}`}
	finishCall = []string{"finish", `{"outcome":"done","summary":"all is well"}`}
	refuseCall = []string{"finish", `{"outcome":"refuse","summary":"33 is more than 25"}`}
)

func check() llmtest.Turn  { return llmtest.Call(checkCall...) }
func finish() llmtest.Turn { return llmtest.Call(finishCall...) }
func refuse() llmtest.Turn { return llmtest.Call(refuseCall...) }
func empty() llmtest.Turn  { return llmtest.Say("hm") }

func usage(in, out int64) llm.Usage { return llm.Usage{Input: llm.N(in), Output: llm.N(out)} }

// costs is a turn of one look that costs something.
func costs(n int, u llm.Usage) llmtest.Turn {
	return llmtest.ReplyUsage(llm.AssistantCalls(llm.Call{Name: "look", Args: fmt.Sprintf(`{"n":%d}`, n)}), u)
}

var errTest = errors.New("as told")

var _ fiducial.Interceptor = (*task.Rules)(nil)
