// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"crypto/sha1" //nolint:gosec // git's object names
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Git's modes of files; see gitformat-index.
const (
	modeFile = 0o100644
	modeExec = 0o100755
	modeLink = 0o120000
)

// A state is what stands at a path: a regular file or a symbolic link. oid is
// git's name for its bytes as they are, with no filter.
type state struct {
	mode  uint32
	oid   string
	plain bool // a link that stands as a file with the target in it, because Repo.links is false
}

// A tree reads the working tree through an os.Root. It follows no symbolic link:
// what is behind one is not at that path. It is made for one operation, and is
// not safe for concurrent use.
type tree struct {
	r    *Repo
	root *os.Root
	dirs map[string]bool
	buf  []byte
}

func (r *Repo) openTree() (*tree, error) {
	root, err := os.OpenRoot(r.top)
	if err != nil {
		return nil, err
	}
	return &tree{r: r, root: root, dirs: map[string]bool{".": true}, buf: make([]byte, 128<<10)}, nil
}

func (t *tree) close() { _ = t.root.Close() }

// gone reports whether err means that nothing is at a path.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// realDir reports whether dir and all above it are folders, not links to some.
func (t *tree) realDir(dir string) (bool, error) {
	if known, ok := t.dirs[dir]; ok {
		return known, nil
	}
	up, err := t.realDir(path.Dir(dir))
	if err != nil {
		return false, err
	}
	if up {
		st, err := t.root.Lstat(filepath.FromSlash(dir))
		if err != nil && !gone(err) {
			return false, err
		}
		up = err == nil && st.IsDir()
	}
	t.dirs[dir] = up
	return up, nil
}

// forgetDirs is called after folders were made or removed.
func (t *tree) forgetDirs() { t.dirs = map[string]bool{".": true} }

// lstat returns nil when nothing is at p.
func (t *tree) lstat(p string) (fs.FileInfo, error) {
	if ok, err := t.realDir(path.Dir(p)); err != nil || !ok {
		return nil, err
	}
	st, err := t.root.Lstat(filepath.FromSlash(p))
	if err != nil {
		if gone(err) {
			return nil, nil
		}
		return nil, err
	}
	return st, nil
}

// at is the state of p, or false when no file and no link is there. A folder, a
// pipe or a socket is none. was is the mode that git has for p, or 0: it decides
// where the file system knows no executable bit, or no links.
func (t *tree) at(p string, was uint32) (state, fs.FileMode, bool, error) {
	st, err := t.lstat(p)
	if err != nil || st == nil {
		return state{}, 0, false, err
	}
	switch {
	case st.Mode()&fs.ModeSymlink != 0:
		target, err := t.target(p)
		if err != nil {
			return state{}, 0, false, skipGone(err)
		}
		oid, err := t.r.hash(int64(len(target)), strings.NewReader(target), t.buf)
		return state{mode: modeLink, oid: oid}, st.Mode(), true, err
	case st.Mode().IsRegular():
		oid, err := t.hashFile(p)
		if err != nil {
			return state{}, 0, false, skipGone(err)
		}
		mode := t.gitMode(st.Mode(), was)
		return state{mode: mode, oid: oid, plain: mode == modeLink}, st.Mode(), true, nil
	}
	return state{}, 0, false, nil
}

// target is where a link leads, with slashes, as git stores it.
func (t *tree) target(p string) (string, error) {
	target, err := t.root.Readlink(filepath.FromSlash(p))
	return filepath.ToSlash(target), err
}

func skipGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}

// gitMode is git's mode of a regular file (ce_mode_from_stat in its read-cache.h).
func (t *tree) gitMode(m fs.FileMode, was uint32) uint32 {
	if !t.r.links && was == modeLink {
		return modeLink
	}
	if !t.r.fileMode {
		if was == modeExec {
			return modeExec
		}
		return modeFile
	}
	if m&0o100 != 0 {
		return modeExec
	}
	return modeFile
}

var errUnsteady = errors.New("the file changes while it is read")

// hashFile names the content of a regular file. A file that another program is
// writing at the moment is tried again.
func (t *tree) hashFile(p string) (string, error) {
	var last error
	for range 3 {
		oid, err := t.hashOnce(p)
		if !errors.Is(err, errUnsteady) {
			return oid, err
		}
		last = err
	}
	return "", last
}

func (t *tree) hashOnce(p string) (string, error) {
	f, err := t.root.Open(filepath.FromSlash(p))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	return t.r.hash(st.Size(), f, t.buf)
}

// hash is git's object name for a blob: the hash of "blob <size>", a zero byte
// and the content (gitformat-loose; git help hash-object).
func (r *Repo) hash(size int64, in io.Reader, buf []byte) (string, error) {
	var h hash.Hash
	if r.format == "sha256" {
		h = sha256.New()
	} else {
		h = sha1.New() //nolint:gosec // git's object names
	}
	fmt.Fprintf(h, "blob %d\x00", size)
	n, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{in}, buf)
	if err != nil {
		return "", err
	}
	if n != size {
		return "", errUnsteady
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// read returns the bytes of p: of a link, its target.
func (t *tree) read(p string, is state) ([]byte, error) {
	if is.mode == modeLink && !is.plain {
		target, err := t.target(p)
		return []byte(target), err
	}
	f, err := t.root.Open(filepath.FromSlash(p))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > t.r.maxFile {
		return nil, fmt.Errorf("%d bytes, more than the %d that a snapshot stores", st.Size(), t.r.maxFile)
	}
	return io.ReadAll(f)
}

// walk visits every folder and file below the top that is not git's, ours, in
// skip, or in a repository of its own. Folders come before what is in them.
func (t *tree) walk(skip nameSet, visit func(p string, dir bool)) error {
	return t.walkDir(".", skip, visit)
}

func (t *tree) list(dir string) ([]fs.DirEntry, error) {
	f, err := t.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}

func (t *tree) walkDir(dir string, skip nameSet, visit func(p string, dir bool)) error {
	entries, err := t.list(dir)
	if gone(err) {
		return nil
	}
	if err != nil {
		return &Error{Kind: KindUnreadable, Op: "look", Paths: []string{dir}, Err: err, Advice: "make the folder readable, or ignore it in .gitignore"}
	}
	if dir != "." {
		for _, e := range entries {
			if e.Name() == ".git" {
				return nil
			}
		}
		visit(dir, true)
	}
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		switch {
		case dir == "." && (e.Name() == ".git" || e.Name() == own):
		case e.IsDir():
			if !skip[p+"/"] {
				if err := t.walkDir(p, skip, visit); err != nil {
					return err
				}
			}
		case e.Type().IsRegular() || e.Type()&fs.ModeSymlink != 0:
			if !skip[p] {
				visit(p, false)
			}
		}
	}
	return nil
}

// notEmpty reports whether a folder could not be removed because of what is in it.
func notEmpty(err error) bool { return errors.Is(err, fs.ErrExist) }
