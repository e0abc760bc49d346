// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// A Rule says what may be in the zip of one module.
type Rule struct {
	Dir string // of the module
	// Allow are the files, besides those that every module may have (see allowed), as
	// patterns of path.Match for the whole path. Each names an extension or the file:
	// what else lands in a folder was meant for nobody.
	Allow       []string
	MaxZip      int64 // bytes of the zip
	MaxUnpacked int64 // bytes of all files, unpacked
	MaxTestdata int64 // bytes of all files in folders testdata, unpacked
}

// maxFile bounds each file, unpacked, in bytes: what a person would read.
const maxFile = 256 << 10

// Rules are those of the modules that are published. A module that is missing
// here may not be published.
func Rules() []Rule {
	return []Rule{
		{
			Dir: ".", MaxZip: 1 << 20, MaxUnpacked: 3 << 20, MaxTestdata: 512 << 10,
			Allow: []string{
				".ci/run", ".gitattributes", ".gitignore", ".golangci.yml", "Makefile", "go.work", "go.work.sum",
				"*.md", "NOTICE", "design/*.md", "docs/*.md", "scripts/*.sh",
			},
		},
		{Dir: "toolgen", MaxZip: 512 << 10, MaxUnpacked: 512 << 10, MaxTestdata: 512 << 10},
		{Dir: "journal/sqlite", MaxZip: 256 << 10, MaxUnpacked: 384 << 10, MaxTestdata: 256 << 10},
		{Dir: "journal/postgres", MaxZip: 256 << 10, MaxUnpacked: 384 << 10, MaxTestdata: 256 << 10},
		{Dir: "provider/sse", MaxZip: 64 << 10, MaxUnpacked: 128 << 10, MaxTestdata: 64 << 10},
		{Dir: "provider/anthropic", MaxZip: 256 << 10, MaxUnpacked: 512 << 10, MaxTestdata: 256 << 10},
		{Dir: "provider/gemini", MaxZip: 256 << 10, MaxUnpacked: 512 << 10, MaxTestdata: 256 << 10},
		{Dir: "provider/openai", MaxZip: 256 << 10, MaxUnpacked: 512 << 10, MaxTestdata: 256 << 10},
		{
			Dir: "kicad", MaxZip: 2 << 20, MaxUnpacked: 4 << 20, MaxTestdata: 1 << 20,
			Allow: []string{
				"NOTICE", "NOTICE.md", "internal/board/NOTICE.md",
				"internal/board/project/.gitignore", "internal/board/project/*.md", "internal/board/project/docs/*.md",
				"internal/board/project/*.kicad_*", "internal/board/project/*-lib-table",
				"picture/page/*.html", "picture/page/*.css", "picture/page/*.js",
			},
		},
	}
}

