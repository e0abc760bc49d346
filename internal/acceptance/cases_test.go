// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCases plays every case of testdata/cases, and those of the folder that
// FIDUCIAL_CASES names. The store is a folder of files; what needs a durable store
// alone is played on SQLite, too.
func TestCases(t *testing.T) {
	folders := []string{filepath.Join("testdata", "cases")}
	if dir := os.Getenv("FIDUCIAL_CASES"); dir != "" {
		folders = append(folders, dir)
	}
	for _, dir := range folders {
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s holds no cases (%v)", dir, err)
		}
		for _, file := range files {
			c, err := readCase(file)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			t.Run(c.ID, func(t *testing.T) {
				playCase(t, c, "file")
				if slices.Contains(c.Requires, "durable-store") && !slices.Contains(c.Requires, "file-store") {
					t.Run("sqlite", func(t *testing.T) { playCase(t, c, "sqlite") })
				}
			})
		}
	}
}

func playCase(t *testing.T, c *wireCase, store string) {
	if why := c.lacks(); why != "" {
		t.Skip(why)
	}
	var traces []*trace
	for range c.Run.Repeat {
		traces = append(traces, play(t, c, store))
	}
	v := judge(c, traces)
	for _, w := range v.warnings {
		t.Logf("should: %s", w)
	}
	for _, f := range v.failures {
		t.Errorf("%s", f)
	}
}
