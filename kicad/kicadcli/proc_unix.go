//go:build unix

// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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

// own marks a private folder as this process's. The file gets its name only when it is locked, so that nobody who finds
// it can take it first.
func own(home string) (*os.File, error) {
	f, err := os.CreateTemp(home, ownerFile+"-")
	if err != nil {
		return nil, err
	}
	take(f) // a file system without locks has no owners either: see sweep
	if err := os.Rename(f.Name(), filepath.Join(home, ownerFile)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// claim takes the file of a process that is gone, and reports false where it lives.
func claim(name string) (*os.File, bool, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	return f, err == nil && take(f), err
}

// take locks a file for as long as this process lives, and reports whether it could.
func take(f *os.File) bool { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil }

func windowsFolder() string { return "" }

func systemDisk() string { return "/" }
