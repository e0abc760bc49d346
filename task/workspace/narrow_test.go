// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/task/workspace"
)

// What somebody else changes while a run goes on is neither committed, nor put
// back, nor stashed.
func TestNarrowLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"mine": "1\n", "theirs": "1\n"})
	s := r.snapshot("run1")
	r.write("mine", "run\n")
	r.write("theirs", "person\n")
	r.write("new", "person\n")
	s.Narrow([]string{"mine"})
	foreign, err := s.Foreign(t.Context())
	if err != nil || !slices.Equal(foreign, []string{"new", "theirs"}) {
		t.Fatalf("got %q, %v", foreign, err)
	}
	kept, err := s.Preserve(t.Context(), "")
	if err != nil || !slices.Equal(kept.Files, []string{"mine"}) {
		t.Fatalf("preserved %q, %v", kept.Files, err)
	}
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.read("mine") + r.read("theirs") + r.read("new"); got != "1\nperson\nperson\n" {
		t.Errorf("after the restore: %q", got)
	}
	r.write("mine", "run\n")
	done, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{})
	if err != nil || !slices.Equal(done.Paths, []string{"mine"}) {
		t.Fatalf("committed %q, %v", done.Paths, err)
	}
	if out := r.git("status", "--porcelain"); !strings.Contains(out, " M theirs") || !strings.Contains(out, "?? new") {
		t.Errorf("status %q", out)
	}
}
