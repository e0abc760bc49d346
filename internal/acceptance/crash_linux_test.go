package acceptance

import (
	"fmt"
	"syscall"
)

// mountSmall mounts a file system of so many kilobytes.
func mountSmall(folder string, kb int) error {
	return syscall.Mount("fiducial", folder, "tmpfs", 0, fmt.Sprintf("size=%dk", kb))
}

func unmount(folder string) error { return syscall.Unmount(folder, 0) }
