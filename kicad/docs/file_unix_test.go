//go:build unix

// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

// Documents and config that are pipes, or lead out of the repository, are told and never waited for.
func TestReaders_OnlyFiles(t *testing.T) {
	pages := []docs.Page{{Name: "BOM.md", Text: "# BOM\n"}}
	for _, name := range []string{"docs/BOM.md", docs.ConfigName} {
		for what, make := range map[string]func(string) error{
			"a named pipe": func(n string) error { return syscall.Mkfifo(n, 0o600) },
			"by a link":    func(n string) error { return os.Symlink("/etc/hostname", n) },
			"a folder":     func(n string) error { return os.Mkdir(n, 0o700) },
		} {
			t.Run(name+" is "+what, func(t *testing.T) {
				dir := t.TempDir()
				at := filepath.Join(dir, filepath.FromSlash(name))
				if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), make(at)); err != nil {
					t.Fatal(err)
				}
				root, err := os.OpenRoot(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer root.Close()
				proj := &project.Project{Name: "p", Dir: ".", Root: "p.kicad_sch", Docs: "docs"}
				c, err := docs.ReadConfig(root.FS(), proj)
				if name == docs.ConfigName {
					if err == nil || !strings.Contains(err.Error(), what) {
						t.Errorf("ReadConfig: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				list, problems, err := docs.ReadAll(root.FS(), proj, c)
				isFolder := what == "a folder" // which may hold documents
				if err != nil || len(list) != 0 || !isFolder && (len(problems) != 1 || !strings.Contains(problems[0], "docs/BOM.md") || !strings.Contains(problems[0], what)) {
					t.Errorf("ReadAll: %v, %q, %v", list, problems, err)
				}
				_, err = docs.PlanInit(root.FS(), proj, c, pages, docs.InitOptions{Force: true})
				if e, ok := errors.AsType[*project.FileError](err); !ok || !strings.Contains(err.Error(), what) {
					t.Errorf("PlanInit: %v (%v)", err, e)
				}
			})
		}
	}
}
