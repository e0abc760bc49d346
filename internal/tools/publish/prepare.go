// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// A Change is a file that differs between the tree as it is checked in and the
// tree as it is released.
type Change struct {
	File     string // from the root of the tree, with slashes
	Old, New []byte
}

// A Zip is a module as it is published.
type Zip struct {
	Module  Module
	Version string
	File    string   // the zip, in the proxy's folder
	Changes []Change // of the module's files
	sums    string   // go.sum's lines for it
}

// Prepare rewrites an exported tree to the one that is released as version, and
// builds the zip of each published module, in the order of [Modules], into the
// folder proxy, which can then stand in GOPROXY as a file: URL. What a module
// requires of its siblings is written into its go.mod and go.sum, so that the
// released tree builds by itself.
func Prepare(tree, proxy, version string) ([]Zip, error) {
	modules, err := Modules(tree)
	if err != nil {
		return nil, err
	}
	var zips []Zip
	sums := map[string]string{}
	for _, m := range modules {
		if !m.Published() {
			continue
		}
		z := Zip{Module: m, Version: version}
		if z.Changes, err = rewrite(tree, m, version, sums); err != nil {
			return nil, err
		}
		if err := giveLicence(tree, m); err != nil {
			return nil, err
		}
		if err := z.build(tree, proxy); err != nil {
			return nil, fmt.Errorf("module %s: %w", m.Path, err)
		}
		sums[m.Path] = z.sums
		zips = append(zips, z)
	}
	return zips, nil
}

// rewrite puts a module's go.mod and go.sum into their released form.
func rewrite(tree string, m Module, version string, sums map[string]string) ([]Change, error) {
	mod, err := m.ReleaseMod(version)
	if err != nil {
		return nil, err
	}
	changes := []Change{{File: path.Join(m.Dir, "go.mod"), Old: m.mod, New: mod}}
	if len(m.Ours) > 0 {
		name := path.Join(m.Dir, "go.sum")
		old, err := os.ReadFile(filepath.Join(tree, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		lines := strings.SplitAfter(string(old), "\n")
		for _, p := range m.Ours {
			if sums[p] == "" {
				return nil, fmt.Errorf("%s requires %s, which is not published", m.Path, p)
			}
			lines = append(lines, strings.SplitAfter(sums[p], "\n")...)
		}
		slices.Sort(lines)
		changes = append(changes, Change{File: name, Old: old, New: []byte(strings.Join(slices.Compact(lines), ""))})
	}
	changes = slices.DeleteFunc(changes, func(c Change) bool { return bytes.Equal(c.Old, c.New) })
	for _, c := range changes {
		if err := os.WriteFile(filepath.Join(tree, c.File), c.New, 0o644); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// giveLicence copies the root's licence into a module that has none: so does the
// go command when it makes a zip of a folder of a repository.
func giveLicence(tree string, m Module) error {
	file := filepath.Join(tree, m.Dir, "LICENSE")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := os.ReadFile(filepath.Join(tree, "LICENSE"))
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// build writes what a proxy serves for one version of the module.
func (z *Zip) build(tree, proxy string) error {
	escaped, err := module.EscapePath(z.Module.Path)
	if err != nil {
		return err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	z.File = filepath.Join(dir, z.Version+".zip")
	f, err := os.Create(z.File)
	if err != nil {
		return err
	}
	if err := z.packable(tree); err != nil {
		return errors.Join(err, f.Close())
	}
	v := module.Version{Path: z.Module.Path, Version: z.Version}
	err = zip.CreateFromDir(f, v, filepath.Join(tree, z.Module.Dir))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(tree, z.Module.Dir, "go.mod"))
	if err != nil {
		return err
	}
	if err := z.hash(mod); err != nil {
		return err
	}
	for name, text := range map[string]string{
		z.Version + ".mod":  string(mod),
		z.Version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2000-01-01T00:00:00Z"}`, z.Version),
		"list":              z.Version + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packable errs when a zip may not hold some of the module's files, and names them
// from the root of the tree.
func (z *Zip) packable(tree string) error {
	checked, err := zip.CheckDir(filepath.Join(tree, z.Module.Dir))
	if len(checked.Invalid) == 0 {
		return err
	}
	var lines []string
	for _, f := range checked.Invalid {
		name := f.Path
		if rel, err := filepath.Rel(tree, f.Path); err == nil {
			name = filepath.ToSlash(rel)
		}
		lines = append(lines, fmt.Sprintf("\n  %s: %v", name, f.Err))
	}
	return errors.New("no zip may hold these files (https://go.dev/ref/mod#zip-path-size-constraints); give each a name that differs from the others' by more than " +
		"upper and lower case and is one on every system, or remove it:" + strings.Join(lines, ""))
}

// hash makes go.sum's two lines. https://go.dev/ref/mod#go-sum-files
func (z *Zip) hash(mod []byte) error {
	sum, err := dirhash.HashZip(z.File, dirhash.Hash1)
	if err != nil {
		return err
	}
	modSum, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(mod)), nil
	})
	if err != nil {
		return err
	}
	z.sums = fmt.Sprintf("%[1]s %[2]s %[3]s\n%[1]s %[2]s/go.mod %[4]s\n", z.Module.Path, z.Version, sum, modSum)
	return nil
}
