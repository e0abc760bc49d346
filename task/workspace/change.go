// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A ChangeKind is how a path differs from the snapshot.
type ChangeKind uint8

// The kinds of change.
const (
	Added ChangeKind = iota + 1
	Modified
	Deleted
)

func (k ChangeKind) String() string {
	switch k {
	case Added:
		return "added"
	case Modified:
		return "modified"
	case Deleted:
		return "deleted"
	}
	return "unknown"
}

// A Change is one path that differs from the snapshot in content or mode.
type Change struct {
	Path string // relative to the top, with slashes; bytes as the file system has them
	Kind ChangeKind

	// OldMode and Mode are git's modes, 0100644, 0100755 or 0120000 (a symbolic
	// link, also one that stands as a file because core.symlinks is false); 0 where
	// there is no file.
	OldMode, Mode uint32

	// Ignored says of an added file that a .gitignore which the run itself changed
	// now hides it: it is put away by Restore, but no part of the commit.
	Ignored bool

	was, is state
}

// Changed lists what differs from the snapshot, sorted by path. It compares bytes,
// never times. Files that were ignored at the start are none of the run's.
func (s *Snapshot) Changed(ctx context.Context) ([]Change, error) {
	t, err := s.r.openTree()
	if err != nil {
		return nil, fail("compare", err)
	}
	defer t.close()
	changes, _, err := s.changed(ctx, t)
	return changes, fail("compare", err)
}

// Narrow says that the run wrote these paths and no others. What else differs from
// the snapshot was then changed by somebody else while the run went on: Changed
// does not list it, and Preserve, Restore and Commit leave it alone. Without
// Narrow everything that differs is the run's, which is all that a process can
// know of a run that another one began.
func (s *Snapshot) Narrow(paths []string) {
	s.own = newNameSet(paths)
}

// Foreign lists what differs from the snapshot and is none of the run's, sorted;
// nothing without Narrow.
func (s *Snapshot) Foreign(ctx context.Context) ([]string, error) {
	if s.own == nil {
		return nil, nil
	}
	t, err := s.r.openTree()
	if err != nil {
		return nil, fail("compare", err)
	}
	defer t.close()
	all, _, err := s.differing(ctx, t)
	if err != nil {
		return nil, fail("compare", err)
	}
	var paths []string
	for _, c := range all {
		if !s.own[c.Path] {
			paths = append(paths, c.Path)
		}
	}
	return paths, nil
}

// changed is what the run changed, and the folders that the walk came through: all
// of them, or those that the run can have made.
func (s *Snapshot) changed(ctx context.Context, t *tree) (changes []Change, dirs []string, err error) {
	changes, dirs, err = s.differing(ctx, t)
	if err != nil || s.own == nil {
		return changes, dirs, err
	}
	changes = slices.DeleteFunc(changes, func(c Change) bool { return !s.own[c.Path] })
	dirs = slices.DeleteFunc(dirs, func(d string) bool {
		return !slices.ContainsFunc(changes, func(c Change) bool { return strings.HasPrefix(c.Path, d+"/") })
	})
	return changes, dirs, nil
}

