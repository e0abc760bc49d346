// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/fiducial-dev/fiducial/journal/internal/lockfile"
	"github.com/fiducial-dev/fiducial/llm"
)

const (
	inboxSuffix = ".inbox"
	offerSuffix = ".offer" // locked while somebody writes to the inbox
)

// Offer implements [Journal]. The inbox is a log of its own, in the format of
// records, whose kind is "offer" and whose name is the key.
func (f *Folder) Offer(ctx context.Context, run, key string, m llm.Message) (err error) {
	if err := CheckOffer(run, key, m); err != nil {
		return err
	}
	if err := f.enter(ctx, "offer", run, true); err != nil {
		return err
	}
	if err := f.exists(run); err != nil {
		return err
	}
	lock, err := f.lockOffers(ctx, run)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Free()) }()
	if err := f.exists(run); err != nil { // deleted meanwhile
		return err
	}
	return f.offer(run, key, m)
}

// lockOffers waits for its turn, which others hold for one write each.
func (f *Folder) lockOffers(ctx context.Context, run string) (*lockfile.Lock, error) {
	for {
		lock, err := lockfile.Take(f.root, run+offerSuffix)
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, lockfile.ErrHeld) {
			return nil, storeError("offer", run, err)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// offer needs the offer lock.
func (f *Folder) offer(run, key string, m llm.Message) (err error) {
	_, err = f.disk.Stat(run + inboxSuffix)
	fresh := errors.Is(err, fs.ErrNotExist)
	file, err := f.disk.Open(run+inboxSuffix, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return storeError("offer", run, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	s := newInboxScan(file, run)
	known := false
	for {
		group, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, errTorn) {
			if err := f.dropTail(file, run, s.where, s.end); err != nil {
				return err
			}
			break
		}
		if err != nil {
			return err
		}
		known = known || group[0].head.Name == key
	}
	if !known {
		if err := f.putOffer(file, s, key, m); err != nil {
			return err
		}
	}
	// Whoever wrote the key before may have died before this:
	if err := file.Sync(); err != nil {
		return &Error{Kind: KindUncertain, Op: "offer", Run: run, Err: err}
	}
	if fresh {
		if err := f.disk.SyncDir("."); err != nil {
			return &Error{Kind: KindUncertain, Op: "offer", Run: run, Err: err}
		}
	}
	return nil
}

func (f *Folder) putOffer(file diskFile, s *scan, key string, m llm.Message) error {
	e, err := EncodeOffer(s.run, s.seq+1, Item{Key: key, At: time.Now().UTC(), Message: m})
	if err != nil {
		return err
	}
	if err := f.putBlobs(s.run, e.Blobs, nil); err != nil {
		return storeError("offer", s.run, err)
	}
	if _, err := file.WriteAt(append(e.Line, '\n'), s.end); err != nil {
		return storeError("offer", s.run, errors.Join(err, file.Truncate(s.end)))
	}
	return nil
}

func newInboxScan(file diskFile, run string) *scan {
	s := newScan(file, run, run+inboxSuffix)
	s.inbox = true
	return s
}

// Inbox implements [Lease].
func (l *folderLease) Inbox(ctx context.Context) (_ []Item, err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return nil, &Error{Kind: KindFenced, Op: "inbox", Run: l.run}
	}
	file, err := l.folder.disk.Open(l.run+inboxSuffix, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storeError("inbox", l.run, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var items []Item
	s := newInboxScan(file, l.run)
	for {
		group, err := s.next()
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
			return items, nil
		}
		if err != nil {
			return nil, err
		}
		if l.taken[group[0].head.Name] {
			continue
		}
		item, err := l.folder.item(s, group[0])
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
}

// item reads one offer.
func (f *Folder) item(s *scan, r raw) (Item, error) {
	item, err := r.head.item(r.data, func(digest string) ([]byte, error) { return f.getBlob(s.run, digest) })
	return item, s.locate(err, r.offset, r.head.Seq)
}
