// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// A log is damaged where it says that calls started, and a person has it repaired:
// the calls look as if they had not started, and may have run. They are unknown,
// but for one that may be repeated, which runs; a pause holds until it is resumed.
func TestRepairedLogDoubtsWaitingCalls(t *testing.T) {
	for _, paused := range []bool{false, true} {
		folder := t.TempDir()
		j, err := journal.OpenFolder(folder, journal.FolderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		p := &probe{}
		opts := []fiducial.Option{
			fiducial.WithTools(p.tool("look", tool.ReadOnly()), p.tool("edit")), fiducial.WithJournal(j, "r"),
		}
		before := opts
		if paused {
			before = append(before, fiducial.WithInterceptor(&hooks{
				pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) {
					return fiducial.Pause{Reason: "lunch"}, nil
				},
			}))
		}
		model := llmtest.NewScript(llmtest.Call("look", "", "edit", ""), llmtest.Say("done"))
		l, out, err := fiducial.New(model, before...).Run(t.Context(), llm.UserText("go"))
		if err != nil || out.Reason != map[bool]fiducial.Reason{true: fiducial.Paused, false: fiducial.Finished}[paused] {
			t.Fatalf("%v %v", out.Reason, err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		spoil(t, filepath.Join(folder, "r.jsonl"), map[bool]string{false: `"name":"started"`, true: ""}[paused])
		_, err = j.Acquire(t.Context(), "r", "x")
		wantErr(t, err, journal.ErrDamaged)
		if _, err := j.Repair(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
		p.runs = nil
		model = llmtest.NewScript(llmtest.Say("done"))
		l = mustLock(t, fiducial.New(model, opts...))
		if err := l.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if info, err := j.Stat(t.Context(), "r"); err != nil || (info.Phase == "paused") != paused {
			t.Errorf("after Open the run is %+v, %v", info, err)
		}
		out, err = l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
		h := texts(l.History())
		if len(h) != 4 || !strings.HasPrefix(h[2], "tool: success=ok unknown=outcome unknown") {
			t.Errorf("paused %v: history %q", paused, h)
		}
		equal(t, "runs after the repair", p.runs, []string{"r/2/0"})
		sendable(t, l.History())
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}

		// Taken up again, the doubt is over.
		l = mustLock(t, fiducial.New(llmtest.NewScript(), opts...))
		out, err = l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
	}
}

// spoil changes a byte of the first line that holds the text, or adds a bad line.
func spoil(t *testing.T, file, text string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text == "" {
		data = append(data, "{\"v\":1}\n"...)
	} else {
		at := bytes.Index(data, []byte(text))
		if at < 0 {
			t.Fatalf("the log has no %s: %s", text, data)
		}
		data[at+8] ^= 1
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
