// SPDX-License-Identifier: Apache-2.0

// Package licence lists what the published modules link of other people's, and
// under which licence each is, from the licence files that come with it.
//
// Names of licences are SPDX identifiers, https://spdx.org/licenses/.
package licence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// A Dependency is one module of somebody else at one version.
type Dependency struct {
	Path, Version string
	Licence       string   // SPDX expression
	Files         []string // licence files and notices at its root, by name
	Users         []string // folders of our modules that link it
}

// A Folder is one of our modules.
type Folder struct {
	Name string // its folder in the tree, "." for the root
	Dir  string
}

// A Report is what all our modules need of others.
type Report struct {
	Linked []Dependency // is in what users build, on at least one system
	Tests  []Dependency // only tests and test helpers need it
}

// systems are those that the command is built for: what is linked depends on it.
func systems() []string { return []string{"linux", "darwin", "windows"} }

// Collect asks the go command, with an environment of KEY=value and without a
// workspace, what each folder's packages import, and reads the licence files.
// ours is the path of the root module. A module without a licence that is known
// here is an error.
func Collect(ctx context.Context, folders []Folder, ours string, env []string) (Report, error) {
	type job struct {
		folder Folder
		goos   string
		tests  bool
	}
	var jobs []job
	for _, f := range folders {
		for _, s := range systems() {
			jobs = append(jobs, job{f, s, false})
		}
		jobs = append(jobs, job{f, systems()[0], true})
	}
	outputs := make([]string, len(jobs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, j := range jobs {
		g.Go(func() (err error) {
			outputs[i], err = list(ctx, j.folder.Dir, slices.Concat(env, []string{"GOWORK=off", "CGO_ENABLED=0", "GOARCH=amd64", "GOOS=" + j.goos}), j.tests)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Report{}, err
	}
	linked, tests := map[string]*Dependency{}, map[string]*Dependency{}
	dirs := map[string]string{}
	for i, j := range jobs {
		into := linked
		if j.tests {
			into = tests
		}
		for line := range strings.Lines(outputs[i]) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if len(f) != 3 || f[0] == ours || strings.HasPrefix(f[0], ours+"/") {
				continue
			}
			key := f[0] + "@" + f[1]
			if into[key] == nil {
				into[key] = &Dependency{Path: f[0], Version: f[1]}
			}
			into[key].Users = append(into[key].Users, j.folder.Name)
			dirs[key] = f[2]
		}
	}
	for key := range linked {
		delete(tests, key)
	}
	var r Report
	var errs [2]error
	r.Linked, errs[0] = finish(linked, dirs)
	r.Tests, errs[1] = finish(tests, dirs)
	return r, errors.Join(errs[:]...)
}

// list prints path, version and folder of the module of each package that is
// imported, in a line each; test helpers and tests count only with tests.
func list(ctx context.Context, dir string, env []string, tests bool) (string, error) {
	const format = "{{with .Module}}{{if .Version}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}"
	args := []string{"list", "-mod=readonly", "-deps", "-f", format}
	patterns := []string{"./..."}
	if tests {
		args = append(args, "-test")
	} else {
		out, err := output(ctx, dir, env, "list", "-mod=readonly", "./...")
		if err != nil {
			return "", err
		}
		patterns = slices.DeleteFunc(strings.Fields(out), func(p string) bool { return strings.HasSuffix(path.Base(p), "test") })
	}
	return output(ctx, dir, env, append(args, patterns...)...)
}

func output(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, stderr.String())
	}
	return string(out), nil
}

func finish(found map[string]*Dependency, dirs map[string]string) ([]Dependency, error) {
	var all []Dependency
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(found)) {
		d := *found[key]
		slices.Sort(d.Users)
		d.Users = slices.Compact(d.Users)
		if err := d.read(dirs[key]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Dependency) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
	})
	return all, errors.Join(errs...)
}

// read finds the licence in the files at the module's root.
func (d *Dependency) read(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("its files are not in the module cache; run go mod download: %w", err)
	}
	var names []string
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		isNotice := strings.HasPrefix(upper, "NOTICE") || strings.HasPrefix(upper, "PATENTS")
		isLicence := strings.HasPrefix(upper, "LICEN") || strings.HasPrefix(upper, "COPYING") || strings.HasPrefix(upper, "UNLICEN")
		if e.IsDir() || !isNotice && !isLicence || strings.HasSuffix(upper, ".GO") {
			continue
		}
		d.Files = append(d.Files, e.Name())
		if isLicence {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			names = append(names, Identify(string(text))...)
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return fmt.Errorf("no known licence in %v: read it, and teach package licence its name if it suits us", d.Files)
	}
	d.Licence = strings.Join(names, " AND ")
	return nil
}

// Identify names the licences whose text is in a file, by words that only they
// have. It knows those that suit a module under Apache-2.0, and no copyleft but
// MPL-2.0, which ends at the file.
func Identify(text string) []string {
	t := strings.Join(strings.Fields(strings.ToLower(text)), " ")
	has := func(words ...string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(t, w) })
	}
	var names []string
	add := func(name string, yes bool) {
		if yes {
			names = append(names, name)
		}
	}
	bsd := has("redistribution and use in source and binary forms")
	third := has("neither the name") || has("endorse or promote products")
	isc := has("permission to use, copy, modify, and distribute this software") || has("permission to use, copy, modify, and/or distribute this software")
	add("Apache-2.0", has("apache license", "version 2.0"))
	add("BSD-2-Clause", bsd && !third)
	add("BSD-3-Clause", bsd && third)
	add("ISC", isc && has("copyright notice and this permission notice appear"))
	add("MIT", has("permission is hereby granted, free of charge, to any person obtaining a copy"))
	add("MPL-2.0", has("mozilla public license", "2.0"))
	add("Unlicense", has("this is free and unencumbered software released into the public domain"))
	add("CC0-1.0", has("cc0 1.0 universal"))
	return names
}

// Markdown is the report as a file of the repository.
func (r Report) Markdown() string {
	var b strings.Builder
	b.WriteString(`<!-- Written by make licences; do not edit. -->

# Third parties

What our modules need of other people's, at which version, and under which licence, as the licence files say that come with
each; beside these, the standard library of Go is linked, BSD-3-Clause. The texts themselves are in the module cache: ` + "`go mod download`" + `, then ` + "`$(go env GOMODCACHE)/MODULE@VERSION`" + `. Who gives a
built binary away gives them with it. KiCad's symbols and footprints in the bundled board have a
[notice of their own](kicad/internal/board/NOTICE.md).

## Linked into what users build

`)
	table(&b, r.Linked)
	b.WriteString("\n## In tests alone\n\n")
	table(&b, r.Tests)
	return b.String()
}

func table(b *strings.Builder, all []Dependency) {
	b.WriteString("| module | version | licence | files | in |\n|---|---|---|---|---|\n")
	for _, d := range all {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", d.Path, d.Version, d.Licence, strings.Join(d.Files, ", "), strings.Join(d.Users, ", "))
	}
}
