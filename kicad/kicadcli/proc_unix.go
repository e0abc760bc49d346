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

// killed reports whether a run was ended from outside rather than by a fault in the program.
func (run Run) killed() bool {
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGXCPU, syscall.SIGXFSZ} {
		if run.Signal == s.String() {
			return true
		}
	}
	return false
}

// owned reports whether a file is this user's.
func owned(st os.FileInfo) bool {
	s, ok := st.Sys().(*syscall.Stat_t)
	return ok && int64(s.Uid) == int64(os.Geteuid())
}

// take locks a file for as long as this process lives, and reports whether it could.
func take(f *os.File) bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }
