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
	"time"
)

// RepairedNote is the kind of the note that stands where a log was repaired. Its
// data is {"lost_bytes", "kept_as"}. What came after the record before it is
// unknown: a call that looks as if it had not started may have run.
const RepairedNote = "journal.repaired"

// damagedSuffix is behind the name of what stood where a blob should.
const damagedSuffix = ".damaged"

// Repaired says what [Folder.Repair] did.
type Repaired struct {
	Kept   uint64 // sequence number of the last good record
	Lost   int64  // bytes that are no longer in the log
	KeptAs string // the file in the folder that has them
}

// Repair cuts a log off where it is damaged, at the end of the last append that is
// whole, and adds a note of kind [RepairedNote]. The bytes that are cut off are
// kept in a file beside the log. What stands in the place of a blob and is no file gets
// ".damaged" behind its name. A log without damage is left as it is; one whose
// header is damaged cannot be repaired, nor one of a newer version. It is for a person to
// ask for, never for a program to do by itself.
func (f *Folder) Repair(ctx context.Context, run string) (_ Repaired, err error) {
	if err := f.enter(ctx, "repair", run, true); err != nil {
		return Repaired{}, err
	}
	if err := f.exists(run); err != nil {
		return Repaired{}, err
	}
	lock, err := f.lock("repair", run)
	if err != nil {
		return Repaired{}, err
	}
	defer func() { err = errors.Join(err, lock.Free()) }()
	file, err := f.disk.Open(run+logSuffix, os.O_RDWR)
	if err != nil {
		return Repaired{}, storeError("repair", run, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	good, err := f.goodEnd(ctx, file, run)
	if err == nil || !errors.Is(err, ErrDamaged) || good.seq == 0 {
		return Repaired{Kept: good.seq}, err
	}
	done, err := f.cut(file, run, good)
	if err == nil {
		err = f.moveAside(run)
	}
	return done, err
}

// moveAside gives what stands in the place of a blob and is no file another name:
// the blob could not be stored any more. What stands in it stays.
func (f *Folder) moveAside(run string) error {
	dir := blobFolder + "/" + run
	if info, err := f.disk.Stat(dir); err == nil && !info.IsDir() {
		if err := f.disk.Rename(dir, dir+damagedSuffix); err != nil {
			return storeError("repair", run, err)
		}
		return nil
	}
	entries, err := f.disk.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return storeError("repair", run, err)
	}
	for _, e := range entries {
		if !isDigest(e.Name()) || e.Type().IsRegular() {
			continue
		}
		if err := f.disk.Rename(dir+"/"+e.Name(), dir+"/"+e.Name()+damagedSuffix); err != nil {
			return storeError("repair", run, err)
		}
	}
	return nil
}

// end is where a whole append ends.
type end struct {
	offset int64
	seq    uint64
	epoch  uint64
	mark   Mark
}

// goodEnd reads the log with its blobs up to the first damage, which it returns.
func (f *Folder) goodEnd(ctx context.Context, file diskFile, run string) (end, error) {
	s := newScan(file, run, run+logSuffix)
	var good end
	for {
		if ctx.Err() != nil {
			return good, context.Cause(ctx)
		}
		group, err := s.next()
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) {
			return good, nil
		}
		if err != nil {
			return good, err
		}
		for _, r := range group {
			if _, err := f.decode(s, r); err != nil {
				return good, err
			}
		}
		good = end{s.end, s.seq, s.epoch, s.mark}
	}
}

func (f *Folder) cut(file diskFile, run string, good end) (Repaired, error) {
	name := fmt.Sprintf("%s.damaged-%d", run, good.seq+1)
	lost, err := f.copyTail(file, name, good.offset)
	if err != nil {
		return Repaired{}, storeError("repair", run, err)
	}
	done := Repaired{Kept: good.seq, Lost: lost, KeptAs: name}
	data, err := json.Marshal(struct {
		LostBytes int64  `json:"lost_bytes"`
		KeptAs    string `json:"kept_as"`
	}{lost, name})
	if err != nil {
		return Repaired{}, storeError("repair", run, err)
	}
	good.mark.Ended = false
	lines, _, err := EncodeAppend(run, good.seq, good.epoch, time.Now().UTC(), good.mark, []Body{Note{Kind: RepairedNote, Data: data}})
	if err != nil {
		return Repaired{}, err
	}
	if err := file.Truncate(good.offset); err != nil {
		return Repaired{}, storeError("repair", run, err)
	}
	if _, err := file.WriteAt(append(lines[0].Line, '\n'), good.offset); err != nil {
		return Repaired{}, storeError("repair", run, err)
	}
	if err := file.Sync(); err != nil {
		return Repaired{}, &Error{Kind: KindUncertain, Op: "repair", Run: run, Err: err}
	}
	return done, nil
}

// copyTail makes what stands from an offset on durable under another name.
func (f *Folder) copyTail(file diskFile, name string, from int64) (n int64, err error) {
	to, err := f.disk.Open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	n, err = io.Copy(io.NewOffsetWriter(to, 0), io.NewSectionReader(file, from, 1<<62-from))
	if err != nil {
		return n, err
	}
	if err := to.Sync(); err != nil {
		return n, err
	}
	return n, f.disk.SyncDir(".")
}
