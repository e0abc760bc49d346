// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// Promise says what it means that [Lease.Append] returned nil.
type Promise uint8

// The promises.
const (
	Volatile Promise = iota // the records live as long as this process
	Durable                 // the records survive the end of the process and of power
)

func (p Promise) String() string {
	switch p {
	case Volatile:
		return "volatile"
	case Durable:
		return "durable"
	}
	return fmt.Sprintf("Promise(%d)", uint8(p))
}

// A Journal is a store of runs. All methods may be called by several goroutines
// at once. Errors are [*Error], [*HeldError], [*DamageError], [*FormatError] or the context's.
type Journal interface {
	// Promise says what a return of [Lease.Append], Create and Offer means.
	Promise() Promise

	// Create begins a run with its header. [ErrExists] when there is one of that
	// name. Nobody holds the run afterwards.
	Create(ctx context.Context, run string, h Header) error

	// Restore begins a run with records that were written before, of another store or
	// another run, the header first. They keep their numbers, epochs and times, and
	// what they took out of an inbox counts as taken. State describes the run after
	// the last one. All or none is stored; the first error of the sequence is
	// returned. [ErrExists] as with Create; [ErrInvalid] for records that are no
	// run. Nobody holds the run afterwards. See [Import] and [Fork].
	Restore(ctx context.Context, run string, records iter.Seq2[Record, error], state Mark) error

	// Acquire makes the caller the only writer of the run. Owner is a name for
	// people, told to whoever asks while the run is held. Errors: [ErrNotFound]; a
	// [*HeldError] (errors.Is [ErrHeld]) while somebody else, in this process or
	// another, holds the run; a [*DamageError] when the log cannot be trusted.
	Acquire(ctx context.Context, run, owner string) (Lease, error)

	// Read yields the records of the run from sequence number from on, in order
	// and without gaps; 0 means all. It ends at what was stored when it got there,
	// which may be more than any writer was told of. It ends with the first error.
	Read(ctx context.Context, run string, from uint64) iter.Seq2[Record, error]

	// Follow is Read that goes on with new records as they come. It ends when the
	// last append was marked as ended, with the first error, and quietly when ctx
	// ends. When the run is deleted it ends with [ErrNotFound], also when another one
	// of its name was made since: the records are always those of one run.
	Follow(ctx context.Context, run string, from uint64) iter.Seq2[Record, error]

	// Stat describes one run.
	Stat(ctx context.Context, run string) (Info, error)

	// Runs yields the runs that match, the last updated first. A run that cannot be
	// described comes as its name with the error, and the others follow all the
	// same; an error without a name ends the sequence.
	Runs(ctx context.Context, f Filter) iter.Seq2[Info, error]

	// Offer puts a user message into the run's inbox, from any process, whoever
	// holds the run. Key names the message: offering a key again, at any later
	// time, changes nothing and returns nil, so that a caller who does not know
	// whether an offer arrived makes it again. A key has 1 to [MaxKey] bytes of UTF-8.
	// [ErrNotFound] when there is no such run; [ErrInvalid] for what [CheckOffer]
	// refuses.
	Offer(ctx context.Context, run, key string, m llm.Message) error

	// Delete removes the run and all that belongs to it. [ErrHeld] while somebody
	// holds it.
	Delete(ctx context.Context, run string) error

	// Close ends all leases of this Journal and frees what it holds.
	Close() error
}

// A Lease is the right to write one run. All methods may be called by several
// goroutines at once.
type Lease interface {
	// Run is the name of the run.
	Run() string

	// Epoch counts the leases of the run. It is larger than that of every earlier one.
	Epoch() uint64

	// Head is the sequence number of the last record that is known to be stored.
	Head() uint64

	// Append stores the bodies as the next records, all or none, in order, and
	// returns once the store's promise holds. Outside inputs named by a Step are
	// taken out of the inbox in the same stroke; [ErrTaken] when one was taken
	// before.
	//
	// State describes the run after the last body. After [ErrFenced] the lease has
	// ended and nothing was appended; [ErrReplaced] tells whether that is because what it
	// wrote to was taken away. After [ErrUncertain] it has ended and the records
	// may be stored or not: whoever acquires the run next sees which. After any
	// other error nothing was appended and the lease is as before.
	//
	// Ctx is looked at before the store is touched and not after, so that a cancel
	// leaves no append half done.
	Append(ctx context.Context, state Mark, bodies ...Body) error

	// Inbox yields what was offered and not yet taken, in the order of arrival.
	Inbox(ctx context.Context) ([]Item, error)

	// Lost is closed when the lease has ended, by Release, by Close of the journal,
	// by being superseded, or by a failure after which nothing more may be
	// written. A store that notices only when asked closes it at the next Append.
	Lost() <-chan struct{}

	// Release ends the lease. Later calls do nothing.
	Release(ctx context.Context) error
}

// A Mark describes a run for [Info] and [Journal.Follow]. The journal does not
// rebuild anything from it.
type Mark struct {
	Phase   string              // a word of the engine, such as "generating" or "finished"
	Pending machine.OperationID // the pending operation, 0 when there is none
	Ended   bool                // nothing will follow unless the run is taken up again
}

// Info describes one run.
type Info struct {
	Run   string
	Head  uint64 // sequence number of the last record
	Epoch uint64 // of the latest lease, 0 when there was none
	Mark

	// Held says that somebody holds the run now, and Owner who. While nobody does,
	// Owner is the last one that did. A run that has not Ended and is not Held was
	// interrupted.
	Held  bool
	Owner string

	Created, Updated time.Time // for people only
	Labels           map[string]string
	Parent           string
	ParentSeq        uint64
}

// An Item is one message of an inbox.
type Item struct {
	Key     string
	At      time.Time // of the offer, for people only
	Message llm.Message
}

// A Filter chooses runs. The zero value chooses all.
type Filter struct {
	Phases []string          // the run's phase is one of these; empty: any
	Labels map[string]string // the run has all of these
	Parent string            // the run was forked from this one
	Before time.Time         // last updated before; zero: any time
	Ended  *bool
	Limit  int // at most that many, 0: all
}

// Match reports whether the run is chosen, the limit aside.
func (f Filter) Match(i Info) bool {
	if len(f.Phases) > 0 && !slices.Contains(f.Phases, i.Phase) {
		return false
	}
	for k, v := range f.Labels {
		if got, ok := i.Labels[k]; !ok || got != v {
			return false
		}
	}
	if f.Parent != "" && f.Parent != i.Parent {
		return false
	}
	if !f.Before.IsZero() && !i.Updated.Before(f.Before) {
		return false
	}
	return f.Ended == nil || *f.Ended == i.Ended
}
