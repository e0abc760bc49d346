// SPDX-License-Identifier: Apache-2.0

// Package archtest holds ARCHITECTURE.md, and what the repository promises
// about itself, against the files of the tree.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/fiducial-dev/fiducial"
)

// A pkg is one folder with Go files, named as ARCHITECTURE.md names it: by its
// path from the root of the repository, "." for the root itself.
type pkg struct {
	module  string          // the folder of the go.mod that it belongs to
	files   []string        // without tests, openable from here
	imports map[string]bool // of those files: ours as ARCHITECTURE.md names them, others as written
}

// testHelper tells whether a package is one that only tests use, such as
// llm/llmtest.
func testHelper(name string) bool { return strings.HasSuffix(path.Base(name), "test") }

// packages reads every folder with Go files, for every build tag. It opens
// them itself, where go list would not, so that the test cache knows when one
// changes.
func packages(t *testing.T) map[string]*pkg {
	t.Helper()
	ps := map[string]*pkg{}
	modules := []string{}
	for _, name := range files(t) {
		if path.Base(name) == "go.mod" {
			modules = append(modules, path.Dir(name))
		}
		if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		p := ps[path.Dir(name)]
		if p == nil {
			p = &pkg{imports: map[string]bool{}}
			ps[path.Dir(name)] = p
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := filepath.Join(root, name)
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		p.files = append(p.files, file)
		for _, im := range f.Imports {
			im, err := strconv.Unquote(im.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			p.imports[short(im)] = true
		}
	}
	for name, p := range ps {
		p.module = nearest(modules, name)
	}
	return ps
}

// ours returns those imports of a package that are packages of this tree.
func (p *pkg) ours(ps map[string]*pkg) []string {
	var names []string
	for im := range p.imports {
		if ps[im] != nil {
			names = append(names, im)
		}
	}
	slices.Sort(names)
	return names
}

// short turns an import path of ours into the folder's name.
func short(im string) string {
	if im == module {
		return "."
	}
	return strings.TrimPrefix(im, module+"/")
}

// nearest returns the longest of the folders that name is or lies in.
func nearest(folders []string, name string) string {
	best := ""
	for _, f := range folders {
		if in := f == "." || f == name || strings.HasPrefix(name, f+"/"); in && (best == "" || len(f) > len(best) || best == ".") {
			best = f
		}
	}
	return best
}

// files lists the tree's files, by their paths from its root with slashes. It
// leaves out .git and what the make targets write.
func files(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".tmp" || d.Name() == ".fiducial"):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		name, err := filepath.Rel(root, file)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatal("no files found")
	}
	return names
}

// read returns a file of the tree.
func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// block returns the lines of ARCHITECTURE.md's fenced block with this name.
func block(t *testing.T, name string) []string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, "ARCHITECTURE.md"), "```"+name+"\n")
	body, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatalf("ARCHITECTURE.md has no %s block", name)
	}
	return strings.Split(strings.TrimSpace(body), "\n")
}

// lists reads a block whose lines are "name = name ...".
func lists(t *testing.T, name string) map[string][]string {
	t.Helper()
	m := map[string][]string{}
	for _, line := range block(t, name) {
		key, values, ok := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		if _, twice := m[key]; !ok || twice {
			t.Fatalf("ARCHITECTURE.md, %s block: want name = names, each name once, got %q", name, line)
		}
		m[key] = strings.Fields(values)
	}
	return m
}
