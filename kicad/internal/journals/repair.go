// SPDX-License-Identifier: Apache-2.0

package journals

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
)

// ErrServer says that a journal on a server is none of ours to repair: what brings it back is the server's own backup.
var ErrServer = errors.New("a journal on a server is restored from the server's own backup")

// A Repaired is what [Place.Repair] did. It is [Repaired.Whole] when there was nothing to be done.
type Repaired struct {
	// KeptAs is where the damaged database stands now; empty for a folder, whose runs have it each for itself.
	KeptAs string
	Runs   []Mended // all runs, by name
}

// Whole reports whether nothing was damaged.
func (r Repaired) Whole() bool {
	return r.KeptAs == "" && !slices.ContainsFunc(r.Runs, func(m Mended) bool { return m.Why != nil })
}

// A Mended is what became of one run.
type Mended struct {
	Run      string
	Kept     uint64 // the last record that is kept; 0: none
	Lost     uint64 // how many records behind it are known to be gone; a folder does not know
	Messages int    // how many messages of its inbox are gone
	Bytes    int64  // of a folder: how many bytes of the run's file were cut off
	KeptAs   string // of a folder: the file that has these bytes
	Why      error  // what is wrong with the record behind Kept; nil when the run is whole
	Failed   bool   // of a folder: the run could not be repaired and is as it was
}

// Repair makes the journal whole again and loses what cannot be read. The damaged bytes are kept beside it. Nobody may
// use the journal meanwhile: [journal.ErrHeld] when a run goes on. Other errors: [fs.ErrNotExist] when there is no
// journal yet, [ErrServer], and [*UnreachableError].
func (p Place) Repair(ctx context.Context) (done Repaired, err error) {
	switch p.kind {
	case SQLite:
		done, err = p.repairDatabase(ctx)
	case Folder:
		done, err = p.repairFolder(ctx)
	case Postgres:
		return Repaired{}, ErrServer
	default:
		return Repaired{}, ErrAddress
	}
	switch {
	case err == nil:
		slices.SortFunc(done.Runs, func(a, b Mended) int { return strings.Compare(a.Run, b.Run) })
		return done, nil
	case errors.Is(err, journal.ErrHeld), errors.Is(err, fs.ErrNotExist), ctx.Err() != nil:
		return Repaired{}, err
	}
	return Repaired{}, &UnreachableError{Place: p, Err: err}
}

func (p Place) repairDatabase(ctx context.Context) (Repaired, error) {
	if _, err := os.Stat(p.at); err != nil {
		return Repaired{}, err
	}
	did, err := sqlite.Repair(ctx, p.at)
	if err != nil {
		return Repaired{}, err
	}
	done := Repaired{KeptAs: did.KeptAs}
	for _, r := range did.Runs {
		done.Runs = append(done.Runs, Mended{Run: r.Run, Kept: r.Kept, Lost: r.Lost, Messages: r.Offers, Why: r.Err})
	}
	return done, nil
}

// repairFolder goes through the runs one by one, after it has seen that none goes on.
func (p Place) repairFolder(ctx context.Context) (done Repaired, err error) {
	if _, err := os.Stat(p.at); err != nil {
		return Repaired{}, err
	}
	f, err := journal.OpenFolder(p.at, journal.FolderOptions{})
	if err != nil {
		return Repaired{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var names []string
	for info, err := range f.Runs(ctx, journal.Filter{}) {
		switch {
		case err != nil && info.Run == "":
			return Repaired{}, err
		case info.Held:
			return Repaired{}, &journal.HeldError{Run: info.Run, Owner: info.Owner}
		}
		names = append(names, info.Run)
	}
	for _, run := range names {
		m, err := p.repairRun(ctx, f, run)
		if err != nil {
			return done, err
		}
		done.Runs = append(done.Runs, m)
	}
	return done, nil
}

// repairRun repairs one run of a folder. That it cannot be repaired is no error: the others may.
func (p Place) repairRun(ctx context.Context, f *journal.Folder, run string) (Mended, error) {
	m := Mended{Run: run, Why: damageOf(ctx, f, run)}
	did, err := f.Repair(ctx, run)
	m.Kept = did.Kept
	switch {
	case ctx.Err() != nil || errors.Is(err, journal.ErrHeld):
		return m, cmp.Or(context.Cause(ctx), err)
	case err != nil:
		m.Why, m.Failed = err, true
	case did.KeptAs != "":
		m.Bytes, m.KeptAs = did.Lost, filepath.Join(p.at, did.KeptAs)
	}
	return m, nil
}

// damageOf reads a run to its end, or to where it is damaged.
func damageOf(ctx context.Context, j journal.Journal, run string) error {
	for _, err := range j.Read(ctx, run, 0) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Damage looks for damage in all runs, up to the first, and returns it: a [*journal.DamageError]. nil says that every
// record can be read. Other errors are those of the journal.
func Damage(ctx context.Context, j journal.Journal) error {
	for info, err := range j.Runs(ctx, journal.Filter{}) {
		if err == nil {
			err = damageOf(ctx, j, info.Run)
		}
		if err != nil && !errors.Is(err, journal.ErrNotFound) { // which was pruned meanwhile
			return err
		}
	}
	return nil
}
