package fiducial

import (
	"context"
	"sync"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// inbox is what may reach a run from outside while it goes on.
type inbox struct {
	mu       sync.Mutex
	messages []llm.Message // of runs without a journal
	pause    *string       // a pause was asked for, and why
	cancel   context.CancelCauseFunc
}

// Send gives a user message to the run, now or while it goes on: it is placed
// behind the results of the current batch, before the next request, and never
// between a call and its result. An idle engine takes it up with its next run.
//
// With a journal the message is durable when Send returns, and key makes it safe
// to send again: the same key is one message. Without a journal key is not
// looked at. The run must exist in the journal, that is, it was run or opened.
func (l *Locked) Send(ctx context.Context, key string, m llm.Message) error {
	const op = "send"
	c := l.core
	c.mu.Lock()
	stale := c.gen != l.gen
	c.mu.Unlock()
	if stale {
		return fail(KindStale, op, nil, "the engine was unlocked")
	}
	if err := machine.ValidateContext([]llm.Message{m}); err != nil || m.Role != llm.RoleUser {
		return fail(KindState, op, err, "only a user message can be sent to a run")
	}
	m = c.mask(m)
	if j := c.cfg.journal; j != nil {
		if err := j.Offer(ctx, c.cfg.run, key, m); err != nil {
			return journalError(op, err)
		}
		return nil
	}
	c.inbox.mu.Lock()
	defer c.inbox.mu.Unlock()
	c.inbox.messages = append(c.inbox.messages, m)
	return nil
}

// Pause asks the run to pause as soon as it can: a reply that is being written is
// given up and asked for again on resume, calls that have started are waited for.
// Without a run it does nothing.
func (l *Locked) Pause(reason string) {
	in := &l.core.inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.cancel == nil {
		return
	}
	in.pause = &reason
	in.cancel(errPause)
}

// begin and end frame a run: outside it a pause has nothing to pause.
func (in *inbox) begin() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pause, in.cancel = nil, func(error) {}
}

func (in *inbox) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.pause, in.cancel = nil, nil
}

// interruptible makes a context that a pause ends, for work that may be given up.
func (in *inbox) interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cancel = cancel
	if in.pause != nil {
		cancel(errPause)
	}
	return ctx, func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.cancel = func(error) {}
		cancel(nil)
	}
}

// asked reports whether a pause was asked for, and why.
func (in *inbox) asked() (string, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.pause == nil {
		return "", false
	}
	return *in.pause, true
}

// drain returns what was sent, with the keys that the journal knows it by.
func (c *core) drain(ctx context.Context) (keys []string, messages []llm.Message, err error) {
	if lease := c.store.lease; lease != nil {
		items, err := lease.Inbox(ctx)
		if err != nil {
			return nil, nil, journalError("inbox", err)
		}
		for _, it := range items {
			keys = append(keys, it.Key)
			messages = append(messages, it.Message)
		}
	}
	c.inbox.mu.Lock()
	messages = append(messages, c.inbox.messages...)
	c.inbox.messages = nil
	c.inbox.mu.Unlock()
	messages = append(messages, c.extra...)
	c.extra = nil
	return keys, messages, nil
}

// takeIn adds user messages at a boundary of the run.
func (r *run) takeIn(keys []string, messages []llm.Message) error {
	if len(messages) == 0 {
		return nil
	}
	masked := r.maskAll(messages)
	for _, m := range masked {
		if err := r.observe(m); err != nil {
			return err
		}
	}
	if err := r.step(r.op, machine.Steer{Messages: masked, Keys: keys}); err != nil {
		return err
	}
	r.emit(Steered{Messages: masked})
	return nil
}

// Notes are the notes that others than the engine left in the journal of the run,
// in order; see [Invocation.Note].
func (h handle) Notes() []journal.Note {
	h.core.mu.Lock()
	defer h.core.mu.Unlock()
	return h.core.store.notes
}
