// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
	"golang.org/x/tools/go/packages"
)

// An APIError is a release that takes away or changes what callers use, under a
// version that promises not to.
type APIError struct {
	Module, Old, New string
	Changes          []string
}

// Error implements error.
func (e *APIError) Error() string {
	return fmt.Sprintf("module %s: %s breaks callers of %s: give it a version that may (before v1 a minor one, then a major one), or mend these:\n  %s",
		e.Module, e.New, e.Old, strings.Join(e.Changes, "\n  "))
}

// API compares what each published module of the working tree exports with what
// it exported at its last tag, by golang.org/x/exp/apidiff, and prints the
// changes. version is the release that is planned; when it is not empty, changes
// that break callers need a version that allows them, else [*APIError], and a version
// that is none, or not above the last one, is refused before anything is compared. A
// module without a tag has nothing to be compared with, and that is said.
func API(ctx context.Context, t Trial, version string) error {
	if version != "" {
		if err := CheckVersion(version); err != nil {
			return err
		}
	}
	root, modules, err := t.tree()
	if err != nil {
		return err
	}
	if version != "" {
		reasons, err := t.notAbove(ctx, modules, version)
		if err != nil {
			return err
		}
		if len(reasons) > 0 {
			return &RefusedError{Reasons: reasons}
		}
	}
	breaks, err := t.breaks(ctx, root, modules, version)
	if err != nil {
		return err
	}
	return errors.Join(breaks...)
}

// breaks are an [*APIError] for each module of a tree that breaks callers of its last
// tag when version promises not to.
func (t Trial) breaks(ctx context.Context, tree string, modules []Module, version string) ([]error, error) {
	last, err := t.lastTags(ctx, modules)
	if err != nil {
		return nil, err
	}
	if len(last) == 0 {
		fmt.Fprintf(t.Out, "api       no module has a tag yet: nothing to compare with\n")
		return nil, nil
	}
	var failed []error
	for _, m := range modules {
		old := last[m.Path]
		if old == "" {
			fmt.Fprintf(t.Out, "api       %-60s no tag yet: nothing to compare with\n", m.Path)
			continue
		}
		breaks, err := t.compare(ctx, tree, m, old)
		if err != nil {
			return nil, err
		}
		if len(breaks) > 0 && version != "" && !mayBreak(old, version) {
			failed = append(failed, &APIError{Module: m.Path, Old: old, New: version, Changes: breaks})
		}
	}
	return failed, nil
}

// notAbove says of each module that has a version as high already.
func (t Trial) notAbove(ctx context.Context, modules []Module, version string) ([]string, error) {
	var reasons []string
	last, err := t.lastTags(ctx, modules)
	for _, m := range modules {
		if v := last[m.Path]; v != "" && semver.Compare(version, v) <= 0 {
			reasons = append(reasons, fmt.Sprintf("module %s is at %s already; take a higher version", m.Path, v))
		}
	}
	return reasons, err
}

// mayBreak tells whether a version may break callers of another:
// https://go.dev/doc/modules/version-numbers
func mayBreak(old, version string) bool {
	if semver.Major(old) != semver.Major(version) {
		return true
	}
	return semver.Major(version) == "v0" && semver.MajorMinor(old) != semver.MajorMinor(version)
}

// lastTags are the versions of the newest tags by the paths of the modules, of
// those that have one.
func (t Trial) lastTags(ctx context.Context, modules []Module) (map[string]string, error) {
	last := map[string]string{}
	for _, m := range modules {
		v, err := t.lastTag(ctx, m)
		if err != nil {
			return nil, err
		}
		if v != "" {
			last[m.Path] = v
		}
	}
	return last, nil
}

