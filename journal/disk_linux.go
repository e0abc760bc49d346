// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"os"
	"syscall"
)

// errQuota is a quota that is used up.
const errQuota = syscall.EDQUOT

// datasync is fdatasync(2), which leaves out the times that nobody reads.
func datasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
