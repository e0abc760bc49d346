// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/task"
)

// AC-15.5 (B-137, B-11): the prompt asks to put independent calls into one reply, and
// names the groups; B-10: it has the budgets, the documents and the files.
func TestAC15_5_Prompt(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	for _, want := range []string{
		"into one reply", "all constraint records together", "all revisit resolutions together", "independent file writes together",
		"40 replies", "5 failing checks", task.FinishName, "Document docs/BOM.md", "Document docs/PINOUT.md", "sheet file mcu.kicad_sch",
		"beacon.kicad_pcb",
	} {
		if !strings.Contains(b.system, want) {
			t.Errorf("the prompt lacks %q", want)
		}
	}
	if again := b.prompt(); again != b.system {
		t.Error("the same project gives other bytes")
	}
	t.Logf("%d bytes", len(b.system))
}

// A large document is cut at a line, with a pointer to the rest, and a character is
// never cut in two.
func TestPrompt_LargeDocument(t *testing.T) {
	t.Parallel()
	files := divider()
	files["docs/LONG.md"] = strings.Repeat("a line of text\n", 2000)
	files["docs/ONE.md"] = "x" + strings.Repeat("\u03a9", 20000)
	b := newTable(t, files)
	if !strings.Contains(b.system, "more bytes; read_file docs/LONG.md") || len(b.system) > 40<<10 {
		t.Errorf("%d bytes", len(b.system))
	}
	if !strings.Contains(b.system, "more bytes; read_file docs/ONE.md") || strings.ToValidUTF8(b.system, "") != b.system {
		t.Error("a document of one line")
	}
}
