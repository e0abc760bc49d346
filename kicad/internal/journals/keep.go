// SPDX-License-Identifier: Apache-2.0

package journals

import (
	"context"
	"errors"
	"sync"

	"github.com/fiducial-dev/fiducial/journal"
)

// A Keeper is a journal that holds one run from its first record to its last, around
// the engine, which acquires and releases it in between: a run is held as long as
// somebody works on it, also while checks run before the first request and the
// commit is made behind the last one.
type Keeper struct {
	journal.Journal
	run, owner string

	mu    sync.Mutex
	lease journal.Lease
}

// Keep acquires the run. Owner is told to whoever asks who holds it. Errors are those
// of [journal.Journal.Acquire].
func Keep(ctx context.Context, j journal.Journal, run, owner string) (*Keeper, error) {
	k := &Keeper{Journal: j, run: run, owner: owner}
	lease, err := j.Acquire(ctx, run, owner)
	if err != nil {
		return nil, err
	}
	k.lease = lease
	return k, nil
}

// Acquire gives the lease that the keeper holds. Its Release does nothing.
func (k *Keeper) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	if run != k.run {
		return k.Journal.Acquire(ctx, run, owner)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.lease.Lost():
		lease, err := k.Journal.Acquire(ctx, run, k.owner)
		if err != nil {
			return nil, err
		}
		k.lease = lease
	default:
	}
	return kept{k.lease}, nil
}

// kept is a lease that somebody else releases.
type kept struct{ journal.Lease }

func (kept) Release(context.Context) error { return nil }

// End writes the run's last record and lets go of it. After an error the run may be
// held until the journal is closed.
func (k *Keeper) End(ctx context.Context, state journal.Mark, last journal.Body) error {
	lease, err := k.Acquire(ctx, k.run, k.owner)
	if err != nil {
		return err
	}
	err = lease.Append(ctx, state, last)
	return errors.Join(err, k.Release(ctx))
}

// Release lets go of the run as it stands.
func (k *Keeper) Release(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lease.Release(ctx)
}
