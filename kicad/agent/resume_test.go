// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A run that is taken up has the prompt that it began with, though its documents
// have changed, the baseline of the snapshot, and every check due.
func TestResume(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	b.must("rename_net", in{"from": "STATUS", "to": "HEARTBEAT"})
	b.must("edit_file", in{"path": "docs/PINOUT.md", "old": "/STATUS  ", "new": "/HEARTBEAT"})
	b.must("run_erc", in{})
	b.must("run_drc", in{})
	r := b.again()
	if r.system != b.system || !strings.Contains(r.system, "/STATUS") {
		t.Error("the prompt is another one")
	}
	if got := r.rules.Touched(); !cmp.Equal(got, []string{"beacon.kicad_pcb", "beacon.kicad_sch", "docs/PINOUT.md", "mcu.kicad_sch"}) {
		t.Errorf("touched %q", got)
	}
	if got := r.closed(); len(got) != 2 {
		t.Errorf("gates %q; checks are due again", got)
	}
	for _, name := range []string{"run_erc", "run_drc"} {
		if text := r.must(name, in{}); !strings.Contains(text, "PASS: nothing new") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if got := r.closed(); len(got) > 0 {
		t.Errorf("gates %q", got)
	}
	if v := strings.Join(r.Verification(), "\n"); !strings.Contains(v, "net /STATUS -> /HEARTBEAT") {
		t.Errorf("verification:\n%s", v)
	}
}

// The baseline of a run that is taken up is the snapshot's: what the run broke
// before it was killed is new.
func TestResume_BaselineIsTheSnapshot(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.dangle()
	r := b.again()
	if text := r.must("run_erc", in{}); !strings.Contains(text, "FAIL") || !strings.Contains(text, "DANGLING") {
		t.Errorf("got %s", text)
	}
}

// An edit of several files that a kill cut off in between is taken back whole.
func TestResume_HalfAnEdit(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	if err := b.base.get(t.Context()); err != nil {
		t.Fatal(err)
	}
	root, child := b.bytes("beacon.kicad_sch"), b.bytes("mcu.kicad_sch")
	var edits []*edit
	for _, name := range []string{"beacon.kicad_sch", "mcu.kicad_sch"} {
		e, err := b.newEdit(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		e.new = []byte(strings.ReplaceAll(string(e.old), "STATUS", "BEAT"))
		edits = append(edits, e)
	}
	if _, err := b.intend(edits); err != nil {
		t.Fatal(err)
	}
	if err := b.Bench.put(edits[0], edits[0].new); err != nil {
		t.Fatal(err)
	}
	r := b.again()
	if r.bytes("beacon.kicad_sch") != root || r.bytes("mcu.kicad_sch") != child || len(r.rules.Touched()) > 0 {
		t.Errorf("half an edit is still there; touched %q", r.rules.Touched())
	}
	if _, err := os.Stat(b.path(".fiducial/runs/r1/edit.json")); err == nil {
		t.Error("the intent is still there")
	}
}

// An edit that is kept or put back leaves no intent behind.
func TestIntent_IsRemoved(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	b.must("rename_net", in{"from": "STATUS", "to": "HEARTBEAT"})
	b.refuses("edit_file", in{"path": "beacon.kicad_sch", "old": "(paper \"A4\")", "new": "(papper \"A4\")"}, "reverted")
	if _, err := os.Stat(b.path(".fiducial/runs/r1/edit.json")); err == nil {
		t.Error("the intent is still there")
	}
}
