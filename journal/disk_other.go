//go:build !linux

package journal

import (
	"os"
	"syscall"
)

// errQuota is a quota that is used up, where the system has the word.
const errQuota = syscall.EDQUOT

func datasync(f *os.File) error { return f.Sync() }