// allowed tells whether a file may be published by its name: Go code anywhere, test
// data of the kinds that tests read, the module's own files at its root, and what the
// rule lists. A hidden file, or one in a hidden folder, has to be listed by its name.
func (r Rule) allowed(name string) bool {
	switch {
	case strings.HasPrefix(name, ".") || strings.Contains(name, "/."):
		return slices.Contains(r.Allow, name)
	case path.Ext(name) == ".go" || slices.Contains([]string{"go.mod", "go.sum", "LICENSE", "README.md"}, name):
		return true
	case isTestdata(name):
		return isData(name)
	}
	return slices.ContainsFunc(r.Allow, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

func isTestdata(name string) bool {
	return slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
}

// isData tells whether test data is of a kind that this repository's tests read, or
// an input of a fuzz test, testdata/fuzz/FuzzName/input.
func isData(name string) bool {
	if in, _ := path.Split(name); path.Ext(name) == "" && strings.HasSuffix(path.Dir(path.Dir(in)), "testdata/fuzz") {
		return true
	}
	return slices.Contains([]string{".json", ".jsonl", ".md", ".txt", ".txtar"}, path.Ext(name)) ||
		strings.HasPrefix(path.Ext(name), ".kicad_")
}

// A Fault is one thing that may not be published.
type Fault struct {
	What   string // with the file, from the root of the tree, and the line, where there is one
	Advice string // what to do about it and its like
}

// What to do about faults.
const (
	unlisted  = "not on the list of what may be published: remove them, move them to a module in internal, or add them to the module's rule in internal/tools/publish/contents.go"
	leaked    = "secrets, it seems: revoke each, and take it out of the repository's history, where it stays when the file is mended; a placeholder should not look like a real one"
	recording = "recorders of a provider's answers: move them to internal/acceptance, which is not published"
	binary    = "programs or archives, into which nobody can look: remove them, and build or unpack them where they are needed"
	tooLarge  = "too large: remove or shorten what makes it so, or raise the bound in internal/tools/publish/contents.go"
	ruleless  = "modules without a rule: add one to Rules in internal/tools/publish/contents.go, the folder to go.work, and to internal/tools/publish/consumer a consumer that uses it; a module for this repository alone belongs into internal"
)

// Contents holds the zip of a module to its rule, and returns what is wrong with
// it. The error is for a zip that cannot be read.
func Contents(z Zip, rules []Rule) ([]Fault, error) {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Dir == z.Module.Dir })
	if i < 0 {
		return []Fault{{fmt.Sprintf("module %s, in %s", z.Module.Path, z.Module.Dir), ruleless}}, nil
	}
	r, err := zip.OpenReader(z.File)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	var wrong []Fault
	var packed, unpacked, testdata int64
	for _, f := range r.File {
		_, name, _ := strings.Cut(f.Name, "@"+z.Version+"/")
		packed += int64(f.CompressedSize64)
		unpacked += int64(f.UncompressedSize64)
		if isTestdata(name) {
			testdata += int64(f.UncompressedSize64)
		}
		file := path.Join(z.Module.Dir, name)
		if !rules[i].allowed(name) {
			wrong = append(wrong, Fault{file, unlisted})
		}
		if f.UncompressedSize64 > maxFile {
			wrong = append(wrong, Fault{fmt.Sprintf("%s: %d bytes, more than %d", file, f.UncompressedSize64, maxFile), tooLarge})
		}
		text, err := read(f)
		if err != nil {
			return nil, err
		}
		wrong = append(wrong, lookInto(file, name, text)...)
	}
	for _, size := range []struct {
		what     string
		got, max int64
	}{
		{"the zip", packed, rules[i].MaxZip},
		{"all files", unpacked, rules[i].MaxUnpacked},
		{"the test data", testdata, rules[i].MaxTestdata},
	} {
		if size.got > size.max {
			wrong = append(wrong, Fault{fmt.Sprintf("%s of module %s: %d bytes, more than %d", size.what, z.Module.Path, size.got, size.max), tooLarge})
		}
	}
	return wrong, nil
}

func read(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return io.ReadAll(r)
}

// lookInto finds what no published file may hold: keys, recorders of what a
// provider answers to one (E-267), and what cannot be looked into. The name is that
// in the module.
func lookInto(file, name string, text []byte) []Fault {
	var wrong []Fault
	for _, s := range secrets(text) {
		wrong = append(wrong, Fault{fmt.Sprintf("%s:%d: looks like %s", file, s.line, s.kind), leaked})
	}
	if path.Ext(name) == ".go" && path.Dir(name) != recorderDir {
		for _, line := range recorders(text) {
			wrong = append(wrong, Fault{fmt.Sprintf("%s:%d: records answers of a provider", file, line), recording})
		}
	}
	if kind := opaque(text); kind != "" {
		wrong = append(wrong, Fault{file + ": " + kind, binary})
	}
	return wrong
}

// opaque names what a file is by its first bytes, whatever its name says, when that
// is a program or an archive.
func opaque(text []byte) string {
	for _, m := range []struct{ magic, kind string }{
		{"\x7fELF", "a program (ELF)"},
		{"\xfe\xed\xfa\xce", "a program (Mach-O)"},
		{"\xfe\xed\xfa\xcf", "a program (Mach-O)"},
		{"\xce\xfa\xed\xfe", "a program (Mach-O)"},
		{"\xcf\xfa\xed\xfe", "a program (Mach-O)"},
		{"\xca\xfe\xba\xbe", "a program (Mach-O or Java)"},
		{"\x00asm", "a program (WebAssembly)"},
		{"!<arch>\n", "an archive (ar)"},
		{"PK\x03\x04", "an archive (zip)"},
		{"\x1f\x8b", "an archive (gzip)"},
		{"BZh91AY&SY", "an archive (bzip2)"},
		{"\xfd7zXZ\x00", "an archive (xz)"},
		{"\x28\xb5\x2f\xfd", "an archive (zstd)"},
		{"7z\xbc\xaf\x27\x1c", "an archive (7z)"},
	} {
		if bytes.HasPrefix(text, []byte(m.magic)) {
			return m.kind
		}
	}
	// MZ alone could begin a text; the header behind it has zeros.
	if bytes.HasPrefix(text, []byte("MZ")) && bytes.IndexByte(text[:min(64, len(text))], 0) > 0 {
		return "a program (PE)"
	}
	return ""
}
