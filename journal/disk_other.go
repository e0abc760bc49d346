//go:build !linux

// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"os"
	"syscall"
)

// errQuota is a quota that is used up, where the system has the word.
const errQuota = syscall.EDQUOT

func datasync(f *os.File) error { return f.Sync() }
