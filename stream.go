// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"errors"
	"iter"

	"github.com/fiducial-dev/fiducial/llm"
)

// Stream is Run that yields the events. Leaving the loop cancels the run and
// waits for it; Resume goes on. The messages are history, and in the journal, also when
// the loop is left at the first event: only the end of ctx itself, or an error, keeps
// them out. The error is that of Run and comes last; who has left does not see it.
//
// A reply that was shown in part when the loop was left is void: the next stream of the
// engine begins, behind [RunStarted], with the [DraftReset] for it.
func (l *Locked) Stream(ctx context.Context, in ...llm.Message) iter.Seq2[Event, error] {
	return l.stream(ctx, "run", in)
}

// StreamResume is Resume that yields the events, as Stream does.
func (l *Locked) StreamResume(ctx context.Context) iter.Seq2[Event, error] {
	return l.stream(ctx, "resume", nil)
}

func (l *Locked) stream(ctx context.Context, op string, in []llm.Message) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := checkContext(ctx, op); err != nil {
			yield(Event{}, err)
			return
		}
		intake := ctx
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		left := false
		sink := EventFunc(func(ev Event) {
			if left {
				return
			}
			left = true // also when the body of the loop panics
			l.core.shown(ev.Data)
			if yield(ev, nil) {
				left = false
				return
			}
			cancel(errors.New("fiducial: the reader of the stream left"))
		})
		if _, err := l.drive(ctx, intake, op, in, sink); err != nil && !left {
			yield(Event{}, err)
		}
	}
}

// shown remembers which reply the reader of a stream has seen in part.
func (c *core) shown(data EventData) {
	switch d := data.(type) {
	case Delta:
		c.draft = d.Op
	case DraftReset, GenerationFinished:
		c.draft = 0
	default: // says nothing of a draft
	}
}

// resetDraft tells the reader of a stream that what the one before saw of a reply is
// void: it left in the middle of it.
func (r *run) resetDraft() {
	if r.draft != 0 && r.stream != nil {
		r.emit(DraftReset{Op: r.draft})
	}
}
