// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/fiducial-dev/fiducial/journal/internal/folder"
)

// disk is what a [Folder] does to its files. Tests put faults under it.
type disk interface {
	Open(name string, flag int) (diskFile, error)
	Stat(name string) (fs.FileInfo, error)
	Mkdir(name string) error
	Rename(old, name string) error
	RemoveAll(name string) error
	ReadDir(name string) ([]fs.DirEntry, error)

	// SyncDir makes names in a folder durable.
	SyncDir(name string) error
}

type diskFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error

	// Sync makes the file's data durable, and its size.
	Sync() error
}

// rootDisk is a folder of the system; no name leads out of it.
type rootDisk struct {
	root *os.Root
	sync bool
}

func (d rootDisk) Open(name string, flag int) (diskFile, error) {
	f, err := d.root.OpenFile(name, flag, 0o644)
	if err != nil {
		return nil, err
	}
	return rootFile{f, d.sync}, nil
}

func (d rootDisk) Stat(name string) (fs.FileInfo, error) { return d.root.Stat(name) }
func (d rootDisk) Mkdir(name string) error               { return d.root.Mkdir(name, 0o755) }
func (d rootDisk) Rename(old, name string) error         { return d.root.Rename(old, name) }
func (d rootDisk) RemoveAll(name string) error           { return d.root.RemoveAll(name) }

func (d rootDisk) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(d.root.FS(), name)
}

func (d rootDisk) SyncDir(name string) error {
	if !d.sync {
		return nil
	}
	f, err := d.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(f), f.Close())
}

type rootFile struct {
	*os.File
	sync bool
}

func (f rootFile) Sync() error {
	if !f.sync {
		return nil
	}
	return datasync(f.File)
}

// storeError tells a full disk from other failures.
func storeError(op, run string, err error) error {
	kind := KindStorage
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EFBIG) || errors.Is(err, errQuota) {
		kind = KindFull
	}
	return &Error{Kind: kind, Op: op, Run: run, Err: err}
}
