// SPDX-License-Identifier: Apache-2.0

package toolgen_test

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/fiducial-dev/fiducial/toolgen"
)

// asNobody does something without the rights over files that root has: of this thread
// alone, which ends with the goroutine.
func asNobody(do func()) {
	const nobody = 65534
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
		}
		do()
	}()
	<-done
}

// TestWriteNothingWhenOneMayNotGo: a file that is to go, in a folder without write
// permission, keeps the others as they are, whichever comes first.
func TestWriteNothingWhenOneMayNotGo(t *testing.T) {
	dir := folder(t.TempDir())
	if err := os.Chmod(filepath.Dir(string(dir)), 0o755); err != nil { // for nobody
		t.Fatal(err)
	}
	names := []string{"a/new.go", "a/gone.go", "b/gone.go", "c/gone.go", "c/new.go"}
	var files []toolgen.File
	for _, name := range names {
		dir.write(t, name, []byte("old"))
		f := toolgen.File{Path: filepath.Join(string(dir), filepath.FromSlash(name))}
		if filepath.Base(name) == "new.go" {
			f.Data = []byte("new")
		}
		files = append(files, f)
	}
	for name, mode := range map[string]os.FileMode{"a": 0o777, "b": 0o555, "c": 0o777} {
		path := filepath.Join(string(dir), name)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o755) })
	}
	asNobody(func() {
		changed, err := toolgen.Write(files)
		if err == nil || len(changed) != 0 {
			t.Errorf("got %q, %v, want an error alone", changed, err)
		}
	})
	for _, name := range names {
		if text, err := os.ReadFile(filepath.Join(string(dir), filepath.FromSlash(name))); err != nil || string(text) != "old" {
			t.Errorf("%s: %q, %v, want what there was", name, text, err)
		}
	}
	if list, err := filepath.Glob(filepath.Join(string(dir), "*", ".*")); err != nil || len(list) > 0 {
		t.Errorf("left behind: %q, %v", list, err)
	}
}
