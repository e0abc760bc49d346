//go:build unix

// SPDX-License-Identifier: Apache-2.0

package kicadcli_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	design "github.com/fiducial-dev/fiducial/kicad/project"
)

// What kicad-cli would wait for, or what is not the repository's, is refused at once and by its name.
func TestInput_OnlyFiles(t *testing.T) {
	t.Parallel()
	r := newRunner(t, kicadcli.Options{Limit: 20 * time.Second})
	sheet := kicadtest.Divider("p").String()
	pipe := func(name string) error { return syscall.Mkfifo(name, 0o600) }
	for name, tt := range map[string]struct {
		at   string // what is put there
		make func(name string) error
		want string
		kind design.FileKind
	}{
		"the sheet is a pipe":   {"hw/p.kicad_sch", pipe, "hw/p.kicad_sch is a named pipe, and only files are read", design.NotRegular},
		"the sheet is a folder": {"hw/p.kicad_sch", func(n string) error { return os.Mkdir(n, 0o700) }, "hw/p.kicad_sch is a folder", design.NotRegular},
		"the sheet is a pointer": {"hw/p.kicad_sch", func(n string) error {
			return os.WriteFile(n, []byte("version https://git-lfs.github.com/spec/v1\n"), 0o600)
		}, "is a Git LFS pointer", design.Pointer},
		"the sheet leads out":  {"hw/p.kicad_sch", func(n string) error { return os.Symlink("../../x.kicad_sch", n) }, "leads out of the repository", design.Outside},
		"a child is a pipe":    {"hw/sheets/deep/c.kicad_sch", pipe, "hw/sheets/deep/c.kicad_sch is a pipe", 0},
		"the rules are a pipe": {"hw/p.kicad_dru", pipe, "hw/p.kicad_dru is a pipe", 0},
		"a child is a device":  {"hw/c.kicad_sch", func(n string) error { return os.Symlink("/dev/zero", n) }, "c.kicad_sch is a pipe, a socket or a device", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			top := filepath.Join(t.TempDir(), "repo")
			kicadtest.Write(t, filepath.Join(top, "hw"), map[string]string{"p.kicad_sch": sheet, "p.kicad_pro": "{}"})
			at := filepath.Join(top, filepath.FromSlash(tt.at))
			_ = os.Remove(at)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(filepath.Join(top, "../x.kicad_sch"), []byte(sheet), 0o600), tt.make(at)); err != nil {
				t.Fatal(err)
			}
			v, err := r.ERC(t.Context(), kicadcli.Input{File: filepath.Join(top, "hw/p.kicad_sch"), Root: top})
			if !kicadcli.IsKind(err, kicadcli.BadInput) || !strings.Contains(err.Error(), tt.want) || v.Status != kicadcli.NotRun {
				t.Errorf("got %v, %v, want %q", v.Status, err, tt.want)
			}
			if f, ok := errors.AsType[*design.FileError](err); tt.kind != 0 && (!ok || f.Kind != tt.kind) {
				t.Errorf("the cause is %v", f)
			}
		})
	}
}

// A pipe that no design uses is nobody's business.
func TestInput_OtherPipes(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"p.kicad_sch": kicadtest.Divider("p").String(), "p.kicad_pro": "{}"})
	if err := syscall.Mkfifo(filepath.Join(dir, "editor.fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := newRunner(t, kicadcli.Options{}).Probe(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch")))
	if err != nil || !p.Loads {
		t.Errorf("got %+v, %v", p, err)
	}
}
