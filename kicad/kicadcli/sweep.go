// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// prefix begins the name of each Runner's private folder.
	prefix = "fiducial-kicad-"
	// ownerFile in it is locked by the process that it belongs to, or on Windows open there alone; the kernel ends that
	// however the process ends.
	ownerFile = "owner"
	// stale is how old a folder without one must be, which a process left that was killed before it made it.
	stale = 24 * time.Hour
)

// sweep removes the private folders of processes that were killed. Those of other users, and whatever is not surely
// abandoned, stay; a failure leaves the folder for the next time.
func sweep(temp string, now time.Time) {
	entries, err := os.ReadDir(temp)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if st, err := e.Info(); err == nil && owned(st) {
			sweepOne(filepath.Join(temp, e.Name()), now.Sub(st.ModTime()))
		}
	}
}

func sweepOne(home string, age time.Duration) {
	name := filepath.Join(home, ownerFile)
	f, taken, err := claim(name)
	if errors.Is(err, os.ErrNotExist) && age > stale {
		_ = os.RemoveAll(home) // see sweep
	}
	if err != nil {
		return
	}
	mine, err := f.Stat()
	now, nowErr := os.Lstat(name)
	same := err == nil && nowErr == nil && os.SameFile(mine, now) // else somebody has swept it, and the name is in use again
	_ = f.Close()                                                 // first: Windows removes no file that is open
	if taken && same {
		_ = os.RemoveAll(home) // see sweep
	}
}
