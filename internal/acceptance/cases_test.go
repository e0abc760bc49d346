// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCases plays every case of testdata/cases, and those of the folder that
// FIDUCIAL_CASES names, with the folders in it. The store is a folder of files; what needs a durable store
// alone is played on SQLite, too.
func TestCases(t *testing.T) {
	folders := []string{filepath.Join("testdata", "cases")}
	if dir := os.Getenv("FIDUCIAL_CASES"); dir != "" {
		folders = append(folders, dir)
	}
	for _, dir := range folders {
		for _, file := range caseFiles(t, dir) {
			c, err := readCase(file)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			t.Run(cmp.Or(c.ID, filepath.Base(file)), func(t *testing.T) {
				playCase(t, c, "file")
				if slices.Contains(c.Requires, "durable-store") && !slices.Contains(c.Requires, "file-store") {
					t.Run("sqlite", func(t *testing.T) { playCase(t, c, "sqlite") })
				}
			})
		}
	}
}

// caseFiles are the cases of a folder, or of those in it when it holds none itself.
func caseFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err == nil && len(files) > 0 {
		return files
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".json" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("%s holds no cases (%v)", dir, err)
	}
	return files
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
