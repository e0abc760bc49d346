// SPDX-License-Identifier: Apache-2.0

package project

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// MaxFile is how large a file of a design may be, in bytes. The largest board among KiCad's own demos has 70 MB.
const MaxFile = 512 << 20

// A FileKind says what is wrong with a file.
type FileKind uint8

// The kinds of [FileError]. A file that is not there is [fs.ErrNotExist] instead.
const (
	NotRegular FileKind = iota + 1 // a pipe, a socket, a device, or a folder
	Outside                        // a link leads out of the repository
	TooLarge                       // it has more bytes than are read
	Pointer                        // Git LFS keeps the content elsewhere
	Denied                         // it may not be read
)

// A FileError says why a file is not read, and what to do. It is told at once: nothing that could be waited for is opened.
type FileError struct {
	Kind   FileKind
	Path   string // relative to the file system, with slashes
	Detail string // reads on from the path
	Err    error  // the cause, may be nil
}

func (e *FileError) Error() string { return e.Path + " " + e.Detail }

func (e *FileError) Unwrap() error { return e.Err }

// Read reads a regular file of at most so many bytes; most 0 means [MaxFile]. Any fsys will do; with [Files] no other
// program can put a pipe in the file's place between the look at it and its opening. The error is a [*FileError], or one
// that [errors.Is] finds to be [fs.ErrNotExist], or another of the file system.
func Read(fsys fs.FS, name string, most int64) ([]byte, error) {
	if most == 0 {
		most = MaxFile
	}
	st, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, fileError(name, err)
	}
	if err := regular(name, st); err != nil {
		return nil, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fileError(name, err)
	}
	defer func() { _ = f.Close() }()
	if st, err = f.Stat(); err != nil {
		return nil, fileError(name, err)
	}
	if err := regular(name, st); err != nil {
		return nil, err
	}
	if st.Size() > most {
		return nil, tooLarge(name, most)
	}
	var data bytes.Buffer
	data.Grow(int(st.Size()) + bytes.MinRead)
	n, err := data.ReadFrom(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fileError(name, err)
	case n > most: // it grows
		return nil, tooLarge(name, most)
	}
	return data.Bytes(), isContent(name, data.Bytes())
}

// peek is the beginning of a regular file, as far as it can be read.
func peek(fsys fs.FS, name string, most int) []byte {
	if st, err := fs.Stat(fsys, name); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, most)
	n, _ := io.ReadFull(f, head) // what there is
	return head[:n]
}

// Look tells what [Read] would refuse a file for, its size aside, without reading more of it than its beginning.
func Look(fsys fs.FS, name string) error {
	st, err := fs.Stat(fsys, name)
	if err != nil {
		return fileError(name, err)
	}
	if err := regular(name, st); err != nil {
		return err
	}
	return isContent(name, peek(fsys, name, len(pointer)))
}

// pointer is how a file begins that stands for one which Git LFS keeps elsewhere
// (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md).
const pointer = "version https://git-lfs.github.com/spec/"

// IsPointer reports whether a file's bytes are a pointer of Git LFS in the place of the content.
func IsPointer(data []byte) bool { return bytes.HasPrefix(data, []byte(pointer)) }

func isContent(name string, data []byte) error {
	if !IsPointer(data) {
		return nil
	}
	return &FileError{
		Kind: Pointer, Path: name,
		Detail: "is a Git LFS pointer, and the file itself is not here; fetch it (install git-lfs, then: git lfs install && git lfs pull)",
	}
}

func tooLarge(name string, most int64) error {
	text := fmt.Sprintf("%d bytes", most)
	if most >= 1<<20 {
		text = fmt.Sprintf("%d MB", most>>20)
	}
	return &FileError{Kind: TooLarge, Path: name, Detail: "has more than " + text + " and is not read"}
}

// regular refuses what is no regular file.
func regular(name string, st fs.FileInfo) error {
	if st.Mode().IsRegular() {
		return nil
	}
	return &FileError{Kind: NotRegular, Path: name, Detail: "is " + kindOfFile(st.Mode()) + ", and only files are read; put the file itself there"}
}

func kindOfFile(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something unusual"
}

// fileError puts a file system's error into words.
func fileError(name string, err error) error {
	e, known := errors.AsType[*FileError](err)
	switch {
	case known:
		return e
	case errors.Is(err, fs.ErrPermission):
		return &FileError{Kind: Denied, Path: name, Detail: "may not be read: permission denied", Err: err}
	case strings.Contains(err.Error(), "escapes"): // os.Root has no sentinel for it (Go 1.26)
		return &FileError{Kind: Outside, Path: name, Detail: "leads out of the repository by a link, and nothing outside is read; put the file itself there", Err: err}
	}
	return err
}

// Files is the file system below a root for reading designs and documents: nothing outside the root, and neither pipes
// nor sockets nor devices, which a reader would wait for. Those are a [*FileError] when they are opened; a folder's
// listing shows them. Its ReadFile is [Read].
func Files(root *os.Root) fs.FS { return files{root} }

type files struct{ root *os.Root }

func (f files) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	here := filepath.FromSlash(name)
	st, err := f.root.Stat(here) // first, for opening a device may do something
	if err != nil {
		return nil, fileError(name, err)
	}
	if !st.IsDir() {
		if err := regular(name, st); err != nil {
			return nil, err
		}
	}
	file, err := f.root.OpenFile(here, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, fileError(name, err)
	}
	if st, err = file.Stat(); err == nil && !st.IsDir() {
		err = regular(name, st)
	}
	if err != nil {
		_ = file.Close()
		return nil, fileError(name, err)
	}
	return file, nil
}

func (f files) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	st, err := f.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, fileError(name, err)
	}
	return st, nil
}

func (f files) ReadFile(name string) ([]byte, error) { return Read(f, name, 0) }
