// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Stat is how much of a file changed.
type Stat struct {
	Path           string
	Added, Deleted int  // lines
	Binary         bool // then the lines are not counted
}

// Diff is the unified text of what differs from the snapshot, as git apply -p1
// takes it; empty when nothing does. Names that are not plain text are quoted.
func (s *Snapshot) Diff(ctx context.Context) (string, error) {
	out, err := s.compare(ctx, "--patch")
	return string(out), fail("diff", err)
}

// DiffStat counts the lines that Diff shows, sorted by path.
func (s *Snapshot) DiffStat(ctx context.Context) ([]Stat, error) {
	out, err := s.compare(ctx, "--numstat", "-z")
	if err != nil {
		return nil, fail("diff", err)
	}
	l := splitNames(out) // "<added>\t<deleted>\t\0<old>\0<new>\0", with - for binary
	var stats []Stat
	for i := 0; i+2 < len(l); i += 3 {
		f := strings.Split(l[i], "\t")
		if len(f) != 3 {
			return nil, fail("diff", fmt.Errorf("git diff answered %q", l[i]))
		}
		name := l[i+2]
		if name == "/dev/null" {
			name = l[i+1]
		}
		st := Stat{Path: name[len("a/"):], Binary: f[0] == "-"}
		if !st.Binary {
			st.Added, _ = strconv.Atoi(f[0])
			st.Deleted, _ = strconv.Atoi(f[1])
		}
		stats = append(stats, st)
	}
	return stats, nil
}

// compare has git diff two temporary folders: bytes against bytes, with no filter
// between, and without leaving objects in the repository.
func (s *Snapshot) compare(ctx context.Context, args ...string) ([]byte, error) {
	t, err := s.r.openTree()
	if err != nil {
		return nil, err
	}
	defer t.close()
	changes, _, err := s.changed(ctx, t)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	var old []string
	for _, c := range changes {
		if c.OldMode != 0 {
			old = append(old, c.Path)
		}
	}
	dir, err := makeTemp("diff")
	if err != nil {
		return nil, err
	}
	defer dir.remove()
	for _, side := range []string{"a", "b"} {
		if err := os.Mkdir(dir.in(side), 0o700); err != nil {
			return nil, err
		}
	}
	if err := s.export(ctx, dir.in("a"), old); err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.Mode == 0 {
			continue
		}
		b, err := t.read(c.Path, c.is)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := writeOut(dir.in("b"), c.Path, c.is, b); err != nil {
			return nil, err
		}
	}
	g := *s.r.git
	g.dir = dir.path
	out, err := g.run(ctx, call{args: append([]string{
		"-c", "core.quotePath=false", "-c", "core.attributesFile=" + os.DevNull, "diff", "--no-index", "--no-prefix", "--no-renames",
		"--no-ext-diff", "--no-textconv", "--no-color", "--diff-algorithm=histogram", "--unified=3",
	}, append(args, "--", "a", "b")...), env: []string{"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir.path)}})
	if exitCode(err) == 1 { // they differ, as they should
		err = nil
	}
	return out, err
}
