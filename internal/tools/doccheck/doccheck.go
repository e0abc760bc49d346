// SPDX-License-Identifier: Apache-2.0

// Package doccheck holds the documentation of Go packages: every exported name has
// a comment, and every link in a comment, such as [Name] or [pkg.Type.Method],
// names something that is there. A link that names nothing renders as its own
// text, brackets and all, and no Go tool says so.
//
// The syntax of comments and links is https://go.dev/doc/comment.
package doccheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/tools/go/packages"
)

// A Finding is one fault.
type Finding struct {
	Pos     token.Position
	Message string
}

// String is file:line:col: message.
func (f Finding) String() string { return fmt.Sprintf("%s: %s", f.Pos, f.Message) }

// Check loads the packages that patterns name from the folder dir, with an
// environment of KEY=value, and returns the faults in the order of their places,
// with the number of packages. Tests and generated files are left out, and so are
// exported names of package main, which nobody can import. ours are the folders of
// modules by their paths: a link to a package below one of them, or of the standard
// library, is followed even when nothing here imports it; what else nothing imports is
// taken at its word. Methods that package
// errors and package fmt give their meaning (Error, Unwrap, Is, String) need no
// comment, nor does a method of an interface whose own comment names it, or that
// has no other. A package that does not build is an error.
func Check(ctx context.Context, dir string, env []string, ours map[string]string, patterns ...string) ([]Finding, int, error) {
	cfg := &packages.Config{
		Context: ctx, Dir: dir, Env: env,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo |
			packages.NeedImports | packages.NeedExportFile,
	}
	pkgs, err := packages.Load(cfg, patterns...)
	if err != nil {
		return nil, 0, err
	}
	seen := map[string]*types.Package{}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, 0, fmt.Errorf("package %s: %w", p.PkgPath, p.Errors[0])
		}
		reach(p.Types, seen)
	}
	var failed error
	load := func(path string) (*types.Package, bool) {
		in, ok := folder(path, dir, ours)
		if !ok {
			return nil, false
		}
		if pkg, ok := seen[path]; ok && (pkg == nil || pkg.Complete()) {
			return pkg, true
		}
		pkg, err := loadOne(ctx, in, env, path)
		failed = errors.Join(failed, err)
		seen[path] = pkg
		return pkg, true
	}
	var found []Finding
	n := 0
	for _, p := range pkgs {
		if len(p.Syntax) == 0 {
			continue
		}
		n++
		c := checker{pkg: p, seen: seen, load: load, names: named(p)}
		c.check()
		found = append(found, c.found...)
	}
	slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(sortKey(a), sortKey(b)) })
	return found, n, failed
}

func sortKey(f Finding) string {
	return fmt.Sprintf("%s:%08d:%04d", f.Pos.Filename, f.Pos.Line, f.Pos.Column)
}

// reach collects a package and what it imports, by path.
func reach(p *types.Package, seen map[string]*types.Package) {
	if old := seen[p.Path()]; old != nil && old.Complete() {
		return
	}
	seen[p.Path()] = p
	for _, im := range p.Imports() {
		reach(im, seen)
	}
}

// named maps the names by which a package's files know their imports.
func named(p *packages.Package) map[string]string {
	names := map[string]string{p.Name: p.PkgPath}
	for _, f := range p.Syntax {
		for _, im := range f.Imports {
			path := strings.Trim(im.Path.Value, `"`)
			imported := p.Imports[path]
			switch {
			case im.Name != nil:
				names[im.Name.Name] = path
			case imported != nil:
				names[imported.Name] = path
			}
		}
	}
	return names
}

// A checker looks through one package.
type checker struct {
	pkg   *packages.Package
	seen  map[string]*types.Package
	load  func(path string) (pkg *types.Package, known bool) // known when there is a way to tell
	names map[string]string
	found []Finding
}

func (c *checker) say(at token.Pos, format string, args ...any) {
	c.found = append(c.found, Finding{c.pkg.Fset.Position(at), fmt.Sprintf(format, args...)})
}

func (c *checker) check() {
	documented := false
	for _, f := range c.pkg.Syntax {
		documented = documented || f.Doc != nil
	}
	if !documented {
		c.say(c.pkg.Syntax[0].Name.Pos(), "package %s has no comment", c.pkg.Name)
	}
	for _, f := range c.pkg.Syntax {
		if ast.IsGenerated(f) {
			continue
		}
		c.links(f.Doc)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				c.function(d)
			case *ast.GenDecl:
				c.general(d)
			}
		}
	}
}

// public tells whether a name can be used from outside.
func (c *checker) public(id *ast.Ident) bool { return id.IsExported() && c.pkg.Name != "main" }

func (c *checker) function(d *ast.FuncDecl) {
	c.links(d.Doc)
	if !c.public(d.Name) || d.Doc != nil {
		return
	}
	if d.Recv == nil {
		c.say(d.Name.Pos(), "func %s has no comment", d.Name.Name)
	} else if recv := receiver(d); ast.IsExported(recv) && !c.common(d) {
		c.say(d.Name.Pos(), "method %s.%s has no comment", recv, d.Name.Name)
	}
}

// common tells whether a method is one that errors or fmt call, by name and by
// signature.
func (c *checker) common(d *ast.FuncDecl) bool {
	f, ok := c.pkg.TypesInfo.Defs[d.Name].(*types.Func)
	if !ok {
		return false
	}
	qualified := types.TypeString(f.Signature(), func(p *types.Package) string { return p.Name() })
	return slices.Contains([]string{
		"Error func() string", "String func() string", "Unwrap func() error", "Unwrap func() []error",
		"Is func(target error) bool",
	}, f.Name()+" "+qualified)
}

// receiver is the name of the type that a method belongs to.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// general looks at types, constants and variables. The comment of a group, or at
// the end of the line, counts for each of them.
func (c *checker) general(d *ast.GenDecl) {
	c.links(d.Doc)
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			c.links(s.Doc)
			if c.public(s.Name) && s.Doc == nil && d.Doc == nil {
				c.say(s.Name.Pos(), "type %s has no comment", s.Name.Name)
			}
			if s.Name.IsExported() {
				c.members(s, cmp.Or(s.Doc.Text(), d.Doc.Text()))
			}
		case *ast.ValueSpec:
			c.links(s.Doc)
			c.links(s.Comment)
			if s.Doc != nil || s.Comment != nil || d.Doc != nil {
				continue
			}
			for _, id := range s.Names {
				if c.public(id) {
					c.say(id.Pos(), "%s %s has no comment", d.Tok, id.Name)
				}
			}
		}
	}
}

// members looks at a type's fields and an interface's methods: at their links, and
// for the methods at whether there is a comment.
func (c *checker) members(s *ast.TypeSpec, about string) {
	ast.Inspect(s.Type, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok {
			c.links(f.Doc)
			c.links(f.Comment)
		}
		return true
	})
	i, ok := s.Type.(*ast.InterfaceType)
	if !ok || i.Methods.NumFields() == 1 {
		return
	}
	for _, m := range i.Methods.List {
		for _, id := range m.Names {
			if c.public(id) && m.Doc == nil && m.Comment == nil && !slices.Contains(words(about), id.Name) {
				c.say(id.Pos(), "method %s.%s has no comment", s.Name.Name, id.Name)
			}
		}
	}
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
