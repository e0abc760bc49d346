// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// Stale returns the paths of the files that are not what Generate says, those
// that should not be there included. Line ends of CR and LF count as LF, which is
// what a checkout on Windows may have.
func Stale(files []File) ([]string, error) {
	var stale []string
	for _, f := range files {
		data, err := os.ReadFile(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if f.Data != nil {
				stale = append(stale, f.Path)
			}
		case err != nil:
			return nil, fmt.Errorf("toolgen: %w", err)
		case f.Data == nil || !bytes.Equal(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), f.Data):
			stale = append(stale, f.Path)
		}
	}
	return stale, nil
}

// Write makes the files what Generate says and returns the paths of those that it
// changed. All are written beside their places before the first is put there, and files
// that are to go are first moved aside, so a full disk, a folder without write permission
// and a file that may not be removed change none; each is replaced whole. Where a path is
// a symbolic link, the file that it leads to is written; a link that is to go goes itself.
func Write(files []File) ([]string, error) { return write(files, system()) }

func write(files []File, o operations) ([]string, error) {
	stale, err := Stale(files)
	if err != nil {
		return nil, err
	}
	var list []staged
	defer func() {
		for _, s := range list {
			_ = os.Remove(s.temp) // what did not land, and what went aside
		}
	}()
	for _, path := range stale {
		s, err := files[slices.IndexFunc(files, func(f File) bool { return f.Path == path })].stage()
		if err != nil {
			return nil, fmt.Errorf("toolgen: %w", err)
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b staged) int { return order(a) - order(b) })
	for i, s := range list {
		err := s.land(o)
		if err == nil {
			continue
		}
		landed := list[:i]
		if s.goes { // so far only others went aside
			if errs := putBack(landed, o); errs != nil {
				err = errors.Join(err, errs)
			} else {
				landed = nil
			}
		}
		return pathsOf(landed), fmt.Errorf("toolgen: %w", err)
	}
	return stale, nil
}

func pathsOf(list []staged) []string {
	paths := make([]string, len(list))
	for i, s := range list {
		paths[i] = s.path
	}
	slices.Sort(paths)
	return paths
}

// order puts the files that go first: their moves can be taken back.
func order(s staged) int {
	if s.goes {
		return 0
	}
	return 1
}

// A staged file lies beside its place, or is to be moved from there.
type staged struct {
	path  string // as Generate says
	place string // the same, or what the link there leads to
	temp  string // in the folder of place
	goes  bool   // from place to temp, else from temp to place
}

// stage makes the file beside the place; for a file that is to go, an empty one, which
// shows that the folder can be written to.
func (f File) stage() (staged, error) {
	s := staged{path: f.Path, place: f.Path, goes: f.Data == nil}
	if target, err := filepath.EvalSymlinks(f.Path); err == nil && !s.goes {
		s.place = target
	}
	temp, err := os.CreateTemp(filepath.Dir(s.place), ".fiducialgen-*")
	if err != nil {
		return s, err
	}
	s.temp = temp.Name()
	_, err = temp.Write(f.Data)
	if err = errors.Join(err, temp.Chmod(0o644), temp.Close()); err != nil {
		_ = os.Remove(s.temp)
	}
	return s, err
}

// operations are what landing asks of the system.
type operations struct {
	goos   string
	rename func(from, to string) error
}

func system() operations { return operations{goos: runtime.GOOS, rename: os.Rename} }

func (s staged) land(o operations) error {
	if s.goes {
		return o.move(s.place, s.temp)
	}
	return o.move(s.temp, s.place)
}

// putBack moves files back that went aside.
func putBack(list []staged, o operations) error {
	var errs []error
	for _, s := range list {
		errs = append(errs, o.move(s.temp, s.place))
	}
	return errors.Join(errs...)
}

func (o operations) move(from, to string) error {
	step := func() error { return o.rename(from, to) }
	err := step()
	if err == nil || o.goos != windows {
		return err
	}
	if errors.Is(err, fs.ErrPermission) { // there a read-only file is not replaced
		_ = os.Chmod(to, 0o644)
	}
	return patiently(o.goos, step)
}
