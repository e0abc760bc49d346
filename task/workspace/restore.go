// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
)

// Restored says what Restore did.
type Restored struct {
	Written []string // files that were put back
	Removed []string // files that the run had made

	// HeadMoved says that something else committed or switched branches since the
	// snapshot; Head is where it stands now. Foreign lists the paths which that
	// changed and which differ from the snapshot: they were left as they are.
	HeadMoved bool
	Head      Head
	Foreign   []string
}

// Restore makes the working tree what it was at the snapshot: the bytes, modes and
// links of tracked and of untracked files, and no file or folder besides (B-56,
// B-57). Only paths that differ are touched. The index stays as it is, HEAD is
// never moved, and what was ignored is left alone. Each file changes at once or
// not at all, so that Restore may be killed and called again, also by another
// process on a reopened snapshot.
//
// It goes on after a path that cannot be put back, and then fails with
// KindBlocked or KindIO and those paths. When a foreign commit
// touched paths that the snapshot has otherwise, these are left and the error is
// KindHeadMoved (B-59). The result is valid with every error.
func (s *Snapshot) Restore(ctx context.Context) (Restored, error) {
	const op = "restore"
	if s.committed != "" {
		return Restored{}, &Error{
			Kind: KindCommitted, Op: op, Err: fmt.Errorf("run %s is committed as %s", s.run, s.committed),
			Advice: "undo it with git revert, or release the snapshot",
		}
	}
	var res Restored
	foreign, err := s.foreign(ctx, &res)
	if err != nil {
		return res, fail(op, err)
	}
	t, err := s.r.openTree()
	if err != nil {
		return res, fail(op, err)
	}
	defer t.close()
	changes, dirs, err := s.changed(ctx, t)
	if err != nil {
		return res, fail(op, err)
	}
	changes = slices.DeleteFunc(changes, func(c Change) bool {
		_, is := foreign[c.Path]
		if is {
			res.Foreign = append(res.Foreign, c.Path)
		}
		return is
	})
	m := &mender{s: s, t: t, res: &res}
	m.removeNew(changes)
	m.removeDirs(dirs)
	t.forgetDirs()
	if err := m.writeBack(ctx, changes); err != nil {
		return res, fail(op, err)
	}
	m.makeDirs()
	if err := s.removeTemp(); err != nil {
		m.failed(own, err)
	}
	return res, m.verdict(&res)
}

// foreign lists the paths that differ between the snapshot's HEAD and today's.
func (s *Snapshot) foreign(ctx context.Context, res *Restored) (map[string]pair, error) {
	head, err := s.r.Head(ctx)
	if err != nil {
		return nil, err
	}
	res.Head, res.HeadMoved = head, head != s.head
	if head.Commit == s.head.Commit {
		return nil, nil
	}
	return s.r.diffTrees(ctx, s.head.Commit, head.Commit)
}

// A mender puts paths back one after the other and collects what went wrong.
type mender struct {
	s       *Snapshot
	t       *tree
	res     *Restored
	blocked []string
	errs    []error
	n       int
}

func (m *mender) failed(p string, err error) {
	m.blocked = append(m.blocked, p)
	m.errs = append(m.errs, err)
}

func (m *mender) removeNew(changes []Change) {
	for _, c := range changes {
		if c.Kind != Added {
			continue
		}
		if err := m.t.root.Remove(filepath.FromSlash(c.Path)); err != nil && !gone(err) {
			m.failed(c.Path, err)
			continue
		}
		m.res.Removed = append(m.res.Removed, c.Path)
	}
}

// removeDirs removes folders that the run made, the deepest first. One that holds
// something, which can only be ignored or a repository of its own, stays.
func (m *mender) removeDirs(dirs []string) {
	known := parentsOf(m.s.files)
	for _, d := range m.s.dirs {
		known[d] = true
	}
	slices.Sort(dirs)
	for _, d := range slices.Backward(dirs) {
		if known[d] || m.s.r.excluded(d) {
			continue
		}
		err := m.t.root.Remove(filepath.FromSlash(d))
		if err != nil && !gone(err) && !notEmpty(err) {
			m.failed(d, err)
		}
	}
}

