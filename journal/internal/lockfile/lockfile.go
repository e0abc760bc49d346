// SPDX-License-Identifier: Apache-2.0

// Package lockfile holds locks that the kernel frees when the process that took
// them ends in any way. They hold on one machine only, never on a network file
// system.
package lockfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// ErrHeld says that the lock is taken, in this process or another.
var ErrHeld = errors.New("the lock is held")

// maxNote bounds what is read from a lock file.
const maxNote = 4 << 10

// A Lock is a lock that is held.
type Lock struct {
	root *os.Root
	name string
	file *os.File
	mine os.FileInfo // of file, to know it by
}

// Take takes the lock that the file name in root stands for, making the file when
// it is missing. It does not wait: [ErrHeld] when somebody has it.
func Take(root *os.Root, name string) (*Lock, error) {
	const tries = 6 // a probe holds a lock for microseconds
	for try := 1; ; try++ {
		f, err := take(root, name)
		if err == nil {
			l := &Lock{root: root, name: name, file: f}
			if l.mine, err = f.Stat(); err == nil && l.Valid() {
				return l, nil
			}
			err = cmp.Or(err, fmt.Errorf("the lock file %s was replaced", name))
			_ = f.Close() // it held nothing
		}
		if try == tries {
			return nil, err
		}
		if errors.Is(err, ErrHeld) {
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// Valid reports whether the lock file is still the one that was locked. It is not
// when somebody removed it, and then another process may hold the lock as well.
func (l *Lock) Valid() bool {
	now, err := l.root.Stat(l.name)
	return err == nil && os.SameFile(l.mine, now)
}

// Note is what the last holder wrote into the file, spaces at its end apart; empty
// when nobody did.
func (l *Lock) Note() ([]byte, error) {
	note, err := io.ReadAll(io.NewSectionReader(l.file, 0, maxNote))
	return bytes.TrimRight(note, " "), err
}

// SetNote writes into the file. It does not shorten the file, which would make some
// file systems flush it: a note that is shorter than the last one ends in spaces.
func (l *Lock) SetNote(note []byte) error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if pad := min(info.Size(), maxNote) - int64(len(note)); pad > 0 {
		note = append(bytes.Clone(note), bytes.Repeat([]byte{' '}, int(pad))...)
	}
	_, err = l.file.WriteAt(note, 0)
	return err
}

// Free frees the lock. The file stays.
func (l *Lock) Free() error { return l.file.Close() }

// Probe reports whether the lock is held, and the note of the holder or of the
// last one.
func Probe(root *os.Root, name string) (held bool, note []byte, err error) {
	f, held, err := probe(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil, nil
	case err != nil || f == nil:
		return held, nil, err
	}
	note, err = io.ReadAll(io.LimitReader(f, maxNote))
	return held, bytes.TrimRight(note, " "), errors.Join(err, f.Close())
}
