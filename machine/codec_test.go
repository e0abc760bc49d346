// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

var everyPart = []llm.Part{
	llm.Text{Text: "a <b> & \u2028", Opaque: llm.Opaque{Vendor: "v", Data: json.RawMessage(`{"sig":"<&>"}`)}},
	llm.Image{Media: "image/png", Data: []byte{0, 255}},
	llm.Thinking{Text: "hm", Opaque: llm.Opaque{Vendor: "v", Data: json.RawMessage(`"x"`)}},
	llm.System{Kind: "k", Text: "t", Data: json.RawMessage(`{"n":1}`)},
	llm.Call{ID: "c", Name: "look", Args: "{ not json"},
	llm.Result{
		CallID: "c", Name: "look", Status: llm.StatusUnknown, Summary: "s", Content: "c",
		Images: []llm.Image{{Media: "image/gif"}}, Notes: []llm.System{{Kind: "n"}},
	},
}

// everyInput holds each input of the set, with every field set.
func everyInput() []machine.Input {
	m := llm.Message{Role: llm.RoleAssistant, Parts: everyPart, Stop: llm.StopToolUse}
	r := everyPart[5].(llm.Result)
	u := llm.Usage{
		Input: llm.N(1), Output: llm.N(0), Total: llm.N(3), CacheRead: llm.N(4), CacheWrite: llm.N(5), Reasoning: llm.N(6),
	}
	return []machine.Input{
		machine.AppendInput{Message: m, Keys: []string{"a", "b"}},
		machine.AppendSystem{Parts: []llm.System{everyPart[3].(llm.System)}},
		machine.ReplaceContext{Messages: []llm.Message{m}, Usage: u},
		machine.Truncate{Len: 1},
		machine.Start{},
		machine.Begin{Op: 1},
		machine.Generated{Op: 1 << 63, Message: m, Usage: u},
		machine.GenerationFailed{Op: 1},
		machine.ToolsCompleted{Op: 1, Results: []llm.Result{r}, Cancelled: true},
		machine.CancelAtBoundary{},
		machine.ReplaceAtBoundary{Messages: []llm.Message{m}, Usage: u},
		machine.RecoverInterrupted{Begun: true},
		machine.Notice{Op: 1, Text: "t", Fresh: true},
		machine.SetTruncationCap{N: 1},
		machine.Started{Op: 1, Calls: []machine.StartedCall{{Ordinal: 1, Repeat: true}}},
		machine.Settled{Op: 1, Ordinal: 1, Result: r},
		machine.SettleRest{Op: 1, Cause: "c", Cancelled: true},
		machine.Pause{Reason: "r", Begun: true},
		machine.Resume{},
		machine.Recovered{Doubt: true},
		machine.Steer{Messages: []llm.Message{m}, Keys: []string{"a"}},
	}
}

func TestInputsRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for _, in := range everyInput() {
		if v := reflect.ValueOf(in); v.NumField() > 0 && v.IsZero() {
			t.Errorf("%T: no field is set, so nothing is tested", in)
		}
		kind, data, err := machine.EncodeInput(in)
		if err != nil {
			t.Errorf("%T: %v", in, err)
			continue
		}
		if seen[kind] || kind != strings.ToLower(kind) || bytes.ContainsAny(data, "\n") {
			t.Errorf("%T: kind %q, data %s", in, kind, data)
		}
		seen[kind] = true
		got, err := machine.DecodeInput(kind, data)
		if err != nil {
			t.Errorf("%s %s: %v", kind, data, err)
			continue
		}
		if diff := cmp.Diff(in, got, cmpopts.EquateComparable(llm.Count{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
		_, again, err := machine.EncodeInput(got)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%s: other bytes, %v:\n%s\n%s", kind, err, data, again)
		}
		// A field of a newer version, at the top and in a message.
		for _, newer := range []string{
			strings.Replace(string(data), "{", `{"newer":1,`, 1),
			strings.Replace(string(data), `"role":`, `"newer":1,"role":`, 1),
			strings.Replace(string(data), `{"type":"call",`, `{"type":"call","newer":1,`, 1),
			string(data) + " {}",
		} {
			newer = strings.Replace(newer, ",}", "}", 1)
			if newer == string(data) {
				continue
			}
			var ce *machine.CodecError
			if in, err := machine.DecodeInput(kind, []byte(newer)); !errors.As(err, &ce) || in != nil {
				t.Errorf("%s %s: %#v, %v", kind, newer, in, err)
			}
		}
	}
	if len(seen) != 21 {
		t.Errorf("%d kinds of input were tested", len(seen))
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ kind, data string }{
		{"start", "null"},
		{"start", ""},
		{"start", "[]"},
		{"start", "{"},
		{"begin", `{"op":-1}`},
		{"begin", `{"op":"1"}`},
		{"append-input", `{"message":{"role":"user","parts":[{"type":"video"}]}}`},
	} {
		var ce *machine.CodecError
		if in, err := machine.DecodeInput(c.kind, []byte(c.data)); !errors.As(err, &ce) || in != nil {
			t.Errorf("%s %s: %#v, %v", c.kind, c.data, in, err)
		}
	}
	if _, err := machine.DecodeInput("stage", []byte("{}")); !errors.Is(err, machine.ErrUnknownKind) {
		t.Errorf("unknown kind: %v", err)
	}
	if _, _, err := machine.EncodeInput(nil); err == nil {
		t.Error("a nil input was encoded")
	}
}

// TestEncodeRefusesText: JSON would replace the bytes, and the replayed state would
// be another one.
func TestEncodeRefusesText(t *testing.T) {
	bad := "\xff"
	for _, p := range []llm.Part{
		llm.Text{Text: bad},
		llm.Thinking{Text: bad},
		llm.System{Text: bad},
		llm.Call{Args: bad},
		llm.Image{Media: bad},
		llm.Result{Content: bad},
		llm.Result{Notes: []llm.System{{Text: bad}}},
		llm.Text{Opaque: llm.Opaque{Vendor: bad}},
	} {
		m := llm.Message{Parts: []llm.Part{p}}
		ins := []machine.Input{
			machine.AppendInput{Message: m},
			machine.ReplaceContext{Messages: []llm.Message{m}},
			machine.Generated{Message: m},
			machine.ReplaceAtBoundary{Messages: []llm.Message{m}},
			machine.Steer{Messages: []llm.Message{m}},
		}
		if r, ok := p.(llm.Result); ok {
			ins = append(ins, machine.Settled{Result: r}, machine.ToolsCompleted{Results: []llm.Result{r}})
		}
		for _, in := range ins {
			if _, _, err := machine.EncodeInput(in); !errors.Is(err, machine.ErrNotUTF8) {
				t.Errorf("%#v: %v", in, err)
			}
		}
	}
	for _, in := range []machine.Input{
		machine.AppendInput{Keys: []string{bad}},
		machine.AppendSystem{Parts: []llm.System{{Kind: bad}}},
		machine.Notice{Text: bad},
		machine.SettleRest{Cause: bad},
		machine.Pause{Reason: bad},
	} {
		if _, _, err := machine.EncodeInput(in); !errors.Is(err, machine.ErrNotUTF8) {
			t.Errorf("%#v: %v", in, err)
		}
	}
}

// TestSnapshotRefuses holds the snapshot reader against data that no state wrote,
// and a failed read against the state that it was to replace.
func TestSnapshotRefuses(t *testing.T) {
	for _, c := range []struct{ state, old, replacement string }{
		{"R", `"version":1`, `"version":2`},
		{"R", `"rules":1`, `"rules":2`},
		{"R", `"phase":"ready"`, `"phase":"paused"`},
		{"R", `"phase":"ready"`, `"phase":"tools"`},
		{"R", `"phase":"ready"`, `"phase":"finished"`},
		{"R", `"sequence":0`, `"sequence":0,"op":1`},
		{"R", `"sequence":0`, `"sequence":0,"executing":true`},
		{"R", `"sequence":0`, `"sequence":0,"newer":true`},
		{"R", `"truncation_cap":3`, `"truncation_cap":-1`},
		{"G", `"sequence":1`, `"sequence":0`},
		{"G", `"op":1,`, ``},
		{"G", `"phase":"generating"`, `"phase":"ready"`},
		{"T", `"phase":"tools"`, `"phase":"generating"`},
		{"T", `{"status":"waiting"}`, `{"status":"settled"}`},
		{"T", `{"status":"waiting"}`, `{"status":"begun"}`},
		{"T", `{"status":"waiting"},`, ``},
		{"T", `{"status":"waiting"}`, `{"status":"started"}`},
		{"T", `"again":true,`, ``},
		{"Td", `"result":{"call_id":"c1"`, `"result":{"call_id":"c0"`},
	} {
		whole := snapshot(t, base(t, c.state))
		damaged := strings.Replace(whole, c.old, c.replacement, 1)
		if damaged == whole {
			t.Fatalf("%s does not hold %s", whole, c.old)
		}
		s := base(t, "D")
		before := snapshot(t, s)
		var ce *machine.CodecError
		if err := s.UnmarshalJSON([]byte(damaged)); !errors.As(err, &ce) {
			t.Errorf("%s: %v", damaged, err)
		}
		if snapshot(t, s) != before {
			t.Errorf("%s: the state changed", damaged)
		}
	}
	if data, err := json.Marshal(*base(t, "D")); err != nil || string(data) != snapshot(t, base(t, "D")) {
		t.Errorf("a state by value is written as %s, %v", data, err)
	}
}

// TestOldJournals replays journals that earlier versions wrote. Files are added
// when RulesVersion changes, and never rewritten.
func TestOldJournals(t *testing.T) {
	files, err := filepath.Glob("testdata/journal/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var s machine.State
		for line := range strings.Lines(string(data)) {
			var r struct {
				Kind string          `json:"kind"`
				Data json.RawMessage `json:"data"`
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			in, err := machine.DecodeInput(r.Kind, r.Data)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			must(t, &s, in)
		}
		want, err := os.ReadFile(strings.TrimSuffix(name, ".jsonl") + ".state.json")
		if err != nil {
			t.Fatal(err)
		}
		if got := snapshot(t, &s); got != strings.TrimSpace(string(want)) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}
