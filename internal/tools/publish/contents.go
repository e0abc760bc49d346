// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Rule says what may be in the zip of one module.
type Rule struct {
	Dir string // of the module
	// Allow are the files, besides those that every module may have (see allowed):
	// a path, a pattern of path.Match for the whole path, or a folder with /** for
	// all that is below it.
	Allow       []string
	MaxZip      int64 // bytes of the zip
	MaxTestdata int64 // bytes of all files in folders testdata, unpacked
}

// Rules are those of the modules that are published. A module that is missing
// here may not be published.
func Rules() []Rule {
	return []Rule{
		{
			Dir: ".", MaxZip: 1 << 20, MaxTestdata: 512 << 10,
			Allow: []string{
				".ci/run", ".gitattributes", ".gitignore", ".golangci.yml", "Makefile", "go.work", "go.work.sum",
				"*.md", "NOTICE", "design/*.md", "docs/**", "scripts/*",
			},
		},
		{Dir: "toolgen", MaxZip: 512 << 10, MaxTestdata: 512 << 10},
		{Dir: "journal/sqlite", MaxZip: 256 << 10, MaxTestdata: 256 << 10},
		{Dir: "journal/postgres", MaxZip: 256 << 10, MaxTestdata: 256 << 10},
		{Dir: "provider/sse", MaxZip: 64 << 10, MaxTestdata: 64 << 10},
		{Dir: "provider/anthropic", MaxZip: 256 << 10, MaxTestdata: 512 << 10},
		{Dir: "provider/gemini", MaxZip: 256 << 10, MaxTestdata: 512 << 10},
		{Dir: "provider/openai", MaxZip: 256 << 10, MaxTestdata: 512 << 10},
		{
			Dir: "kicad", MaxZip: 2 << 20, MaxTestdata: 1 << 20,
			Allow: []string{"internal/board/NOTICE.md", "internal/board/project/**", "picture/page/*", "NOTICE", "NOTICE.md"},
		},
	}
}

// allowed tells whether a file may be published: Go code and test data anywhere,
// the module's own files at its root, and what the rule lists.
func (r Rule) allowed(name string) bool {
	if path.Ext(name) == ".go" || isTestdata(name) || slices.Contains([]string{"go.mod", "go.sum", "LICENSE", "README.md"}, name) {
		return true
	}
	return slices.ContainsFunc(r.Allow, func(p string) bool {
		if dir, ok := strings.CutSuffix(p, "/**"); ok {
			return strings.HasPrefix(name, dir+"/")
		}
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

func isTestdata(name string) bool {
	return slices.Contains(strings.Split(path.Dir(name), "/"), "testdata")
}

// Contents holds the zip of a module to its rule, and returns what is wrong with
// it. The error is for a zip that cannot be read.
func Contents(z Zip, rules []Rule) ([]string, error) {
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Dir == z.Module.Dir })
	if i < 0 {
		return []string{fmt.Sprintf("module %s has no rule that says what it may contain: add one", z.Module.Path)}, nil
	}
	r, err := zip.OpenReader(z.File)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	var wrong []string
	var packed, testdata int64
	for _, f := range r.File {
		_, name, _ := strings.Cut(f.Name, "@"+z.Version+"/")
		packed += int64(f.CompressedSize64)
		if isTestdata(name) {
			testdata += int64(f.UncompressedSize64)
		}
		if !rules[i].allowed(name) {
			wrong = append(wrong, name+" is not on the list of what may be published")
		}
		text, err := read(f)
		if err != nil {
			return nil, err
		}
		for _, w := range lookInto(name, text) {
			wrong = append(wrong, path.Join(z.Module.Dir, name)+w)
		}
	}
	for _, size := range []struct {
		what     string
		got, max int64
	}{{"its zip", packed, rules[i].MaxZip}, {"its test data", testdata, rules[i].MaxTestdata}} {
		if size.got > size.max {
			wrong = append(wrong, fmt.Sprintf("%s of module %s has %d bytes, more than %d", size.what, z.Module.Path, size.got, size.max))
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

// lookInto finds what no published file may hold: keys, and recorders of what a
// provider answers to one (E-267).
func lookInto(name string, text []byte) []string {
	var wrong []string
	say := func(line int, what string) { wrong = append(wrong, fmt.Sprintf(":%d: %s", line, what)) }
	for _, s := range keyShapes {
		for _, at := range s.re.FindAllIndex(text, -1) {
			if s.sure || looksRandom(text[at[0]:at[1]]) {
				say(1+bytes.Count(text[:at[0]], []byte("\n")), "looks like "+s.kind)
			}
		}
	}
	if path.Ext(name) == ".go" && path.Dir(name) != recorderDir {
		for _, line := range recorders(text) {
			say(line, "records answers of a provider; that belongs into internal/acceptance, which is not published")
		}
	}
	return wrong
}

// keyShapes are the kinds of secret that are looked for. The shapes are those that
// the services' documents and https://docs.github.com/en/code-security/secret-scanning
// describe. One that is not sure must look random as well.
var keyShapes = []struct {
	kind string
	re   *regexp.Regexp
	sure bool
}{
	{"a key of a model provider", regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`), false},
	{"a key of Google", regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{35}`), false},
	{"a token of GitHub", regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{50,})`), false},
	{"a key of AWS", regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`), false},
	{"a token of Slack", regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{20,}`), false},
	{"a signed web token", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{15,}\.eyJ[A-Za-z0-9_-]{15,}\.[A-Za-z0-9_-]{20,}`), false},
	{"a bearer token", regexp.MustCompile(`(?i)\bbearer [A-Za-z0-9._~+/-]{32,}`), false},
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----(?:\\n|\s)*MI[A-Za-z0-9+/]{20,}`), true},
}

// looksRandom tells a key from words joined by hyphens and from a placeholder: a
// long piece of it has letters and digits, and many different ones, and none of it
// counts up, as 0123456789abcdef does.
func looksRandom(s []byte) bool {
	for piece := range bytes.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("-_. ", r) }) {
		different := map[byte]bool{}
		for _, b := range piece {
			different[b] = true
		}
		if len(different) >= 10 && bytes.ContainsAny(piece, "0123456789") && bytes.ContainsAny(bytes.ToLower(piece), "abcdefghijklmnopqrstuvwxyz") && !countsUp(piece) {
			return true
		}
	}
	return false
}

// countsUp reports whether six characters in a row follow upon each other, which
// one in ten million random keys has.
func countsUp(s []byte) bool {
	run := 1
	for i := 1; i < len(s) && run < 6; i++ {
		if s[i] == s[i-1]+1 {
			run++
		} else {
			run = 1
		}
	}
	return run >= 6
}
