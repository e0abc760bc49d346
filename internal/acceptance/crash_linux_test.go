// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// mountSmall mounts a file system of so many kilobytes.
func mountSmall(folder string, kb int) error {
	return syscall.Mount("fiducial", folder, "tmpfs", 0, fmt.Sprintf("size=%dk", kb))
}

func unmount(folder string) error { return syscall.Unmount(folder, 0) }

// datasync makes a file's data durable, as stores do.
func datasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// diskBytes is how much this process has sent to the disk.
func diskBytes() int64 {
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		var n int64
		if _, err := fmt.Sscanf(line, "write_bytes: %d", &n); err == nil {
			return n
		}
	}
	return 0
}
