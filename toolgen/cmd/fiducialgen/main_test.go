// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// generate is the directive; written out at the start of a line it would count as
// one of this file, too.
const generate = "//go:" + "generate"

const source = `// Package files is downstream.
package files

import "context"

` + generate + ` fiducialgen

// Files are few.
//
//fiducial:tools
type Files struct{ Prefix string }

// Read returns the text of a file.
//
//fiducial:tool readonly
//fiducial:arg path repo-relative path of the file
func (f *Files) Read(ctx context.Context, path string, lines *int) (string, error) {
	return f.Prefix + path, nil
}
`

const program = `package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fiducial-dev/fiducial/tool"

	"example.com/down/files"
)

func main() {
	f := &files.Files{Prefix: "text of "}
	server, err := tool.NewServer(f.Tools()...)
	if err != nil {
		panic(err)
	}
	for _, input := range []string{` + "`{\"path\":\"a.go\"}`, `{\"pth\":\"a.go\"}`" + `} {
		r := server.Execute(context.Background(), tool.Call{Name: "read", Input: json.RawMessage(input)})
		fmt.Println(r.Status, r.Summary)
	}
}
`

// TestDownstream is a user's day: a new module with a single requirement, ours,
// and the generator beside it; generate, build, run; then a mistake, and a stale
// file.
func TestDownstream(t *testing.T) {
	d := newModule(t)
	d.write(t, "files/files.go", source)
	d.write(t, "main.go", program)

	out, code := d.run(t, "fiducialgen", "-check", "./...")
	if want := "files/files_tools.go: stale; run go generate\n"; out != want || code != 1 {
		t.Errorf("-check before: got %d %q, want 1 %q", code, out, want)
	}
	if d.exists("files/files_tools.go") {
		t.Error("-check wrote a file")
	}
	d.must(t, "go", "generate", "./...")
	d.must(t, "fiducialgen", "-check", "./...")
	if got, want := d.must(t, "go", "run", "."), "success text of a.go\nerror invalid arguments for read: "; !strings.HasPrefix(got, want) {
		t.Errorf("the program says %q, want %q", got, want)
	}

	for dep := range strings.Lines(d.must(t, "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")) {
		if dep = strings.TrimSpace(dep); !regexp.MustCompile(`^(example\.com/down|github\.com/fiducial-dev/fiducial/(tool|llm)$|github\.com/google/jsonschema-go/)`).MatchString(dep) && dep != "" {
			t.Errorf("the program depends on %s", dep)
		}
	}
	mod := d.read(t, "go.mod")
	if direct := regexp.MustCompile(`(?m)^(require |\t)\S+ v\S+$`).FindAllString(mod, -1); len(direct) != 1 {
		t.Errorf("go.mod requires %q directly, want our module alone", direct)
	}
}

// TestMistakeTouchesNothing: with a mistake anywhere, no file of any package is
// written, and the old ones stay as they are.
func TestMistakeTouchesNothing(t *testing.T) {
	d := newModule(t)
	d.write(t, "a/files.go", source)
	d.write(t, "b/files.go", source)
	d.must(t, "fiducialgen", "./a")
	old := d.read(t, "a/files_tools.go")
	d.write(t, "a/files.go", strings.Replace(source, "lines *int", "lines int", 1))
	d.write(t, "b/files.go", strings.Replace(source, "arg path", "arg pth", 1))
	out, code := d.run(t, "fiducialgen", "./...")
	if want := "b/files.go:16:16: Read has no parameter pth; its arguments are: path, lines\n"; out != want || code != 1 {
		t.Errorf("got %d %q, want 1 %q", code, out, want)
	}
	if d.read(t, "a/files_tools.go") != old || d.exists("b/files_tools.go") {
		t.Error("a file was written in spite of the mistake")
	}
	d.write(t, "b/files.go", source)
	d.must(t, "fiducialgen", "./...")
	if d.read(t, "a/files_tools.go") == old || !d.exists("b/files_tools.go") {
		t.Error("a file was not written though there is no mistake")
	}
	d.write(t, "b/files.go", "package files\n")
	if out, code := d.run(t, "fiducialgen", "-check", "./b"); code != 1 {
		t.Errorf("-check with a file that is to go: %d %q, want 1", code, out)
	}
	d.must(t, "fiducialgen", "./b")
	if d.exists("b/files_tools.go") {
		t.Error("the file of a type that is no longer marked is still there")
	}
}

// TestVersionConstant: code of another generation does not compile.
func TestVersionConstant(t *testing.T) {
	d := newModule(t)
	d.write(t, "files.go", source)
	d.must(t, "fiducialgen")
	d.must(t, "go", "build", ".")
	generated := d.read(t, "files_tools.go")
	d.write(t, "files_tools.go", strings.Replace(generated, "GeneratedV1", "GeneratedV99", 1))
	if out, code := d.run(t, "go", "build", "."); code == 0 || !strings.Contains(out, "undefined: tool.GeneratedV99") {
		t.Errorf("got %d %q, want the compiler to refuse GeneratedV99", code, out)
	}
}

// TestGoToolAndGoRun: a module that keeps the generator in its go.mod.
func TestGoToolAndGoRun(t *testing.T) {
	const command = "github.com/fiducial-dev/fiducial/toolgen/cmd/fiducialgen"
	d := newModule(t)
	d.write(t, "files.go", source)
	d.write(t, "go.mod", d.read(t, "go.mod")+
		"\nreplace github.com/fiducial-dev/fiducial/toolgen => "+filepath.ToSlash(root(t))+"/toolgen\n")
	// What go get -tool does, without asking a proxy for versions.
	d.must(t, "go", "mod", "edit", "-tool="+command, "-require=github.com/fiducial-dev/fiducial/toolgen@v0.0.0")
	d.must(t, "go", "list", "-deps", command)
	d.must(t, "go", "tool", "fiducialgen")
	byTool := d.read(t, "files_tools.go")
	if err := os.Remove(filepath.Join(string(d), "files_tools.go")); err != nil {
		t.Fatal(err)
	}
	d.must(t, "go", "run", command)
	if d.read(t, "files_tools.go") != byTool {
		t.Error("go tool and go run write different files")
	}
	d.must(t, "go", "tool", "fiducialgen", "-check")
}

