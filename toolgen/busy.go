// SPDX-License-Identifier: Apache-2.0

package toolgen

import "time"

const windows = "windows"

// patience is how long a file that another program holds is waited for.
const patience = 3 * time.Second

// patiently does a step on a file. On Windows it is done again for a while when another
// program has the file open, as editors and virus scanners do; the numbers are those of
// ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION and ERROR_LOCK_VIOLATION,
// https://learn.microsoft.com/windows/win32/debug/system-error-codes--0-499-. Each wait is
// longer than the one before. Package task/workspace does the same.
func patiently(goos string, step func() error) error {
	var waited time.Duration
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := step()
		if err == nil || goos != windows || waited >= patience {
			return err
		}
		if n := errorNumber(err); n != 5 && n != 32 && n != 33 {
			return err
		}
		time.Sleep(pause)
		waited += pause
	}
}
