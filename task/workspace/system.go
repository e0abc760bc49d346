// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// What differs between systems stands here with the system's name as an argument, so that all of it is tested on each.

const windows = "windows"

// linksByDefault is git's core.symlinks where nothing sets it. Git for Windows takes false, unless the variable MSYS
// says that links are to be made (setup_windows_environment in its compat/mingw.c).
func linksByDefault(goos string, env []string) bool {
	return goos != windows || slices.ContainsFunc(env, func(kv string) bool {
		name, value, _ := strings.Cut(kv, "=")
		return strings.EqualFold(name, "MSYS") && strings.Contains(value, "winsymlinks:nativestrict")
	})
}

// makeLink makes a symbolic link in a folder of ours. On Windows that needs a privilege which few have: without it a
// file that holds the target stands there, as with core.symlinks=false in git.
func makeLink(goos, target, name string, symlink func(target, name string) error) error {
	err := symlink(target, name)
	if err == nil || goos != windows || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.WriteFile(name, []byte(target), 0o600)
}

// busy reports whether a step failed because another program, such as an editor or a virus scanner, has the file open.
// Only Windows keeps others off a file for that; the numbers are ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION and
// ERROR_LOCK_VIOLATION, https://learn.microsoft.com/windows/win32/debug/system-error-codes--0-499-.
func busy(goos string, err error) bool {
	if goos != windows {
		return false
	}
	code := errorNumber(err)
	return code == 5 || code == 32 || code == 33
}

// patience is how long a file that somebody else has open is waited for.
const patience = 3 * time.Second

// patiently tries a step again as long as a file is busy. Each wait is longer than the one before, as those of git are.
func patiently(busy func(error) bool, step func() error) error {
	var waited time.Duration
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := step()
		if err == nil || !busy(err) || waited >= patience {
			return err
		}
		time.Sleep(pause)
		waited += pause
	}
}

// rename moves a file over another one.
func rename(from, to string) error {
	return patiently(func(err error) bool { return busy(runtime.GOOS, err) }, func() error { return os.Rename(from, to) })
}
