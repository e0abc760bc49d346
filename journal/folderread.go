// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"syscall"
	"time"

	"github.com/fiducial-dev/fiducial/journal/internal/lockfile"
)

// Read implements [Journal].
func (f *Folder) Read(ctx context.Context, run string, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		file, err := f.reader(ctx, "read", run)
		if err != nil {
			yield(Record{}, err)
			return
		}
		s := newScan(file, run, run+logSuffix)
		_, err = f.emit(ctx, s, from, yield)
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
			err = nil
			if s.seq == 0 {
				err = &Error{Kind: KindNotFound, Op: "read", Run: run}
			}
		}
		if err = errors.Join(err, file.Close()); err != nil && !errors.Is(err, errStopped) {
			yield(Record{}, unjoin(err))
		}
	}
}

// errStopped says that the reader of a sequence has had enough.
var errStopped = errors.New("stopped")

// unjoin takes a lone error out of errors.Join, so that it reads as one line.
func unjoin(err error) error {
	if j, ok := err.(interface{ Unwrap() []error }); ok && len(j.Unwrap()) == 1 {
		return j.Unwrap()[0]
	}
	return err
}

func (f *Folder) reader(ctx context.Context, op, run string) (diskFile, error) {
	if err := f.enter(ctx, op, run, false); err != nil {
		return nil, err
	}
	return f.open(op, run)
}

// emit yields what is left of the log and returns why it stopped, and the last
// mark that it saw.
func (f *Folder) emit(ctx context.Context, s *scan, from uint64, yield func(Record, error) bool) (Mark, error) {
	for {
		group, err := s.next()
		if err != nil {
			return s.mark, err
		}
		for _, r := range group {
			if ctx.Err() != nil {
				return s.mark, context.Cause(ctx)
			}
			if r.head.Seq < from {
				continue
			}
			rec, err := f.decode(s, r)
			if err != nil {
				return s.mark, err
			}
			if !yield(rec.Record, nil) {
				return s.mark, errStopped
			}
		}
	}
}

// decode reads the body of a record.
func (f *Folder) decode(s *scan, r raw) (Stored, error) {
	rec, err := r.head.decode(r.data, func(digest string) ([]byte, error) { return f.getBlob(s.run, digest) })
	if err == nil && r.head.Seq == 1 && rec.Run != s.run {
		err = damaged("it is the log of run %q", rec.Run)
	}
	return rec, s.locate(err, r.offset, r.head.Seq)
}

// Follow implements [Journal].
func (f *Folder) Follow(ctx context.Context, run string, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := CheckRun("follow", run); err != nil {
			yield(Record{}, err)
			return
		}
		if ctx.Err() != nil {
			return
		}
		file, err := f.reader(ctx, "follow", run)
		if err != nil {
			yield(Record{}, err)
			return
		}
		err = f.follow(ctx, file, newScan(file, run, run+logSuffix), from, yield)
		err = errors.Join(err, file.Close())
		if err != nil && ctx.Err() == nil && !errors.Is(err, errStopped) {
			yield(Record{}, unjoin(err))
		}
	}
}

func (f *Folder) follow(
	ctx context.Context, file diskFile, s *scan, from uint64, yield func(Record, error) bool,
) error {
	tick := time.NewTicker(f.opts.Poll)
	defer tick.Stop()
	for {
		mark, err := f.emit(ctx, s, from, yield)
		switch {
		case !errors.Is(err, io.EOF) && !errors.Is(err, errTorn):
			return err
		case mark.Ended && errors.Is(err, io.EOF):
			return nil
		case s.seq == 0:
			return &Error{Kind: KindNotFound, Op: "follow", Run: s.run}
		}
		for grown := false; !grown; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-tick.C:
			}
			if grown, err = f.grown(file, s); err != nil {
				return err
			}
		}
		s.resume(file)
	}
}

// grown reports whether something stands behind the last whole append.
func (f *Folder) grown(file diskFile, s *scan) (bool, error) {
	f.mu.Lock()
	closed := f.closed
	f.mu.Unlock()
	if closed {
		return false, &Error{Kind: KindClosed, Op: "follow", Run: s.run}
	}
	info, err := file.Stat()
	if err != nil {
		return false, storeError("follow", s.run, err)
	}
	if info.Size() == s.end {
		now, err := f.disk.Stat(s.where)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, now) {
			return false, &Error{Kind: KindNotFound, Op: "follow", Run: s.run, Err: errDeleted}
		}
		return false, nil
	}
	if info.Size() < s.end {
		return false, s.locate(damaged("the log has become shorter"), info.Size(), s.seq)
	}
	return true, nil
}

// Stat implements [Journal]. It reads the two ends of the log.
func (f *Folder) Stat(ctx context.Context, run string) (Info, error) {
	file, err := f.reader(ctx, "stat", run)
	if err != nil {
		return Info{}, err
	}
	info, err := f.describe(file, run)
	return info, unjoin(errors.Join(err, file.Close()))
}

func (f *Folder) describe(file diskFile, run string) (Info, error) {
	s := newScan(file, run, run+logSuffix)
	group, err := s.next()
	if err != nil {
		return Info{}, f.unfinished(run, err)
	}
	first, err := f.decode(s, group[0])
	if err != nil {
		return Info{}, err
	}
	info := Info{Run: run, Created: first.At}
	if h, ok := first.Body.(Header); ok {
		info.Labels, info.Parent, info.ParentSeq = h.Labels, h.Parent, h.ParentSeq
	}
	last, ok := lastLine(file)
	for !ok { // an end that is not whole: only the whole log can tell
		group, err := s.next()
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
			break
		}
		if err != nil {
			return Info{}, err
		}
		last = group[len(group)-1].head
	}
	if last.Seq == 0 {
		last = group[0].head
	}
	info.Head, info.Epoch, info.Updated = last.Seq, last.Epoch, last.At
	if last.Mark != nil {
		info.Mark = Mark(*last.Mark)
	}
	held, note, err := lockfile.Probe(f.root, run+lockSuffix)
	if err != nil {
		return Info{}, storeError("stat", run, err)
	}
	who := readHolder(note)
	info.Held, info.Owner, info.Epoch = held, who.Owner, max(info.Epoch, who.Epoch)
	return info, nil
}

// lastLine reads the last record from the end of the file, if it is whole and ends
// an append.
func lastLine(file diskFile) (headJSON, bool) {
	info, err := file.Stat()
	if err != nil {
		return headJSON{}, false
	}
	for n := int64(8 << 10); n <= 2*maxLine; n *= 4 {
		n = min(n, info.Size())
		buf := make([]byte, n)
		if _, err := file.ReadAt(buf, info.Size()-n); err != nil || n == 0 || buf[n-1] != '\n' {
			return headJSON{}, false
		}
		i := bytes.LastIndexByte(buf[:n-1], '\n')
		if i < 0 && n < info.Size() {
			continue
		}
		head, _, err := splitRecord(buf[i+1 : n-1])
		return head, err == nil && head.More == 0
	}
	return headJSON{}, false
}

// Runs implements [Journal]. Runs that cannot be described come last.
func (f *Folder) Runs(ctx context.Context, filter Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := f.enter(ctx, "list", "all", false); err != nil {
			yield(Info{}, err)
			return
		}
		var infos []Info
		bad := make(map[string]error)
		for run, err := range f.names() {
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				yield(Info{}, err)
				return
			}
			info, err := f.Stat(ctx, run)
			switch {
			case errors.Is(err, ErrNotFound): // it was deleted, or is just being made
			case err != nil:
				bad[run] = err
			default:
				infos = append(infos, info)
			}
		}
		filter.Yield(infos, bad, yield)
	}
}

// putBlobs makes blobs durable. Known holds the digests that are.
func (f *Folder) putBlobs(run string, blobs []Blob, known map[string]bool) error {
	if len(blobs) == 0 {
		return nil
	}
	dir := blobFolder + "/" + run
	for _, d := range []string{blobFolder, dir} {
		if err := f.disk.Mkdir(d); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for _, d := range []string{".", blobFolder} {
		if err := f.disk.SyncDir(d); err != nil {
			return err
		}
	}
	for _, b := range blobs {
		if known[b.Digest] {
			continue
		}
		if err := f.putBlob(dir+"/"+b.Digest, b.Data); err != nil {
			return fmt.Errorf("blob %s: %w", b.Digest, err)
		}
	}
	if err := f.disk.SyncDir(dir); err != nil {
		return err
	}
	for _, b := range blobs {
		if known != nil {
			known[b.Digest] = true
		}
	}
	return nil
}

// putBlob writes under another name first, so that a blob is whole or absent.
func (f *Folder) putBlob(name string, data []byte) error {
	if info, err := f.disk.Stat(name); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(data)) {
		return nil
	}
	file, err := f.disk.Open(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, 0)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, f.disk.RemoveAll(name+".new"))
	}
	return f.disk.Rename(name+".new", name)
}

func (f *Folder) getBlob(run, digest string) ([]byte, error) {
	name := blobFolder + "/" + run + "/" + digest
	info, err := f.disk.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR): // or a folder above it is none
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, storeError("read", run, err)
	case !info.Mode().IsRegular(): // opening what else there may be can wait for ever
		return nil, damaged("blob %s is no file", digest)
	}
	file, err := f.disk.Open(name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, storeError("read", run, err)
	}
	data, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<62))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, storeError("read", run, err)
	}
	return data, nil
}
