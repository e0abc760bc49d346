// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// A scratch is an index of ours beside the real one, in a temporary folder.
type scratch struct {
	r    *Repo
	dir  *tempDir
	file string
}

func (r *Repo) newScratch() (*scratch, error) {
	dir, err := makeTemp("index")
	if err != nil {
		return nil, err
	}
	return &scratch{r: r, dir: dir, file: dir.in("index")}, nil
}

func (s *scratch) close() { s.dir.remove() }

func (s *scratch) env() []string { return []string{"GIT_INDEX_FILE=" + s.file} }

// git runs a command on this index. Split and shared index files would be left
// behind in the repository, and names that other systems cannot have are none of
// our business here.
func (s *scratch) git(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	pre := []string{
		"-c", "core.splitIndex=false", "-c", "core.fsmonitor=false", "-c", "core.protectNTFS=false",
		"-c", "core.protectHFS=false", "-c", "core.safecrlf=false", "-c", "core.fsync=all",
	}
	return s.r.git.run(ctx, call{args: append(pre, args...), in: in, env: s.env()})
}

// copyReal starts from the user's index. A repository may have none yet.
func (s *scratch) copyReal(ctx context.Context) error {
	p, err := s.r.gitPath(ctx, "index")
	if err != nil {
		return err
	}
	b, err := os.ReadFile(p)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(s.file, b, 0o600)
}

func (s *scratch) readTree(ctx context.Context, treeish string) error {
	_, err := s.git(ctx, nil, "read-tree", treeish)
	return err
}

// stage takes what changed from the working tree as git add does, with git's
// filters. Deletions come first, and not from the tree: above a deleted path there
// may be a link now, which git refuses to look behind.
func (s *scratch) stage(ctx context.Context, changes []Change) error {
	gone := map[string]state{}
	var there []string
	for _, c := range changes {
		if c.Kind == Deleted {
			gone[c.Path] = state{}
		} else {
			there = append(there, c.Path)
		}
	}
	if err := s.put(ctx, gone); err != nil || len(there) == 0 {
		return err
	}
	_, err := s.git(ctx, bytes.NewReader(joinNames(there)), "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
	return err
}

// put sets entries; a state without mode removes one.
func (s *scratch) put(ctx context.Context, entries map[string]state) error {
	if len(entries) == 0 {
		return nil
	}
	var b bytes.Buffer
	for _, removals := range []bool{true, false} { // a file may stand where a folder was
		for _, p := range sortedKeys(entries) {
			e := entries[p]
			if removals != (e.mode == 0) {
				continue
			}
			if e.mode == 0 {
				e.oid = strings.Repeat("0", 40)
				if s.r.format == "sha256" {
					e.oid = strings.Repeat("0", 64)
				}
			}
			fmt.Fprintf(&b, "%06o %s\t%s\x00", e.mode, e.oid, p)
		}
	}
	_, err := s.git(ctx, &b, "update-index", "--add", "--replace", "-z", "--index-info")
	return err
}

func (s *scratch) writeTree(ctx context.Context) (string, error) {
	out, err := s.git(ctx, nil, "write-tree")
	return strings.TrimSpace(string(out)), err
}

// list returns the entries of stage 0, submodules included.
func (s *scratch) list(ctx context.Context) (map[string]state, error) {
	out, err := s.git(ctx, nil, "ls-files", "--stage", "-z")
	if err != nil {
		return nil, err
	}
	return parseStage(out)
}

// parseStage reads "<mode> <oid> <stage>\t<path>\0".
func parseStage(out []byte) (map[string]state, error) {
	m := map[string]state{}
	for _, l := range splitNames(out) {
		head, p, ok := strings.Cut(l, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 3 {
			return nil, fmt.Errorf("git ls-files answered %q", l)
		}
		mode, err := strconv.ParseUint(f[0], 8, 32)
		if err != nil {
			return nil, err
		}
		if f[2] == "0" {
			m[p] = state{mode: uint32(mode), oid: f[1]}
		}
	}
	return m, nil
}

// listTree returns the files of a tree, submodules included.
func (r *Repo) listTree(ctx context.Context, treeish string) (map[string]state, error) {
	out, err := r.git.run(ctx, call{args: []string{"ls-tree", "-r", "-z", "--full-tree", treeish}})
	if err != nil {
		return nil, err
	}
	m := map[string]state{}
	for _, l := range splitNames(out) { // "<mode> <type> <oid>\t<path>"
		head, p, ok := strings.Cut(l, "\t")
		f := strings.Fields(head)
		if !ok || len(f) != 3 {
			return nil, fmt.Errorf("git ls-tree answered %q", l)
		}
		mode, err := strconv.ParseUint(f[0], 8, 32)
		if err != nil {
			return nil, err
		}
		m[p] = state{mode: uint32(mode), oid: f[2]}
	}
	return m, nil
}

// A pair is what a path is on both sides of a comparison; mode 0 is absence.
type pair struct{ from, to state }

// diffTrees returns the paths that differ between two trees.
func (r *Repo) diffTrees(ctx context.Context, from, to string) (map[string]pair, error) {
	out, err := r.git.run(ctx, call{args: []string{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", from, to}})
	if err != nil {
		return nil, err
	}
	l := splitNames(out) // ":<mode> <mode> <oid> <oid> <status>\0<path>\0"
	m := map[string]pair{}
	for i := 0; i+1 < len(l); i += 2 {
		f := strings.Fields(strings.TrimPrefix(l[i], ":"))
		if len(f) != 5 {
			return nil, fmt.Errorf("git diff-tree answered %q", l[i])
		}
		a, err1 := strconv.ParseUint(f[0], 8, 32)
		b, err2 := strconv.ParseUint(f[1], 8, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		m[l[i+1]] = pair{present(a, f[2]), present(b, f[3])}
	}
	return m, nil
}

// present is a side of a comparison; git writes absence as mode 0 and a name of zeros.
func present(mode uint64, oid string) state {
	if mode == 0 {
		return state{}
	}
	return state{mode: uint32(mode), oid: oid}
}

// storeBlob stores bytes as they are and returns their name.
func (r *Repo) storeBlob(ctx context.Context, b []byte) (string, error) {
	out, err := r.git.run(ctx, call{args: []string{"-c", "core.fsync=all", "hash-object", "-w", "--stdin"}, in: bytes.NewReader(b)})
	return strings.TrimSpace(string(out)), err
}

// readBlob returns the content of a blob that is known to be small.
func (r *Repo) readBlob(ctx context.Context, name string) ([]byte, error) {
	return r.git.run(ctx, call{args: []string{"cat-file", "blob", name}})
}
