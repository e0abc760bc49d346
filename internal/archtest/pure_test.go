// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// impure are imports that let a package reach the world, wait, draw by chance
// or share memory. Where the pure block allows context, it allows its type.
var impure = []string{
	"context", "crypto/rand", "io/fs", "io/ioutil", "log", "log/slog", "hash/maphash", "math/rand", "math/rand/v2", "net",
	"net/http", "os", "os/exec", "os/signal", "path/filepath", "plugin", "runtime", "sync", "sync/atomic", "syscall",
	"testing", "unsafe",
}

// clock are the names of package time that read the clock or wait on it.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

// TestPure holds the pure block. A line is a package; after "with" come imports
// that it may have all the same, each of which it must need.
func TestPure(t *testing.T) {
	pkgs := packages(t)
	pure := map[string][]string{}
	for _, line := range block(t, "pure") {
		name, with, _ := strings.Cut(line, " with ")
		if pkgs[name] == nil {
			t.Fatalf("the pure block lists %q, which is no package", name)
		}
		pure[name] = strings.Fields(with)
	}
	for name, with := range pure {
		for _, im := range with {
			if !pkgs[name].imports[im] || !slices.Contains(impure, im) {
				t.Errorf("the pure block lets %s have %s, for which it has no need", name, im)
			}
		}
		for im := range pkgs[name].imports {
			_, isPure := pure[im]
			switch {
			case slices.Contains(with, im):
			case slices.Contains(impure, im):
				t.Errorf("%s is pure, and imports %s", name, im)
			case pkgs[im] != nil && !isPure:
				t.Errorf("%s is pure, and imports %s, which is not", name, im)
			case pkgs[im] == nil && strings.Contains(im, "."):
				t.Errorf("%s is pure, and imports a third party, %s", name, im)
			}
		}
		for _, file := range pkgs[name].files {
			for _, wrong := range impurities(t, file) {
				t.Errorf("%s is pure: %s", name, wrong)
			}
		}
	}
}

// impurities lists what a file does that a pure package may not.
func impurities(t *testing.T, file string) []string {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		what := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			what = "starts a goroutine"
		case *ast.SelectStmt, *ast.ChanType:
			what = "has a channel"
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			if x.Name == "time" && slices.Contains(clock, n.Sel.Name) {
				what = "reads the clock, time." + n.Sel.Name
			}
			if x.Name == "context" && n.Sel.Name != "Context" {
				what = "makes or reads contexts, context." + n.Sel.Name
			}
		}
		if what != "" {
			found = append(found, fset.Position(n.Pos()).String()+" "+what)
		}
		return true
	})
	return found
}
