// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// A Module is one module of the tree.
type Module struct {
	Dir  string // its folder, from the root of the tree with slashes; "." is the root
	Path string
	Go   string   // the oldest Go that it says it builds with, such as 1.26.0
	Ours []string // modules of this tree that its go.mod requires, by path, indirect ones too
	mod  []byte   // go.mod as it is checked in
	tree []string // the paths of all modules of the tree
}

// Unpublished are the folders of modules, besides those in internal, that are
// for this repository alone.
func Unpublished() []string { return []string{"bench"} }

// Published tells whether a user can get the module.
func (m Module) Published() bool {
	return !slices.Contains(strings.Split(m.Dir, "/"), "internal") && !slices.Contains(Unpublished(), m.Dir)
}

// Tag is the git tag that publishes the module as version: a nested one has its
// folder before it. https://go.dev/ref/mod#vcs-version
func (m Module) Tag(version string) string {
	if m.Dir == "." {
		return version
	}
	return m.Dir + "/" + version
}

// Modules reads the modules below a folder: its go.mod files outside testdata
// and outside folders that begin with a dot. They come in the order in which they
// can be published: the generator, which users run beside the root module, comes
// first, the root then, and every other one after those that it requires.
func Modules(root string) ([]Module, error) {
	found := map[string]Module{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		if d.IsDir() || d.Name() != "go.mod" {
			return nil
		}
		m, err := readModule(root, file)
		if err != nil {
			return err
		}
		if other, ok := found[m.Path]; ok {
			return fmt.Errorf("%s and %s both say that they are module %s: give one another path", path.Join(other.Dir, "go.mod"), path.Join(m.Dir, "go.mod"), m.Path)
		}
		found[m.Path] = m
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the modules of %s: %w", root, err)
	}
	return order(found)
}

// tree is the absolute path of the working tree, and the modules in it that are
// published.
func (t Trial) tree() (string, []Module, error) {
	root, err := filepath.Abs(t.Repo)
	if err != nil {
		return "", nil, err
	}
	all, err := Modules(root)
	return root, slices.DeleteFunc(all, func(m Module) bool { return !m.Published() }), err
}

func readModule(root, file string) (Module, error) {
	mod, err := os.ReadFile(file)
	if err != nil {
		return Module{}, err
	}
	f, err := modfile.Parse(file, mod, nil)
	if err != nil {
		return Module{}, err
	}
	if f.Module == nil || f.Go == nil {
		return Module{}, fmt.Errorf("%s: needs a module and a go line", file)
	}
	dir, err := filepath.Rel(root, filepath.Dir(file))
	if err != nil {
		return Module{}, err
	}
	m := Module{Dir: filepath.ToSlash(dir), Path: f.Module.Mod.Path, Go: f.Go.Version, mod: mod}
	for _, r := range f.Require {
		m.Ours = append(m.Ours, r.Mod.Path)
	}
	return m, nil
}

// order sorts modules for publication, and leaves in Ours what is in the tree.
func order(found map[string]Module) ([]Module, error) {
	var sorted []Module
	tree := slices.Sorted(maps.Keys(found))
	done := map[string]bool{}
	var visit func(m Module, from []string) error
	visit = func(m Module, from []string) error {
		if slices.Contains(from, m.Path) {
			return fmt.Errorf("modules require each other, so none can be published first: %s", strings.Join(append(from, m.Path), " -> "))
		}
		if done[m.Path] {
			return nil
		}
		m.Ours = slices.DeleteFunc(m.Ours, func(p string) bool { return found[p].Path == "" })
		for _, p := range m.Ours {
			if err := visit(found[p], append(from, m.Path)); err != nil {
				return err
			}
		}
		m.tree = tree
		done[m.Path] = true
		sorted = append(sorted, m)
		return nil
	}
	rank := func(m Module) int { return slices.Index([]string{".", "toolgen"}, m.Dir) } // 1, 0, else -1
	byRank := func(a, b Module) int { return cmp.Or(rank(b)-rank(a), strings.Compare(a.Dir, b.Dir)) }
	for _, m := range slices.SortedFunc(maps.Values(found), byRank) {
		if err := visit(m, nil); err != nil {
			return nil, err
		}
	}
	return sorted, nil
}

// owner is the module that a file of the tree belongs to, by name with slashes.
func owner(modules []Module, file string) (Module, bool) {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if i := slices.IndexFunc(modules, func(m Module) bool { return m.Dir == dir }); i >= 0 {
			return modules[i], true
		}
		if dir == "." || dir == "/" {
			return Module{}, false
		}
	}
}

// ReleaseMod is the go.mod of the module as it is published: it requires its
// siblings at version and has no replace lines, which go install x@v and go run
// x@v refuse. It errs when a replace line of the module is for anybody else, since
// users would not get that one.
func (m Module) ReleaseMod(version string) ([]byte, error) {
	f, err := modfile.Parse(path.Join(m.Dir, "go.mod"), m.mod, nil)
	if err != nil {
		return nil, err
	}
	for _, p := range m.Ours {
		if err := f.AddRequire(p, version); err != nil {
			return nil, err
		}
	}
	for _, r := range slices.Clone(f.Replace) {
		if !slices.Contains(m.tree, r.Old.Path) {
			return nil, fmt.Errorf("%s/go.mod replaces %s, which nobody who gets the module would see: require a released version instead", m.Dir, r.Old.Path)
		}
		if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	if len(f.Exclude) > 0 {
		return nil, fmt.Errorf("%s/go.mod has an exclude line, which nobody who gets the module would see", m.Dir)
	}
	f.Cleanup()
	return f.Format()
}
