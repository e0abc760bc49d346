// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
)

// Memory keeps runs in this process. The zero value is an empty one. It stores the values that it is given and
// copies nothing: what was handed to it must not be changed afterwards.
type Memory struct {
	mu     sync.Mutex
	runs   map[string]*memoryRun
	closed bool
}

type memoryRun struct {
	records []Record
	epoch   uint64
	holder  *memoryLease // nil when nobody holds the run
	owner   string
	mark    Mark
	grown   chan struct{} // closed and replaced at each append; nil when nobody waits

	inbox []Item // offered and not taken
	taken map[string]bool
	known map[string]bool
}

// NewMemory is an empty journal in memory.
func NewMemory() *Memory { return &Memory{} }

// Promise is [Volatile].
func (m *Memory) Promise() Promise { return Volatile }

// Create implements [Journal].
func (m *Memory) Create(ctx context.Context, run string, h Header) error {
	if err := enter(ctx, "create", run); err != nil {
		return err
	}
	if err := CheckHeader("create", run, h); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return &Error{Kind: KindClosed, Op: "create", Run: run}
	}
	if m.runs[run] != nil {
		return &Error{Kind: KindExists, Op: "create", Run: run}
	}
	m.ready()
	h.Labels = maps.Clone(h.Labels)
	m.runs[run] = &memoryRun{
		records: []Record{{Seq: 1, At: time.Now().UTC(), Body: h}},
		taken:   make(map[string]bool),
		known:   make(map[string]bool),
	}
	return nil
}

// ready makes room in a zero Memory. It needs m.mu.
func (m *Memory) ready() {
	if m.runs == nil {
		m.runs = make(map[string]*memoryRun)
	}
}

// enter is what every call on a run looks at first.
func enter(ctx context.Context, op, run string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return CheckRun(op, run)
}

// find needs m.mu.
func (m *Memory) find(op, run string) (*memoryRun, error) {
	if m.closed {
		return nil, &Error{Kind: KindClosed, Op: op, Run: run}
	}
	r := m.runs[run]
	if r == nil {
		return nil, &Error{Kind: KindNotFound, Op: op, Run: run}
	}
	return r, nil
}

// Acquire implements [Journal].
func (m *Memory) Acquire(ctx context.Context, run, owner string) (Lease, error) {
	if err := enter(ctx, "acquire", run); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find("acquire", run)
	if err != nil {
		return nil, err
	}
	if r.holder != nil {
		return nil, &HeldError{Run: run, Owner: r.owner}
	}
	epoch, err := NextEpoch(run, r.epoch)
	if err != nil {
		return nil, err
	}
	r.epoch = epoch
	r.owner = CutOwner(owner)
	r.holder = &memoryLease{journal: m, run: run, in: r, epoch: r.epoch, lost: make(chan struct{})}
	return r.holder, nil
}

// Expire ends the lease on the run, if there is one, as if its time had run out
// while the holder was frozen. It is for tests of what a superseded holder does.
func (m *Memory) Expire(run string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[run]; r != nil {
		r.free()
	}
}

// free ends the lease. It needs the journal's lock.
func (r *memoryRun) free() {
	if r.holder != nil {
		close(r.holder.lost)
		r.holder = nil
	}
}

