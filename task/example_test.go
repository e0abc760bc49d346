// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/workspace"
	"github.com/fiducial-dev/fiducial/tool"
)

// A poem is a domain: one text, and the rule that it has three lines.
type poem struct {
	path  string
	rules *task.Rules
}

type verse struct {
	Text string `json:"text"`
}

func (p *poem) Begin(_ context.Context, s *task.Session) (*task.Setup, error) {
	p.rules = s.Rules
	write := tool.Must(tool.New("write", "Writes the poem.", func(_ context.Context, in verse) (string, error) {
		p.rules.Touch("poem.txt")
		return "written", os.WriteFile(p.path, []byte(in.Text), 0o600)
	}, tool.Exclusive()))
	return &task.Setup{System: "You write haiku.", Prompt: s.Request, Tools: []tool.Tool{write}, Gates: []task.Gate{p}}, nil
}

func (p *poem) Name() string { return "form" }

func (p *poem) Closed(context.Context) []string {
	data, err := os.ReadFile(p.path)
	if n := strings.Count(string(data), "\n"); err != nil || n != 3 {
		return []string{fmt.Sprintf("the poem has %d lines, and a haiku has 3", n)}
	}
	return nil
}

func (p *poem) Seal(context.Context, *task.Session) error { return nil }
func (p *poem) Verification() []string                    { return []string{"three lines"} }
func (p *poem) Close() error                              { return nil }

// A run in another domain than boards: the first finish is refused by the gate, the
// second is accepted, and the run is one commit.
func ExampleRun() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "poem")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	git := func(args ...string) string {
		out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...).CombinedOutput()
		if err != nil {
			panic(string(out))
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "start")

	repo, err := workspace.Open(ctx, dir, workspace.Options{})
	if err != nil {
		panic(err)
	}
	model := llmtest.NewScript( // a real model in earnest
		llmtest.Call("write", `{"text":"an old pond\n"}`, "finish", `{"outcome":"done","summary":"It is short."}`),
		llmtest.Call("write", `{"text":"an old pond\na frog jumps in\nthe sound of water\n"}`, "finish", `{"outcome":"done","summary":"Three lines."}`),
	)
	res, err := task.Run(ctx, task.Config{
		Client: model, Repo: repo, Run: "first", Request: "write a haiku",
		Domain:    &poem{path: filepath.Join(dir, "poem.txt")},
		Committer: workspace.Identity{Name: "A", Email: "a@example.org"},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Outcome, res.Tally.Turns, res.Files)
	fmt.Println(git("log", "-1", "--format=%s / %b"))
	// Output:
	// done 2 [poem.txt]
	// write a haiku /   Three lines.
	//
	// Verified:
	// - three lines
	//
	// Fiducial-Run: first
}
