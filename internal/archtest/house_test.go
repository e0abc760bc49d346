// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// outside are the modules that go.work leaves out, so that what they need
// raises no version for the others.
var outside = []string{"bench", "internal/tools"}

// TestRootModuleNeedsLittle holds the promise of a light engine: what a user
// of the root module links is the standard library, ours and jsonschema-go.
func TestRootModuleNeedsLittle(t *testing.T) {
	pkgs := packages(t)
	seen := 0
	for name, p := range pkgs {
		if p.module != "." || testHelper(name) {
			continue
		}
		seen++
		for im := range p.imports {
			first, _, _ := strings.Cut(im, "/")
			if strings.Contains(first, ".") && im != "." && !strings.HasPrefix(im, "github.com/google/jsonschema-go/") {
				t.Errorf("%s imports %s: say in ARCHITECTURE.md why it is worth it, then allow it here", name, im)
			}
			if q := pkgs[im]; q != nil && q.module != "." {
				t.Errorf("%s, of the root module, imports %s of module %s", name, im, q.module)
			}
		}
	}
	if seen == 0 {
		t.Error("the root module has no packages")
	}
}

// TestModules holds that every module is in go.work or among those that stay
// outside, has our module path for its folder, and reaches its siblings in this
// tree.
func TestModules(t *testing.T) {
	var work []string
	for _, m := range regexp.MustCompile(`(?m)^\s*(?:use\s+)?\./?(\S*)$`).FindAllStringSubmatch(read(t, "go.work"), -1) {
		work = append(work, path.Clean(m[1]))
	}
	for dir, mod := range modules(t) {
		if slices.Contains(work, dir) == slices.Contains(outside, dir) {
			t.Errorf("module %s should be in go.work or in this test's outside, and not in both", dir)
		}
		if !strings.HasPrefix(mod, "module "+path.Join(module, dir)+"\n") {
			t.Errorf("%s/go.mod should begin with: module %s", dir, path.Join(module, dir))
		}
		for needed := range direct(mod) {
			if !isOurs(needed) {
				continue
			}
			to, err := filepath.Rel(filepath.FromSlash(dir), filepath.FromSlash(short(needed)))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(to, "..") {
				to = "./" + to
			}
			if line := needed + " => " + filepath.ToSlash(to) + "\n"; !strings.Contains(mod, line) {
				t.Errorf("%s/go.mod needs: replace %s", dir, line)
			}
		}
	}
	if len(work) < 2 {
		t.Errorf("go.work joins %v, which is too few to believe", work)
	}
}

// TestDependencies holds the table of dependencies: what a module of go.work
// asks for directly stands there with its reason, nothing else does, and all
// modules ask for one version.
func TestDependencies(t *testing.T) {
	_, section, ok := strings.Cut(read(t, "ARCHITECTURE.md"), "\n## Dependencies\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section Dependencies")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	said := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| \\S.* \\| \\S.* \\|$").FindAllStringSubmatch(section, -1) {
		said[m[1]] = true
	}
	versions := map[string]string{}
	for dir, mod := range modules(t) {
		if slices.Contains(outside, dir) {
			continue
		}
		for needed, version := range direct(mod) {
			switch {
			case isOurs(needed):
				continue
			case versions[needed] == "":
				versions[needed] = version
			case versions[needed] != version:
				t.Errorf("%s/go.mod asks for %s %s, another module for %s", dir, needed, version, versions[needed])
			}
			if !said[needed] {
				t.Errorf("%s/go.mod asks for %s: ARCHITECTURE.md, Dependencies, wants \"| `%s` | where | why |\"", dir, needed, needed)
			}
		}
	}
	for needed := range said {
		if versions[needed] == "" {
			t.Errorf("ARCHITECTURE.md, Dependencies, lists %s, for which no go.mod asks", needed)
		}
	}
}

// modules returns the text of every go.mod, by its folder.
func modules(t *testing.T) map[string]string {
	t.Helper()
	mods := map[string]string{}
	for _, name := range files(t) {
		if path.Base(name) == "go.mod" && !slices.Contains(strings.Split(name, "/"), "testdata") {
			mods[path.Dir(name)] = read(t, name)
		}
	}
	return mods
}

// direct returns the versions of the modules that a go.mod requires directly.
func direct(mod string) map[string]string {
	versions := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(?:\t|require )(\S+\.\S+) (v\S+)$`).FindAllStringSubmatch(mod, -1) {
		versions[m[1]] = m[2]
	}
	return versions
}

func isOurs(needed string) bool { return needed == module || strings.HasPrefix(needed, module+"/") }

// TestNamesNoMachine keeps paths of the machine that a file was written on, and
// hosts that only serve packages, out of the tree: neither means anything to
// the next reader.
func TestNamesNoMachine(t *testing.T) {
	path := regexp.MustCompile(`(?:^|[^\w.~$})/-])/(?:work|farm|root)/`)
	host := regexp.MustCompile(`\b(?:proxy\.golang|deb\.debian|snapshot\.debian|security\.debian|registry\.npmjs)\.org\b`)
	for _, name := range files(t) {
		if slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range bytes.Split(b, []byte("\n")) {
			if path.Match(line) || host.Match(line) {
				t.Errorf("%s:%d names a machine's path or a package host: %.120s", name, i+1, line)
			}
		}
	}
}
