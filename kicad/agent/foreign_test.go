// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
)

// Board case 27, B-57, B-175: what somebody saves into a file while the run goes on is not edited over: a commit would
// hold it unverified, and a restore would lose it.
func TestForeignEdit(t *testing.T) {
	t.Parallel()
	set := func(text string) in { return in{"reference": "R1", "field": "Value", "text": text} }

	t.Run("before the run's first edit of the file", func(t *testing.T) {
		t.Parallel()
		b := newTable(t, nil)
		theirs := strings.Replace(b.bytes("beacon.kicad_sch"), `"GREEN"`, `"RED"`, 1)
		b.put("beacon.kicad_sch", theirs)
		b.refuses("edit_symbol", set("470"), "somebody else changed it since the run began")
		b.refuses("rename_net", in{"from": "STATUS", "to": "HEARTBEAT"}, "somebody else changed it")
		b.refuses("edit_file", in{"path": "beacon.kicad_sch", "old": `"GREEN"`, "new": `"BLUE"`})
		if paths, complete := b.Wrote(); len(paths) > 0 || !complete {
			t.Errorf("the run wrote %q, so that a restore would take the change back", paths)
		}
		if len(b.obliged()) > 0 || b.bytes("beacon.kicad_sch") != theirs {
			t.Errorf("their file counts as the run's: %q", b.obliged())
		}
	})
	t.Run("between two edits of the run", func(t *testing.T) {
		t.Parallel()
		b := newTable(t, nil)
		b.must("edit_symbol", set("470"))
		b.must("edit_symbol", set("560")) // its own is no foreign one
		theirs := strings.Replace(b.bytes("beacon.kicad_sch"), `"GREEN"`, `"RED"`, 1)
		b.put("beacon.kicad_sch", theirs)
		b.refuses("edit_symbol", set("680"), "somebody else changed it since the run began")
		if got := b.Overwritten(); len(got) != 1 || got[0] != "beacon.kicad_sch" {
			t.Errorf("overwritten: %q", got)
		}
		if b.bytes("beacon.kicad_sch") != theirs {
			t.Error("their file was written")
		}
	})
	t.Run("another process of the run had it", func(t *testing.T) {
		t.Parallel()
		b := newTable(t, nil)
		b.must("edit_symbol", set("470"))
		b = b.again()
		b.rules.Unlock()
		b.must("edit_symbol", set("560"))
	})
}

// B-57: what is in a submodule is in no snapshot of the repository around it; the refusal says where to run.
func TestSubmodule(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.put("boards/amp/notes.md", "one\n")
	edit := in{"path": "boards/amp/notes.md", "old": "one", "new": "two"}
	b.refuses("edit_file", edit, ".gitignore")
	git(t, b.path("boards/amp"), "init", "-q")
	text := b.refuses("edit_file", edit, "it is in boards/amp", "--repo boards/amp")
	if strings.Contains(text, ".gitignore") {
		t.Errorf("it is not ignored: %s", text)
	}
}
