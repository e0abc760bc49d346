// SPDX-License-Identifier: Apache-2.0

package toolgen_test

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/fiducial-dev/fiducial/toolgen"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	goldenSuffix   = ".golden" // of what the generator should write
	mistakesGolden = "mistakes" + goldenSuffix
)

// TestGolden generates for each archive of testdata/golden, compares what comes
// out with the archive (E-90 to E-97), then lets the compiler, go vet and the tests of the
// archives judge all of it in one module that requires nothing but ours.
func TestGolden(t *testing.T) {
	archives, err := filepath.Glob("testdata/golden/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	module := newModule(t, "example.com/golden")
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			golden(t, module, name)
		})
	}
	module.run(t, "go", "vet", "./...")
	module.run(t, "go", "vet", "-tags=other", "./...")
	module.run(t, "go", "test", "./...")
}

func golden(t *testing.T, module folder, name string) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(filepath.Join(string(module), strings.TrimSuffix(filepath.Base(name), ".txtar")))
	var inputs, want []txtar.File
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, goldenSuffix) {
			want = append(want, f)
			continue
		}
		inputs = append(inputs, f)
		dir.write(t, f.Name, f.Data)
	}
	got := generateGolden(t, dir)
	if *update {
		archive.Files = append(inputs, got...)
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(texts(want), texts(got)); diff != "" {
		t.Errorf("generated (-want +got), go test -update rewrites:\n%s", diff)
	}
}

// generateGolden generates in dir and returns the outcome under golden names. A
// folder with mistakes is taken away, since it need not compile.
func generateGolden(t *testing.T, dir folder) []txtar.File {
	t.Helper()
	files, err := toolgen.Generate(t.Context(), toolgen.Config{Dir: string(dir), Patterns: []string{"./..."}, Env: alone()})
	if mistakes, ok := errors.AsType[*toolgen.Error](err); ok {
		var text strings.Builder
		for _, d := range mistakes.Diagnostics {
			if rel, err := filepath.Rel(string(dir), d.Pos.Filename); err == nil && filepath.IsLocal(rel) {
				d.Pos.Filename = filepath.ToSlash(rel)
			}
			text.WriteString(d.String() + "\n")
		}
		if err := os.RemoveAll(string(dir)); err != nil {
			t.Fatal(err)
		}
		return []txtar.File{{Name: mistakesGolden, Data: []byte(text.String())}}
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := toolgen.Write(files); err != nil {
		t.Fatal(err)
	}
	var got []txtar.File
	for _, f := range files {
		rel, err := filepath.Rel(string(dir), f.Path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, txtar.File{Name: filepath.ToSlash(rel) + goldenSuffix, Data: f.Data})
	}
	return got
}

func texts(files []txtar.File) map[string]string {
	m := map[string]string{}
	for _, f := range files {
		m[f.Name] = string(f.Data)
	}
	return m
}

// A folder is where a test keeps a module or a package.
type folder string

// newModule makes a module with a single requirement: ours, from this checkout.
func newModule(t *testing.T, path string) folder {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Skip("the module beside this one is not here:", err)
	}
	dir := folder(t.TempDir())
	dir.write(t, "go.mod", []byte("module "+path+"\n\ngo 1.26.0\n\n"+
		"require github.com/fiducial-dev/fiducial v0.0.0\n\n"+
		"replace github.com/fiducial-dev/fiducial => "+filepath.ToSlash(root)+"\n"))
	dir.write(t, "go.sum", sums)
	return dir
}

func (d folder) write(t *testing.T, name string, data []byte) {
	t.Helper()
	path := filepath.Join(string(d), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs a command that must succeed and returns what it says.
func (d folder) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := d.try(t, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func (d folder) try(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = string(d), alone()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// alone is the environment of a module that no go.work knows.
func alone() []string {
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -buildvcs=false")
}
