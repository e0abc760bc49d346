// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/internal/folder"
	"github.com/fiducial-dev/fiducial/journal/internal/lockfile"
)

// A Repaired says what [Repair] did.
type Repaired struct {
	// KeptAs is the path of the damaged database, with its log under the same name and
	// "-wal"; empty when there was no damage and nothing was done.
	KeptAs string

	Runs []Rescued // by name
}

// A Rescued is what became of one run.
type Rescued struct {
	Run    string
	Kept   uint64 // the last record that was kept; 0: the run is lost
	Lost   uint64 // how many records behind it are known to be gone
	Offers int    // how many messages of its inbox are gone

	// Err says why the record behind Kept could not be kept, or that nobody knows
	// whether there was one; nil when the run is whole.
	Err error
}

// Repair makes the database at path anew from what can be read of it, however much
// of it is damaged: bytes that were changed, pages that are missing, a file that
// SQLite does not open any more. Each run is kept up to its first record that cannot
// be read; one that is cut off gets a note of kind [journal.RepairedNote], and goes
// on as [journal.Folder.Repair] says. Messages that no record has taken, that is
// still there, wait in the inbox again. The damaged database is kept beside the new
// one, and a database without damage is left as it is.
//
// Nobody may have the database open meanwhile; [journal.ErrHeld] when a run is held.
// Repair needs as much memory as the database is large. It is for a person to ask
// for, never for a program to do by itself.
func Repair(ctx context.Context, path string) (Repaired, error) {
	path, err := place(path, false)
	if err != nil {
		return Repaired{}, storeError(path, "repair", "", err)
	}
	if _, err := os.Stat(path); err != nil {
		return Repaired{}, storeError(path, "repair", "", err)
	}
	if err := folder.Make(path + ".locks"); err != nil {
		return Repaired{}, storeError(path, "repair", "", err)
	}
	locks, err := os.OpenRoot(path + ".locks")
	if err != nil {
		return Repaired{}, storeError(path, "repair", "", err)
	}
	done, err := repairUnder(ctx, path, locks)
	return done, errors.Join(storeError(path, "repair", "", err), locks.Close())
}

func repairUnder(ctx context.Context, path string, locks *os.Root) (Repaired, error) {
	if err := nobodyHolds(locks); err != nil {
		return Repaired{}, err
	}
	// As it stands now, before SQLite changes anything in it by opening it.
	m, err := openImage(path)
	if err != nil {
		return Repaired{}, err
	}
	done, err := intact(ctx, path)
	if err == nil || !errors.Is(err, journal.ErrDamaged) {
		return done, err
	}
	lock, err := (&Journal{locks: locks}).lockOpen(ctx)
	if err != nil {
		return Repaired{}, err
	}
	done, err = rebuild(ctx, path, m)
	return done, errors.Join(err, lock.Free())
}

func nobodyHolds(locks *os.Root) error {
	entries, err := fs.ReadDir(locks.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		run, ok := strings.CutSuffix(e.Name(), ".lock")
		if !ok || run == "" {
			continue
		}
		held, _, err := lockfile.Probe(locks, e.Name())
		if err != nil {
			return err
		}
		if held {
			return &journal.HeldError{Run: run}
		}
	}
	return nil
}

// intact reads all that there is. It returns what is wrong with it.
func intact(ctx context.Context, path string) (done Repaired, err error) {
	j, err := Open(ctx, path, Options{})
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	var said string
	if err := j.read.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil {
		return done, storeError(path, "repair", "", err)
	}
	if said != "ok" {
		return done, &journal.DamageError{Where: path, Offset: -1, Reason: said}
	}
	for info, err := range j.Runs(ctx, journal.Filter{}) {
		if err != nil {
			return done, err
		}
		for _, err := range j.Read(ctx, info.Run, 0) {
			if err != nil {
				return done, err
			}
		}
		if _, _, err := j.inbox(ctx, info.Run); err != nil {
			return done, storeError(path, "repair", info.Run, err)
		}
		done.Runs = append(done.Runs, Rescued{Run: info.Run, Kept: info.Head})
	}
	slices.SortFunc(done.Runs, func(a, b Rescued) int { return strings.Compare(a.Run, b.Run) })
	return done, nil
}

