//go:build !unix && !windows

// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

func tryLock(*os.File) error {
	return fmt.Errorf("locking a working tree on this system: %w", errors.ErrUnsupported)
}

func ofThisUser(fs.FileInfo) bool { return true }

func errorNumber(error) uint64 { return 0 }
