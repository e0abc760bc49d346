// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/task"
)

// A journal whose disk is full ends the run as what it is, with the place, and the
// tree is as it was.
func TestFullJournal(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("fiducial", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("file systems cannot be mounted here:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	j, err := journal.OpenFolder(dir, journal.FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	r := newRig(t, write("b.txt", strings.Repeat("beta ", 20_000)))
	r.cfg.Journal = j
	before := r.tree()
	res := r.run()
	r.ends(res, task.Failed, task.PathEnvironment)
	if !errors.Is(res.Err, journal.ErrFull) || !strings.Contains(res.Detail, journal.ErrFull.Error()) || !strings.Contains(res.Detail, dir) {
		t.Errorf("detail %q, want that there is no room in %s", res.Detail, dir)
	}
	r.same(before)
}
