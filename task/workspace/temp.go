// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// A tempDir is a folder in the system's one for temporary files, for one operation. A file in it is locked while it is
// in use: the kernel frees the lock however the process ends, so that what a killed one left can be told and swept.
type tempDir struct {
	path  string
	owner *os.File
}

const (
	// tempOwner is the file in a tempDir that is locked.
	tempOwner = "owner"
	// tempLocked stands in it when it was locked: from then on a lock that is free tells that its process is gone.
	tempLocked = "locked\n"
	// tempYoung is the age below which a folder stays whose owner file is empty: it may be about to be locked.
	tempYoung = time.Minute
	// tempOld is the age at which one goes that has nothing to lock.
	tempOld = 24 * time.Hour
)

var tempName = regexp.MustCompile(`^fiducial-(index|diff|merge|tree)-[0-9]+$`)

// makeTemp makes a folder of a kind that tempName knows.
func makeTemp(kind string) (*tempDir, error) {
	path, err := os.MkdirTemp("", "fiducial-"+kind+"-")
	if err != nil {
		return nil, err
	}
	owner, err := os.OpenFile(filepath.Join(path, tempOwner), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	if tryLock(owner) == nil { // where nothing can be locked, nothing is swept either
		_, err = owner.WriteString(tempLocked)
	}
	if err != nil {
		return nil, errors.Join(err, owner.Close(), os.RemoveAll(path))
	}
	return &tempDir{path: path, owner: owner}, nil
}

// in is a path in the folder. The name owner is taken.
func (d *tempDir) in(name string) string { return filepath.Join(d.path, name) }

// remove takes the folder away. The file is closed first: Windows removes none that is open.
func (d *tempDir) remove() {
	_ = errors.Join(d.owner.Close(), os.RemoveAll(d.path)) // the next run sweeps what is left
}

// sweepTemp removes the folders of processes of this user that were killed. What is not surely abandoned stays.
func sweepTemp(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !tempName.MatchString(e.Name()) {
			continue
		}
		st, err := e.Info()
		if err != nil || !ofThisUser(st) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if abandoned(path, now.Sub(st.ModTime())) {
			_ = os.RemoveAll(path) // see tempDir.remove
		}
	}
}

// abandoned reports whether the process that made a folder is gone.
func abandoned(path string, age time.Duration) bool {
	owner, err := os.OpenFile(filepath.Join(path, tempOwner), os.O_RDWR, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && age > tempOld
	}
	defer func() { _ = owner.Close() }()
	st, err := owner.Stat()
	if err != nil || st.Size() == 0 && age < tempYoung {
		return false
	}
	return tryLock(owner) == nil
}
