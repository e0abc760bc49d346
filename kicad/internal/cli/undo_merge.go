// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A gitFile is a file in a tree of git; the zero one is not there.
type gitFile struct{ mode, oid string }

func (f gitFile) regular() bool { return strings.HasPrefix(f.mode, "100") }

// A merger carries the difference between two trees over to a third, without touching the files or the index.
type merger struct {
	gitAt
	temp func(name string) (string, error) // makes a folder for temporary files
	// section names a run whose entries in Markdown files are taken out where lines do not fit: every run writes at
	// the head of the same changelog. Empty for none.
	section string
}

// A merged is the outcome: the files that become different, the zero one for those that go.
type merged struct {
	files     map[string]gitFile
	conflicts []string // the files that hold both changes in one place
}

// merge applies what differs from base to theirs on top of ours. All three are names of trees.
func (m merger) merge(ctx context.Context, base, ours, theirs string) (merged, error) {
	out := merged{files: map[string]gitFile{}}
	changed, err := m.changes(ctx, base, theirs)
	if err != nil {
		return out, err
	}
	there, err := m.files(ctx, ours)
	if err != nil {
		return out, err
	}
	for _, c := range changed {
		now := there[c.name]
		switch now {
		case c.to:
		case c.from:
			out.files[c.name] = c.to
		default:
			f, err := m.file(ctx, c, now)
			if errors.Is(err, errConflict) {
				out.conflicts = append(out.conflicts, c.name)
				continue
			}
			if err != nil {
				return out, err
			}
			if f != now {
				out.files[c.name] = f
			}
		}
	}
	return out, nil
}

var errConflict = errors.New("both changed it")

// A treeChange is one file that differs between two trees.
type treeChange struct {
	name     string
	from, to gitFile
}

func (m merger) changes(ctx context.Context, from, to string) ([]treeChange, error) {
	raw, err := m.run(ctx, "diff-tree", "-r", "-z", "--no-renames", "--full-index", "--end-of-options", from, to)
	if err != nil {
		return nil, err
	}
	var list []treeChange
	parts := strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")
	for i := 0; i+1 < len(parts); i += 2 {
		f := strings.Fields(strings.TrimPrefix(parts[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree says %q", parts[i])
		}
		c := treeChange{name: parts[i+1], from: gitFile{f[0], f[2]}, to: gitFile{f[1], f[3]}}
		for _, side := range []*gitFile{&c.from, &c.to} {
			if side.mode == "000000" {
				*side = gitFile{}
			}
		}
		list = append(list, c)
	}
	return list, nil
}

func (m merger) files(ctx context.Context, tree string) (map[string]gitFile, error) {
	raw, err := m.run(ctx, "ls-tree", "-r", "-z", "--full-tree", tree)
	if err != nil {
		return nil, err
	}
	files := map[string]gitFile{}
	for entry := range strings.SplitSeq(string(raw), "\x00") {
		head, name, _ := strings.Cut(entry, "\t")
		if f := strings.Fields(head); len(f) == 3 {
			files[name] = gitFile{f[0], f[2]}
		}
	}
	return files, nil
}

// file merges one file that both sides changed.
func (m merger) file(ctx context.Context, c treeChange, now gitFile) (gitFile, error) {
	if !now.regular() || !c.from.regular() || c.to.mode != "" && !c.to.regular() {
		return gitFile{}, errConflict
	}
	base, err := m.blob(ctx, c.from)
	if err != nil {
		return gitFile{}, err
	}
	ours, err := m.blob(ctx, now)
	if err != nil {
		return gitFile{}, err
	}
	theirs, err := m.blob(ctx, c.to)
	if err != nil {
		return gitFile{}, err
	}
	var text []byte
	err = errConflict
	if c.to.mode != "" {
		text, err = m.lines(ctx, base, ours, theirs)
	}
	if errors.Is(err, errConflict) && m.section != "" && path.Ext(c.name) == ".md" {
		text, err = withoutSections(base, ours, theirs, m.section)
	}
	if err != nil {
		return gitFile{}, err
	}
	oid, err := m.store(ctx, text)
	return gitFile{now.mode, oid}, err
}

func (m merger) blob(ctx context.Context, f gitFile) ([]byte, error) {
	if f.oid == "" {
		return nil, nil
	}
	return m.run(ctx, "cat-file", "blob", f.oid)
}

func (m merger) store(ctx context.Context, data []byte) (string, error) {
	cmd := m.command(ctx, "hash-object", "-w", "--stdin")
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// lines merges line by line.
func (m merger) lines(ctx context.Context, base, ours, theirs []byte) ([]byte, error) {
	dir, err := m.temp("merge")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := []string{"-c", "merge.conflictStyle=merge", "merge-file", "--stdout", "--quiet"}
	for i, data := range [][]byte{ours, base, theirs} {
		name := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return nil, err
		}
		args = append(args, name)
	}
	out, err := m.command(ctx, args...).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() > 0 {
		return nil, errConflict // the number of conflicts, or 255 for binary files
	}
	return out, err
}

// withoutSections takes a run's entries out of a Markdown file to which later runs have added theirs. It is a conflict
// when the run changed anything else in it.
func withoutSections(base, ours, theirs []byte, run string) ([]byte, error) {
	strip := func(data []byte) string {
		return strings.Join(slices.DeleteFunc(sections(string(data)), func(s string) bool { return strings.Contains(s, run) }), "")
	}
	was, then := strip(base), string(theirs)
	if theirs == nil && len(sections(was)) < 2 { // the run made the file: a title may be left of it
		then = was
	}
	if strings.TrimSpace(was) != strings.TrimSpace(then) {
		return nil, errConflict
	}
	left := strip(ours)
	if left == string(ours) {
		return nil, errConflict
	}
	return []byte(strings.TrimRight(left, "\n") + "\n"), nil
}

// sections cuts a Markdown text before each heading of the second level.
func sections(text string) []string {
	var list []string
	start := 0
	for i := 0; i < len(text); {
		if strings.HasPrefix(text[i:], "## ") && i > start {
			list = append(list, text[start:i])
			start = i
		}
		next := strings.IndexByte(text[i:], '\n')
		if next < 0 {
			break
		}
		i += next + 1
	}
	return append(list, text[start:])
}

// tree makes a tree of a commit's with some files replaced, by way of an index of its own. From is a full object name.
func (m merger) tree(ctx context.Context, from string, files map[string]gitFile) (string, error) {
	dir, err := m.temp("index")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	index := func(in string, args ...string) (string, error) {
		cmd := m.command(ctx, args...)
		cmd.Env = append(cmd.Env, "GIT_INDEX_FILE="+filepath.Join(dir, "index"))
		cmd.Stdin = strings.NewReader(in)
		out, err := cmd.Output()
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(e.Stderr)))
		}
		return strings.TrimSpace(string(out)), err
	}
	if _, err := index("", "read-tree", from); err != nil {
		return "", err
	}
	var entries strings.Builder
	for name, f := range files {
		if f.mode == "" {
			fmt.Fprintf(&entries, "0 %s\t%s\x00", strings.Repeat("0", len(from)), name)
		} else {
			fmt.Fprintf(&entries, "%s %s\t%s\x00", f.mode, f.oid, name)
		}
	}
	if _, err := index(entries.String(), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return index("", "write-tree")
}
