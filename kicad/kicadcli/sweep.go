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
	// ownerFile in it is locked by the process that it belongs to; the kernel frees the lock however that process ends.
	ownerFile = "owner"
	// stale is how old a folder without one must be, which a process left that was killed before it made it.
	stale = 24 * time.Hour
)

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
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) && age > stale {
		_ = os.RemoveAll(home) // see sweep
	}
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	if !take(f) {
		return // its process lives
	}
	mine, err := f.Stat()
	if now, statErr := os.Lstat(name); err != nil || statErr != nil || !os.SameFile(mine, now) {
		return // somebody else has swept it, and the name is in use again
	}
	_ = os.RemoveAll(home) // see sweep
}
