//go:build unix

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"syscall"
)

// lockOwner locks a file until it is closed, or the process ends. Free is false when another process holds it.
func lockOwner(f *os.File) (free bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// ours reports whether a file belongs to the user who runs this.
func ours(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}
