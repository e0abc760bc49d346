//go:build unix

// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// What is no file is refused at once: a pipe has nobody who writes, a device no end. A pointer of Git LFS is told to be
// one.
func TestNoFile(t *testing.T) {
	b := newTable(t, map[string]string{
		"p.kicad_sch": divider()["p.kicad_sch"], "p.kicad_pro": "{}\n",
		"docs/big.md": "version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 12\n",
	})
	if err := syscall.Mkfifo(b.path("docs/pipe.md"), 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("/dev/zero", b.path("docs/zero.md")); err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"docs/pipe.md": "named pipe", "docs": "folder", "docs/zero.md": "leads out", "docs/big.md": "LFS"} {
		text := b.refuses("read_file", in{"path": name}, says)
		if !strings.Contains(text, name) {
			t.Errorf("the path is not named: %s", text)
		}
		b.refuses("edit_file", in{"path": name, "old": "a", "new": "b"})
	}
	b.must("search", in{"pattern": "Reference"})
	// Somebody puts a pipe in the place of the sheet while the run goes on.
	if err := os.Rename(b.path("p.kicad_sch"), b.path("was.kicad_sch")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(b.path("p.kicad_sch"), 0o600); err != nil {
		t.Fatal(err)
	}
	for tool, args := range map[string]in{
		"list_symbols": {}, "list_nets": {}, "edit_symbol": {"reference": "R1", "field": "Value", "text": "1k"}, "rename_net": {"from": "OUT", "to": "X"},
		"edit_file": {"path": "p.kicad_sch", "old": "a", "new": "b"},
	} {
		if text, ok := b.call(tool, args); ok || !strings.Contains(text, "pipe") && !strings.Contains(text, "regular file") {
			t.Errorf("%s: %s", tool, text)
		}
	}
}
