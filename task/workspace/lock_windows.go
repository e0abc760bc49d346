// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

// tryLock locks one byte far behind the content, so that others may read who holds
// the file: locks are mandatory here. The handle's end frees it. See LockFileEx,
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex.
func tryLock(f *os.File) error {
	const failImmediately, exclusive = 1, 2
	const lockViolation = syscall.Errno(33)
	at := syscall.Overlapped{OffsetHigh: 1 << 30}
	ok, _, err := syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx").Call(
		f.Fd(), failImmediately|exclusive, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
	if ok != 0 {
		return nil
	}
	if errors.Is(err, lockViolation) {
		return errHeld
	}
	return err
}

func ofThisUser(fs.FileInfo) bool { return true }
