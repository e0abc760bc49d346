// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// A Holder is the run that holds the lock of a working tree.
type Holder struct {
	PID   int       `json:"pid"`
	Run   string    `json:"run"`
	Since time.Time `json:"since"`
}

// A Lock keeps a second run out of the working tree. The kernel frees it when the
// process ends, however it ends, so that no lock is ever stale.
type Lock struct{ f *os.File }

// errHeld is what tryLock returns when somebody else holds the file.
var errHeld = errors.New("held by another process")

// Lock takes the working tree for one run, without waiting. When another run has
// it the error is KindLocked and names the holder, as far as it can be read. The
// file is .fiducial/lock; on a network file system it protects nobody. Temporary
// folders that killed processes left are removed first.
func (r *Repo) Lock(ctx context.Context, run string, now time.Time) (*Lock, error) {
	const op = "lock"
	if err := checkRun(op, run); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(r.top)
	if err != nil {
		return nil, fail(op, err)
	}
	defer func() { _ = root.Close() }()
	if err := r.ensureOwn(ctx, root); err != nil {
		return nil, fail(op, err)
	}
	sweepTemp(os.TempDir(), time.Now())
	f, err := root.OpenFile(own+"/lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fail(op, err)
	}
	if err := tryLock(f); err != nil {
		defer func() { _ = f.Close() }()
		if !errors.Is(err, errHeld) {
			return nil, fail(op, err)
		}
		h := readHolder(f)
		return nil, &Error{
			Kind: KindLocked, Op: op, Holder: h, Err: fmt.Errorf("run %s (process %d) is working in %s", h.Run, h.PID, r.top),
			Advice: "wait for it, stop it, or work in another tree: git worktree add",
		}
	}
	text, err := json.Marshal(Holder{PID: os.Getpid(), Run: run, Since: now.UTC()})
	if err == nil {
		err = errors.Join(f.Truncate(0), writeAt(f, append(text, '\n')))
	}
	if err != nil {
		return nil, fail(op, errors.Join(err, f.Close()))
	}
	return &Lock{f: f}, nil
}

func writeAt(f *os.File, b []byte) error {
	_, err := f.WriteAt(b, 0)
	return err
}

// readHolder is for words only: between taking the lock and writing the file its
// holder may not be told yet.
func readHolder(f *os.File) Holder {
	h := Holder{Run: "unknown"}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if err == nil {
		_ = json.Unmarshal(b, &h) // a half-written holder stays unknown
	}
	return h
}

// Release gives the tree back. It may be called more than once.
func (l *Lock) Release() error {
	if l == nil || l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	return errors.Join(f.Truncate(0), f.Close())
}
