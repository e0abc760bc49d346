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
	owner, err := os.OpenFile(filepath.Join(path, tempOwner), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		_, err = lockOwner(owner)
	}
	if err != nil {
		return "", cannot(errors.Join(err, os.RemoveAll(path)))
	}
	t.path, t.owner = path, owner
	return path, nil
}

// remove takes the folder away.
func (t *tempDir) remove() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.path == "" {
		return
	}
	_ = errors.Join(os.RemoveAll(t.path), t.owner.Close()) // the next command sweeps what is left
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
	// tempYoung is the age below which a folder is left alone whatever it looks like: it may not be locked yet.
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
		case locked && age > tempYoung && abandonedTemp(path), !locked && age > tempOld:
			_ = os.RemoveAll(path)
		}
	}
}

// abandonedTemp reports whether the process that made a folder is gone.
func abandonedTemp(path string) bool {
	owner, err := os.OpenFile(filepath.Join(path, tempOwner), os.O_RDWR, 0)
	if err != nil {
		return errors.Is(err, os.ErrNotExist) // killed before it made the file
	}
	defer func() { _ = owner.Close() }()
	free, err := lockOwner(owner)
	return err == nil && free
}
