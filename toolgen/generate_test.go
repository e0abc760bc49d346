// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// packagesOf are what the fuzzed sources and generated code may import, as far as
// they need it.
var packagesOf = map[string]string{
	"context":       `type Context interface{ Err() error }`,
	"encoding/json": `type RawMessage []byte; func (m *RawMessage) UnmarshalJSON(data []byte) error; type Number string`,
	"time":          `type Time struct{ t int }; func (t *Time) UnmarshalJSON(data []byte) error; type Duration int64`,
	toolPath: `import "context"; import "encoding/json"
		const GeneratedV1 = true
		type Tool interface{ Spec() Spec }
		type Call struct{ ID string }
		type Output struct{ Summary string }
		type Spec struct{ Name, Description string; Schema json.RawMessage }
		type Traits struct{ ReadOnly, Idempotent, Exclusive bool }
		func Generated[In, Out any](spec Spec, traits Traits, fn func(context.Context, Call, In) (Out, error)) Tool { panic(0) }`,
}

type importer map[string]*types.Package

func (im importer) Import(path string) (*types.Package, error) {
	if p := im[path]; p != nil {
		return p, nil
	}
	source, ok := packagesOf[path]
	if !ok {
		return nil, fmt.Errorf("no package %s", path)
	}
	fset := token.NewFileSet()
	name := path[strings.LastIndexByte(path, '/')+1:]
	f, err := parser.ParseFile(fset, name+".go", "package "+name+"; "+source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	p, err := (&types.Config{Importer: im, IgnoreFuncBodies: true, Error: func(error) {}}).Check(path, fset, []*ast.File{f}, nil)
	if p != nil {
		im[path] = p
	}
	return p, err
}

// check type-checks files as one package and returns the errors.
func check(im importer, fset *token.FileSet, files []*ast.File) (*types.Package, *types.Info, []types.Error) {
	var errs []types.Error
	config := types.Config{Importer: im, Error: func(err error) {
		if e, ok := errors.AsType[types.Error](err); ok {
			errs = append(errs, e)
		}
	}}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Scopes: map[ast.Node]*types.Scope{}}
	pkg, _ := config.Check("example.com/x", fset, files, info)
	return pkg, info, errs
}

// FuzzGenerate: no source makes the generator panic, each gives the same twice,
// and what is generated for source without errors compiles with it.
func FuzzGenerate(f *testing.F) {
	archives, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(archives) == 0 {
		f.Fatalf("no archives: %v", err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if strings.HasSuffix(file.Name, ".go") {
				f.Add(string(file.Data))
			}
		}
	}
	for _, names := range []string{"in ctx call Path json", "string error true nil", "a b a b a", "tool tool2 f m_n _x"} {
		for _, typ := range []string{"*int", "[]map[string]*[2]bool", "struct{ A *any }", "json.RawMessage"} {
			n := append(strings.Fields(names), "z")
			f.Add(fmt.Sprintf("package %[5]s\nimport \"encoding/json\"\nvar _ json.RawMessage\n//fiducial:tools\ntype T%[5]s struct{}\n//fiducial:tool\n//fiducial:arg %[1]s x`y\nfunc (%[4]s T%[5]s) M_%[2]s(%[1]s %[6]s, %[3]s string) (%[4]s []byte, err error) { return nil, nil }", n[0], n[1], n[2], n[3], "z", typ))
		}
	}
	f.Add("package x\n//fiducial:tools\ntype T struct{}\n//fiducial:tool\nfunc (in T) M(ctx, call string, json int, p *[]map[string]struct{A *int `json:\"a`b\"`}) (x, y error) {}")
	f.Fuzz(func(t *testing.T, source string) {
		im := importer{}
		first, u := generateSource(im, source)
		second, _ := generateSource(im, source)
		if u == nil {
			return
		}
		if len(first) != len(second) {
			t.Fatalf("%d files, then %d", len(first), len(second))
		}
		files := u.files
		for i, file := range first {
			if string(file.Data) != string(second[i].Data) {
				t.Fatalf("two runs differ:\n%s\n%s", file.Data, second[i].Data)
			}
			g, err := parser.ParseFile(u.fset, file.Path, file.Data, parser.SkipObjectResolution)
			if err != nil {
				t.Fatalf("%v\n%s", err, file.Data)
			}
			files = append(files, g)
		}
		if len(u.errors) > 0 || len(first) == 0 {
			return
		}
		if _, _, errs := check(im, u.fset, files); len(errs) > 0 {
			t.Fatalf("%v\n%s", errs, first[0].Data)
		}
	})
}

// generateSource generates for a package of one file; there is no unit when it is
// not Go.
func generateSource(im importer, source string) ([]File, *unit) {
	r := &reporter{fset: token.NewFileSet()}
	file, err := parseDeclarations(r.fset, "x.go", []byte(source))
	if err != nil {
		return nil, nil
	}
	u := &unit{dir: "/nowhere", fset: r.fset, files: []*ast.File{file}, docs: map[token.Pos]*ast.Field{}}
	collectFields(u.docs, file)
	u.pkg, u.info, u.errors = check(im, r.fset, u.files)
	files, err := generate(u, r)
	if err != nil {
		panic(err)
	}
	return files, u
}