// lastTag is the version of the newest tag of a module, "" without one.
func (t Trial) lastTag(ctx context.Context, m Module) (string, error) {
	out, err := shell{dir: t.Repo, env: t.Env}.run(ctx, "git", "tag", "--list", m.Tag("v*"))
	if err != nil {
		return "", err
	}
	var versions []string
	for tag := range strings.FieldsSeq(out) {
		if v := strings.TrimPrefix(tag, m.Tag("")); semver.IsValid(v) {
			versions = append(versions, v)
		}
	}
	if len(versions) == 0 {
		return "", nil
	}
	return slices.MaxFunc(versions, semver.Compare), nil
}

// compare prints how a module of a tree differs from its tag, and returns what breaks
// callers.
func (t Trial) compare(ctx context.Context, tree string, m Module, old string) ([]string, error) {
	dir, err := os.MkdirTemp("", "api")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if _, err := Export(ctx, t.Repo, m.Tag(old), dir, t.Env); err != nil {
		return nil, err
	}
	before, err := exports(ctx, dir, t.Env, m)
	if err != nil {
		return nil, fmt.Errorf("at %s: %w", m.Tag(old), err)
	}
	after, err := exports(ctx, tree, t.Env, m)
	if err != nil {
		return nil, err
	}
	var breaks []string
	report := apidiff.ModuleChanges(before, after)
	for _, c := range report.Changes {
		word := "compatible"
		if !c.Compatible {
			word, breaks = "BREAKING", append(breaks, c.Message)
		}
		fmt.Fprintf(t.Out, "api       %s: %s: %s\n", m.Path, word, c.Message)
	}
	fmt.Fprintf(t.Out, "api       %-60s %d changes since %s, %d of them breaking\n", m.Path, len(report.Changes), old, len(breaks))
	return breaks, nil
}

// exports loads what other modules can import of a module in a tree. A released
// tree has no replace lines, so the modules of the tree are joined by a go.work.
func exports(ctx context.Context, tree string, env []string, m Module) (*apidiff.Module, error) {
	dir, err := os.MkdirTemp("", "api") // the go command puts a go.work.sum beside the go.work
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	work := filepath.Join(dir, "go.work")
	if err := workspace(tree, work); err != nil {
		return nil, err
	}
	cfg := &packages.Config{
		Context: ctx, Dir: filepath.Join(tree, m.Dir), Env: append(slices.Clone(env), "GOWORK="+work, "GOFLAGS=-mod=readonly"),
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps | packages.NeedExportFile | packages.NeedFiles,
	}
	pkgs, err := packages.Load(cfg, "./...")
	if err != nil {
		return nil, err
	}
	mod := &apidiff.Module{Path: m.Path}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("package %s: %w", p.PkgPath, p.Errors[0])
		}
		if p.Name != "main" && !slices.Contains(strings.Split(p.PkgPath, "/"), "internal") {
			mod.Packages = append(mod.Packages, p.Types)
		}
	}
	return mod, nil
}

// workspace writes the file work, a go.work for the published modules of a tree. The go command asks a proxy for the go.mod of
// a sibling at the version that is required, although it uses the one at hand,
// unless that version is replaced.
func workspace(tree, work string) error {
	root, modules, err := Trial{Repo: tree}.tree()
	if err != nil {
		return err
	}
	newest, dirs := "1.26.0", map[string]string{}
	for _, m := range modules {
		dirs[m.Path] = filepath.Join(root, m.Dir)
		if semver.Compare("v"+patch(m.Go), "v"+newest) > 0 {
			newest = patch(m.Go)
		}
	}
	lines := []string{"go " + newest}
	for _, m := range modules {
		lines = append(lines, fmt.Sprintf("use %q", dirs[m.Path]))
		f, err := modfile.Parse("go.mod", m.mod, nil)
		if err != nil {
			return err
		}
		for _, r := range f.Require {
			if dir := dirs[r.Mod.Path]; dir != "" && len(f.Replace) == 0 {
				lines = append(lines, fmt.Sprintf("replace %s %s => %q", r.Mod.Path, r.Mod.Version, dir))
			}
		}
	}
	slices.Sort(lines[1:])
	return os.WriteFile(work, []byte(strings.Join(slices.Compact(lines), "\n")+"\n"), 0o600)
}
