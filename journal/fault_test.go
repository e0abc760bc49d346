// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// A faultyDisk is the system's folder under which the power goes, or a call fails,
// at a chosen operation. It knows what was synced, so that what was not can be
// lost as a disk loses it.
type faultyDisk struct {
	rootDisk
	dir string

	mu    sync.Mutex
	ops   int
	at    int   // the operation that fails, counted from 1; 0: none
	fail  error // what it fails with
	part  int   // how much of a write gets through, in quarters
	power bool  // everything after it fails too

	synced map[string]int64 // by name: the size that is sure
	named  map[string]bool  // names that are sure
}

var errPower = errors.New("the power is gone")

func newFaultyDisk(t *testing.T, dir string) *faultyDisk {
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &faultyDisk{
		rootDisk: rootDisk{root, true}, dir: dir, synced: make(map[string]int64), named: make(map[string]bool),
	}
}

// op counts a change and says whether it fails.
func (d *faultyDisk) op() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops++
	if d.at != 0 && (d.ops == d.at || d.power && d.ops > d.at) {
		return d.fail
	}
	return nil
}

func (d *faultyDisk) Open(name string, flag int) (diskFile, error) {
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		if err := d.op(); err != nil {
			return nil, err
		}
	}
	f, err := d.rootDisk.Open(name, flag)
	if err != nil {
		return nil, err
	}
	if flag&os.O_TRUNC != 0 {
		d.mu.Lock()
		d.synced[name] = 0
		d.mu.Unlock()
	}
	return &faultyFile{f, d, name}, nil
}

func (d *faultyDisk) Mkdir(name string) error {
	if err := d.op(); err != nil {
		return err
	}
	return d.rootDisk.Mkdir(name)
}

func (d *faultyDisk) Rename(old, name string) error {
	if err := d.op(); err != nil {
		return err
	}
	d.mu.Lock()
	d.synced[name] = d.synced[old]
	delete(d.synced, old)
	d.mu.Unlock()
	return d.rootDisk.Rename(old, name)
}

func (d *faultyDisk) RemoveAll(name string) error {
	if err := d.op(); err != nil {
		return err
	}
	return d.rootDisk.RemoveAll(name)
}

func (d *faultyDisk) SyncDir(name string) error {
	if err := d.op(); err != nil {
		return err
	}
	entries, err := d.ReadDir(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range entries {
		d.named[filepath.Join(name, e.Name())] = true
	}
	return err
}

type faultyFile struct {
	diskFile
	disk *faultyDisk
	name string
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.disk.op(); err != nil {
		n, _ := f.diskFile.WriteAt(p[:len(p)*f.disk.part/4], off)
		return n, err
	}
	return f.diskFile.WriteAt(p, off)
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.disk.op(); err != nil {
		return err
	}
	f.disk.mu.Lock()
	f.disk.synced[f.name] = min(f.disk.synced[f.name], size)
	f.disk.mu.Unlock()
	return f.diskFile.Truncate(size)
}

func (f *faultyFile) Sync() error {
	if err := f.disk.op(); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	f.disk.mu.Lock()
	f.disk.synced[f.name] = info.Size()
	f.disk.mu.Unlock()
	return nil
}

// lose takes away what was not synced: all of it, half, or nothing, in quarters
// that are kept.
func (d *faultyDisk) lose(t *testing.T, keep int) {
	t.Helper()
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, lockSuffix) || strings.HasSuffix(path, offerSuffix) {
			return err
		}
		name, err := filepath.Rel(d.dir, path)
		if err != nil {
			return err
		}
		if !d.named[name] && keep == 0 {
			return os.Remove(path)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		sure := d.synced[name]
		return os.Truncate(path, sure+(info.Size()-sure)*int64(keep)/4)
	})
	if err != nil {
		t.Fatal(err)
	}
	// Names of folders that were not synced go with what is in them.
	for _, dir := range []string{"blobs/r", "blobs"} {
		if !d.named[dir] && keep == 0 {
			os.RemoveAll(filepath.Join(d.dir, dir))
		}
	}
}

