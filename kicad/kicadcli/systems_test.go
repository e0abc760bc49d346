// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// Of several KiCads the newest is taken, by its number and not by its letters.
func TestInstalled(t *testing.T) {
	disk := fstest.MapFS{}
	for _, name := range []string{
		"Program Files/KiCad/9.0/bin/kicad-cli.exe", "Program Files/KiCad/10.0/bin/kicad-cli.exe", "Program Files/KiCad/8.0/bin/kicad-cli.exe",
		"Program Files/KiCad/nightly/bin/kicad-cli.exe", "Program Files/KiCad/7.0/bin/kicad.exe",
		"Applications/KiCad 8.0.9/KiCad.app/Contents/MacOS/kicad-cli", "Applications/KiCad/KiCad.app/Contents/MacOS/kicad-cli",
		"Applications/KiCad 8.0.10/KiCad.app/Contents/MacOS/kicad-cli", "usr/bin/kicad-cli",
	} {
		disk[name] = &fstest.MapFile{Mode: 0o755}
	}
	for goos, want := range map[string][]string{
		"windows": {
			"Program Files/KiCad/10.0/bin/kicad-cli.exe", "Program Files/KiCad/9.0/bin/kicad-cli.exe",
			"Program Files/KiCad/8.0/bin/kicad-cli.exe", "Program Files/KiCad/nightly/bin/kicad-cli.exe",
		},
		"darwin": {
			"Applications/KiCad/KiCad.app/Contents/MacOS/kicad-cli", "Applications/KiCad 8.0.10/KiCad.app/Contents/MacOS/kicad-cli",
			"Applications/KiCad 8.0.9/KiCad.app/Contents/MacOS/kicad-cli",
		},
		"linux": nil,
	} {
		if diff := cmp.Diff(want, installed(usual(goos), disk)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", goos, diff)
		}
	}
	if got := nowhere("/", usual("darwin")); !strings.Contains(got, "PATH") || !strings.Contains(filepath.ToSlash(got), "/Applications/KiCad*/KiCad.app/Contents/MacOS/kicad-cli") {
		t.Errorf("where was looked: %s", got)
	}
}

// The stock libraries and their tables stand elsewhere in an application of macOS, also when PATH has a link to its
// kicad-cli.
func TestTemplatesOf(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kicadtest.Write(t, top, map[string]string{
		"KiCad.app/Contents/MacOS/kicad-cli": "x", "KiCad.app/Contents/SharedSupport/template/sym-lib-table": "x", "9.0/bin/kicad-cli.exe": "x",
	})
	for cli, want := range map[string]string{
		"KiCad.app/Contents/MacOS/kicad-cli": "KiCad.app/Contents/SharedSupport",
		"9.0/bin/kicad-cli.exe":              "9.0/share/kicad",
		"linked":                             "KiCad.app/Contents/SharedSupport",
	} {
		cli = filepath.Join(top, filepath.FromSlash(cli))
		if _, err := os.Lstat(cli); err != nil {
			if err := os.Symlink(filepath.Join(top, "KiCad.app", "Contents", "MacOS", "kicad-cli"), cli); err != nil {
				continue // no symbolic links here
			}
		}
		want = filepath.Join(top, filepath.FromSlash(want))
		if got, err := (&Runner{path: cli}).Share(); err != nil || got != want {
			t.Errorf("%s: %s, %v", cli, got, err)
		}
		if got, err := templatesOf(cli); err != nil || got != filepath.Join(want, "template") {
			t.Errorf("%s: %s, %v", cli, got, err)
		}
	}
}

// Every system is told where things are by the variables that it knows, and by no others.
func TestEnvironment(t *testing.T) {
	home := filepath.Join("h", "p")
	of := func(goos string) map[string]string {
		m := map[string]string{}
		for _, kv := range (setting{goos: goos, bin: `B`, home: home, tmp: "T", base: `C:\Windows`}).environment() {
			name, value, _ := strings.Cut(kv, "=")
			if _, twice := m[name]; twice {
				t.Errorf("%s: %s twice", goos, name)
			}
			m[name] = value
		}
		return m
	}
	common := map[string]string{
		"HOME": filepath.Join(home, "home"), "KICAD_CONFIG_HOME": filepath.Join(home, "config"),
		"KICAD_CACHE_HOME": filepath.Join(home, "cache"), "KICAD_DOCUMENTS_HOME": filepath.Join(home, "data"),
	}
	for goos, own := range map[string]map[string]string{
		"linux": {
			"PATH": "B:/usr/bin:/bin", "TMPDIR": "T", "LC_ALL": "C.UTF-8",
			"XDG_CACHE_HOME": filepath.Join(home, "cache"), "XDG_DATA_HOME": filepath.Join(home, "data"),
		},
		"darwin": {"PATH": "B:/usr/bin:/bin", "TMPDIR": "T", "LC_ALL": "en_US.UTF-8"},
		"windows": {
			"PATH": `B;C:\Windows\System32;C:\Windows`, "SystemRoot": `C:\Windows`, "windir": `C:\Windows`, "TEMP": "T", "TMP": "T",
			"USERPROFILE": filepath.Join(home, "home"), "APPDATA": filepath.Join(home, "home", "AppData", "Roaming"),
			"LOCALAPPDATA": filepath.Join(home, "home", "AppData", "Local"),
		},
	} {
		want := maps.Clone(common)
		maps.Copy(want, own)
		if diff := cmp.Diff(want, of(goos)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", goos, diff)
		}
	}
}

