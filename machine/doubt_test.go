// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// lost is a state whose process was lost after it had started the first call of two,
// which may be repeated; a new process owns it.
func lost(t *testing.T, doubt bool) *machine.State {
	t.Helper()
	var s machine.State
	for _, in := range []machine.Input{
		machine.AppendInput{Message: llm.UserText("go")},
		machine.Start{},
		machine.Generated{Op: 1, Message: calls("c0", "c1")},
		machine.Started{Op: 2, Calls: []machine.StartedCall{{Ordinal: 0, Repeat: true}}},
		machine.Recovered{Doubt: doubt},
	} {
		must(t, &s, in)
	}
	return &s
}

func result(t *testing.T, s *machine.State, ordinal int) llm.Result {
	t.Helper()
	for _, m := range s.History() {
		if m.Role != llm.RoleTool {
			continue
		}
		r, ok := m.Parts[ordinal].(llm.Result)
		if !ok {
			t.Fatalf("%T", m.Parts[ordinal])
		}
		return r
	}
	t.Fatal("no results")
	return llm.Result{}
}

// S-170, S-78: a call that may be repeated waits again, and whoever does not repeat it
// is not told that it was never run. The call beside it never was.
func TestS170_ACallThatMayBeRepeatedMayHaveRun(t *testing.T) {
	for name, end := range map[string][]machine.Input{
		"given up":         {machine.SettleRest{Op: 2, Cause: "given up", Cancelled: true}},
		"cancelled paused": {machine.Pause{Reason: "p"}, machine.CancelAtBoundary{}},
		"interrupted":      {machine.RecoverInterrupted{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := lost(t, true)
			if c := s.BatchCall(0); c.Status != machine.CallWaiting || !c.Doubt {
				t.Fatalf("got %+v", c)
			}
			if c := s.BatchCall(1); c.Doubt {
				t.Fatalf("got %+v", c)
			}
			data, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var stored machine.State
			if err := json.Unmarshal(data, &stored); err != nil || !stored.Equal(s) {
				t.Fatalf("%v: %s", err, data)
			}
			for _, in := range end {
				must(t, &stored, in)
			}
			if r := result(t, &stored, 0); r.Status != llm.StatusUnknown || !strings.HasPrefix(r.Summary, "outcome unknown") {
				t.Errorf("got %+v", r)
			}
			if r := result(t, &stored, 1); r.Status != llm.StatusError || !strings.HasPrefix(r.Summary, "not executed") {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// A journal that was written before there was a doubt gives what it gave then.
func TestOldRecoveredStays(t *testing.T) {
	in, err := machine.DecodeInput("recovered", []byte(`{}`))
	if err != nil || in != (machine.Recovered{}) {
		t.Fatalf("%#v, %v", in, err)
	}
	s := lost(t, false)
	must(t, s, machine.SettleRest{Op: 2, Cause: "given up", Cancelled: true})
	if r := result(t, s, 0); r.Summary != "not executed: given up" || r.Status != llm.StatusError {
		t.Errorf("got %+v", r)
	}
}

func TestSnapshotRefusesDoubtOfAStartedCall(t *testing.T) {
	data, err := json.Marshal(lost(t, true))
	if err != nil {
		t.Fatal(err)
	}
	damaged := strings.Replace(string(data), `"status":"waiting","doubt":true`, `"status":"started","doubt":true`, 1)
	var s machine.State
	if damaged == string(data) || json.Unmarshal([]byte(damaged), &s) == nil {
		t.Errorf("%s was read", damaged)
	}
}
