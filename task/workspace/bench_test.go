// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/task/workspace"
)

// bench is a repository of 2000 files, 20 MB, of which 20 are not committed.
func bench(b *testing.B) (*repo, *workspace.Repo) {
	files := map[string]string{}
	for i := range 2000 {
		files[fmt.Sprintf("d%d/f%d.kicad_mod", i%40, i)] = strings.Repeat(fmt.Sprintf("(pad %d)\n", i), 1000)
	}
	r := &repo{t: b, dir: b.TempDir(), env: testEnv(b)}
	r.git("init", "-q")
	for p, c := range files {
		r.write(p, c)
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "Start")
	for i := range 20 {
		r.write(fmt.Sprintf("new%d", i), fmt.Sprint(i))
	}
	return r, r.open()
}

func BenchmarkSnapshot(b *testing.B) {
	_, w := bench(b)
	i := 0
	for b.Loop() {
		i++
		if _, err := w.Snapshot(b.Context(), fmt.Sprint("run", i), now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChanged(b *testing.B) {
	_, w := bench(b)
	s, err := w.Snapshot(b.Context(), "run1", now)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got, err := s.Changed(b.Context()); err != nil || len(got) != 0 {
			b.Fatal(got, err)
		}
	}
}

func BenchmarkRestoreTwoFiles(b *testing.B) {
	r, w := bench(b)
	s, err := w.Snapshot(b.Context(), "run1", now)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.write("d0/f0.kicad_mod", "run")
		r.write("new", "run")
		if _, err := s.Restore(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSnapshotHuge is a repository of 10,000 files in 500 folders, 100 MB.
func BenchmarkSnapshotHuge(b *testing.B) {
	r := &repo{t: b, dir: b.TempDir(), env: testEnv(b)}
	r.git("init", "-q")
	for i := range 10_000 {
		r.write(fmt.Sprintf("d%d/f%d.kicad_mod", i%500, i), strings.Repeat(fmt.Sprintf("(pad %d)\n", i), 1000))
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "Start")
	w := r.open()
	var s *workspace.Snapshot
	b.Run("snapshot", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			var err error
			if s, err = w.Snapshot(b.Context(), fmt.Sprint("run", b.N, "-", i), now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			if got, err := s.Changed(b.Context()); err != nil || len(got) != 0 {
				b.Fatal(got, err)
			}
		}
	})
}
