// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"archive/zip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/fiducial-dev/fiducial/internal/tools/publish"
)

// workspace is a tree of four modules as this repository has them.
const workspace = `
-- LICENSE --
ours
-- go.mod --
module example.com/a

go 1.26
-- a.go --
package a
-- a_test.go --
package a
-- internal/acceptance/go.mod --
module example.com/a/internal/acceptance

go 1.26

require example.com/a/kicad v0.0.0

replace example.com/a/kicad => ../../kicad
-- kicad/go.mod --
module example.com/a/kicad

go 1.26.0

require (
	example.com/a v0.0.0
	example.com/a/sse v0.0.0 // indirect
)

replace (
	example.com/a => ..
	example.com/a/sse => ../sse
)
-- kicad/k.go --
package kicad
-- sse/go.mod --
module example.com/a/sse

go 1.26
-- sse/s.go --
package sse
-- toolgen/go.mod --
module example.com/a/toolgen

go 1.26
-- toolgen/t.go --
package toolgen
`

func tree(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(text)).Files {
		write(t, filepath.Join(dir, f.Name), string(f.Data))
	}
	return dir
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestOrder: the companion first, the root next, siblings before who needs them
// (E-268); what is internal is not published (E-267).
func TestOrder(t *testing.T) {
	t.Parallel()
	all, err := publish.Modules(tree(t, workspace))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		if m.Published() {
			got = append(got, m.Tag("v1.2.3"))
		}
	}
	want := []string{"toolgen/v1.2.3", "v1.2.3", "sse/v1.2.3", "kicad/v1.2.3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestModulesThatRequireEachOther(t *testing.T) {
	t.Parallel()
	dir := tree(t, workspace)
	write(t, filepath.Join(dir, "sse/go.mod"), "module example.com/a/sse\n\ngo 1.26\n\nrequire example.com/a/kicad v0.0.0\n")
	if _, err := publish.Modules(dir); err == nil || !strings.Contains(err.Error(), "require each other") {
		t.Errorf("got %v, want an error that says who requires whom", err)
	}
}

// TestModulesOfOnePath: two go.mod files that claim one path are refused by name.
func TestModulesOfOnePath(t *testing.T) {
	t.Parallel()
	dir := tree(t, workspace)
	write(t, filepath.Join(dir, "sse2/go.mod"), "module example.com/a/sse\n\ngo 1.26\n")
	if _, err := publish.Modules(dir); err == nil || !strings.Contains(err.Error(), "sse/go.mod and sse2/go.mod both say that they are module example.com/a/sse") {
		t.Errorf("got %v, want an error that names both", err)
	}
}

// TestNamesThatNoZipHolds: the message says what to do, and names files of the
// repository.
func TestNamesThatNoZipHolds(t *testing.T) {
	t.Parallel()
	dir := tree(t, workspace)
	write(t, filepath.Join(dir, "sse/Notes.go"), "package sse\n")
	write(t, filepath.Join(dir, "sse/notes.go"), "package sse\n")
	if entries, err := os.ReadDir(filepath.Join(dir, "sse")); err != nil || len(entries) != 4 {
		t.Skip("this file system folds case")
	}
	_, err := publish.Prepare(dir, t.TempDir(), "v1.2.3")
	if err == nil || !strings.Contains(err.Error(), "module example.com/a/sse: ") || !strings.Contains(err.Error(), "give each a name") ||
		!strings.Contains(err.Error(), "\n  sse/notes.go: case-insensitive file name collision") || strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want the files, what to do, and no path of this machine", err)
	}
}

