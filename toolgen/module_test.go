// SPDX-License-Identifier: Apache-2.0

package toolgen_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/toolgen"
)

const counter = `package counter

// Counter counts.
//
//fiducial:tools
type Counter struct{}

// Up counts up.
//
//fiducial:tool
func (Counter) Up(n int) int { return n + 1 }
`

// TestNoModule: generated code without the module that it imports would be code
// that does not compile.
func TestNoModule(t *testing.T) {
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "GOPROXY=off")
	dir := folder(t.TempDir())
	dir.write(t, "go.mod", []byte("module example.com/alone\n\ngo 1.26.0\n"))
	dir.write(t, "counter.go", []byte(counter))
	config := toolgen.Config{Dir: string(dir), Env: env}
	files, err := toolgen.Generate(t.Context(), config)
	missing, ok := errors.AsType[*toolgen.ModuleError](err)
	if !ok || len(files) != 0 || missing.Module != "example.com/alone" {
		t.Fatalf("got %v, %v, want no files and a ModuleError about example.com/alone", files, err)
	}
	if !strings.Contains(err.Error(), "require github.com/fiducial-dev/fiducial in go.mod") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %q, want one line that says what to require", err)
	}

	dir.write(t, "counter.go", []byte(strings.ReplaceAll(counter, "//fiducial:", "// ")))
	if files, err := toolgen.Generate(t.Context(), config); err != nil || len(files) != 0 {
		t.Errorf("nothing marked: %v, %v, want no files and no error", files, err)
	}

	with := newModule(t, "example.com/with")
	with.write(t, "counter.go", []byte(counter))
	files, err = toolgen.Generate(t.Context(), toolgen.Config{Dir: string(with), Env: alone()})
	if err != nil || len(files) != 1 || filepath.Base(files[0].Path) != "counter_tools.go" {
		t.Errorf("with the module: %v, %v, want counter_tools.go", files, err)
	}
}

// TestFieldElsewhere: a mistake in a struct of another package is told at what of
// this package leads there: the field, or else the parameter.
func TestFieldElsewhere(t *testing.T) {
	dir := newModule(t, "example.com/two")
	dir.write(t, "other/other.go", []byte("package other\n\ntype Inner struct{ F func() }\n"))
	dir.write(t, "counter.go", []byte(`package counter

import "example.com/two/other"

//fiducial:tools
type Counter struct{}

type Own struct {
	In other.Inner
}

//fiducial:tool
func (Counter) Up(a Own, b other.Inner) {}
`))
	_, err := toolgen.Generate(t.Context(), toolgen.Config{Dir: string(dir), Env: alone()})
	mistakes, ok := errors.AsType[*toolgen.Error](err)
	if !ok || len(mistakes.Diagnostics) != 2 {
		t.Fatalf("got %v, want two mistakes", err)
	}
	for i, want := range []int{9, 13} {
		if d := mistakes.Diagnostics[i]; d.Pos.Line != want || filepath.Base(d.Pos.Filename) != "counter.go" {
			t.Errorf("got %v, want counter.go:%d", d, want)
		}
	}
}

// TestBrokenElsewhere: what is unknown because an imported package cannot be parsed is
// told with the reason; a package beside it is none of ours.
func TestBrokenElsewhere(t *testing.T) {
	dir := newModule(t, "example.com/broken")
	dir.write(t, "other/other.go", []byte("package other\n\nfunc broken( {\n\ntype Inner struct{}\n"))
	dir.write(t, "beside/beside.go", []byte("package beside\n\nfunc ( {\n"))
	dir.write(t, "counter.go", []byte(counter))
	config := toolgen.Config{Dir: string(dir), Env: alone()}
	if files, err := toolgen.Generate(t.Context(), config); err != nil || len(files) != 1 {
		t.Errorf("got %v, %v, want one file", files, err)
	}
	dir.write(t, "counter.go", []byte(strings.Replace(strings.Replace(counter, "n int", "n int, in other.Outer", 1),
		"package counter\n", "package counter\n\nimport \"example.com/broken/other\"\n", 1)))
	_, err := toolgen.Generate(t.Context(), config)
	mistakes, ok := errors.AsType[*toolgen.Error](err)
	if !ok || len(mistakes.Diagnostics) != 2 {
		t.Fatalf("got %v, want two mistakes", err)
	}
	for i, want := range []string{"counter.go:13:", "other.go:3:"} {
		if d := mistakes.Diagnostics[i]; !strings.Contains(filepath.Base(d.Pos.Filename)+strings.TrimPrefix(d.String(), d.Pos.Filename), want) {
			t.Errorf("got %v, want it at %s", d, want)
		}
	}
}

