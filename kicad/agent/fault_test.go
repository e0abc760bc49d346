// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

// A kicad-cli that is killed, or leaves no output, ends the run as failed: neither as
// a refusal, though the model refuses, nor as done.
func TestFault_EndsTheRun(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]string{"killed": "kill -KILL $$", "no output": "exit 0"} {
		for ending, end := range map[string][]any{"the model refuses": refusing, "the model is done": finished} {
			t.Run(name+", "+ending, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				kicadtest.Write(t, dir, divider())
				git(t, dir, "init", "-q")
				git(t, dir, "config", "user.name", "T")
				git(t, dir, "config", "user.email", "t@example.org")
				git(t, dir, "add", "-A")
				git(t, dir, "commit", "-qm", "start")
				proj, err := project.Find(os.DirFS(dir), ".")
				if err != nil {
					t.Fatal(err)
				}
				on := filepath.Join(t.TempDir(), "on")
				runner, err := kicadcli.New(kicadcli.Options{Path: stub(t, "[ -e "+on+" ] && "+what), Templates: "/usr/share/kicad/template", TempDir: t.TempDir(), Limit: patience})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = runner.Close() })
				bench, err := New(Options{Top: dir, Project: proj, CLI: runner})
				if err != nil {
					t.Fatal(err)
				}
				repo, err := workspace.Open(t.Context(), dir, workspace.Options{})
				if err != nil {
					t.Fatal(err)
				}
				script := llmtest.NewScript(
					calls(slices.Concat(proposed, edits("p.kicad_sch", "4k7", "5k6"))...),
					func() llmtest.Turn {
						turn := calls(slices.Concat([]any{"run_erc", in{}}, end)...)
						return func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
							if err := os.WriteFile(on, nil, 0o600); err != nil {
								t.Error(err)
							}
							return turn(ctx, req)
						}
					}(),
				)
				res, err := task.Run(t.Context(), task.Config{Client: script, Repo: repo, Run: "r1", Request: "x", Domain: bench})
				if err != nil {
					t.Fatal(err)
				}
				if res.Outcome != task.Failed || res.Path != task.PathEnvironment || res.Err == nil || !strings.Contains(res.Detail, "kicad-cli: it ") {
					t.Errorf("ended %s by %s: %s", res.Outcome, res.Path, res.Detail)
				}
				if got := git(t, dir, "status", "--porcelain"); got != "" || res.Commit != "" || res.Preserved.Stash == "" {
					t.Errorf("commit %q, stash %q, the tree: %s", res.Commit, res.Preserved.Stash, got)
				}
			})
		}
	}
}
