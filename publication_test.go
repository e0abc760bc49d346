// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// E-263: what a package registry shows of a module: licence, repository, a README, a
// minimum Go version, and a documentation comment for every package. That modules
// build alone (E-264), from outside with one requirement (E-265), with clean documents
// (E-266) and bounded contents (E-8, E-267) is held by internal/tools/publish and
// internal/tools/doccheck, which have the modules as a proxy would serve them.
func TestE263_Metadata(t *testing.T) {
	t.Parallel()
	const repository = "github.com/fiducial-dev/fiducial"
	for file, want := range map[string]string{"LICENSE": "Apache License", "README.md": repository} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not hold %q (%v)", file, want, err)
		}
	}
	version := regexp.MustCompile(`(?m)^go 1\.\d+(\.\d+)?$`)
	documented := map[string]bool{} // by folder
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || strings.HasPrefix(name, ".") && name != "."):
			return filepath.SkipDir
		case name == "go.mod":
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if !strings.HasPrefix(string(text), "module "+repository) || !version.Match(text) {
				t.Errorf("%s states no module of ours, or no Go version", path)
			}
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				return err
			}
			dir := filepath.Dir(path)
			documented[dir] = documented[dir] || f.Doc.Text() != ""
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Sorted(maps.Keys(documented)) {
		if !documented[dir] {
			t.Errorf("the package in %s has no documentation comment", dir)
		}
	}
}
