// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// inbox is what may reach a run from outside while it goes on.
type inbox struct {
	mu       sync.Mutex
	messages []llm.Message // of runs without a journal
	running  bool
	pause    *string                 // a pause was asked for, and why
	asks     atomic.Bool             // pause is set; for those who only look
	cancel   context.CancelCauseFunc // gives up the reply that is being written
	hurry    chan struct{}           // of the calls that start next
}

// Send gives a user message to the run, now or while it goes on: it is placed
// behind the results of the current batch, before the next request, and never
// between a call and its result. An idle engine takes it up with its next run.
//
// With a journal the message is durable when Send returns, and key makes it safe
// to send again: the same key is one message. Without a journal key is not
// looked at. The run must exist in the journal, that is, it was run or opened.
func (l *Locked) Send(ctx context.Context, key string, m llm.Message) (err error) {
	const op = "send"
	c := l.core
	if c == nil {
		return zeroHandle(op)
	}
	if err := checkContext(ctx, op); err != nil {
		return err
	}
	c.mu.Lock()
	stale := c.gen != l.gen
	c.mu.Unlock()
	if stale {
		return fail(KindStale, op, nil, "the engine was unlocked")
	}
	m = m.Clone()
	if err := checkUser([]llm.Message{m}); err != nil {
		return fail(KindState, op, err, "")
	}
	if !utf8.ValidString(key) {
		return fail(KindState, op, nil, "the key %q is not UTF-8", key)
	}
	defer c.maskFailed(op, &err)
	if k := c.cfg.masker; k != nil && k.Found(key) {
		return fail(KindState, op, nil, "the key holds a secret of WithMask; give another key")
	}
	m = c.mask(m)
	if j := c.cfg.journal; j != nil {
		if err := tried(func() error { return j.Offer(ctx, c.cfg.run, key, m) }); err != nil {
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
	if l.core == nil {
		return
	}
	in := &l.core.inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.running {
		return
	}
	in.pause = &reason
	in.asks.Store(true)
	if in.cancel != nil {
		in.cancel(errPause)
	}
}

// Hurry asks the calls that run now for what they have: tools that look at
// [tool.Call.Hurry] return early with a part. Calls that start later are not asked,
// nothing is cancelled, and the run goes on (S-101). Without a run it does nothing.
func (l *Locked) Hurry() {
	if l.core == nil {
		return
	}
	in := &l.core.inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.hurry != nil {
		close(in.hurry)
		in.hurry = nil
	}
}

// hurried is what calls that start now are given to listen to.
func (in *inbox) hurried() <-chan struct{} {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.hurry == nil {
		in.hurry = make(chan struct{})
	}
	return in.hurry
}

// begin and end frame a run: outside it a pause has nothing to pause.
func (in *inbox) begin() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.running, in.pause, in.cancel = true, nil, nil
	in.asks.Store(false)
}

func (in *inbox) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.running, in.pause, in.cancel, in.hurry = false, nil, nil, nil
	in.asks.Store(false)
}

// interrupt says how to give up the reply that is being written. A run that is
// asked to pause asks for no other one, so that one for the whole run is enough.
func (in *inbox) interrupt(cancel context.CancelCauseFunc) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cancel = cancel
	if in.pause != nil {
		cancel(errPause)
	}
}

// asked reports whether a pause was asked for, and why.
func (in *inbox) asked() (string, bool) {
	if !in.asks.Load() {
		return "", false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.pause == nil {
		return "", false
	}
	return *in.pause, true
}

// drain takes in what was sent and what hooks want added. more reports whether
// there was any. What cannot be taken in stays for the next time.
func (r *run) drain(ctx context.Context) (more bool, err error) {
	var keys []string
	var messages []llm.Message
	if lease := r.store.lease; lease != nil {
		// A run that was cancelled in its last reply has finished all the same.
		items, err := guarded(func() ([]journal.Item, error) { return lease.Inbox(context.WithoutCancel(ctx)) })
		if err != nil {
			return false, journalError("inbox", err)
		}
		for _, it := range items {
			keys = append(keys, it.Key)
			messages = append(messages, it.Message)
		}
	}
	sent := r.inbox.peek()
	messages = append(append(messages, sent...), r.extra...)
	if len(messages) == 0 {
		return false, nil
	}
	if err := r.takeIn(keys, messages); err != nil {
		return false, err
	}
	r.inbox.drop(len(sent))
	if len(r.extra) > 0 {
		r.extra = nil
		r.store.add(journal.Note{Kind: noteAdded})
	}
	return true, nil
}

// peek is what was sent so far; drop forgets the first n of it.
func (in *inbox) peek() []llm.Message {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clip(in.messages)
}

func (in *inbox) drop(n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.messages = in.messages[n:]
}

// later has messages added at the next boundary, in this process or another.
func (r *run) later(phase HookPhase, messages ...llm.Message) error {
	if len(messages) == 0 {
		return nil
	}
	messages = llm.CloneMessages(messages)
	if err := checkUser(messages); err != nil {
		return contractError(phase, "what it wants added: %w", err)
	}
	messages = r.maskAll(messages)
	r.extra = append(r.extra, messages...)
	if r.store.j != nil {
		r.store.add(journal.Note{Kind: noteExtra, Data: mustJSON(messages)})
	}
	return nil
}

// checkUser reports whether messages can be taken in.
func checkUser(messages []llm.Message) error {
	for _, m := range messages {
		if m.Role != llm.RoleUser {
			return fmt.Errorf("a message of role %q; only user messages come from outside", m.Role)
		}
	}
	if err := machine.ValidateContext(messages); err != nil {
		return err
	}
	return checkData(messages)
}

// takeIn adds user messages at a boundary of the run.
func (r *run) takeIn(keys []string, messages []llm.Message) error {
	if len(messages) == 0 {
		return nil
	}
	masked := r.maskAll(llm.CloneMessages(messages))
	for _, m := range masked {
		if err := r.observe(m); err != nil {
			return err
		}
	}
	if err := step(r.core, r.op, machine.Steer{Messages: masked, Keys: keys}); err != nil {
		return err
	}
	if r.watched() {
		r.emit(Steered{Messages: llm.CloneMessages(masked)})
	}
	return nil
}
