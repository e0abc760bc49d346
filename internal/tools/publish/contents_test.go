// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/internal/tools/publish"
)

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
		"a key of Google":           {"testdata/x.txt", "AIza" + "SyA1b2C3d4E5f6G7h8I9j0KlMnOpQrStUvW", "looks like a key of Google"},
		"a private key":             {"testdata/k.txt", "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIEpAIBAAKCAQEA7bq1c2d3e4f5\n", "looks like a private key"},
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
		"a file nobody listed":         {"a/dump.bin", "x", "not on the list of what may be published: remove them, move them to a module in internal, or add them to the module's rule in internal/tools/publish/contents.go\n  a/dump.bin"},
		"an environment file":          {".env", "A=b", "\n  .env"},
		"too much test data":           {"testdata/big.txt", strings.Repeat("x", 4000), "\n  the test data of module example.com/a: 4000 bytes, more than 3000"},
		"a listed file":                {"docs/x.md", "x", ""},
		"a folder beside a list":       {"docs2/x.md", "x", "\n  docs2/x.md"},
		"a licence is everyone's":      {"README.md", "x", ""},
		"a binary in a listed folder":  {"docs/tool", "x", "\n  docs/tool"},
		"settings in a listed folder":  {"docs/.env.md", "x", "\n  docs/.env.md"},
		"settings among test data":     {"testdata/.env.txt", "x", "\n  testdata/.env.txt"},
		"a hidden folder of code":      {"a/.b/c.go", "package c", "\n  a/.b/c.go"},
		"a hidden file that is listed": {"a/.gitignore", "x", ""},
		"a kind that no test reads":    {"testdata/x.so", "x", "\n  testdata/x.so"},
		"an input of a fuzz test":      {"a/testdata/fuzz/FuzzA/1f2e", "go test fuzz v1", ""},
		"a folder like one":            {"a/testdata/fuzzy/FuzzA/1f2e", "x", "\n  a/testdata/fuzzy/FuzzA/1f2e"},
		"a program by its bytes":       {"docs/x.md", "\x7fELF\x02\x01", "\n  docs/x.md: a program (ELF)"},
		"one of Windows":               {"testdata/x.json", "MZ\x90\x00\x03", "\n  testdata/x.json: a program (PE)"},
		"words that begin like one":    {"testdata/x.txt", "MZ is a number", ""},
		"one of macOS":                 {"docs/x.md", "\xcf\xfa\xed\xfe\x07", "a program (Mach-O)"},
		"an archive":                   {"testdata/x.txt", "PK\x03\x04", "an archive (zip)"},
		"a large file that packs well": {"a/big.go", "package a\n" + strings.Repeat("// x\n", 54_000), "too large: remove or shorten what makes it so, or raise the bound in internal/tools/publish/contents.go\n  a/big.go: 270010 bytes, more than 262144"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := tree(t, workspace)
			write(t, filepath.Join(dir, c.file), c.text)
			zips, _ := prepare(t, dir)
			rule := publish.Rule{Dir: ".", Allow: []string{"docs/*.md", "a/.gitignore"}, MaxZip: 1 << 20, MaxUnpacked: 300_000, MaxTestdata: 3000}
			wrong, err := publish.Contents(zips["."], []publish.Rule{rule})
			if err != nil {
				t.Fatal(err)
			}
			said := (&publish.ContentsError{Wrong: wrong}).Error()
			if c.want == "" && len(wrong) > 0 || c.want != "" && (len(wrong) != 1 || !strings.Contains(said, c.want)) {
				t.Errorf("got %s, want one fault with %q", said, c.want)
			}
		})
	}
}

func TestContentsBounds(t *testing.T) {
	t.Parallel()
	zips, _ := prepare(t, tree(t, workspace))
	for name, c := range map[string]struct {
		dir   string
		rules []publish.Rule
		want  string
	}{
		"a zip over its size":   {".", []publish.Rule{{Dir: ".", MaxZip: 3, MaxUnpacked: 1000}}, "the zip of module example.com/a: "},
		"files over their size": {".", []publish.Rule{{Dir: ".", MaxZip: 1000, MaxUnpacked: 40}}, "all files of module example.com/a: "},
		"a module without a rule": {
			"sse", publish.Rules()[:1],
			"add one to Rules in internal/tools/publish/contents.go, the folder to go.work, and to internal/tools/publish/consumer a consumer",
		},
	} {
		wrong, err := publish.Contents(zips[c.dir], c.rules)
		if said := (&publish.ContentsError{Wrong: wrong}).Error(); err != nil || len(wrong) != 1 || !strings.Contains(said, c.want) {
			t.Errorf("%s: got %s, %v, want one fault with %q", name, said, err, c.want)
		}
	}
}

// TestContentsErrorTellsWhatToDo: each kind of fault with its own advice, once, and
// each file with its module's folder.
func TestContentsErrorTellsWhatToDo(t *testing.T) {
	t.Parallel()
	dir := tree(t, workspace)
	key := "sk-" + "ant-api03-h4Xq" + "Zp0LmT9vRb27cWnKe81"
	write(t, filepath.Join(dir, "sse/a.txt"), "x")
	write(t, filepath.Join(dir, "sse/b.txt"), "x")
	write(t, filepath.Join(dir, "sse/k.go"), "package sse\n\nconst k = \""+key+"\"\n")
	zips, _ := prepare(t, dir)
	wrong, err := publish.Contents(zips["sse"], []publish.Rule{{Dir: "sse", MaxZip: 1 << 20, MaxUnpacked: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	want := `this may not be published:
not on the list of what may be published: remove them, move them to a module in internal, or add them to the module's rule in internal/tools/publish/contents.go
  sse/a.txt
  sse/b.txt
secrets, it seems: revoke each, and take it out of the repository's history, where it stays when the file is mended; a placeholder should not look like a real one
  sse/k.go:3: looks like a key of a model provider`
	if diff := cmp.Diff(want, (&publish.ContentsError{Wrong: wrong}).Error()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
