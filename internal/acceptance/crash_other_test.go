//go:build !linux

// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"errors"
	"os"
)

func mountSmall(string, int) error { return errors.ErrUnsupported }
func unmount(string) error         { return errors.ErrUnsupported }

func datasync(f *os.File) error { return f.Sync() }
func diskBytes() int64          { return 0 }
