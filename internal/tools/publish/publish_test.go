// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"archive/zip"
	"context"
	"errors"
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

// TestContents plants what may not be published, and holds that nothing else is
// found (E-8, E-267).
func TestContents(t *testing.T) {
	t.Parallel()
	// Put together here, so that this file can stand in a repository that is searched for keys.
	key := "sk-" + "ant-api03-h4Xq" + "Zp0LmT9vRb27cWnKe81"
	for name, c := range map[string]struct {
		file, text string
		want       string
	}{
		"nothing wrong":             {"a/b.go", "package a // sk-placeholder-of-a-key-0000", ""},
		"a placeholder that counts": {"a/b.go", "package a // sk-test-0123456789abcdefghij", ""},
		"a key in code":             {"a/b.go", "package a\n\nconst k = \"" + key + "\"\n", "a/b.go:3: looks like a key of a model provider"},
		"a key in test data":        {"testdata/x.json", `{"k":"` + key + `"}`, "testdata/x.json:1: looks like a key"},
		"a key of Google":           {"testdata/x", "AIza" + "SyA1b2C3d4E5f6G7h8I9j0KlMnOpQrStUvW", "looks like a key of Google"},
		"a private key":             {"testdata/k", "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIEpAIBAAKCAQEA7bq1c2d3e4f5\n", "looks like a private key"},
		"a recorder": {
			"a/record_test.go", "package a\n\nimport \"example.com/a/llm/llmtest\"\n\nvar r = llmtest.NewRecorder(nil, \"\")\n",
			"a/record_test.go:5: records answers",
		},
		"a recorder by another name": {
			"a/record.go", "package a\n\nimport kit \"example.com/a/llm/llmtest\"\n\nvar r kit.Recorder\n",
			"a/record.go:5: records answers",
		},
		"a recorder without a name": {
			"a/record.go", "package a\n\nimport . \"example.com/a/llm/llmtest\"\n\nvar r = NewRecorder(nil, \"\")\n",
			"a/record.go:5: records answers",
		},
		"the recorder's own package":   {"llm/llmtest/x.go", "package llmtest\n\nfunc NewRecorder() {}\n", ""},
		"a recorder of something else": {"a/x.go", "package a\n\nimport \"net/http/httptest\"\n\nvar r = httptest.NewRecorder()\n", ""},
		"its replayer":                 {"a/x.go", "package a\n\nimport \"example.com/a/llm/llmtest\"\n\nvar r = llmtest.NewReplayer\n", ""},
		"a file nobody listed":         {"a/dump.bin", "x", "a/dump.bin is not on the list"},
		"an environment file":          {".env", "A=b", ".env is not on the list"},
		"too much test data":           {"testdata/big", strings.Repeat("x", 4000), "its test data of module example.com/a has 4000 bytes"},
		"a listed file":                {"docs/x.md", "x", ""},
		"a folder beside a list":       {"docs2/x.md", "x", "docs2/x.md is not on the list"},
		"a licence is everyone's":      {"README.md", "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, workspace)
			write(t, filepath.Join(dir, c.file), c.text)
			zips, _ := prepare(t, dir)
			rule := publish.Rule{Dir: ".", Allow: []string{"docs/**"}, MaxZip: 1 << 20, MaxTestdata: 3000}
			wrong, err := publish.Contents(zips["."], []publish.Rule{rule})
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" && len(wrong) > 0 || c.want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], c.want)) {
				t.Errorf("got %q, want one with %q", wrong, c.want)
			}
		})
	}
}

func TestContentsBounds(t *testing.T) {
	t.Parallel()
	zips, _ := prepare(t, tree(t, workspace))
	wrong, err := publish.Contents(zips["."], []publish.Rule{{Dir: ".", MaxZip: 3}})
	if err != nil || len(wrong) != 1 || !strings.Contains(wrong[0], "more than 3") {
		t.Errorf("a zip over its size: got %q, %v", wrong, err)
	}
	wrong, err = publish.Contents(zips["sse"], publish.Rules()[:1])
	if err != nil || len(wrong) != 1 || !strings.Contains(wrong[0], "no rule") {
		t.Errorf("a module without a rule: got %q, %v", wrong, err)
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

// TestExport: what is not committed is not published.
func TestExport(t *testing.T) {
	t.Parallel()
	dir := repository(t, workspace)
	write(t, filepath.Join(dir, "a.go"), "package changed\n")
	write(t, filepath.Join(dir, "new.go"), "package a\n")
	to := t.TempDir()
	if err := publish.Export(t.Context(), dir, "HEAD", to, os.Environ()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "a.go")); err != nil || string(text) != "package a\n" {
		t.Errorf("a.go: got %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(to, "new.go")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("new.go: got %v, want none", err)
	}
	if err := publish.Export(t.Context(), dir, "none", t.TempDir(), os.Environ()); err == nil {
		t.Error("exported a revision that is not there")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := publish.Export(ctx, dir, "HEAD", t.TempDir(), os.Environ()); err == nil {
		t.Error("exported after the context ended")
	}
}
