//go:build unix

// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What is no file is refused at once: a pipe has nobody who writes, a device no end. A pointer of Git LFS is told to be
// one.
func TestNoFile(t *testing.T) {
	t.Parallel()
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

// No pipe is waited for, wherever a run looks for a file: not as the rules, nor as what an earlier process has kept.
func TestNoFile_Anywhere(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.session.Resumed = true
	sheet := b.bytes("p.kicad_sch")
	keep := &edit{name: "p.kicad_sch", old: []byte(sheet), new: []byte(sheet + " "), mode: 0o644}
	pipe := func(name string) func() {
		t.Helper()
		was, at := b.path(name)+".was", b.path(name)
		if err := os.Rename(at, was); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(at, 0o600); err != nil {
			t.Skip(err)
		}
		return func() {
			if err := os.Remove(at); err != nil {
				t.Error(err)
			}
			_ = os.Rename(was, at) // when there was one
		}
	}
	within(t, "the rules", func() {
		defer pipe("p.kicad_dru")()
		b.session.Resumed = false
		if _, err := b.snapshotRules(t.Context()); err == nil || !strings.Contains(err.Error(), "named pipe") {
			t.Errorf("the rules are a pipe: %v", err)
		}
		b.session.Resumed = true
	})
	within(t, "the prompt", func() {
		defer pipe(b.promptFile())()
		if _, err := b.Bench.system(); err == nil {
			t.Error("a prompt was read from a pipe")
		}
	})
	within(t, "what was looked at again", func() {
		defer pipe(b.resolvedFile())()
		if _, err := b.resolved(); err == nil {
			t.Error("it was read from a pipe")
		}
	})
	within(t, "the proposal", func() {
		defer pipe(b.changeFile())()
		if p := b.storedProposal(); p != nil {
			t.Errorf("read %v from a pipe", p)
		}
	})
	within(t, "the edit that was under way", func() {
		defer pipe(b.intentFile())()
		if err := b.takeBack(); err == nil {
			t.Error("it was read from a pipe")
		}
	})
	within(t, "a file of that edit", func() {
		if _, err := b.intend([]*edit{keep}); err != nil {
			t.Fatal(err)
		}
		defer pipe("p.kicad_sch")()
		if err := b.takeBack(); err != nil {
			t.Error(err)
		}
		if info, err := os.Lstat(b.path("p.kicad_sch")); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
			t.Errorf("what somebody put in the place of the sheet was replaced: %v, %v", info, err)
		}
	})
	if got := b.bytes("p.kicad_sch"); got != sheet {
		t.Error("the sheet is another one")
	}
}

// within fails the test, instead of waiting for ever, when something waits for a pipe.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatalf("%s: a pipe is waited for", what)
	}
}
