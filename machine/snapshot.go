// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// snapshotVersion is that of the JSON form of a State.
const snapshotVersion = 1

// snapshot is the stored form of a State. It holds everything that the state
// remembers; the calls of a batch are read from the last message.
type snapshot struct {
	Version     int           `json:"version"`
	Rules       int           `json:"rules"`
	Phase       string        `json:"phase"` // beneath a pause
	Op          OperationID   `json:"op,omitempty"`
	Sequence    OperationID   `json:"sequence"`
	Executing   bool          `json:"executing,omitempty"`
	Noticed     bool          `json:"noticed,omitempty"`
	Pause       *pauseJSON    `json:"pause,omitempty"`
	Batch       *batchJSON    `json:"batch,omitempty"`
	Answer      *llm.Message  `json:"answer,omitempty"`
	LastUsage   llm.Usage     `json:"last_usage,omitzero"`
	RunUsage    llm.Usage     `json:"run_usage,omitzero"`
	Truncations int           `json:"truncations,omitempty"`
	Cap         int           `json:"truncation_cap"`
	History     []llm.Message `json:"history"`
}

type pauseJSON struct {
	Reason   string `json:"reason"`
	InEffect bool   `json:"in_effect,omitempty"`
}

type batchJSON struct {
	Single bool       `json:"single,omitempty"`
	Again  bool       `json:"again,omitempty"`
	Calls  []callJSON `json:"calls"`
}

type callJSON struct {
	Status string      `json:"status"`
	Repeat bool        `json:"repeat,omitempty"`
	Doubt  bool        `json:"doubt,omitempty"`
	Result *llm.Result `json:"result,omitempty"`
}

// MarshalJSON writes the whole state, for callers who store states rather than
// inputs. Equal states give equal bytes.
//
// The receiver is a value, for encoding/json would otherwise write a State that it
// cannot address as {}.
func (s State) MarshalJSON() ([]byte, error) {
	out := snapshot{
		Version: snapshotVersion, Rules: RulesVersion,
		Phase: s.phase.String(), Op: s.op, Sequence: s.sequence, Executing: s.executing, Noticed: s.noticed,
		LastUsage: s.lastUsage, RunUsage: s.runUsage, Truncations: s.truncations, Cap: s.TruncationCap(),
		History: s.history.items,
	}
	if out.History == nil {
		out.History = []llm.Message{}
	}
	if s.pause.status != pauseNone {
		out.Pause = &pauseJSON{s.pause.reason, s.pause.status == pauseInEffect}
	}
	if s.stop != "" {
		out.Answer = &llm.Message{Role: llm.RoleAssistant, Parts: s.answer, Stop: s.stop}
	}
	if s.phase == PhaseTools {
		out.Batch = &batchJSON{Single: s.batch.single, Again: s.batch.again, Calls: make([]callJSON, s.batch.calls)}
		for i, c := range s.batch.view() {
			out.Batch.Calls[i] = callJSON{Status: c.Status.String(), Repeat: c.Repeat, Doubt: c.Doubt}
			if c.Status == CallSettled {
				out.Batch.Calls[i].Result = &c.Result
			}
		}
	}
	return marshal(out)
}

// UnmarshalJSON reads what [State.MarshalJSON] wrote. Data that no state can have
// given, and those of another version, are a [*CodecError], and the state is then
// as before.
func (s *State) UnmarshalJSON(data []byte) error {
	var in snapshot
	if err := unmarshal(data, &in); err != nil {
		return &CodecError{Kind: "state", Err: err}
	}
	next, err := in.state()
	if err != nil {
		return &CodecError{Kind: "state", Err: err}
	}
	*s = *next
	return nil
}

