// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// An Event is one observation of a run. Events are for watching; what a run is,
// is in its history and journal, and no event must be relied on for recovery
// (S-135).
type Event struct {
	Trace TraceContext
	Seq   uint64 // counts the engine's events from 1
	Data  EventData
}

// EventData says what was observed. The set is closed.
//
//sumtype:decl
type EventData interface{ eventData() }

type (
	// RunStarted is the first event of a run or resume.
	RunStarted struct{ Resumed bool }

	// GenerationStarted says that a request goes out. Attempt counts from 1 for
	// each operation.
	GenerationStarted struct {
		Op      machine.OperationID
		Turn    int // of the run, from 1
		Attempt int
	}

	// Delta is a piece of the reply that is being written. All of them since the
	// last GenerationStarted are void when a [DraftReset] comes. With [WithMask] no
	// secret is in them, also not in pieces: the pieces of a block together are the
	// text of its part in the message of [GenerationFinished], but that a thinking
	// part with a signature whose text held a secret is not in the message at all, and
	// that texts of which one ends in the middle of a secret are one there.
	// They may come a little behind the model; see [StreamMasker].
	Delta struct {
		Op    machine.OperationID
		Block int
		Kind  llm.BlockKind
		Text  string
	}

	// DraftReset says that the reply broke; displays drop what they showed of it. It
	// comes also at the beginning of a stream, when the loop over the one before was left
	// in the middle of a reply; see [Locked.Stream].
	DraftReset struct{ Op machine.OperationID }

	// GenerationRetry says that the request failed and is sent again after Wait.
	GenerationRetry struct {
		Op           machine.OperationID
		Attempt, Max int
		Wait         time.Duration
		Err          error
	}

	// GenerationFinished says that a complete reply was accepted. Its calls have
	// not run yet.
	GenerationFinished struct {
		Op      machine.OperationID
		Message llm.Message
		Usage   llm.Usage
	}

	// GenerationCommitted says that the reply is durable, once for each reply and
	// before any of its calls starts. Without a journal or checkpoint it does not
	// come (S-91).
	GenerationCommitted struct{ Op machine.OperationID }

	// ToolStarted says that a call runs now.
	ToolStarted struct {
		Op      machine.OperationID
		Ordinal int
		Call    llm.Call
	}

	// ToolFinished gives the result of a call, in the order of completion. Ran
	// tells whether the tool was entered.
	ToolFinished struct {
		Op      machine.OperationID
		Ordinal int
		Result  llm.Result
		Ran     bool
	}

	// Steered says that messages from outside were taken in.
	Steered struct{ Messages []llm.Message }

	// NoticeAdded says that a text was added for the model before a request.
	NoticeAdded struct{ Text string }

	// Warning is something that a person may want to know and that stops nothing.
	// Cut is set when it is that the content of a result was cut (E-119).
	Warning struct {
		Text string
		Cut  *tool.Cut
	}

	// StreamEvent is an event of the stream that is no part of the reply: a
	// failover, or wire data that the adapter has no use for.
	StreamEvent struct{ Event llm.Event }

	// CacheMiss says that a provider served less from its cache than it could
	// have; see [CacheCause].
	CacheMiss struct {
		Op       machine.OperationID
		Possible int64 // tokens that the last request left in the cache
		Served   int64
		Cause    CacheCause
	}

	// PruneEvaluated is the decision about pruning before a request; see
	// [PruneConfig].
	PruneEvaluated struct{ Decision PruneDecision }

	// RunFinished is the last event of a run or resume, exactly one (S-138).
	RunFinished struct {
		Outcome Outcome
		Err     error
	}
)

func (RunStarted) eventData()          {}
func (GenerationStarted) eventData()   {}
func (Delta) eventData()               {}
func (DraftReset) eventData()          {}
func (GenerationRetry) eventData()     {}
func (GenerationFinished) eventData()  {}
func (GenerationCommitted) eventData() {}
func (ToolStarted) eventData()         {}
func (ToolFinished) eventData()        {}
func (Steered) eventData()             {}
func (NoticeAdded) eventData()         {}
func (Warning) eventData()             {}
func (StreamEvent) eventData()         {}
func (CacheMiss) eventData()           {}
func (PruneEvaluated) eventData()      {}
func (RunFinished) eventData()         {}

// An EventSink hears of every event, in order, from one goroutine at a time. The
// run waits for it: a slow sink makes a run slow and loses nothing. It may read the
// engine, send to it and pause it; what would start another run is refused with
// [ErrBusy]. Messages, results and answers in an event are copies, which it may change.
// Its panic goes through to the caller of Run; the run can be resumed
// then.
type EventSink interface {
	Emit(Event)
}

// EventFunc is a function as a sink.
type EventFunc func(Event)

// Emit calls f.
func (f EventFunc) Emit(ev Event) { f(ev) }

// NullSink takes events and does nothing.
type NullSink struct{}

// Emit does nothing.
func (NullSink) Emit(Event) {}

// A TraceContext ties events of nested engines together (S-141). The zero value
// has no identity and depth 0.
type TraceContext struct {
	Session string `json:"session,omitempty"`
	Thread  string `json:"thread,omitempty"`
	ID      string `json:"id,omitempty"` // 16 bytes in hex
	Parent  string `json:"parent,omitempty"`
	Depth   int    `json:"depth"`
}

// RootTrace is a context with a new identity.
func RootTrace(session, thread string) TraceContext {
	return TraceContext{Session: session, Thread: thread, ID: newID()}
}

// Nested is the context of an engine that works for this one.
func (t TraceContext) Nested() TraceContext {
	t.Parent, t.ID = t.ID, newID()
	t.Depth++
	return t
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails (its documentation, Go 1.24)
	return hex.EncodeToString(b[:])
}
