//go:build unix

// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup starts the command as the leader of a process group, and kills the group when its context ends.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// signal names the signal that ended a process, "" for none. A shell reports it as 128 + its number.
func signal(state *os.ProcessState) string {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	if n := state.ExitCode() - 128; n > 0 && n < 32 {
		return syscall.Signal(n).String()
	}
	return ""
}
