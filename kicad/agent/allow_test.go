// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
)

// Tools write design files and documents, never programs, settings of programs, or what tells programs what to do.
func TestAllowed_DesignFilesAndDocumentsOnly(t *testing.T) {
	t.Parallel()
	files := divider()
	for _, name := range []string{"Makefile", "tool.py", "CLAUDE.md", "docs/notes.org", "docs/data.json", "package.json", "pins.h", "main.c"} {
		files[name] = "old\n"
	}
	b := newTable(t, files)
	for _, name := range []string{
		"GNUmakefile", "x.sh", "docs/x.py", "x.html", "docs/x.svg", "-rf", "-rf.md", "docs/-x/a.md", "x", "new.c", "x.json", "docs/package.json", "CMakeLists.txt", "requirements-dev.txt",
		"Claude.md", "docs/AGENTS.md", "agents.override.md", "GEMINI.MD", "docs/Copilot-Instructions.md", "docs/a.prompt.md", "board_pins.h", ".md", "a.kicad_prl",
	} {
		b.refuses("write_file", in{"path": name, "content": "x"}, "path")
		if text, _ := b.call("propose_change", in{"why": "w", "what": "x", "tasks": []string{"t"}, "files": []string{name}}); name != "board_pins.h" && !strings.Contains(text, "path") && strings.Contains(text, "is valid") {
			t.Errorf("a proposal of %s: %s", name, text)
		}
	}
	for _, name := range []string{"Makefile", "tool.py", "CLAUDE.md", "docs/notes.org", "package.json", "main.c"} {
		b.refuses("edit_file", in{"path": name, "old": "old", "new": "new"}, "design files and documents")
	}
	for _, name := range []string{"README.md", "docs/a.txt", "docs/b.csv", "docs/c.json", "fab/notes.RST", "docs/agent-notes.md"} {
		b.must("write_file", in{"path": name, "content": "x"})
	}
	for _, name := range []string{"docs/data.json", "pins.h"} {
		b.must("edit_file", in{"path": name, "old": "old", "new": "new"})
	}
}

// What begins with a dot, and keys, go to no model: they are not read, and a search says nothing of them.
func TestReadable_NoSettingsNoKeys(t *testing.T) {
	t.Parallel()
	files := divider()
	hidden := []string{".env", ".npmrc", "sub/.config/token.md", "prod.env", "server.pem", "docs/host.key", "id_rsa", "id_ed25519.pub", "cert.p12", "secrets.yaml"}
	for _, name := range hidden {
		files[name] = "NEEDLE hunter2\n"
	}
	files["docs/a.md"] = "NEEDLE in sight\n"
	files[".fiducial.json"] = `{"version":1}` + "\n"
	b := newTable(t, files)
	for _, name := range hidden {
		if text := b.refuses("read_file", in{"path": name}, "no tool reads"); strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, args := range []in{{"pattern": "NEEDLE"}, {"pattern": "NEEDLE", "glob": ".env"}, {"pattern": "hunter2", "glob": "*.pem"}} {
		if text := b.must("search", args); strings.Contains(text, "hunter2") || strings.Contains(text, ".env") || strings.Contains(text, "pem:") {
			t.Errorf("search %v: %s", args, text)
		}
	}
	if text := b.must("search", in{"pattern": "NEEDLE"}); !strings.Contains(text, "docs/a.md:1") {
		t.Errorf("search: %s", text)
	}
	b.must("read_file", in{"path": ".fiducial.json"})
}
