// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
)

// recorderDir is the folder of package llmtest in the root module, the one place
// that may name its Recorder.
const recorderDir = "llm/llmtest"

// recorders are the lines on which Go source puts llmtest's Recorder to use,
// however it imports the package. Source that is not Go has none.
//
// Such a file may not be published, a test neither (E-267): whoever unpacks the
// module and has a key set could run it unaware, and what it writes is made of their
// account and would be published next. The Recorder itself is part of the test kit
// that users are meant to have: it reads no key and no environment, sends only what
// its caller's client sends, keeps no header of a request, and masks the secrets
// that it is told. What it recorded is test data like any other: within bounds, and
// without anything that looks like a key.
func recorders(text []byte) []int {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	as := importedAs(f, "/"+recorderDir)
	var lines []int
	found := func(id *ast.Ident) {
		if id.Name == "NewRecorder" || id.Name == "Recorder" {
			lines = append(lines, fset.Position(id.Pos()).Line)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == as {
				found(n.Sel)
			}
		case *ast.Ident:
			if as == "." {
				found(n)
			}
		}
		return true
	})
	return lines
}

// importedAs is the name under which a file imports the package whose path has
// this end, empty when it does not.
func importedAs(f *ast.File, end string) string {
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		switch {
		case err != nil || !strings.HasSuffix(imported, end):
		case spec.Name != nil:
			return spec.Name.Name
		default:
			return path.Base(end)
		}
	}
	return ""
}
