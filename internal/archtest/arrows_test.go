// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the arrows block from the code")

// TestArrows holds the arrows block, both ways. Packages of tests alone have no
// arrows.
func TestArrows(t *testing.T) {
	pkgs := packages(t)
	if *update {
		rewriteArrows(t, pkgs)
	}
	want := lists(t, "arrows")
	for name, p := range pkgs {
		if len(p.files) == 0 {
			continue
		}
		listed, ok := want[name]
		delete(want, name)
		slices.Sort(listed)
		if got := p.ours(pkgs); !ok || !slices.Equal(got, listed) {
			t.Errorf("the arrows block should say:\n%s", arrow(name, got))
		}
	}
	for name := range want {
		t.Errorf("the arrows block lists %s, which has no code, or only tests", name)
	}
}

// rewriteArrows puts the arrows that the code has into ARCHITECTURE.md.
func rewriteArrows(t *testing.T, pkgs map[string]*pkg) {
	t.Helper()
	const fence = "```arrows\n"
	md := read(t, "ARCHITECTURE.md")
	start := strings.Index(md, fence)
	if start < 0 {
		t.Fatal("ARCHITECTURE.md has no arrows block")
	}
	start += len(fence)
	end := start + strings.Index(md[start:], "```")
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(pkgs)) {
		if p := pkgs[name]; len(p.files) > 0 {
			lines.WriteString(arrow(name, p.ours(pkgs)) + "\n")
		}
	}
	if err := os.WriteFile(filepath.Join(root, "ARCHITECTURE.md"), []byte(md[:start]+lines.String()+md[end:]), 0o644); err != nil {
		t.Fatal(err)
	}
}

func arrow(name string, imports []string) string {
	return strings.TrimRight(fmt.Sprintf("%-28s = %s", name, strings.Join(imports, " ")), " ")
}

// TestArrowsPointDown holds the column of rooms: a package imports packages of
// its own room and of the rooms that the rooms block allows.
func TestArrowsPointDown(t *testing.T) {
	pkgs := packages(t)
	below := lists(t, "rooms")
	var rooms []string
	for name := range below {
		rooms = append(rooms, name)
	}
	room := func(name string) string {
		r := nearest(rooms, name)
		if r == "." && name != "." {
			return "" // the root room is the root package alone
		}
		return r
	}
	for r, lower := range below {
		for _, l := range lower {
			if _, ok := below[l]; !ok {
				t.Errorf("the rooms block allows %s to import %s, which is no room", r, l)
			}
			if slices.Contains(below[l], r) {
				t.Errorf("the rooms block has %s and %s import each other", r, l)
			}
		}
	}
	for name, p := range pkgs {
		from := room(name)
		if from == "" {
			t.Errorf("%s lies in no room of the rooms block", name)
			continue
		}
		for _, im := range p.ours(pkgs) {
			if to := room(im); to != from && !slices.Contains(below[from], to) {
				t.Errorf("%s imports %s, but room %s lies not below room %s", name, im, to, from)
			}
		}
	}
}

// TestEveryFolderHasASentence holds the list of packages: every folder with Go
// code has a line "- `folder`: sentence", and every line has its folder.
func TestEveryFolderHasASentence(t *testing.T) {
	_, section, ok := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## The packages\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section The packages")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	said := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^- `([^`]+)`: \\S+ \\S+").FindAllStringSubmatch(section, -1) {
		if said[m[1]] {
			t.Errorf("ARCHITECTURE.md describes %s twice", m[1])
		}
		said[m[1]] = true
	}
	for name := range packages(t) {
		if !said[name] {
			t.Errorf("ARCHITECTURE.md, The packages, wants a line \"- `%s`: what it is for\"", name)
		}
		delete(said, name)
	}
	for name := range said {
		t.Errorf("ARCHITECTURE.md describes %s, which has no Go code", name)
	}
}
