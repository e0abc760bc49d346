// SPDX-License-Identifier: Apache-2.0

package doccheck

import (
	"context"
	"go/ast"
	"go/doc/comment"
	"go/token"
	"go/types"
	"maps"
	pathpkg "path"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// links finds those that lead nowhere.
func (c *checker) links(doc *ast.CommentGroup) {
	if doc == nil {
		return
	}
	// A parser that believes every name, so that what is meant as a link is one.
	p := comment.Parser{
		LookupPackage: func(name string) (string, bool) { return name, true },
		LookupSym:     func(string, string) bool { return true },
	}
	broken := map[string]bool{}
	each(p.Parse(doc.Text()).Content, func(l *comment.DocLink) {
		if text := linkText(l); !c.resolves(l) {
			broken[text] = true
		}
	})
	for _, text := range slices.Sorted(maps.Keys(broken)) {
		c.say(place(doc, text), "the link [%s] leads to no exported name that there is", text)
	}
}

// place is where a comment has a link, its beginning when that is written otherwise.
func place(doc *ast.CommentGroup, link string) token.Pos {
	for _, c := range doc.List {
		for _, text := range []string{"[" + link + "]", "[*" + link + "]"} {
			if i := strings.Index(c.Text, text); i >= 0 {
				return c.Slash + token.Pos(i)
			}
		}
	}
	return doc.Pos()
}

func linkText(l *comment.DocLink) string {
	parts := slices.DeleteFunc([]string{l.ImportPath, l.Recv, l.Name}, func(s string) bool { return s == "" })
	return strings.Join(parts, ".")
}

// each calls do with the links in blocks of a comment.
func each(blocks []comment.Block, do func(*comment.DocLink)) {
	var text func(ts []comment.Text)
	text = func(ts []comment.Text) {
		for _, t := range ts {
			switch t := t.(type) {
			case *comment.DocLink:
				do(t)
			case *comment.Link:
				text(t.Text)
			}
		}
	}
	for _, b := range blocks {
		switch b := b.(type) {
		case *comment.Heading:
			text(b.Text)
		case *comment.Paragraph:
			text(b.Text)
		case *comment.List:
			for _, item := range b.Items {
				each(item.Content, do)
			}
		}
	}
}

// resolves tells whether a link names something. A package is known by the name
// under which a file of this one imports it, or by its path.
func (c *checker) resolves(l *comment.DocLink) bool {
	pkg := c.pkg.Types
	if l.ImportPath != "" {
		path, ok := c.names[l.ImportPath]
		if !ok {
			path = l.ImportPath
			if std, ok := comment.DefaultLookupPackage(path); ok {
				path = std
			}
		}
		if l.Name == "" && !isPath(path) {
			return true // a word in brackets is a link only when it is a package
		}
		if pkg = c.seen[path]; pkg == nil || !pkg.Complete() { // of what is reached by others alone, some names are missing
			var known bool
			if pkg, known = c.load(path); !known {
				return true
			}
		}
	}
	switch {
	case pkg == nil:
		return false
	case l.Name == "":
		return true
	}
	if l.Recv == "" {
		return exported(pkg.Scope().Lookup(l.Name))
	}
	recv := pkg.Scope().Lookup(l.Recv)
	if !exported(recv) {
		return false
	}
	member, _, _ := types.LookupFieldOrMethod(types.NewPointer(recv.Type()), true, pkg, l.Name)
	if member == nil { // of an interface, which has methods only without the pointer
		member, _, _ = types.LookupFieldOrMethod(recv.Type(), true, pkg, l.Name)
	}
	return exported(member)
}

// isPath tells the path of a package from words such as and/or.
func isPath(path string) bool {
	first, _, more := strings.Cut(path, "/")
	_, std := comment.DefaultLookupPackage(first)
	return more && (std || strings.Contains(first, "."))
}

func exported(o types.Object) bool { return o != nil && o.Exported() }

// folder tells from where a package can be loaded that nothing here imports: one of
// ours from its module, one of the standard library, whose path begins with a word
// without a dot, from dir.
func folder(path, dir string, ours map[string]string) (string, bool) {
	for m := path; m != "."; m = pathpkg.Dir(m) {
		if in, ok := ours[m]; ok {
			return in, true
		}
	}
	first, _, _ := strings.Cut(path, "/")
	return dir, !strings.Contains(first, ".")
}

// loadOne loads a package; it is nil when there is none.
func loadOne(ctx context.Context, dir string, env []string, path string) (*types.Package, error) {
	pkgs, err := packages.Load(&packages.Config{
		Context: ctx, Dir: dir, Env: env, Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedExportFile,
	}, path)
	if err != nil || len(pkgs) != 1 || len(pkgs[0].Errors) > 0 {
		return nil, err
	}
	return pkgs[0].Types, nil
}