// TestForeignModule: packages of other modules are read, and never written to;
// those that are up to date are no mistake.
func TestForeignModule(t *testing.T) {
	d := newModule(t)
	d.write(t, "other/files.go", source)
	d.write(t, "other/go.mod", strings.Replace(d.read(t, "go.mod"), "module example.com/down", "module example.com/other", 1))
	d.write(t, "go.mod", d.read(t, "go.mod")+"\nrequire example.com/other v0.0.0\n\nreplace example.com/other => ./other\n")
	out, code := d.run(t, "fiducialgen", "example.com/other")
	if want := "other/files.go:11:6: files_tools.go would be written, and it belongs to module example.com/other: generate there\n"; out != want || code != 1 {
		t.Errorf("got %d %q, want 1 %q", code, out, want)
	}
	if d.exists("other/files_tools.go") {
		t.Error("a file was written")
	}
	inOther := folder(filepath.Join(string(d), "other"))
	cmd := exec.CommandContext(t.Context(), filepath.Join(d.bin(), "fiducialgen"))
	cmd.Dir, cmd.Env = string(inOther), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false")
	d.write(t, "other/go.sum", d.read(t, "go.sum"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d.must(t, "fiducialgen", "example.com/other")
}

func TestUsage(t *testing.T) {
	d := newModule(t)
	if out, code := d.run(t, "fiducialgen", "-what"); code != 2 || !strings.Contains(out, "usage: fiducialgen [-check] [packages]") {
		t.Errorf("got %d %q, want 2 and the usage", code, out)
	}
	if out, code := d.run(t, "fiducialgen", "./absent"); code != 1 || !strings.Contains(out, "absent") {
		t.Errorf("a folder that is not there: %d %q", code, out)
	}
	d.write(t, "a.go", "package a\n")
	if out, code := d.run(t, "fiducialgen"); code != 0 || out != "fiducialgen: no type is marked //fiducial:tools\n" {
		t.Errorf("nothing marked: %d %q", code, out)
	}
	t.Setenv("GOPROXY", "off")
	d.write(t, "a.go", "package a\n\n//fiducial:tools\ntype T struct{}\n\n//fiducial:tool\nfunc (T) M() {}\n")
	d.write(t, "go.mod", "module example.com/down\n\ngo 1.26.0\n")
	out, code := d.run(t, "fiducialgen")
	if code != 1 || strings.Count(out, "\n") != 1 || !strings.Contains(out, "require github.com/fiducial-dev/fiducial in go.mod") || d.exists("t_tools.go") {
		t.Errorf("without our module: %d %q, want 1, one line that says so, and no file", code, out)
	}
}

// TestReadme: the programs of the README do what it says, which is the same.
func TestReadme(t *testing.T) {
	d := newModule(t)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?s)```go\n// (\\S+)\n(.*?)```").FindAllSubmatch(readme, -1)
	if len(programs) != 2 {
		t.Fatalf("the README has %d programs, want 2", len(programs))
	}
	for _, p := range programs {
		d.write(t, string(p[1]), string(p[2]))
	}
	d.must(t, "fiducialgen", "./...")
	d.must(t, "go", "vet", "./...")
	for _, name := range []string{"./typed", "./marked"} {
		if got, want := d.must(t, "go", "run", name), "success module example.com/down\n\n"; got != want {
			t.Errorf("%s says %q, want %q", name, got, want)
		}
	}
}

type folder string

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// newModule makes a module that requires ours, from this checkout, and nothing
// else, and builds the generator into a folder of its own.
func newModule(t *testing.T) folder {
	t.Helper()
	var sums []byte
	for _, name := range []string{"go.sum", "toolgen/go.sum"} {
		data, err := os.ReadFile(filepath.Join(root(t), name))
		if err != nil {
			t.Skip("the module beside this one is not here:", err)
		}
		sums = append(sums, data...)
	}
	d := folder(t.TempDir())
	d.write(t, "go.sum", string(sums))
	d.write(t, "go.mod", "module example.com/down\n\ngo 1.26.0\n\n"+
		"require github.com/fiducial-dev/fiducial v0.0.0\n\n"+
		"replace github.com/fiducial-dev/fiducial => "+filepath.ToSlash(root(t))+"\n")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", d.bin(), ".")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if err := os.MkdirAll(d.bin(), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return d
}

func (d folder) bin() string { return string(d) + "-bin" + string(filepath.Separator) }

func (d folder) run(t *testing.T, name string, args ...string) (string, int) {
	t.Helper()
	if name == "fiducialgen" {
		name = filepath.Join(d.bin(), name)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = string(d)
	cmd.Env = slices.Concat(os.Environ(), []string{
		"GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false",
		"PATH=" + d.bin() + string(filepath.ListSeparator) + os.Getenv("PATH"),
	})
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(string(out)), cmd.ProcessState.ExitCode() // the names in it, on Windows
}

func (d folder) must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, code := d.run(t, name, args...)
	if code != 0 {
		t.Fatalf("%s %s: exit status %d\n%s", name, strings.Join(args, " "), code, out)
	}
	return out
}

func (d folder) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(string(d), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (d folder) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(string(d), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (d folder) exists(name string) bool {
	_, err := os.Stat(filepath.Join(string(d), filepath.FromSlash(name)))
	return err == nil
}
