// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/fiducial-dev/fiducial/journal/internal/lockfile"
)

type folderLease struct {
	folder *Folder
	run    string
	epoch  uint64
	lost   chan struct{}

	mu    sync.Mutex
	lock  *lockfile.Lock // nil when the lease has ended
	file  diskFile
	tail  int64 // where the next append goes
	head  uint64
	taken map[string]bool
	blobs map[string]bool // digests that are durable
}

// Acquire implements [Journal]. It reads the whole log and checks every sum, so
// that nobody goes on from a log that is damaged.
func (f *Folder) Acquire(ctx context.Context, run, owner string) (_ Lease, err error) {
	if err := f.enter(ctx, "acquire", run, true); err != nil {
		return nil, err
	}
	if err := f.exists(run); err != nil {
		return nil, err
	}
	lock, err := f.lock("acquire", run)
	if err != nil {
		return nil, err
	}
	l := &folderLease{
		folder: f, run: run, lost: make(chan struct{}), lock: lock,
		taken: make(map[string]bool), blobs: make(map[string]bool),
	}
	if err := l.load(ctx, owner); err != nil {
		return nil, errors.Join(err, l.end())
	}
	f.mu.Lock()
	closed := f.closed
	if !closed {
		f.leases[l] = struct{}{}
	}
	f.mu.Unlock()
	if closed {
		return nil, errors.Join(&Error{Kind: KindClosed, Op: "acquire", Run: run}, l.end())
	}
	return l, nil
}

// load reads the log up to its last whole append, drops what stands behind it and
// counts the epoch.
func (l *folderLease) load(ctx context.Context, owner string) error {
	file, err := l.folder.disk.Open(l.run+logSuffix, os.O_RDWR)
	if err != nil {
		return storeError("acquire", l.run, err)
	}
	l.file = file
	note, err := l.lock.Note()
	if err != nil {
		return storeError("acquire", l.run, err)
	}
	last := readHolder(note).Epoch
	if err := l.sign(last, owner); err != nil { // reading the log can take long, and others ask meanwhile
		return err
	}
	s := newScan(file, l.run, l.run+logSuffix)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		group, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, errTorn) {
			if err := l.folder.dropTail(file, l.run, s.where, s.end); err != nil {
				return err
			}
			break
		}
		if err != nil {
			return err
		}
		if err := l.keep(s, group); err != nil {
			return err
		}
	}
	if s.seq == 0 {
		return &Error{Kind: KindNotFound, Op: "acquire", Run: l.run}
	}
	l.tail, l.head = s.end, s.seq
	if l.epoch, err = NextEpoch(l.run, max(s.epoch, last)); err != nil {
		return err
	}
	return l.sign(l.epoch, owner)
}

// sign writes into the lock file who holds the run.
func (l *folderLease) sign(epoch uint64, owner string) error {
	note, err := json.Marshal(holder{Epoch: epoch, Owner: CutOwner(owner), PID: os.Getpid()})
	if err != nil {
		return storeError("acquire", l.run, err)
	}
	if err := l.lock.SetNote(note); err != nil {
		return storeError("acquire", l.run, err)
	}
	return nil
}

// keep remembers which outside inputs the records took.
func (l *folderLease) keep(s *scan, group []raw) error {
	for _, r := range group {
		if r.head.Seq == 1 {
			if _, err := l.folder.decode(s, r); err != nil {
				return err
			}
		}
		if r.head.Kind != "step" || !mayTake(r.data) {
			continue
		}
		rec, err := l.folder.decode(s, r)
		if err != nil {
			return err
		}
		for _, key := range inboxKeys(rec.Body) {
			l.taken[key] = true
		}
	}
	return nil
}

// dropTail cuts an unfinished append off and reports it.
func (f *Folder) dropTail(file diskFile, run, name string, end int64) error {
	info, err := file.Stat()
	if err != nil {
		return storeError("acquire", run, err)
	}
	if err := file.Truncate(end); err != nil {
		return storeError("acquire", run, err)
	}
	if err := file.Sync(); err != nil {
		return storeError("acquire", run, err)
	}
	if f.opts.OnTorn != nil {
		f.opts.OnTorn(run, name, info.Size()-end)
	}
	return nil
}

