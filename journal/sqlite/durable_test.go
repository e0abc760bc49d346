// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"path/filepath"
	"testing"
)

// TestEveryCommitIsSynced looks at the settings of the connection that writes: 2
// is FULL, https://www.sqlite.org/pragma.html#pragma_synchronous.
func TestEveryCommitIsSynced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	for range 2 { // a new database, then an old one
		j, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for pragma, want := range map[string]string{
			"synchronous": "2", "journal_mode": "wal", "busy_timeout": "5000", "foreign_keys": "1",
		} {
			var got string
			if err := j.write.row(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s = %q, %v; want %q", pragma, got, err, want)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
