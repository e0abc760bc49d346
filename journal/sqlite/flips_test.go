// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
)

// TestFlipsInLog changes one byte at a time of the log that a killed process left,
// which the suite's flips do not have: it is reported or without effect. In the last
// transaction it cannot be told from a write that was cut off; that one is gone then
// and no other.
func TestFlipsInLog(t *testing.T) {
	w := write(t)
	log, err := os.ReadFile(filepath.Join(w.killed, "journal.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	end, last := lastFrame(log), lastTransaction(log)
	want := map[string]string{}
	for run, lines := range w.lines {
		want[run] = strings.Join(lines, "\n")
	}
	seen := map[string]int{}
	random := rand.New(rand.NewPCG(8, 9))
	for n := range 200 {
		at, mask := random.IntN(end), byte(1+random.IntN(255))
		path := damagedCopy(t, w.killed, "journal.db-wal", func(d []byte) []byte {
			d[at] ^= mask
			return d
		})
		j, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			seen["reported"]++
			continue
		}
		got := contents(t, j, w.lines)
		switch {
		case maps.Equal(got, want):
			seen["without effect"]++
		case got["ERROR"] != "":
			seen["reported"]++
		case at >= last:
			seen["taken for a write that was cut off"]++
		default:
			t.Errorf("flip %d (byte %d of %d, mask %02x) is silent", n, at, end, mask)
		}
		_ = j.Close() // it is damaged and may say so
	}
	t.Logf("%v", seen)
	if seen["reported"] < 100 {
		t.Error("hardly a flip was reported")
	}
}

// lastTransaction is where the frames of the last commit begin.
func lastTransaction(log []byte) int {
	const frame = 24 + sqlitePage
	at := lastFrame(log) - frame
	for at > 32 && binary.BigEndian.Uint32(log[at-frame+4:]) == 0 {
		at -= frame
	}
	return at
}

// contents are the runs as they read, each with its error.
func contents(t *testing.T, j journal.Journal, runs map[string][]string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for run := range runs {
		var lines []string
		for rec, err := range j.Read(t.Context(), run, 0) {
			if err != nil {
				return map[string]string{"ERROR": err.Error()}
			}
			e, err := journal.EncodeRecord(run, journal.Stored{Record: rec})
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(e.Line))
		}
		out[run] = strings.Join(lines, "\n")
	}
	return out
}