func (m *mender) writeBack(ctx context.Context, changes []Change) error {
	if !slices.ContainsFunc(changes, func(c Change) bool { return c.Kind != Added }) {
		return nil
	}
	if err := m.t.root.MkdirAll(m.s.temp(), 0o700); err != nil {
		return err
	}
	cat, err := m.s.r.git.cat(ctx)
	if err != nil {
		return err
	}
	defer func() { cat.close() }()
	for _, c := range changes {
		if c.Kind == Added {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := m.write(cat, c); err != nil {
			m.failed(c.Path, err)
			cat.close() // a copy that broke off may leave the rest of its object in the pipe
			next, err := m.s.r.git.cat(ctx)
			if err != nil {
				return err
			}
			cat = next
			continue
		}
		m.res.Written = append(m.res.Written, c.Path)
	}
	return nil
}

var errInTheWay = errors.New("something that is not the run's is in the way")

// write puts one file back: it is written in full beside the tree, then renamed.
func (m *mender) write(cat *catFile, c Change) error {
	if err := m.parents(c.Path); err != nil {
		return err
	}
	if st, err := m.t.lstat(c.Path); err != nil {
		return err
	} else if st != nil && st.IsDir() {
		return errInTheWay
	}
	m.n++
	temp := m.s.temp() + "/" + strconv.Itoa(m.n)
	_ = m.t.root.Remove(filepath.FromSlash(temp)) // left by a restore that was killed
	if err := m.writeTemp(cat, filepath.FromSlash(temp), c); err != nil {
		_ = m.t.root.Remove(filepath.FromSlash(temp)) // the first error counts
		return err
	}
	return patiently(func(err error) bool { return busy(runtime.GOOS, err) }, func() error {
		return m.t.root.Rename(filepath.FromSlash(temp), filepath.FromSlash(c.Path))
	})
}

func (m *mender) writeTemp(cat *catFile, temp string, c Change) error {
	if c.was.mode == modeLink && !c.was.plain {
		var target limited
		if err := cat.copy(&target, c.was.oid); err != nil {
			return err
		}
		return m.t.root.Symlink(string(target), temp)
	}
	perm, special := m.s.perms[c.Path]
	if !special {
		perm = 0o644
		if c.was.mode == modeExec {
			perm = 0o755
		}
	}
	f, err := m.t.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(cat.copy(f, c.was.oid), f.Chmod(perm), f.Sync())
	return errors.Join(err, f.Close())
}

// limited collects the target of a link.
type limited []byte

func (l *limited) Write(b []byte) (int, error) {
	if len(*l)+len(b) > 64<<10 {
		return 0, errors.New("the target of a link is longer than 64 KiB")
	}
	*l = append(*l, b...)
	return len(b), nil
}

// parents makes the folders above p, which are real folders and no links: a link
// could lead the content elsewhere.
func (m *mender) parents(p string) error {
	dir := path.Dir(p)
	if ok, err := m.t.realDir(dir); err != nil || ok {
		return err
	}
	if err := m.parents(dir); err != nil {
		return err
	}
	m.t.forgetDirs()
	st, err := m.t.lstat(dir)
	switch {
	case err != nil:
		return err
	case st == nil:
		return m.t.root.Mkdir(filepath.FromSlash(dir), 0o777)
	case !st.IsDir():
		return errInTheWay
	}
	return nil
}

// makeDirs brings back folders that held no file of the user's.
func (m *mender) makeDirs() {
	for _, d := range m.s.dirs {
		st, err := m.t.lstat(d)
		if err == nil && st == nil {
			if err = m.parents(d + "/x"); err == nil {
				continue
			}
		}
		if err != nil {
			m.failed(d, err)
		}
	}
}

// verdict is what the caller must know, the worst first.
func (m *mender) verdict(res *Restored) error {
	const op = "restore"
	if err := errors.Join(m.errs...); err != nil {
		kind := KindIO
		advice := "see why, then restore again: what was put back stays"
		if errors.Is(err, errInTheWay) {
			kind, advice = KindBlocked, "move it away, then restore again"
		}
		return &Error{Kind: kind, Op: op, Paths: m.blocked, Err: m.errs[0], Advice: advice}
	}
	if len(res.Foreign) > 0 {
		return &Error{
			Kind: KindHeadMoved, Op: op, Paths: res.Foreign,
			Err:    fmt.Errorf("HEAD moved from %s to %s during the run; files that this changed were left alone", m.s.head, res.Head),
			Advice: "compare them with " + refPrefix + m.s.run + ":raw",
		}
	}
	return nil
}

func (h Head) String() string {
	short := h.Commit[:min(len(h.Commit), 10)]
	if h.Branch == "" {
		return short
	}
	return short + " (" + h.Branch + ")"
}

// temp is the folder in which files are written before they are renamed.
func (s *Snapshot) temp() string { return own + "/restore-" + s.run }

func (s *Snapshot) removeTemp() error {
	root, err := os.OpenRoot(s.r.top)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	err = root.RemoveAll(filepath.FromSlash(s.temp()))
	if gone(err) {
		return nil
	}
	return err
}
