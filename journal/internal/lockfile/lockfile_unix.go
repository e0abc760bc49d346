//go:build unix

// SPDX-License-Identifier: Apache-2.0

package lockfile

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

func take(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_EX); err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// probe leaves the file open and unlocked.
func probe(root *os.Root, name string) (*os.File, bool, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, false, err
	}
	err = flock(f, syscall.LOCK_SH)
	if err == nil {
		err = flock(f, syscall.LOCK_UN)
		return f, false, err
	}
	if errors.Is(err, ErrHeld) {
		return f, true, nil
	}
	_ = f.Close() // nothing was written
	return nil, false, err
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrHeld
		default:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}