func folderOn(t *testing.T, d *faultyDisk) *Folder {
	t.Helper()
	f, err := OpenFolder(d.dir, FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f.disk = d
	t.Cleanup(func() { f.Close() })
	return f
}

func numbered(i int) Note { return Note{Kind: "n", Data: json.RawMessage(fmt.Sprint(i))} }

// A told is what a writer was told is stored.
type told struct {
	created bool
	bodies  []Body // acknowledged
	unsure  []Body // of the append that failed
	offers  map[string]bool
}

// play creates a run and writes to it until something fails.
func play(t *testing.T, f *Folder) (said told, err error) {
	ctx := t.Context()
	said.offers = make(map[string]bool)
	if err := f.Create(ctx, "r", Header{Rules: 1}); err != nil {
		return said, err
	}
	said.created = true
	l, err := f.Acquire(ctx, "r", "w")
	if err != nil {
		return said, err
	}
	defer l.Release(ctx)
	large := func(i int) Body {
		return Step{Input: machine.Settled{Op: 1, Ordinal: i, Result: llm.Result{Content: strings.Repeat(fmt.Sprint(i), 70_000)}}}
	}
	appends := [][]Body{{numbered(1)}, {numbered(2), numbered(3)}, {large(4)}, {numbered(5), large(6), numbered(7)}, {numbered(8)}}
	for i, bodies := range appends {
		if err := l.Append(ctx, Mark{Phase: "p"}, bodies...); err != nil {
			said.unsure = bodies
			return said, err
		}
		said.bodies = append(said.bodies, bodies...)
		key := fmt.Sprint("k", i)
		if err := f.Offer(ctx, "r", key, llm.UserText(key)); err != nil {
			return said, err
		}
		said.offers[key] = true
	}
	return said, nil
}

// check holds what is stored against what a writer was told.
func (said told) check(t *testing.T, dir string) {
	t.Helper()
	f, err := OpenFolder(dir, FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l, err := f.Acquire(t.Context(), "r", "check")
	if !said.created && errors.Is(err, ErrNotFound) {
		if err := f.Create(t.Context(), "r", Header{}); err != nil {
			t.Fatalf("create again: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	var got []Body
	for r, err := range f.Read(t.Context(), "r", 2) {
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		got = append(got, r.Body)
	}
	want := said.bodies
	if len(got) > len(want) { // stored and not acknowledged: all of the append
		want = append(slices.Clip(want), said.unsure...)
	}
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Fatalf("stored %d bodies, acknowledged %d and %d unsure", len(got), len(said.bodies), len(said.unsure))
	}
	items, err := l.Inbox(t.Context())
	if err != nil {
		t.Fatalf("inbox: %v", err)
	}
	found := make(map[string]bool)
	for _, i := range items {
		if found[i.Key] {
			t.Fatalf("%s stands twice in the inbox", i.Key)
		}
		found[i.Key] = true
	}
	for key := range maps.Keys(said.offers) {
		if !found[key] {
			t.Fatalf("offer %s was acknowledged and is lost", key)
		}
	}
	if err := l.Append(t.Context(), Mark{}, numbered(99)); err != nil {
		t.Fatalf("the run cannot be gone on with: %v", err)
	}
}

// TestPowerGoesAtEveryWrite cuts the power at every change of the disk, with all,
// some or none of what was not synced lost (S-86).
func TestPowerGoesAtEveryWrite(t *testing.T) {
	good := newFaultyDisk(t, t.TempDir())
	if _, err := play(t, folderOn(t, good)); err != nil {
		t.Fatal(err)
	}
	total := good.ops
	if total < 40 {
		t.Fatalf("only %d changes of the disk", total)
	}
	cases := 0
	for at := 1; at <= total; at++ {
		for _, c := range []struct{ part, keep int }{{0, 0}, {4, 0}, {2, 4}, {3, 2}, {4, 4}} {
			cases++
			dir := t.TempDir()
			d := newFaultyDisk(t, dir)
			d.at, d.fail, d.part, d.power = at, errPower, c.part, true
			f := folderOn(t, d)
			said, err := play(t, f)
			if !errors.Is(err, errPower) {
				t.Fatalf("at %d: error %v, want the power's", at, err)
			}
			f.Close()
			d.lose(t, c.keep)
			said.check(t, dir)
			if t.Failed() {
				t.Fatalf("the power went at change %d of %d, %+v", at, total, c)
			}
		}
	}
	t.Logf("%d changes of the disk, %d cases", total, cases)
}

// TestEveryCallFails lets each call fail once, the disk going on. Nothing that was
// refused may be there, and the lease goes on unless it says otherwise.
func TestEveryCallFails(t *testing.T) {
	for _, fail := range []error{syscall.ENOSPC, syscall.EIO} {
		for at := 1; ; at++ {
			dir := t.TempDir()
			d := newFaultyDisk(t, dir)
			d.at, d.fail, d.part = at, fail, 2
			f := folderOn(t, d)
			said, err := play(t, f)
			f.Close()
			if err == nil {
				if at < 40 {
					t.Fatalf("only %d calls", at)
				}
				break
			}
			je, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, fail) {
				t.Fatalf("call %d: %v, want an *Error for %v", at, err, fail)
			}
			if je.Kind != KindUncertain {
				if full := errors.Is(fail, syscall.ENOSPC); full != (je.Kind == KindFull) {
					t.Fatalf("call %d: kind %v for %v", at, je.Kind, fail)
				}
				said.unsure = nil
			}
			said.check(t, dir)
			if t.Failed() {
				t.Fatalf("call %d failed with %v: %v", at, fail, err)
			}
		}
	}
}

// TestFullDiskAndOn: after a full disk the same lease appends again once there is
// room; after a failed sync it does not.
func TestFullDiskAndOn(t *testing.T) {
	d := newFaultyDisk(t, t.TempDir())
	f := folderOn(t, d)
	if err := f.Create(t.Context(), "r", Header{}); err != nil {
		t.Fatal(err)
	}
	l, err := f.Acquire(t.Context(), "r", "w")
	if err != nil {
		t.Fatal(err)
	}
	d.at, d.fail, d.part = d.ops+1, syscall.ENOSPC, 3
	if err := l.Append(t.Context(), Mark{}, numbered(1)); !errors.Is(err, ErrFull) {
		t.Fatalf("append on a full disk: %v, want ErrFull", err)
	}
	if err := l.Append(t.Context(), Mark{}, numbered(2)); err != nil {
		t.Fatalf("append once there is room: %v", err)
	}
	d.at, d.fail = d.ops+2, syscall.EIO // the sync
	if err := l.Append(t.Context(), Mark{}, numbered(3)); !errors.Is(err, ErrUncertain) {
		t.Fatalf("append with a failed sync: %v, want ErrUncertain", err)
	}
	<-l.Lost()
	if err := l.Append(t.Context(), Mark{}, numbered(4)); !errors.Is(err, ErrFenced) {
		t.Fatalf("append after a failed sync: %v, want ErrFenced", err)
	}
}