// Read implements [Journal].
func (m *Memory) Read(ctx context.Context, run string, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := enter(ctx, "read", run); err != nil {
			yield(Record{}, err)
			return
		}
		_, records, _, err := m.since("read", run, from, false)
		if err != nil {
			yield(Record{}, err)
			return
		}
		for _, rec := range records {
			if err := context.Cause(ctx); err != nil {
				yield(Record{}, err)
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// since is the run and what it holds from a sequence number on. With wait it also
// returns a channel that is closed at the next change, nil when the run has ended.
func (m *Memory) since(op, run string, from uint64, wait bool) (*memoryRun, []Record, <-chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find(op, run)
	if err != nil {
		return nil, nil, nil, err
	}
	n := uint64(len(r.records))
	records := slices.Clip(r.records[min(max(from, 1)-1, n):])
	if !wait || r.mark.Ended {
		return r, records, nil, nil
	}
	if r.grown == nil {
		r.grown = make(chan struct{})
	}
	return r, records, r.grown, nil
}

// Follow implements [Journal].
func (m *Memory) Follow(ctx context.Context, run string, from uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if err := CheckRun("follow", run); err != nil {
			yield(Record{}, err)
			return
		}
		next := max(from, 1)
		var first *memoryRun
		for ctx.Err() == nil {
			r, records, more, err := m.since("follow", run, next, true)
			if first == nil {
				first = r
			}
			if err == nil && r != first || first != nil && errors.Is(err, ErrNotFound) {
				err = &Error{Kind: KindNotFound, Op: "follow", Run: run, Err: errDeleted}
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, rec := range records {
				if ctx.Err() != nil || !yield(rec, nil) {
					return
				}
				next = rec.Seq + 1
			}
			if more == nil {
				return
			}
			select {
			case <-more:
			case <-ctx.Done():
			}
		}
	}
}

// errDeleted says why a run is not there any more, whether or not another one was
// made under its name.
var errDeleted = errors.New("it was deleted")

// wake tells followers that there is something to see. It needs the journal's lock.
func (r *memoryRun) wake() {
	if r.grown != nil {
		close(r.grown)
		r.grown = nil
	}
}

// Stat implements [Journal].
func (m *Memory) Stat(ctx context.Context, run string) (Info, error) {
	if err := enter(ctx, "stat", run); err != nil {
		return Info{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find("stat", run)
	if err != nil {
		return Info{}, err
	}
	return r.info(run), nil
}

func (r *memoryRun) info(run string) Info {
	i := Info{
		Run: run, Head: uint64(len(r.records)), Epoch: r.epoch, Mark: r.mark,
		Held: r.holder != nil, Owner: r.owner,
		Created: r.records[0].At, Updated: r.records[len(r.records)-1].At,
	}
	if h, ok := r.records[0].Body.(Header); ok {
		i.Labels, i.Parent, i.ParentSeq = maps.Clone(h.Labels), h.Parent, h.ParentSeq
	}
	return i
}

// Runs implements [Journal].
func (m *Memory) Runs(ctx context.Context, f Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := context.Cause(ctx); err != nil {
			yield(Info{}, err)
			return
		}
		m.mu.Lock()
		if m.closed {
			m.mu.Unlock()
			yield(Info{}, &Error{Kind: KindClosed, Op: "list"})
			return
		}
		infos := make([]Info, 0, len(m.runs))
		for run, r := range m.runs {
			infos = append(infos, r.info(run))
		}
		m.mu.Unlock()
		f.Yield(infos, nil, yield)
	}
}

// Yield sorts the runs as [Journal.Runs] says and yields those that match, then
// the names of those that could not be described. It is for stores.
func (f Filter) Yield(infos []Info, bad map[string]error, yield func(Info, error) bool) {
	slices.SortFunc(infos, func(a, b Info) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.Run, b.Run))
	})
	n := 0
	for _, i := range infos {
		if !f.Match(i) {
			continue
		}
		if f.Limit > 0 && n == f.Limit {
			break
		}
		n++
		if !yield(i, nil) {
			return
		}
	}
	for _, run := range slices.Sorted(maps.Keys(bad)) {
		if !yield(Info{Run: run}, bad[run]) {
			return
		}
	}
}

// Offer implements [Journal].
func (m *Memory) Offer(ctx context.Context, run, key string, msg llm.Message) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := CheckOffer(run, key, msg); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find("offer", run)
	if err != nil {
		return err
	}
	if !r.known[key] {
		r.known[key] = true
		r.inbox = append(r.inbox, Item{Key: key, At: time.Now().UTC(), Message: msg})
	}
	return nil
}

// Delete implements [Journal].
func (m *Memory) Delete(ctx context.Context, run string) error {
	if err := enter(ctx, "delete", run); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.find("delete", run)
	if err != nil {
		return err
	}
	if r.holder != nil {
		return &HeldError{Run: run, Owner: r.owner}
	}
	delete(m.runs, run)
	r.wake()
	return nil
}

// Close implements [Journal].
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, r := range m.runs {
		r.free()
		r.wake()
	}
	return nil
}

type memoryLease struct {
	journal *Memory
	run     string
	in      *memoryRun
	epoch   uint64
	lost    chan struct{}
}

func (l *memoryLease) Run() string           { return l.run }
func (l *memoryLease) Epoch() uint64         { return l.epoch }
func (l *memoryLease) Lost() <-chan struct{} { return l.lost }

func (l *memoryLease) Head() uint64 {
	l.journal.mu.Lock()
	defer l.journal.mu.Unlock()
	return uint64(len(l.in.records))
}

func (l *memoryLease) Append(ctx context.Context, state Mark, bodies ...Body) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := CheckBodies(l.run, bodies); err != nil {
		return err
	}
	if err := CheckMark("append", l.run, state); err != nil {
		return err
	}
	l.journal.mu.Lock()
	defer l.journal.mu.Unlock()
	r := l.in
	if r.holder != l {
		return &Error{Kind: KindFenced, Op: "append", Run: l.run}
	}
	if err := r.take(l.run, bodies); err != nil {
		return err
	}
	at := time.Now().UTC()
	for _, b := range bodies {
		r.records = append(r.records, Record{Seq: uint64(len(r.records)) + 1, Epoch: l.epoch, At: at, Body: b})
	}
	r.mark = state
	r.wake()
	return nil
}

// take takes the outside inputs of the bodies, all or none.
func (r *memoryRun) take(run string, bodies []Body) error {
	keys := InboxKeys(bodies...)
	if err := CheckTaken(run, keys, func(key string) bool { return r.taken[key] }); err != nil {
		return err
	}
	for _, key := range keys {
		r.taken[key], r.known[key] = true, true
	}
	if len(keys) > 0 {
		r.inbox = slices.DeleteFunc(r.inbox, func(i Item) bool { return r.taken[i.Key] })
	}
	return nil
}

func (l *memoryLease) Inbox(ctx context.Context) ([]Item, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l.journal.mu.Lock()
	defer l.journal.mu.Unlock()
	if l.in.holder != l {
		return nil, &Error{Kind: KindFenced, Op: "inbox", Run: l.run}
	}
	return slices.Clone(l.in.inbox), nil
}

func (l *memoryLease) Release(context.Context) error {
	l.journal.mu.Lock()
	defer l.journal.mu.Unlock()
	if l.in.holder == l {
		l.in.free()
	}
	return nil
}
