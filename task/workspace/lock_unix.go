//go:build unix

// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// tryLock takes an advisory lock that is freed with the last descriptor of f.
// Descriptors are not inherited by the programs that we start: Go opens files
// with O_CLOEXEC.
func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errHeld
	}
	return err
}

// ofThisUser reports whether a file is this user's.
func ofThisUser(st fs.FileInfo) bool {
	s, ok := st.Sys().(*syscall.Stat_t)
	return ok && int64(s.Uid) == int64(os.Geteuid())
}
