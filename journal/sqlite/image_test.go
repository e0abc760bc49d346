// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
)

// FuzzImage: whatever stands in the files, reading them ends, and gives no record
// whose sum does not fit.
func FuzzImage(f *testing.F) {
	path := filepath.Join(f.TempDir(), "journal.db")
	j, err := Open(f.Context(), path, Options{})
	if err != nil {
		f.Fatal(err)
	}
	if err := j.Create(f.Context(), "r", journal.Header{Labels: map[string]string{"a": "b"}}); err != nil {
		f.Fatal(err)
	}
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		f.Fatal(err)
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file, []byte(nil))
	f.Add([]byte(nil), log)
	f.Add(file[:len(file)-100], log[:len(log)/2])
	f.Fuzz(func(t *testing.T, file, log []byte) {
		path := filepath.Join(t.TempDir(), "journal.db")
		for name, data := range map[string][]byte{path: file, path + "-wal": log} {
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m, err := openImage(path)
		if err != nil {
			t.Fatal(err)
		}
		m.spoiled()
		for _, r := range salvage(m) {
			records, _, _ := r.log()
			for i, rec := range records {
				if rec.Seq != uint64(i)+1 {
					t.Errorf("record %d stands where %d should", rec.Seq, i+1)
				}
			}
			r.waiting(int64(len(records)))
		}
	})
}
