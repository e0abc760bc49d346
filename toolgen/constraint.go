// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"go/ast"
	"go/build"
	"go/build/constraint"
	"go/token"
	"io"
	"path/filepath"
	"strings"
)

// constraintOf is the build constraint of a file, from its name and its
// //go:build line, or empty. Generated code is under the same.
func constraintOf(fset *token.FileSet, f *ast.File) string {
	expr := strings.Join(nameTags(fset.File(f.FileStart).Name()), " && ")
	for _, group := range f.Comments {
		if group.Pos() > f.Package {
			break
		}
		for _, c := range group.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			x, err := constraint.Parse(c.Text)
			switch {
			case err != nil: // the go command refused it before
			case expr == "":
				expr = x.String()
			default:
				expr += " && (" + x.String() + ")"
			}
		}
	}
	return expr
}

// nameTags are the operating system and architecture that a file's name asks for:
// files_linux_amd64.go gives linux and amd64.
func nameTags(name string) []string {
	parts := strings.Split(strings.TrimSuffix(filepath.Base(name), ".go"), "_")[1:]
	var tags []string
	for len(parts) > 0 && len(tags) < 2 && isPlatform(parts[len(parts)-1]) {
		tags = append([]string{parts[len(parts)-1]}, tags...)
		parts = parts[:len(parts)-1]
	}
	return tags
}

// isPlatform asks go/build, which keeps the lists: for no platform a name with
// this end does not match.
func isPlatform(tag string) bool {
	ctx := build.Context{GOOS: "none", GOARCH: "none", Compiler: "gc", OpenFile: func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("package x\n")), nil
	}}
	match, err := ctx.MatchFile("", "x_"+tag+".go")
	return err == nil && !match && tag != "test"
}
