// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	codes "modernc.org/sqlite/lib"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/internal/folder"
)

// place is the one name that every process has for a database: absolute, and no
// link. The folder above it is made when that is asked for.
func place(path string, makes bool) (string, error) {
	if path == "" {
		return "", &journal.Error{Kind: journal.KindInvalid, Op: "open", Err: errors.New("the path of the database is empty")}
	}
	path, err := filepath.Abs(path)
	for range 40 { // as many as systems follow
		if err != nil {
			return path, err
		}
		dir, name := filepath.Split(path)
		if makes {
			if err := folder.Make(dir); err != nil {
				return path, err
			}
		}
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return path, err
		}
		path = filepath.Join(dir, name)
		target := linkTarget(path)
		if target == "" {
			return path, nil
		}
		if path = target; !filepath.IsAbs(target) {
			path = filepath.Join(dir, target)
		}
	}
	return path, &fs.PathError{Op: "open", Path: path, Err: errors.New("too many links lead to it")}
}

// linkTarget is empty for what is no link, or not there yet.
func linkTarget(path string) string {
	if target, err := os.Readlink(path); err == nil {
		return target
	}
	return ""
}

// explain asks the system why SQLite cannot open a file: it does not tell a folder
// from a file system that cannot be written.
func (j *Journal) explain(err error, reads bool) error {
	if !isCode(err, codes.SQLITE_CANTOPEN, codes.SQLITE_READONLY, codes.SQLITE_IOERR) {
		return err
	}
	how := os.O_RDWR
	if reads {
		how = os.O_RDONLY
	}
	f, why := os.OpenFile(j.path, how, 0)
	if why != nil {
		return why
	}
	if info, why := f.Stat(); why == nil && info.IsDir() {
		return errors.Join(&fs.PathError{Op: "open", Path: j.path, Err: errors.New("a folder stands there")}, f.Close())
	}
	if why := f.Close(); why != nil || reads {
		return errors.Join(err, why)
	}
	beside, why := os.CreateTemp(filepath.Dir(j.path), ".fiducial-*") // for its log
	if why != nil {
		return why
	}
	return errors.Join(err, beside.Close(), os.Remove(beside.Name()))
}