func (in *snapshot) state() (*State, error) {
	if in.Version != snapshotVersion || in.Rules != RulesVersion {
		return nil, fmt.Errorf("version %d under rules %d; this program reads version %d under rules %d",
			in.Version, in.Rules, snapshotVersion, RulesVersion)
	}
	s := &State{
		op: in.Op, sequence: in.Sequence, executing: in.Executing, noticed: in.Noticed,
		lastUsage: in.LastUsage, runUsage: in.RunUsage, truncations: in.Truncations,
		capOffset: in.Cap - DefaultMaxTruncatedResumes, history: historyOf(in.History),
	}
	phase, err := phaseNamed(in.Phase)
	if err != nil {
		return nil, err
	}
	s.phase = phase
	if in.Pause != nil {
		s.pause = pause{pauseRecorded, in.Pause.Reason}
		if in.Pause.InEffect {
			s.pause.status = pauseInEffect
		}
	}
	if in.Answer != nil {
		s.answer, s.stop = slices.Clip(in.Answer.Parts), in.Answer.Stop
	}
	if err := in.batch(s); err != nil {
		return nil, err
	}
	return s, s.check()
}

func (in *snapshot) batch(s *State) error {
	if (in.Batch != nil) != (s.phase == PhaseTools) {
		return errors.New("a batch stands in no other phase than tools, and always there")
	}
	if in.Batch == nil {
		return nil
	}
	last := s.history.last()
	if n := last.CountCalls(); n == 0 || n != len(in.Batch.Calls) {
		return fmt.Errorf("the batch has %d calls and the last message %d", len(in.Batch.Calls), n)
	}
	s.batch = newBatch(last, len(in.Batch.Calls), in.Batch.Again)
	s.batch.single = in.Batch.Single
	for i := range in.Batch.Calls {
		c, call := &in.Batch.Calls[i], s.batch.call(i)
		switch {
		case c.Status == CallWaiting.String() && c.Result == nil && !c.Repeat:
			if c.Doubt {
				s.batch.put(mark{ordinal: i, status: CallWaiting, doubt: true})
			}
		case c.Doubt:
			return fmt.Errorf("call %d is %q and waits to be repeated", i, c.Status)
		case c.Status == CallStarted.String() && c.Result == nil:
			s.batch.put(mark{ordinal: i, status: CallStarted, repeat: c.Repeat})
		case c.Status == CallSettled.String() && c.Result != nil && !c.Repeat:
			if c.Result.CallID != call.ID {
				return fmt.Errorf("the result of call %d answers %q", i, c.Result.CallID)
			}
			s.batch.settle(i, *c.Result)
		default:
			return fmt.Errorf("call %d is %q, which does not fit the rest of it", i, c.Status)
		}
	}
	return nil
}

// check holds what is true of every state.
func (s *State) check() error {
	if err := ValidateCheckpoint(s.Checkpoint()); err != nil {
		return err
	}
	ends := s.phase == PhaseFinished || s.phase == PhaseTools && !s.batch.again
	switch {
	case s.op > s.sequence, s.Idle() && s.op != 0:
		return fmt.Errorf("operation %d does not fit sequence %d in phase %s", s.op, s.sequence, s.phase)
	case s.Idle() && (s.executing || s.pause.status != pauseNone),
		s.executing && s.pause.status == pauseInEffect,
		s.noticed && s.phase != PhaseGenerating:
		return fmt.Errorf("the flags do not fit the phase %s", s.phase)
	case (s.stop != "") != ends:
		return fmt.Errorf("an answer does not fit the phase %s", s.phase)
	case s.phase == PhaseTools && (!s.batch.open() || (s.batch.running() || s.batch.doubtful()) && !s.batch.single):
		return errors.New("the calls of the batch do not fit each other")
	case s.phase == PhaseGenerating && s.Len() == 0:
		return errors.New("a reply is pending to an empty history")
	case s.truncations < 0 || s.TruncationCap() < 0:
		return errors.New("a count of truncations is negative")
	}
	return nil
}

func phaseNamed(name string) (Phase, error) {
	for p := range PhasePaused { // beneath a pause there is no pause
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("unknown phase %q", name)
}

// Equal reports whether the states are the same: every later input has the same
// outcome on both. It costs as much as writing both.
func (s *State) Equal(t *State) bool {
	a, err := s.MarshalJSON()
	if err != nil {
		return false
	}
	b, err := t.MarshalJSON()
	return err == nil && bytes.Equal(a, b)
}
