// SPDX-License-Identifier: Apache-2.0

package lockfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// errSharing is ERROR_SHARING_VIOLATION: somebody has the file open for itself.
const errSharing = syscall.Errno(32)

// take opens the file for itself alone; the system closes it with the process.
// The note of a holder cannot be read by others here.
func take(root *os.Root, name string) (*os.File, error) {
	f, err := open(root, name, syscall.OPEN_ALWAYS)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func probe(root *os.Root, name string) (*os.File, bool, error) {
	f, err := open(root, name, syscall.OPEN_EXISTING)
	if errors.Is(err, ErrHeld) {
		return nil, true, nil
	}
	return f, false, err
}

func open(root *os.Root, name string, how uint32) (*os.File, error) {
	path := filepath.Join(root.Name(), name)
	p, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(p, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, how, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, errSharing) {
		return nil, ErrHeld
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(h), path)
	if f == nil {
		return nil, fmt.Errorf("open %s: no file handle", path)
	}
	return f, nil
}
