// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/fiducial-dev/fiducial/journal/internal/folder"
	"github.com/fiducial-dev/fiducial/journal/internal/lockfile"
)

// Folder keeps each run in files of its own in one folder:
//
//	<run>.jsonl          the log, a record a line
//	<run>.lock           locked while the run is held; names the holder
//	<run>.inbox          what was offered, in the same format
//	blobs/<run>/<sha256> large content
//
// [OpenFolder] gives one; the zero value answers every call with [ErrInvalid]. The
// folder must be on a local disk: locks do not hold on network file systems.
type Folder struct {
	opts FolderOptions
	root *os.Root
	disk disk

	mu     sync.Mutex
	leases map[*folderLease]struct{}
	closed bool
}

// FolderOptions change how a [Folder] works. The zero value is the durable way.
type FolderOptions struct {
	// NoSync leaves it to the system when records reach the disk. They then survive
	// the end of the process but not of power, and the Promise is Volatile.
	NoSync bool

	// ReadOnly refuses every change, and a folder that is missing is an error.
	ReadOnly bool

	// OnTorn, if set, is told by Acquire that the log of a run, or its inbox, ended in
	// the middle of an append, and that so many bytes were dropped. They were never
	// acknowledged. It must not call the journal.
	OnTorn func(run, file string, lost int64)

	// Poll is how often Follow looks for new records; 0 means every 50 ms.
	Poll time.Duration
}

const (
	logSuffix  = ".jsonl"
	lockSuffix = ".lock"
	blobFolder = "blobs"
)

// OpenFolder opens the journal in a folder, which is made when it is missing.
func OpenFolder(path string, opts FolderOptions) (*Folder, error) {
	if path == "" {
		return nil, &Error{Kind: KindInvalid, Op: "open", Err: errors.New("the path of the folder is empty")}
	}
	if !opts.ReadOnly {
		if err := folder.Make(path); err != nil {
			return nil, storeError("open", "", err)
		}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, storeError("open", "", err)
	}
	if opts.Poll <= 0 {
		opts.Poll = 50 * time.Millisecond
	}
	return &Folder{
		opts: opts, root: root, disk: rootDisk{root, !opts.NoSync}, leases: make(map[*folderLease]struct{}),
	}, nil
}

// Promise is [Durable] unless the folder was opened with NoSync.
func (f *Folder) Promise() Promise {
	if f.opts.NoSync {
		return Volatile
	}
	return Durable
}

// enter is what every call looks at first.
func (f *Folder) enter(ctx context.Context, op, run string, writes bool) error {
	if err := enter(ctx, op, run); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.root == nil:
		return &Error{Kind: KindInvalid, Op: op, Run: run, Err: errors.New("a zero Folder is no journal; OpenFolder gives one")}
	case f.closed:
		return &Error{Kind: KindClosed, Op: op, Run: run}
	case writes && f.opts.ReadOnly:
		return &Error{Kind: KindReadOnly, Op: op, Run: run}
	}
	return nil
}

