// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"time"
)

// A Restored is a whole run, ready to be stored under its name. It is for stores.
type Restored struct {
	Run              string
	Header           Header
	State            Mark
	Records          []Record
	Lines            []Encoded // of the records; nil for a store that keeps values
	Epoch            uint64    // the largest of the records
	Created, Updated time.Time // moved into the years 1678 to 2262
	Taken            []Taken   // in order
}

// Taken is a key of the inbox and the record that took it.
type Taken struct {
	Key string
	Seq uint64
}

// GatherRun reads a run that is to be restored and says what is wrong with it: an
// [ErrInvalid], or the first error of the sequence. It is for stores.
func GatherRun(run string, records iter.Seq2[Record, error], state Mark, encode bool) (*Restored, error) {
	if err := CheckMark("restore", run, state); err != nil {
		return nil, err
	}
	r := &Restored{Run: run, State: state}
	taken := map[string]bool{}
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		if err := r.add(rec, taken, encode); err != nil {
			return nil, err
		}
	}
	if len(r.Records) == 0 {
		return nil, &Error{Kind: KindInvalid, Op: "restore", Run: run, Err: errors.New("there is no record")}
	}
	return r, nil
}

func (r *Restored) add(rec Record, taken map[string]bool, encode bool) error {
	bad := func(format string, args ...any) error {
		err := fmt.Errorf("record %d: "+format, append([]any{rec.Seq}, args...)...)
		return &Error{Kind: KindInvalid, Op: "restore", Run: r.Run, Err: err}
	}
	header, first := rec.Body.(Header)
	switch {
	case rec.Seq != uint64(len(r.Records))+1:
		return bad("it stands where record %d should", len(r.Records)+1)
	case first != (rec.Seq == 1):
		return bad("a header stands at the beginning and nowhere else")
	case rec.Epoch < r.Epoch || first && rec.Epoch != 0:
		return bad("epoch %d cannot follow epoch %d", rec.Epoch, r.Epoch)
	case rec.Epoch > MaxEpoch/2:
		return bad("epoch %d is more than leases there can have been", rec.Epoch)
	}
	if first {
		if err := CheckHeader("restore", r.Run, header); err != nil {
			return err
		}
		r.Header, r.Created = header, countable(rec.At)
	} else if err := CheckBodies(r.Run, []Body{rec.Body}); err != nil {
		return bad("%w", err)
	}
	for _, key := range inboxKeys(rec.Body) {
		if taken[key] {
			return bad("the inbox key %q was taken before", key)
		}
		taken[key] = true
		r.Taken = append(r.Taken, Taken{key, rec.Seq})
	}
	e, err := EncodeRecord(r.Run, Stored{Record: rec}) // also where values are kept: every store takes the same
	if err != nil {
		return bad("%w", err)
	}
	if encode {
		r.Lines = append(r.Lines, e)
	}
	r.Records = append(r.Records, rec)
	r.Epoch, r.Updated = rec.Epoch, countable(rec.At)
	return nil
}

// countable is the time, or the one next to it that 64 bits of nanoseconds can say:
// the years 1678 to 2262.
func countable(at time.Time) time.Time {
	first, last := time.Unix(0, math.MinInt64).UTC(), time.Unix(0, math.MaxInt64).UTC()
	switch {
	case at.Before(first):
		return first
	case at.After(last):
		return last
	}
	return at
}

// seal puts the mark into the last line. It is for stores that keep it there.
func (r *Restored) seal() error {
	last := len(r.Records) - 1
	e, err := EncodeRecord(r.Run, Stored{Record: r.Records[last], Mark: r.State})
	if err == nil {
		r.Lines[last] = e
	}
	return err
}

// Restore implements [Journal].
func (m *Memory) Restore(ctx context.Context, run string, records iter.Seq2[Record, error], state Mark) error {
	if err := enter(ctx, "restore", run); err != nil {
		return err
	}
	r, err := GatherRun(run, records, state, false)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return &Error{Kind: KindClosed, Op: "restore", Run: run}
	}
	if m.runs[run] != nil {
		return &Error{Kind: KindExists, Op: "restore", Run: run}
	}
	in := &memoryRun{records: r.Records, epoch: r.Epoch, mark: state, taken: make(map[string]bool), known: make(map[string]bool)}
	for _, t := range r.Taken {
		in.taken[t.Key], in.known[t.Key] = true, true
	}
	m.ready()
	m.runs[run] = in
	return nil
}

const restoreSuffix = ".restore"

// Restore implements [Journal]. The log is written under another name first, so
// that it is whole or absent.
func (f *Folder) Restore(ctx context.Context, run string, records iter.Seq2[Record, error], state Mark) (err error) {
	if err := f.enter(ctx, "restore", run, true); err != nil {
		return err
	}
	r, err := GatherRun(run, records, state, true)
	if err != nil {
		return err
	}
	if err := r.seal(); err != nil {
		return err
	}
	exists := &Error{Kind: KindExists, Op: "restore", Run: run}
	lock, err := f.lock("restore", run)
	if errors.Is(err, ErrHeld) {
		return exists
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Free()) }()
	if err := f.exists(run); err == nil || !errors.Is(err, ErrNotFound) {
		return exists
	}
	known := make(map[string]bool)
	for _, e := range r.Lines {
		if err := f.putBlobs(run, e.Blobs, known); err != nil {
			return storeError("restore", run, errors.Join(err, f.disk.RemoveAll(blobFolder+"/"+run)))
		}
	}
	if err := f.writeLog(run, r.Lines); err != nil {
		return storeError("restore", run, errors.Join(err, f.disk.RemoveAll(blobFolder+"/"+run)))
	}
	return nil
}

func (f *Folder) writeLog(run string, lines []Encoded) (err error) {
	file, err := f.disk.Open(run+restoreSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.disk.RemoveAll(run+restoreSuffix))
		}
	}()
	var at int64
	for chunk := range slices.Chunk(lines, 256) {
		var text []byte
		for _, e := range chunk {
			text = append(append(text, e.Line...), '\n')
		}
		if _, err := file.WriteAt(text, at); err != nil {
			return errors.Join(err, file.Close())
		}
		at += int64(len(text))
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	// An inbox of that name can only be one that a Delete left which was cut off.
	for _, name := range []string{run + inboxSuffix, run + logSuffix} {
		if err := f.disk.RemoveAll(name); err != nil {
			return err
		}
	}
	if err := f.disk.Rename(run+restoreSuffix, run+logSuffix); err != nil {
		return err
	}
	return f.disk.SyncDir(".")
}
