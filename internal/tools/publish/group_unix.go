// SPDX-License-Identifier: Apache-2.0

//go:build unix

package publish

import (
	"os/exec"
	"syscall"
)

// together makes a command the head of a process group, and has the end of its
// context end the whole group: what make started would go on without make. They are
// asked first, since make and the go command clean up then, and killed when the
// command's WaitDelay is over.
func together(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// killGroup ends what a command left behind in its group.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // ESRCH when all have ended, as they should
	}
}
