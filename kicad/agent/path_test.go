// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// B-85: whatever Windows or macOS takes for git's folder or ours is not for tools, neither to read nor to write.
func TestClean_OtherFileSystems(t *testing.T) {
	t.Parallel()
	for _, part := range []string{
		".git", ".GIT", ".Git.", ".git ", ".git . .", ".git:x", ".git::$INDEX_ALLOCATION", "git~1", "GIT~1", "Git~12", "git~1.", "git~1:x", "GI7EBA~1",
		".fiducial", ".FIDUCIAL..", ".fiducial::$DATA", "fiduci~1", "FIDUCI~3", "fi12ab~1",
		".g\u200cit", "\ufeff.git", ".git\u200f", ".\u206afiducial\u202e", "g\u200dit~1",
	} {
		for _, name := range []string{part, part + "/config", "docs/" + part + "/x.md", `docs\` + part + `\x.md`} {
			if got, err := clean(name); err == nil || !strings.Contains(err.Error(), "is not for tools") {
				t.Errorf("%q: %q, %v, want it to be refused", name, got, err)
			}
		}
	}
	for _, name := range []string{".gitignore", "git", "docs/git~a.md", "digit~1", "fiducial/x", "gi~1", "git.md", "10:30.md", "fiduci~1.md"} {
		if got, err := clean(name); err != nil || got != name {
			t.Errorf("%q: %q, %v, want it as it is", name, got, err)
		}
	}
}

// What is another file or none after a clone to Windows or macOS is not written, and the model is told why.
func TestWritable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		".github/x.yml": "begin with a dot", "docs/.x": "begin with a dot",
		"docs/a:b.md": "colon", "C:/x.md": "colon",
		"docs/a.": "ends with a dot", "docs /x.md": "ends with a dot or a blank",
		"docs/a\tb.md": "cannot be seen", "docs/a\x7f": "cannot be seen", "docs/a\u0085": "cannot be seen", "docs/a\xff.md": "cannot be seen",
		"docs/a\u200d.md": "cannot be seen", "\ufeff.github/x": "cannot be seen",
		"CON": "device", "docs/nul": "device", "aux.md": "device", "Prn.tar.gz": "device", "com1": "device", "LPT9.md": "device", "COM\u00b2": "device", "con .md": "device", "CONIN$": "device", "nul/x.md": "device",
	} {
		if err := writable(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
	for _, name := range []string{"docs/BOM.md", "hw/a b (1).kicad_sch", "console.md", "common.md", "com10.md", "Gr\u00f6\u00dfe/\u6f22\u5b57.md", "docs/a.b.md", "null.md", "x/CHANGELOG"} {
		if err := writable(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// B-85: links are followed as the system follows them: a .. leads up from where the link before it leads to, not from
// where it stands.
func TestResolve_Links(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.put("real/deep/r.md", "r")
	b.put("config", "not git's")
	for name, to := range map[string]string{
		"hooks": ".git/hooks", "sly.md": "hooks/../config", "real/up.md": "deep/../../config", "deep": "real/deep", "round.md": "./deep/.././deep//r.md",
		"out.md": "deep/../../../x.md", "none.md": "absent/../config",
	} {
		if err := os.Symlink(to, b.path(name)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	for name, want := range map[string]string{
		"real/up.md": "config", "round.md": "real/deep/r.md", "deep/r.md": "real/deep/r.md", "none.md": "config", "deep/new.md": "real/deep/new.md",
	} {
		if got, err := b.resolve(name); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	for name, want := range map[string]string{"sly.md": `the folder ".git" is not for tools`, "out.md": "leads out of the repository"} {
		data, err := b.read(name)
		if e, ok := errors.AsType[*PathError](err); !ok || !strings.Contains(e.Reason, want) {
			t.Errorf("%s: %q, %v, want %q", name, data, err, want)
		}
	}
}
