// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// S-2: the state stands alone. A whole run is plain calls on one goroutine, each of
// which returns what to do next; and the package imports nothing that could reach a
// model, a tool, a clock, chance or another goroutine.
func TestS2_StateStandsAlone(t *testing.T) {
	t.Parallel()
	var s machine.State
	var got []machine.Effect
	for _, in := range []machine.Input{
		machine.AppendInput{Message: llm.UserText("go")},
		machine.Start{},
		machine.Generated{Op: 1, Message: llm.AssistantCalls(llm.Call{ID: "c", Name: "look"})},
		machine.ToolsCompleted{Op: 2, Results: []llm.Result{{Status: llm.StatusSuccess}}},
		machine.Generated{Op: 3, Message: llm.AssistantText("done")},
	} {
		eff, err := s.Step(in)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, eff)
	}
	if _, ok := got[2].(machine.ExecuteTools); !ok {
		t.Errorf("after a reply with calls: %#v", got[2])
	}
	if f, ok := got[4].(machine.Finished); !ok || len(f.Answer) != 1 || f.Stop != llm.StopEndTurn {
		t.Errorf("after the last reply: %#v", got[4])
	}
	allowed := []string{"bytes", "encoding/json", "errors", "fmt", "io", "math", "slices", "sync/atomic", "unicode/utf8", "github.com/fiducial-dev/fiducial/llm"}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, im := range f.Imports {
			if path, _ := strconv.Unquote(im.Path.Value); !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}

// S-59: the default number of truncated resumes is a public constant, and it is what
// a new state has.
func TestS59_DefaultTruncatedResumes(t *testing.T) {
	t.Parallel()
	var s machine.State
	if machine.DefaultMaxTruncatedResumes != 3 || s.TruncationCap() != machine.DefaultMaxTruncatedResumes {
		t.Errorf("the constant is %d, a new state has %d", machine.DefaultMaxTruncatedResumes, s.TruncationCap())
	}
}

// S-77: until the recovered history is saved, the checkpoint that a process finds is
// the old one, and recovering it again gives the same; once it is saved, nothing is
// left to recover. The root package holds that the engine saves it before any effect
// (TestS74_RecoveryFromEveryCheckpoint).
func TestS77_RecoveredHistoryIsSavedFirst(t *testing.T) {
	t.Parallel()
	old := machine.Checkpoint{
		History: []llm.Message{llm.UserText("go"), llm.AssistantCalls(llm.Call{ID: "c", Name: "look"})},
		Pending: &machine.PendingOperation{Kind: machine.PendingTools, Op: 2}, Sequence: 2,
	}
	first, err := machine.RecoverCheckpoint(old)
	if err != nil {
		t.Fatal(err)
	}
	again, err := machine.RecoverCheckpoint(old)
	if err != nil || len(again.History) != len(first.History) || first.Pending != nil {
		t.Fatalf("%+v, %+v, %v", first, again, err)
	}
	saved, err := machine.RecoverCheckpoint(first)
	if err != nil || len(saved.History) != len(first.History) {
		t.Errorf("recovered what was recovered and saved: %+v, %v", saved, err)
	}
}

// S-131: the kinds of a state's errors, each by an input that earns it.
func TestS131_KindsOfStateErrors(t *testing.T) {
	t.Parallel()
	var idle, generating machine.State
	for _, in := range []machine.Input{machine.AppendInput{Message: llm.UserText("go")}, machine.Start{}} {
		if err := generating.Apply(in); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		state *machine.State
		in    machine.Input
		want  error
	}{
		"busy":                  {&generating, machine.Start{}, machine.ErrBusy},
		"unexpected completion": {&generating, machine.Generated{Op: 9, Message: llm.AssistantText("x")}, machine.ErrUnexpectedCompletion},
		"invalid context":       {&idle, machine.Start{}, machine.ErrInvalidContext},
		"invalid response":      {&generating, machine.Generated{Op: 1, Message: llm.UserText("x")}, machine.ErrInvalidResponse},
	} {
		before := *c.state
		err := c.state.Apply(c.in)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v", name, err)
		}
		var e *machine.StateError
		if !errors.As(err, &e) || e.Input == "" || !c.state.Equal(&before) {
			t.Errorf("%s: %+v, or the state has changed", name, e)
		}
	}
}
