// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// A markedType is a type with //fiducial:tools.
type markedType struct {
	spec *ast.TypeSpec
	file *ast.File
}

// A markedMethod is a method with //fiducial:tool.
type markedMethod struct {
	decl *ast.FuncDecl
	file *ast.File
	tool toolDirective
	args []placed[argDirective]
}

// placed is a directive and where it stands.
type placed[D directive] struct {
	pos       token.Pos
	directive D
}

// marks are all the directives of a package.
type marks struct {
	types   []markedType
	methods []markedMethod
}

// findMarks reads the directives of a package and reports those that are wrong
// in themselves or stand where they mean nothing.
func findMarks(u *unit, r *reporter) marks {
	var m marks
	for _, f := range u.files {
		used := map[*ast.CommentGroup]bool{}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				used[d.Doc] = true
				m.function(f, d, r)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					spec, ok := s.(*ast.TypeSpec)
					if !ok {
						continue
					}
					doc := spec.Doc
					if !d.Lparen.IsValid() {
						doc = d.Doc
					}
					used[doc] = true
					m.typeSpec(f, spec, doc, r)
				}
			}
		}
		for _, group := range f.Comments {
			if !used[group] {
				reportStray(group, r, "stands in no doc comment of a type or method, so it has no effect")
			}
		}
	}
	for _, name := range u.tests {
		f, err := parser.ParseFile(u.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			continue // not ours to report: the file is not read for anything else
		}
		for _, group := range f.Comments {
			reportStray(group, r, "stands in a test file, and those are not generated for")
		}
	}
	return m
}

func reportStray(group *ast.CommentGroup, r *reporter, why string) {
	for _, p := range read(group, nil) {
		r.at(p.pos, "this directive %s", why)
	}
}

// read parses the directives of a comment. With r it reports what is wrong with
// them and leaves out what it cannot make sense of; without, it keeps all.
func read(group *ast.CommentGroup, r *reporter) []placed[directive] {
	var list []placed[directive]
	if group == nil {
		return nil
	}
	for _, c := range group.List {
		if !isDirective(c.Text) {
			if r != nil {
				reportLookalikes(c, r)
			}
			continue
		}
		d, wrong := parseDirective(c.Text)
		if r != nil {
			for _, e := range wrong {
				r.at(c.Pos()+token.Pos(e.col), "%s", e.message)
			}
			if d == nil {
				continue
			}
		}
		list = append(list, placed[directive]{c.Pos(), d})
	}
	return list
}

func reportLookalikes(c *ast.Comment, r *reporter) {
	if isSpaced(c.Text) {
		r.at(c.Pos(), "a directive has no space behind the slashes; as it stands it has no effect")
		return
	}
	for _, l := range lookalikes(c.Text) {
		r.at(c.Pos(), "this looks like %s, and as it is written it has no effect: %s", l.meant, show(l.line))
	}
}

func (m *marks) typeSpec(f *ast.File, spec *ast.TypeSpec, doc *ast.CommentGroup, r *reporter) {
	marked := false
	for _, p := range read(doc, r) {
		switch p.directive.(type) {
		case toolsDirective:
			if marked {
				r.at(p.pos, "//fiducial:tools stands twice on type %s", spec.Name.Name)
			}
			marked = true
		case toolDirective, argDirective:
			r.at(p.pos, "this directive belongs on a method, and %s is a type", spec.Name.Name)
		}
	}
	if marked {
		m.types = append(m.types, markedType{spec, f})
	}
}

func (m *marks) function(f *ast.File, decl *ast.FuncDecl, r *reporter) {
	method := markedMethod{decl: decl, file: f}
	marked := false
	for _, p := range read(decl.Doc, r) {
		switch d := p.directive.(type) {
		case toolsDirective:
			r.at(p.pos, "//fiducial:tools belongs on a type, and %s is a function", decl.Name.Name)
		case toolDirective:
			if marked {
				r.at(p.pos, "//fiducial:tool stands twice on %s", decl.Name.Name)
				continue
			}
			marked, method.tool = true, d
		case argDirective:
			method.args = append(method.args, placed[argDirective]{p.pos, d})
		}
	}
	switch {
	case marked && decl.Recv == nil:
		r.at(decl.Name.Pos(), "%s has no receiver: a tool is a method of a type marked //fiducial:tools; make a tool of a function with tool.New", decl.Name.Name)
	case marked:
		m.methods = append(m.methods, method)
	default:
		for _, a := range method.args {
			r.at(a.pos, "//fiducial:arg without //fiducial:tool on %s", decl.Name.Name)
		}
	}
}

// receiver is the name of the type that a method belongs to, which its source may
// call by an alias.
func (u *unit) receiver(decl *ast.FuncDecl) string {
	if fn, ok := u.info.Defs[decl.Name].(*types.Func); ok && fn.Signature().Recv() != nil {
		t := types.Unalias(fn.Signature().Recv().Type())
		if p, ok := t.(*types.Pointer); ok {
			t = types.Unalias(p.Elem())
		}
		if named, ok := t.(*types.Named); ok && named.Obj().Pkg() == u.pkg {
			return named.Obj().Name()
		}
	}
	return receiverInSource(decl)
}

// hasPointerReceiver reports whether a method belongs to a pointer, which its
// source may call by an alias.
func (u *unit) hasPointerReceiver(decl *ast.FuncDecl) bool {
	fn, ok := u.info.Defs[decl.Name].(*types.Func)
	if !ok || fn.Signature().Recv() == nil {
		return false // the compiler's error is reported
	}
	_, isPointer := types.Unalias(fn.Signature().Recv().Type()).(*types.Pointer)
	return isPointer
}

func receiverInSource(decl *ast.FuncDecl) string {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return ""
	}
	t := decl.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
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

// reportTypeErrors reports the compiler's errors in imports and in what is
// marked, and what keeps imported packages from being read, which may be why. Others
// may come from code that is not generated yet.
func reportTypeErrors(u *unit, m marks, r *reporter) {
	reported := false
	for _, e := range u.errors {
		switch {
		case e.Soft:
		case isImportError(e), m.covers(e.Pos):
			r.at(e.Pos, "%s", cmp.Or(u.missing[importedBy(e)], firstLine(e.Msg)))
			reported = true
		}
	}
	if reported {
		r.found = append(r.found, u.broken...)
	}
}

const importError = "could not import "

func isImportError(e types.Error) bool { return strings.HasPrefix(e.Msg, importError) }

// importedBy is the import path that such an error is about.
func importedBy(e types.Error) string {
	path, _, _ := strings.Cut(strings.TrimPrefix(e.Msg, importError), " (")
	return path
}

func (m marks) covers(pos token.Pos) bool {
	return slices.ContainsFunc(m.types, func(t markedType) bool { return t.spec.Pos() <= pos && pos < t.spec.End() }) ||
		slices.ContainsFunc(m.methods, func(f markedMethod) bool { return f.decl.Pos() <= pos && pos < f.decl.End() })
}

// namedType finds a type of the package.
func (u *unit) namedType(name string) *types.TypeName {
	t, ok := u.pkg.Scope().Lookup(name).(*types.TypeName)
	if !ok {
		return nil
	}
	return t
}
