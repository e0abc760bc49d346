// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A placer puts the user's files and folders into a view, as links. On Windows a link needs a privilege: without it a
// copy takes its place. A hard link would need none, but removing it takes the write protection off the user's file.
type placer struct {
	goos    string
	symlink func(target, name string) error

	copies bool // no link can be made here
	files  int  // that were copied
	bytes  int64
}

// What a view takes at most where there are no links. Only a file of KiCad's may be larger than maxOther: of others,
// kicad-cli reads simulation models at most.
const (
	maxCopies = 50_000
	maxCopied = 2 << 30
	maxOther  = 16 << 20
)

var errTooMuch = fmt.Errorf("links cannot be made here, and there is more than can be copied for kicad-cli (%d files or %d MiB): let the system make links, on Windows by turning on Developer Mode",
	maxCopies, maxCopied>>20)

// place makes to stand for from.
func (p *placer) place(from, to string) error {
	if !p.copies {
		err := p.symlink(from, to)
		if err == nil || p.goos != windows || errors.Is(err, fs.ErrExist) {
			return err
		}
		p.copies = true
	}
	return p.copy(from, to, nil)
}

// copy copies a file, or a folder with all that kicad-cli may want of it. What is not there, what may not be read and
// what is no file is left out: a link to it would help nobody. above are the folders that from is in.
func (p *placer) copy(from, to string, above []fs.FileInfo) error {
	st, err := os.Stat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return nil
	case err != nil:
		return err
	case st.IsDir():
		if slices.ContainsFunc(above, func(up fs.FileInfo) bool { return os.SameFile(up, st) }) {
			return nil // a link to a folder that it is in
		}
		return p.copyFolder(from, to, append(above, st))
	case !st.Mode().IsRegular() || st.Size() > maxOther && !ofKiCad(st.Name()) && !ofKiCad(filepath.Base(from)):
		return nil
	}
	p.files++
	p.bytes += st.Size()
	if p.files > maxCopies || p.bytes > maxCopied {
		return errTooMuch
	}
	if err := copyFile(from, to); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

func (p *placer) copyFolder(from, to string, above []fs.FileInfo) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err = errors.Join(err, os.Mkdir(to, 0o700)); err != nil {
		return err
	}
	for _, e := range entries {
		if unwanted(e.Name()) || e.Name() == "node_modules" {
			continue
		}
		if err := p.copy(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()), above); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// unwanted tells what no view holds: what only git and this program use, and KiCad's lock files.
func unwanted(name string) bool { return name == ".git" || name == ".fiducial" || isLock(name) }