// differing is everything that differs from the snapshot, and the folders that the
// walk came through.
func (s *Snapshot) differing(ctx context.Context, t *tree) (changes []Change, dirs []string, err error) {
	var fresh []string
	err = t.walk(s.skip(), func(p string, dir bool) {
		if dir {
			dirs = append(dirs, p)
		} else if _, old := s.files[p]; !old && !s.r.excluded(p) && !s.ignored.covers(p) {
			fresh = append(fresh, p)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	for _, p := range sortedKeys(s.files) {
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
		was := s.files[p]
		now, _, ok, err := t.at(p, was.mode)
		switch {
		case err != nil:
			return nil, nil, &Error{Kind: KindUnreadable, Op: "compare", Paths: []string{p}, Err: err}
		case !ok:
			changes = append(changes, Change{Path: p, Kind: Deleted, OldMode: was.mode, was: was})
		case now != was:
			changes = append(changes, Change{Path: p, Kind: Modified, OldMode: was.mode, Mode: now.mode, was: was, is: now})
		}
	}
	added, err := s.added(ctx, t, fresh, changes)
	if err != nil {
		return nil, nil, err
	}
	changes = append(changes, added...)
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes, dirs, nil
}

// added keeps those of the new files that the snapshot's own rules do not ignore.
// The rules in the tree may be the run's: it could hide its files from us, or
// uncover a user's secret.
func (s *Snapshot) added(ctx context.Context, t *tree, fresh []string, changes []Change) ([]Change, error) {
	if len(fresh) == 0 {
		return nil, nil
	}
	isRule := func(p string) bool { return path.Base(p) == ".gitignore" }
	rulesChanged := slices.ContainsFunc(fresh, isRule) ||
		slices.ContainsFunc(changes, func(c Change) bool { return isRule(c.Path) })
	now, err := s.r.checkIgnore(ctx, fresh)
	if err != nil {
		return nil, err
	}
	before := now
	if rulesChanged {
		if before, err = s.ignoredByOldRules(ctx, fresh); err != nil {
			return nil, err
		}
	}
	var added []Change
	for _, p := range fresh {
		if before[p] {
			continue
		}
		is, _, ok, err := t.at(p, 0)
		if err != nil {
			return nil, &Error{Kind: KindUnreadable, Op: "compare", Paths: []string{p}, Err: err}
		}
		if ok {
			added = append(added, Change{Path: p, Kind: Added, Mode: is.mode, Ignored: now[p], is: is})
		}
	}
	return added, nil
}

// checkIgnore tells which paths are ignored by the rules in the working tree, or in
// the one that env names.
func (r *Repo) checkIgnore(ctx context.Context, paths []string, env ...string) (nameSet, error) {
	out, err := r.git.run(ctx, call{args: []string{"check-ignore", "-z", "--stdin"}, in: bytes.NewReader(joinNames(paths)), env: env})
	if err != nil && exitCode(err) != 1 { // 1: none of them
		return nil, err
	}
	return newNameSet(splitNames(out)), nil
}

// ignoredByOldRules asks git about a tree in which only the snapshot's .gitignore
// files stand.
func (s *Snapshot) ignoredByOldRules(ctx context.Context, paths []string) (nameSet, error) {
	var rules []string
	for p := range s.files {
		if path.Base(p) == ".gitignore" && s.files[p].mode != modeLink { // git follows no link there
			rules = append(rules, p)
		}
	}
	dir, err := s.materialise(ctx, rules)
	if err != nil {
		return nil, err
	}
	defer dir.remove()
	g := *s.r.git
	g.dir = dir.in("tree")
	old := &Repo{git: &g}
	return old.checkIgnore(ctx, paths, "GIT_DIR="+s.r.gitDir, "GIT_WORK_TREE="+g.dir, "GIT_INDEX_FILE="+dir.in("none"))
}

// materialise writes files of the snapshot into the folder tree of a temporary one,
// which the caller removes.
func (s *Snapshot) materialise(ctx context.Context, paths []string) (*tempDir, error) {
	dir, err := makeTemp("tree")
	if err != nil {
		return nil, err
	}
	err = os.Mkdir(dir.in("tree"), 0o700)
	if err == nil {
		err = s.export(ctx, dir.in("tree"), paths)
	}
	if err != nil {
		dir.remove()
		return nil, err
	}
	return dir, nil
}

// export writes files of the snapshot below dir, a folder of ours.
func (s *Snapshot) export(ctx context.Context, dir string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	cat, err := s.r.git.cat(ctx)
	if err != nil {
		return err
	}
	defer cat.close()
	for _, p := range paths {
		var b bytes.Buffer
		if err := cat.copy(&b, s.files[p].oid); err != nil {
			return err
		}
		if err := writeOut(dir, p, s.files[p], b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// writeOut makes one file of a temporary tree.
func writeOut(dir, p string, is state, b []byte) error {
	name := filepath.Join(dir, filepath.FromSlash(p))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	switch {
	case is.mode == modeLink && !is.plain:
		return makeLink(runtime.GOOS, string(b), name, os.Symlink)
	case is.mode == modeExec:
		return os.WriteFile(name, b, 0o700)
	}
	return os.WriteFile(name, b, 0o600)
}