// rebuild fills a new database in a folder of its own and then puts it in the
// place of the old one, which has another name by then.
func rebuild(ctx context.Context, path string, m *image) (done Repaired, err error) {
	aside := path + ".repair"
	if err := os.RemoveAll(aside); err != nil { // of a repair that was cut off
		return done, err
	}
	keptAs, err := freeName(path + ".damaged-" + time.Now().UTC().Format("20060102T150405Z"))
	if err != nil {
		return done, err
	}
	fresh := filepath.Join(aside, "journal.db")
	done.KeptAs = keptAs
	if done.Runs, err = refill(ctx, fresh, salvage(m), filepath.Base(keptAs)); err != nil {
		return Repaired{}, errors.Join(err, os.RemoveAll(aside))
	}
	if err := replace(path, fresh, keptAs, m); err != nil {
		return Repaired{}, err
	}
	return done, os.RemoveAll(aside)
}

// freeName is a name that nothing has yet.
func freeName(name string) (string, error) {
	for i := 1; ; i++ {
		try := name
		if i > 1 {
			try = fmt.Sprintf("%s-%d", name, i)
		}
		if _, err := os.Lstat(try); errors.Is(err, fs.ErrNotExist) {
			return try, nil
		} else if err != nil {
			return "", err
		}
	}
}

// refill stores what was found in a new database.
func refill(ctx context.Context, path string, found []*remains, keptAs string) (runs []Rescued, err error) {
	j, err := Open(ctx, path, Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for _, r := range found {
		rescued, err := j.rescue(ctx, r, keptAs)
		if err != nil {
			return nil, err
		}
		runs = append(runs, rescued)
	}
	return runs, nil
}

func (j *Journal) rescue(ctx context.Context, r *remains, keptAs string) (Rescued, error) {
	records, mark, why := r.log()
	done := Rescued{Run: r.run, Kept: uint64(len(records)), Err: why}
	if r.row != nil && r.row.Head > int64(len(records)) {
		done.Lost = uint64(r.row.Head) - done.Kept
	}
	if len(records) == 0 {
		_, done.Offers = r.waiting(0)
		return done, nil
	}
	if why != nil {
		note, err := repairedNote(done.Lost, keptAs)
		if err != nil {
			return done, err
		}
		mark.Ended = false
		records = append(records, journal.Record{Seq: done.Kept + 1, Epoch: records[len(records)-1].Epoch, At: time.Now().UTC(), Body: note})
	}
	if err := j.Restore(ctx, r.run, each(records), mark); err != nil {
		return done, err
	}
	items, lost := r.waiting(int64(done.Kept))
	done.Offers = lost
	for _, i := range items {
		if err := j.Offer(ctx, r.run, i.Key, i.Message); err != nil {
			return done, err
		}
	}
	return done, nil
}

func repairedNote(lost uint64, keptAs string) (journal.Note, error) {
	data, err := json.Marshal(struct {
		LostRecords uint64 `json:"lost_records"`
		KeptAs      string `json:"kept_as"`
	}{lost, keptAs})
	return journal.Note{Kind: journal.RepairedNote, Data: data}, err
}

func each(records []journal.Record) func(func(journal.Record, error) bool) {
	return func(yield func(journal.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// replace keeps the old database under another name and puts the new one in its
// place. The old log never stands beside the new database, which would take it for
// its own.
func replace(path, fresh, keptAs string, old *image) error {
	if err := write(keptAs, old.file); err != nil {
		return err
	}
	if len(old.log) > 0 {
		if err := write(keptAs+"-wal", old.log); err != nil {
			return err
		}
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	err = folder.Sync(dir)
	for _, suffix := range []string{"-wal", "-shm"} {
		if gone := os.Remove(path + suffix); err == nil && gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = gone
		}
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	return errors.Join(err, folder.Sync(dir), dir.Close())
}

// write makes a new file with its content durable.
func write(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
