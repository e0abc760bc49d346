//go:build unix

// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"errors"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// TestKillMatrixPostgres is TestKillMatrix on a server: a process is killed at every
// boundary of a run, the next one waits for its lease to run out.
func TestKillMatrixPostgres(t *testing.T) {
	server := newCrashServer(t)
	plan := [][]string{{"write"}, {"write", "slow_write", "slow_read"}, {"put", "alone", "write"}}
	begin := func() *rig {
		r := newRig(t.TempDir(), "postgres", server, llmtest.WireAnthropic, plan, 1)
		t.Cleanup(r.close)
		return r
	}
	whole := begin()
	rep, err := whole.run(t.Context(), whole.spec)
	if err := errors.Join(err, whole.check(t.Context(), rep)); err != nil {
		t.Fatal(err)
	}
	if rep.Points < 50 {
		t.Fatalf("a whole run has but %d points", rep.Points)
	}
	stride := 1
	if testing.Short() || racing {
		stride = 9
	}
	seen := map[string]int{}
	for at := 1; at <= rep.Points; at += stride {
		r := begin()
		for _, n := range []int{at, at*7%rep.Points + 1} { // the one that takes over dies, too, elsewhere
			spec := r.spec
			spec.KillAt = n
			if _, err := r.run(t.Context(), spec); err != nil {
				t.Fatalf("killed at %d: %v", at, err)
			}
			if err := r.keepSettled(t.Context()); err != nil {
				t.Fatalf("killed at %d: %v", at, err)
			}
		}
		end, err := r.run(t.Context(), r.spec)
		if err := errors.Join(err, r.check(t.Context(), end)); err != nil {
			t.Errorf("%s: %v", strings.Join(r.what, ", "), err)
		}
		for _, w := range r.what {
			seen[strings.TrimPrefix(w, "killed ")]++
		}
	}
	t.Logf("%d points; killed %v", rep.Points, seen)
	for _, name := range []string{
		"before create", "behind create", "before an append", "behind an append", "before the request", "in the stream",
		"behind the reply", "dispatched", "effect done", "call settled", "run finished",
	} {
		if stride == 1 && seen[name] == 0 {
			t.Errorf("nothing was killed %q", name)
		}
	}
}