func (l *folderLease) Run() string           { return l.run }
func (l *folderLease) Epoch() uint64         { return l.epoch }
func (l *folderLease) Lost() <-chan struct{} { return l.lost }

func (l *folderLease) Head() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head
}

// Append implements [Lease].
func (l *folderLease) Append(ctx context.Context, state Mark, bodies ...Body) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := CheckBodies(l.run, bodies); err != nil {
		return err
	}
	if err := CheckMark("append", l.run, state); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return &Error{Kind: KindFenced, Op: "append", Run: l.run}
	}
	keys := InboxKeys(bodies...)
	if err := CheckTaken(l.run, keys, func(key string) bool { return l.taken[key] }); err != nil {
		return err
	}
	lines, blobs, err := EncodeAppend(l.run, l.head, l.epoch, time.Now().UTC(), state, bodies)
	if err != nil {
		return err
	}
	if err := l.check(); err != nil {
		return err
	}
	if err := l.folder.putBlobs(l.run, blobs, l.blobs); err != nil {
		return storeError("append", l.run, err)
	}
	var text []byte
	for _, e := range lines {
		if text == nil { // as a rule there is one line, which has room for its end
			text = append(e.Line, '\n')
			continue
		}
		text = append(append(text, e.Line...), '\n')
	}
	if err := l.write(text); err != nil {
		return err
	}
	l.head += uint64(len(bodies))
	for _, key := range keys {
		l.taken[key] = true
	}
	return nil
}

// check finds out whether somebody else wrote, which the lock should prevent, or
// whether nobody would find what is written: a person may have removed the lock file
// or the log, or edited the log.
func (l *folderLease) check() error {
	info, err := l.file.Stat()
	if err != nil {
		return storeError("append", l.run, err)
	}
	named, err := l.folder.disk.Stat(l.run + logSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storeError("append", l.run, err)
	}
	var why string
	switch {
	case err != nil || !os.SameFile(info, named):
		why = l.run + logSuffix + " is not the log that was opened"
	case !l.lock.Valid():
		why = "the lock file is not the one that was locked"
	case info.Size() != l.tail:
		why = fmt.Sprintf(l.run+logSuffix+" has %d bytes where this lease left %d", info.Size(), l.tail)
	default:
		return nil
	}
	return &Error{Kind: KindFenced, Op: "append", Run: l.run, Err: errors.Join(fmt.Errorf("%s: %w", why, ErrReplaced), l.finish())}
}

// write appends the text and makes it durable. What is written in part is taken
// back. After a failed sync nobody knows what the disk has, not even by reading
// the file, and it is given up.
func (l *folderLease) write(text []byte) error {
	if _, err := l.file.WriteAt(text, l.tail); err != nil {
		if back := l.file.Truncate(l.tail); back != nil {
			return &Error{Kind: KindUncertain, Op: "append", Run: l.run, Err: errors.Join(err, back, l.finish())}
		}
		return storeError("append", l.run, err)
	}
	if err := l.file.Sync(); err != nil {
		return &Error{Kind: KindUncertain, Op: "append", Run: l.run, Err: errors.Join(err, l.finish())}
	}
	l.tail += int64(len(text))
	return nil
}

// Release implements [Lease].
func (l *folderLease) Release(context.Context) error {
	l.folder.mu.Lock()
	delete(l.folder.leases, l)
	l.folder.mu.Unlock()
	return l.end()
}

func (l *folderLease) end() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.finish()
}

// finish ends the lease. It needs l.mu.
func (l *folderLease) finish() error {
	if l.lock == nil {
		return nil
	}
	close(l.lost)
	var err error
	if l.file != nil {
		err = l.file.Close()
	}
	err = errors.Join(err, l.lock.Free())
	l.lock = nil
	return err
}
