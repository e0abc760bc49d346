// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A page that a browser holds is waited for on Windows, and not for ever; another failure is one at once.
func TestPatiently(t *testing.T) {
	for _, tt := range []struct {
		name, goos  string
		number      syscall.Errno
		failures    int // how many times the step fails
		fails       bool
		least, most time.Duration
	}{
		{"at once", "windows", 32, 0, false, 0, 0},
		{"soon free", "windows", 32, 5, false, 100 * time.Millisecond, time.Second},
		{"denied, soon free", "windows", 5, 1, false, time.Millisecond, time.Second},
		{"never free", "windows", 33, 1 << 30, true, pagePatience, 2 * pagePatience},
		{"disk full", "windows", 112, 1, true, 0, 0},
		{"elsewhere", "linux", 32, 1, true, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, left := time.Now(), tt.failures
			err := patiently(tt.goos, func() error {
				if left == 0 {
					return nil
				}
				left--
				return &os.LinkError{Op: "rename", Err: tt.number}
			})
			if took := time.Since(start); err != nil != tt.fails || took < tt.least || took > tt.most {
				t.Errorf("%s: %v after %v", tt.name, err, took)
			}
		})
	}
}