// lock takes the lock of the run. Who has just got it has not written its name yet,
// and who has it for a moment never does, so that it asks a few times.
func (f *Folder) lock(op, run string) (*lockfile.Lock, error) {
	for try := 1; ; try++ {
		l, err := lockfile.Take(f.root, run+lockSuffix)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, lockfile.ErrHeld) {
			return nil, storeError(op, run, err)
		}
		_, note, err := lockfile.Probe(f.root, run+lockSuffix)
		if err != nil {
			return nil, storeError(op, run, err)
		}
		if h := readHolder(note); h.PID != 0 || try == 8 {
			return nil, &HeldError{Run: run, Owner: h.Owner}
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// holder is what stands in a lock file. The epoch stands there for leases that
// wrote nothing.
type holder struct {
	Epoch uint64 `json:"epoch"`
	Owner string `json:"owner"`
	PID   int    `json:"pid"`
}

// readHolder takes a note that is cut, missing or of no epoch that can be for none:
// the log has the epoch of every lease that wrote something.
func readHolder(note []byte) holder {
	var h holder
	if json.Unmarshal(note, &h) != nil || h.Epoch >= MaxEpoch {
		return holder{}
	}
	return h
}

// Create implements [Journal]. The file is durable under its name on return. A
// file without a whole header is what a Create left that was cut off, and is
// written anew.
func (f *Folder) Create(ctx context.Context, run string, h Header) (err error) {
	if err := f.enter(ctx, "create", run, true); err != nil {
		return err
	}
	if err := CheckHeader("create", run, h); err != nil {
		return err
	}
	line, err := EncodeRecord(run, Stored{Record: Record{Seq: 1, At: time.Now().UTC(), Body: h}})
	if err != nil {
		return err
	}
	if err := f.exists(run); err == nil || !errors.Is(err, ErrNotFound) {
		return &Error{Kind: KindExists, Op: "create", Run: run}
	}
	lock, err := f.lock("create", run)
	if errors.Is(err, ErrHeld) {
		return &Error{Kind: KindExists, Op: "create", Run: run, Err: err}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Free()) }()
	if err := f.exists(run); err == nil || !errors.Is(err, ErrNotFound) {
		return &Error{Kind: KindExists, Op: "create", Run: run}
	}
	if err := f.putBlobs(run, line.Blobs, nil); err != nil {
		return storeError("create", run, err)
	}
	if err := f.begin(run, append(line.Line, '\n')); err != nil {
		return storeError("create", run, err)
	}
	return nil
}

// begin writes the first line of a log.
func (f *Folder) begin(run string, line []byte) (err error) {
	file, err := f.disk.Open(run+logSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if err != nil {
			err = errors.Join(err, f.disk.RemoveAll(run+logSuffix))
		}
	}()
	if _, err := file.WriteAt(line, 0); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return f.disk.SyncDir(".")
}

// exists reads the header of a log. [ErrNotFound] when there is none.
func (f *Folder) exists(run string) error {
	file, err := f.open("find", run)
	if err != nil {
		return err
	}
	_, err = newScan(file, run, run+logSuffix).next()
	return errors.Join(f.unfinished(run, err), file.Close())
}

// unfinished maps a log without a whole header to none.
func (f *Folder) unfinished(run string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
		return &Error{Kind: KindNotFound, Op: "read", Run: run}
	}
	return err
}

func (f *Folder) open(op, run string) (diskFile, error) {
	file, err := f.disk.Open(run+logSuffix, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Kind: KindNotFound, Op: op, Run: run}
	}
	if err != nil {
		return nil, storeError(op, run, err)
	}
	return file, nil
}

// Delete implements [Journal].
func (f *Folder) Delete(ctx context.Context, run string) (err error) {
	if err := f.enter(ctx, "delete", run, true); err != nil {
		return err
	}
	if _, err := f.disk.Stat(run + logSuffix); errors.Is(err, fs.ErrNotExist) {
		return &Error{Kind: KindNotFound, Op: "delete", Run: run}
	}
	lock, err := f.lock("delete", run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Free()) }()
	// The log goes first: without it the rest is nothing, whatever happens here.
	for _, name := range []string{
		run + logSuffix, run + inboxSuffix, blobFolder + "/" + run, run + offerSuffix, run + lockSuffix,
	} {
		if err := f.disk.RemoveAll(name); err != nil {
			return storeError("delete", run, err)
		}
		if err := f.disk.SyncDir("."); err != nil {
			return storeError("delete", run, err)
		}
	}
	return nil
}

// Close implements [Journal].
func (f *Folder) Close() error {
	f.mu.Lock()
	leases := f.leases
	f.leases, f.closed = nil, true
	f.mu.Unlock()
	if leases == nil {
		return nil
	}
	var errs []error
	for l := range leases {
		errs = append(errs, l.end())
	}
	return errors.Join(append(errs, f.root.Close())...)
}

// names yields the runs in the folder.
func (f *Folder) names() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := f.disk.ReadDir(".")
		if err != nil {
			yield("", storeError("list", "", err))
			return
		}
		for _, e := range entries {
			run, ok := strings.CutSuffix(e.Name(), logSuffix)
			if !ok || CheckRun("list", run) != nil {
				continue
			}
			if !yield(run, nil) {
				return
			}
		}
	}
}