// TestLineEnds: source with line ends of CR and LF gives what it gives with LF, and a
// generated file that a checkout gave such ends is not stale.
func TestLineEnds(t *testing.T) {
	source := strings.Replace(counter, "// Up counts up.", "// Up counts up\n// by one.", 1) + "\n// Opts are options.\ntype Opts struct {\n\t// Loud is loud.\n\tLoud bool\n}\n"
	source = strings.Replace(source, "//fiducial:tool\nfunc (Counter) Up(n int)", "//fiducial:tool readonly\n//fiducial:arg n from where\nfunc (Counter) Up(n int, o Opts)", 1)
	dir := newModule(t, "example.com/ends")
	config := toolgen.Config{Dir: string(dir), Env: alone()}
	var want string
	for _, text := range []string{source, strings.ReplaceAll(source, "\n", "\r\n")} {
		dir.write(t, "counter.go", []byte(text))
		files, err := toolgen.Generate(t.Context(), config)
		if err != nil || len(files) != 1 {
			t.Fatalf("got %v, %v, want one file", files, err)
		}
		if got := string(files[0].Data); want == "" {
			want = got
		} else if got != want {
			t.Errorf("with CR and LF:\n%s\nwith LF:\n%s", got, want)
		}
		dir.write(t, "counter_tools.go", []byte(strings.ReplaceAll(want, "\n", "\r\n")))
		if changed, err := toolgen.Write(files); err != nil || len(changed) != 0 {
			t.Errorf("%v, %v: a file with other line ends was written again", changed, err)
		}
	}
	if !strings.Contains(want, `"from where"`) || !strings.Contains(want, "by one.") || !strings.Contains(want, "Loud is loud.") {
		t.Errorf("descriptions are lost:\n%s", want)
	}
}

// TestVendored: the module is required, and the vendor folder, which the go command reads
// instead, has not the package yet, since nothing imports it.
func TestVendored(t *testing.T) {
	dir := newModule(t, "example.com/vendored")
	dir.write(t, "counter.go", []byte(counter))
	dir.run(t, "go", "mod", "vendor")
	config := toolgen.Config{Dir: string(dir), Env: append(os.Environ(), "GOWORK=off", "GOFLAGS=")}
	_, err := toolgen.Generate(t.Context(), config)
	missing, ok := errors.AsType[*toolgen.ModuleError](err)
	if !ok || !missing.Vendored || missing.Module != "example.com/vendored" {
		t.Fatalf("got %v, want a ModuleError about the vendor folder", err)
	}
	if text := err.Error(); !strings.Contains(text, "GOFLAGS=-mod=mod") || strings.Contains(text, "require ") || strings.Contains(text, "\n") {
		t.Errorf("got %q, want one line that names GOFLAGS=-mod=mod and asks for nothing that is there", text)
	}

	config.Env = alone() // the advice, taken
	files, err := toolgen.Generate(t.Context(), config)
	if err != nil || len(files) != 1 {
		t.Fatalf("got %v, %v, want one file", files, err)
	}
	if _, err := toolgen.Write(files); err != nil {
		t.Fatal(err)
	}
	dir.run(t, "go", "mod", "tidy")
	dir.run(t, "go", "mod", "vendor")
	config.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	files, err = toolgen.Generate(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if stale, err := toolgen.Stale(files); err != nil || len(stale) != 0 {
		t.Errorf("afterwards: %q, %v, want nothing stale", stale, err)
	}
}

// TestMissingImport: an import that no module provides is told once, with what the go
// command advises, and not again where its types are used; what is unknown for another
// reason is.
func TestMissingImport(t *testing.T) {
	dir := newModule(t, "example.com/missing")
	dir.write(t, "counter.go", []byte(`package counter

import (
	"fmtt"

	"nope.example/x"
)

//fiducial:tools
type Counter struct{}

type Own struct{ Y x.Y }

type Undefined struct{ Gone Gone }

//fiducial:tool
func (Counter) Up(a x.Y, b []fmtt.Z, own Own, u Undefined) {}
`))
	_, err := toolgen.Generate(t.Context(), toolgen.Config{Dir: string(dir), Env: append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOPROXY=off")})
	mistakes, ok := errors.AsType[*toolgen.Error](err)
	if !ok {
		t.Fatalf("got %v, want mistakes", err)
	}
	var got []string
	for _, d := range mistakes.Diagnostics {
		got = append(got, strings.TrimPrefix(d.String(), d.Pos.Filename))
	}
	if len(got) != 3 || !strings.HasPrefix(got[0], ":4:2: package fmtt is not in std") ||
		got[1] != ":6:2: no required module provides package nope.example/x; to add it: go get nope.example/x" ||
		!strings.HasPrefix(got[2], ":14:24: ") {
		t.Errorf("got %q, want the two imports, with the go command's advice, and the field Gone", got)
	}
}

// TestDeadLink: a link that leads nowhere is named, with what to do.
func TestDeadLink(t *testing.T) {
	dir := newModule(t, "example.com/dead")
	dir.write(t, "counter.go", []byte(counter))
	for name, target := range map[string]string{"counter_tools.go": "gone.go", "x.go": "gone too.go", ".#counter.go": "an editor's"} {
		if err := os.Symlink(target, filepath.Join(string(dir), name)); err != nil {
			t.Skip("no symbolic links here:", err)
		}
	}
	_, err := toolgen.Generate(t.Context(), toolgen.Config{Dir: string(dir), Env: alone()})
	mistakes, ok := errors.AsType[*toolgen.Error](err)
	if !ok || len(mistakes.Diagnostics) != 2 {
		t.Fatalf("got %v, want two mistakes", err)
	}
	for i, want := range []struct{ name, target string }{{"counter_tools.go", "gone.go"}, {"x.go", "gone too.go"}} {
		d := mistakes.Diagnostics[i]
		if filepath.Base(d.Pos.Filename) != want.name || !strings.Contains(d.Message, "leads to "+want.target+",") || !strings.Contains(d.Message, "remove the link") {
			t.Errorf("got %v, want that %s leads to %s, and what to do", d, want.name, want.target)
		}
	}
}