// A crash on Windows is told by its exit code, and libraries that are missing are the computer's fault there too.
func TestException(t *testing.T) {
	for code, want := range map[uint32]string{
		0: "", 1: "", 5: "", 0xFFFFFFFF: "", 0xC0000005: "access violation", 0xC0000409: "abort", 0xC000001D: "exception 0xC000001D", 0xC0000135: "",
	} {
		if got := exception(code); got != want {
			t.Errorf("%#x: %q, want %q", code, got, want)
		}
	}
	missing := uint32(0xC0000135)
	if fault := (Run{ExitCode: int(missing)}).fault(nil, ""); fault == nil || fault.Kind != NotFound {
		t.Errorf("missing libraries: %v", fault)
	}
}

// refusing is a system that makes no links, as Windows does for whoever lacks the privilege.
func refusing(goos string) placer {
	return placer{goos: goos, symlink: func(from, to string) error {
		return &os.LinkError{Op: "symlink", Old: from, New: to, Err: syscall.Errno(1314)} // ERROR_PRIVILEGE_NOT_HELD
	}}
}

// Copies stand where links cannot be made: of what kicad-cli may read, and never without end.
func TestPlace_Copies(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	large := strings.Repeat("x", maxOther+1)
	kicadtest.Write(t, top, map[string]string{
		"lib/a.kicad_sym": "symbols", "lib/deep/p.pretty/f.kicad_mod": "footprint", "lib/model.lib": "spice", "lib/.git/HEAD": "x",
		"lib/node_modules/x/y": "x", "lib/~a.kicad_pro.lck": "x", "lib/case.step": large, "lib/big.kicad_sym": large, "own.txt": "linked",
	})
	for name, target := range map[string]string{"lib/deep/loop": "..", "lib/link.txt": "../own.txt", "lib/broken": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(top, filepath.FromSlash(name))); err != nil {
			t.Skipf("no links to copy here: %v", err)
		}
	}
	p := refusing(windows)
	to := t.TempDir()
	for _, name := range []string{"lib", "own.txt"} {
		if err := p.place(filepath.Join(top, name), filepath.Join(to, name)); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	err := fs.WalkDir(os.DirFS(to), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			t.Errorf("%s is %v", name, d.Type())
		}
		data, err := os.ReadFile(filepath.Join(to, name))
		got[name] = string(data[:min(10, len(data))])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"lib/a.kicad_sym": "symbols", "lib/deep/p.pretty/f.kicad_mod": "footprint", "lib/model.lib": "spice", "lib/link.txt": "linked",
		"lib/big.kicad_sym": large[:10], "own.txt": "linked",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	elsewhere := refusing("linux")
	if err := elsewhere.place(filepath.Join(top, "own.txt"), filepath.Join(to, "second")); !errors.Is(err, syscall.Errno(1314)) {
		t.Errorf("elsewhere: %v", err)
	}
	p.files = maxCopies
	if err := p.place(filepath.Join(top, "own.txt"), filepath.Join(to, "third")); !errors.Is(err, errTooMuch) {
		t.Errorf("too much: %v", err)
	}
}

// A verdict on copies is the verdict on links, with the sheets, the rules and the libraries beside the project found.
func TestPlace_SameVerdict(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	s := kicadtest.Divider("p")
	s.Child("Child", "sheets/c.kicad_sch", 80, 30)
	kicadtest.Write(t, top, map[string]string{
		".git/HEAD": "x", "..hw/p.kicad_pro": "{}", "..hw/p.kicad_sch": s.String(), "..hw/sheets/c.kicad_sch": kicadtest.NewSheet("p", 700).String(),
		"..hw/sym-lib-table": "(sym_lib_table (version 7) (lib (name \"T\") (type \"KiCad\") (uri \"${KIPRJMOD}/../lib/t.kicad_sym\") (options \"\") (descr \"\")))\n",
		"lib/t.kicad_sym":    "(kicad_symbol_lib (version 20241209) (generator \"x\"))\n",
	})
	told := func(links *placer) []string {
		r, err := New(Options{Path: kicadtest.CLI(t), TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		if links != nil {
			r.links = *links
		}
		v, err := r.ERC(t.Context(), At(filepath.Join(top, "..hw", "p.kicad_sch")))
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, f := range v.Report.Findings {
			list = append(list, f.Type+" "+f.Sheet+" "+f.Description)
		}
		slices.Sort(list)
		return list
	}
	copies := refusing(windows)
	want, got := told(nil), told(&copies)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("links told %d (-links +copies)\n%s", len(want), diff)
	}
	for _, f := range got {
		t.Log(f)
	}
}
