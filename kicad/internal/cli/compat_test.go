// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/internal/cli"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/planner"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// A whole change of a board with models behind real HTTP, through the real
// adapters: a strict server speaks each wire format, and the planner thinks behind
// it. Its answers hold a key's shape nowhere, and no key gets into what is stored.
func TestDoOverHTTP(t *testing.T) {
	path := kicadtest.CLI(t)
	const key = "sk-test-0123456789abcdefghij"
	tests := []struct {
		model string
		env   []string // with @ for the server's address
	}{
		{"compat:some-model", []string{"FIDUCIAL_BASE_URL=@/v1"}},
		{"claude-sonnet-5-5", []string{"ANTHROPIC_BASE_URL=@", "ANTHROPIC_API_KEY=" + key}},
		{"gpt-5.5", []string{"OPENAI_BASE_URL=@/v1", "OPENAI_API_KEY=" + key}},
		{"gemini-2.5-pro", []string{"GEMINI_BASE_URL=@/v1beta", "GEMINI_API_KEY=" + key}},
	}
	for _, tt := range tests {
		t.Run(tt.model, func(t *testing.T) {
			server := llmtest.NewServer(planner.Client{})
			defer server.Close()
			dir := t.TempDir()
			if err := board.Write(dir); err != nil {
				t.Fatal(err)
			}
			run := func(args ...string) string {
				cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.org"}, args...)...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			run("init", "-q")
			run("config", "user.name", "T")
			run("config", "user.email", "t@example.org")
			run("add", "-A")
			run("commit", "-qm", "start")

			env := os.Environ()
			for _, kv := range tt.env {
				env = append(env, strings.ReplaceAll(kv, "@", server.URL))
			}
			env = append(env, "FIDUCIAL_MODEL=")
			var out, errOut bytes.Buffer
			code := cli.Run(t.Context(), cli.Env{In: strings.NewReader(""), Out: &out, Err: &errOut, Environ: env, Dir: dir},
				[]string{"do", "--json", "--model", tt.model, "--kicad-cli", path, "rename net STATUS to HEARTBEAT"})
			if code != 0 {
				t.Fatalf("exit code %d\n%s%s", code, out.String(), errOut.String())
			}
			var got struct {
				Outcome, Commit string
				Turns           int
				Usage           struct{ Input, Output int64 }
			}
			if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Outcome != "done" || got.Commit == "" {
				t.Fatalf("got %+v, %v\n%s", got, err, out.String())
			}
			if got.Usage.Input == 0 || len(server.Exchanges()) != got.Turns {
				t.Errorf("%d tokens in, %d requests for %d turns", got.Usage.Input, len(server.Exchanges()), got.Turns)
			}
			if diff := run("show", "--format=", "HEAD", "--", "mcu.kicad_sch"); !strings.Contains(diff, `+	(hierarchical_label "HEARTBEAT"`) {
				t.Errorf("the sheet's change: %s", diff)
			}
			if shown := run("show", "HEAD") + errOut.String() + out.String(); strings.Contains(shown, key) {
				t.Error("the key is in the commit or was printed")
			}
		})
	}
}
