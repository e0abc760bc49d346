// SPDX-License-Identifier: Apache-2.0

// Package folder makes folders so that they survive a loss of power.
package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Make makes a folder and those above it. Each new name is durable on return.
func Make(path string) error {
	path = filepath.Clean(path)
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := Make(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return errors.Join(&fs.PathError{Op: "mkdir", Path: path, Err: errors.New("a file stands there")}, f.Close())
	}
	return errors.Join(Sync(f), f.Close())
}

// Sync makes the names in an open folder durable. Windows has no such call.
func Sync(f *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return f.Sync()
}
