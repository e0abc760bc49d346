// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// A tempDir is the folder of this process in the system's folder for temporary files. Everything temporary is made in
// it, and it is locked as long as the process lives, so that what a killed process has left behind can be told from what
// is in use, and is swept away by the next one.
type tempDir struct {
	mu    sync.Mutex
	path  string
	owner *os.File
}

const (
	tempPrefix = "fiducial-cmd-"
	tempOwner  = "owner" // the file in it that is locked
	// tempLocked stands in it when it was locked: from then on a lock that is free tells that its process is gone.
	tempLocked = "locked\n"
)

// get makes the folder when it is needed first.
func (t *tempDir) get() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path != "" {
		return t.path, nil
	}
	sweep(os.TempDir(), time.Now())
	path, err := os.MkdirTemp("", tempPrefix)
	if err != nil {
		return "", cannot(err, "make room on the disk, or name a folder that can be written in TMPDIR")
	}
	owner, err := ownTemp(path)
	if err != nil {
		return "", cannot(errors.Join(err, os.RemoveAll(path)), "make room on the disk, or name a folder that can be written in TMPDIR")
	}
	t.path, t.owner = path, owner
	return path, nil
}

// ownTemp makes and locks the owner file of a folder.
func ownTemp(path string) (*os.File, error) {
	owner, err := os.OpenFile(filepath.Join(path, tempOwner), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	free, err := lockOwner(owner)
	if err == nil && free {
		_, err = owner.WriteString(tempLocked)
	}
	if err != nil {
		return nil, errors.Join(err, owner.Close())
	}
	return owner, nil
}

// remove takes the folder away. The file is closed first: Windows removes none that is open.
func (t *tempDir) remove() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path == "" {
		return
	}
	_ = errors.Join(t.owner.Close(), os.RemoveAll(t.path)) // the next command sweeps what is left
	t.path = ""
}

// temp makes a folder below that of the process.
func (a *app) temp(name string) (string, error) {
	dir, err := a.tmp.get()
	if err != nil {
		return "", err
	}
	dir, err = os.MkdirTemp(dir, name+"-")
	if err != nil {
		return "", cannot(err, "make room on the disk, or name a folder that can be written in TMPDIR")
	}
	return dir, nil
}

const (
	// tempYoung is the age below which a folder is left alone that was not locked yet: it may be about to be.
	tempYoung = time.Minute
	// tempOld is the age at which folders go that carry no lock: those of git's helpers, and of older versions.
	tempOld = 24 * time.Hour
)

// unlocked are the folders that carry no lock.
var unlocked = regexp.MustCompile(`^fiducial-(kicad|index|diff|merge|tree|hook|baseline)-[0-9]+$`)

// sweep removes folders that processes of this user left when they were killed. What cannot be removed stays.
func sweep(dir string, now time.Time) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		locked := strings.HasPrefix(e.Name(), tempPrefix)
		if !e.IsDir() || !locked && !unlocked.MatchString(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil || !ours(info) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		switch age := now.Sub(info.ModTime()); {
		case locked && abandonedTemp(path, age), !locked && age > tempOld:
			_ = os.RemoveAll(path)
		}
	}
}

// abandonedTemp reports whether the process that made a folder is gone.
func abandonedTemp(path string, age time.Duration) bool {
	owner, err := os.OpenFile(filepath.Join(path, tempOwner), os.O_RDWR, 0)
	if err != nil {
		return errors.Is(err, os.ErrNotExist) && age > tempYoung // killed before it made the file
	}
	defer func() { _ = owner.Close() }()
	st, err := owner.Stat()
	if err != nil || st.Size() == 0 && age < tempYoung {
		return false
	}
	free, err := lockOwner(owner)
	return err == nil && free
}
