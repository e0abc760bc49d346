//go:build unix || windows

// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"errors"
	"syscall"
)

// errorNumber is the system's number of an error, 0 when it has none.
func errorNumber(err error) uint64 {
	code, _ := errors.AsType[syscall.Errno](err)
	return uint64(code)
}
