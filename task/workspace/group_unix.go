//go:build unix

// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the command a process group of its own, which ends with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
