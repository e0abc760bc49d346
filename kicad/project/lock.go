// SPDX-License-Identifier: Apache-2.0

package project

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

// A Lock is a file by which a KiCad editor says that it has a design open, ~<name>.lck beside it. One that is left
// over after a crash looks the same. Our own kicad-cli runs in a folder of its own (package kicadcli), so none of
// these is ours.
type Lock struct {
	File string    // the lock file
	Of   string    // the file that is open
	User string    // "" when the lock does not tell
	Host string    // "" when the lock does not tell
	Time time.Time // of the lock file
}

// String says who has what open.
func (l Lock) String() string {
	return fmt.Sprintf("%s is open in KiCad: %s on %s since %s (%s)", l.Of, cmp.Or(l.User, "somebody"), cmp.Or(l.Host, "a computer unknown"),
		l.Time.Format(time.DateTime), l.File)
}

// locks lists the lock files of a folder. KiCad 7 to 9 write {"hostname":"...","username":"..."} (common/lockfile.h).
func locks(fsys fs.FS, dir string) ([]Lock, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	var found []Lock
	for _, e := range entries {
		of, ok := strings.CutSuffix(strings.TrimPrefix(e.Name(), "~"), ".lck")
		if !ok || e.Name()[0] != '~' || e.IsDir() {
			continue
		}
		if ext := path.Ext(of); ext != extPro && ext != extSch && ext != extPCB {
			continue
		}
		l := Lock{File: path.Join(dir, e.Name()), Of: path.Join(dir, of)}
		l.read(fsys)
		if info, err := e.Info(); err == nil {
			l.Time = info.ModTime()
		}
		found = append(found, l)
	}
	return found, nil
}

// read takes the names from the lock; what is not understood stays empty.
func (l *Lock) read(fsys fs.FS) {
	const most = 4096
	var who struct{ Hostname, Username string }
	if json.Unmarshal(peek(fsys, l.File, most), &who) == nil {
		l.Host, l.User = who.Hostname, who.Username
	}
}
