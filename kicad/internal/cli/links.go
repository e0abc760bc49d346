// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// links are the symbolic links of a tree that is taken out of git. Where the system makes none, as Windows does without a
// right of its own, each becomes a copy of the file that it leads to.
type links struct {
	root    *os.Root
	symlink func(target, name string) error
	target  map[string]string // of those that are to be copied: where the link leads, from the root, by its name
}

// make makes a link, or notes it for [links.copyAll]. One that leads out of the repository is left out.
func (l links) make(name, target string) error {
	to := path.Join(path.Dir(name), target)
	if path.IsAbs(target) || !fs.ValidPath(to) {
		return nil
	}
	err := l.symlink(filepath.FromSlash(target), filepath.FromSlash(name))
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	l.target[name] = to
	return nil
}

// copyAll makes the copies, once the files are there. A link may lead to another one, so it goes on as long as there is
// anything to be had; what leads nowhere, or to a folder, is left out.
func (l links) copyAll() error {
	for again := true; again; {
		again = false
		for name, to := range l.target {
			data, err := l.root.ReadFile(filepath.FromSlash(to))
			if err != nil {
				continue
			}
			if err := l.root.WriteFile(filepath.FromSlash(name), data, 0o600); err != nil {
				return err
			}
			delete(l.target, name)
			again = true
		}
	}
	return nil
}