func TestReleaseMod(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ add, want, err string }{
		"ours only": {want: `module example.com/a/kicad

go 1.26.0

require (
	example.com/a v1.2.3
	example.com/a/sse v1.2.3 // indirect
)
`},
		"somebody else's": {add: "replace example.com/b => ../b\n", err: "replaces example.com/b"},
		"an exclusion":    {add: "exclude example.com/b v1.0.0\n", err: "exclude"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, workspace)
			file := filepath.Join(dir, "kicad/go.mod")
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, file, string(text)+c.add)
			all, err := publish.Modules(dir)
			if err != nil {
				t.Fatal(err)
			}
			m := all[slices.IndexFunc(all, func(m publish.Module) bool { return m.Dir == "kicad" })]
			got, err := m.ReleaseMod("v1.2.3")
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("go.mod (-want +got):\n%s", diff)
			}
			if said := fmt.Sprint(err); (c.err == "") != (err == nil) || !strings.Contains(said, c.err) {
				t.Errorf("got error %v, want %q", err, c.err)
			}
		})
	}
}

// prepare publishes a tree and returns the zips by module folder.
func prepare(t *testing.T, dir string) (zips map[string]publish.Zip, proxy string) {
	t.Helper()
	proxy = t.TempDir()
	list, err := publish.Prepare(dir, proxy, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	zips = map[string]publish.Zip{}
	for _, z := range list {
		zips[z.Module.Dir] = z
	}
	return zips, proxy
}

// TestProxyServesTheGoCommand: the go command takes the modules from the folder,
// and the sums in the released go.sum are those that it computes.
func TestProxyServesTheGoCommand(t *testing.T) {
	t.Parallel()
	dir := tree(t, workspace)
	zips, proxy := prepare(t, dir)
	r, err := zip.OpenReader(zips["kicad"].File)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var names []string
	for _, f := range r.File {
		names = append(names, strings.TrimPrefix(f.Name, "example.com/a/kicad@v1.2.3/"))
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"LICENSE", "go.mod", "go.sum", "k.go"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}} {{.GoMod}}", "all")
	cmd.Dir = filepath.Join(dir, "kicad")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOPROXY=file://"+proxy, "GONOSUMDB=*", "GOFLAGS=-mod=readonly -modcacherw", "GOMODCACHE="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "v1.2.3 ") != 2 {
		t.Errorf("go list: %v\n%s", err, out)
	}
}

// TestConsumerFails holds that a consumer's lines are held; the consumers themselves
// are run by make publish-check (E-265).
func TestConsumerFails(t *testing.T) {
	t.Parallel()
	_, proxy := prepare(t, tree(t, workspace))
	cache := t.TempDir()
	env := append(os.Environ(), "GOWORK=off", "GOPROXY=file://"+proxy, "GONOSUMDB=*", "GOFLAGS=-modcacherw", "GOMODCACHE="+cache)
	for name, c := range map[string]struct{ text, want string }{
		"all well":       {"require . sse\nrun go run .\nwant ok v1.2.3\n", ""},
		"wants more":     {"require . sse\nrun go run .\nwant no\n", `got "ok v1.2.3\n", want "no" in it`},
		"fails":          {"require . sse\nrun go run ./none\n", "go run ./none"},
		"one too many":   {"require .\nrun go get example.com/a/sse@VERSION\n", "imports packages of example.com/a/sse"},
		"not published":  {"require . internal/acceptance\n", "internal/acceptance"},
		"an unknown one": {"require . sse\nrum go run .\n", "unknown line"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := c.text + "-- main.go --\npackage main\n\nimport (\n_ \"example.com/a\"\n_ \"example.com/a/sse\"\n)\n\nfunc main() { println2() }\n" +
				"-- p.go --\npackage main\n\nimport \"fmt\"\n\nfunc println2() { fmt.Println(\"ok v1.2.3\") }\n"
			site := publish.Site{Dir: t.TempDir(), Env: env, Root: "example.com/a", Version: "v1.2.3"}
			err := publish.ParseConsumer("down", []byte(text)).Try(t.Context(), site)
			if said := fmt.Sprint(err); (c.want == "") != (err == nil) || !strings.Contains(said, c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// repository makes a git repository of a tree.
func repository(t *testing.T, text string) string {
	t.Helper()
	dir := tree(t, text)
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "first")
	return dir
}

func gitEnv() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, gitEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
