// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// elsewhere are the files of a package that are not built here and now, and will be
// built together with what is generated: its tests, and files for other platforms and
// under other build tags. Files of other packages in the folder, what an earlier run
// generated for another platform, and what is no Go are left out.
func elsewhere(p *packages.Package, tests []string, fset *token.FileSet) []*ast.File {
	var files []*ast.File
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(p.IgnoredFiles, tests)))) {
		if filepath.Ext(name) != ".go" || isHidden(name) {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || f.Name.Name != p.Name || isGenerated(f) {
			continue
		}
		files = append(files, f)
	}
	return files
}

// isHidden reports whether the go command passes a file over for its name.
func isHidden(path string) bool {
	base := filepath.Base(path)
	return strings.HasPrefix(base, "_") || strings.HasPrefix(base, ".")
}

// namesElsewhere are the names that those files declare, and under which they import
// others. They count on every platform, so that what is generated does not depend on
// where.
func namesElsewhere(files []*ast.File) (declared, imported names) {
	declared, imported = names{}, names{}
	for _, f := range files {
		for _, spec := range f.Imports {
			imported[importedAs(spec)] = true
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					declared[d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						declared[spec.Name.Name] = true
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							declared[name.Name] = true
						}
					}
				}
			}
		}
	}
	return declared, imported
}

// majorVersion is the end of an import path that is no name, and of a name that stands
// before a dot in gopkg.in.
var majorVersion = regexp.MustCompile(`^(v[0-9]+|.*\.v[0-9]+)$`)

// importedAs is the name of an import, or what the path lets expect.
func importedAs(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return "_"
	}
	name := path.Base(p)
	if majorVersion.MatchString(name) {
		if before, _, dotted := strings.Cut(name, "."); dotted {
			return before
		}
		name = path.Base(path.Dir(p))
	}
	return name
}

// reportToolsElsewhere reports methods Tools of a marked type that the compiler will see
// beside the generated one, though not here and now. Two files under conditions that
// differ may never meet, and are taken not to.
func reportToolsElsewhere(u *unit, t markedType, r *reporter) {
	condition := constraintOf(u.fset, t.file)
	for _, f := range u.elsewhere {
		other := constraintOf(u.fset, f)
		if condition != "" && other != "" && condition != other {
			continue
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Name.Name == "Tools" && receiverInSource(fn) == t.spec.Name.Name {
				r.at(fn.Name.Pos(), "type %s has a method Tools, and the generated method is called so", t.spec.Name.Name)
			}
		}
	}
}
