// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/json"
	"fmt"

	"pgregory.net/rapid"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// input draws an input, most often one that fits the phase.
func input(t *rapid.T, s *machine.State) machine.Input {
	op := operation(t, s)
	fits := map[machine.Phase][]string{
		machine.PhaseReady:      {"start", "append", "start", "truncate"},
		machine.PhaseFailed:     {"start"},
		machine.PhaseGenerating: {"begin", "generated", "generated", "generated", "notice", "pause", "steer"},
		machine.PhaseTools:      {"begin", "started", "started", "settled", "settled", "completed", "rest", "pause", "recovered"},
		machine.PhaseFinished:   {"append", "start", "truncate"},
		machine.PhaseCancelled:  {"append", "start"},
		machine.PhasePaused:     {"resume", "cancel", "steer"},
	}
	all := []string{
		"append", "system", "replace", "truncate", "start", "begin", "generated", "failed", "completed", "cancel",
		"replace-at", "interrupted", "notice", "cap", "started", "settled", "rest", "pause", "resume", "recovered", "steer",
	}
	kinds := all
	if rapid.IntRange(0, 9).Draw(t, "fitting") < 7 {
		kinds = fits[s.Phase()]
	}
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "append":
		return machine.AppendInput{Message: anyMessage(t), Keys: rapid.SampledFrom([][]string{nil, {"k1", "k2"}}).Draw(t, "keys")}
	case "system":
		return machine.AppendSystem{Parts: rapid.SliceOfN(rapid.Just(llm.System{Kind: "hint", Text: "x", Data: json.RawMessage(`{"a":"<"}`)}), 0, 2).Draw(t, "parts")}
	case "replace":
		return machine.ReplaceContext{Messages: anyHistory(t), Usage: anyUsage(t)}
	case "truncate":
		return machine.Truncate{Len: rapid.IntRange(-1, s.Len()+1).Draw(t, "len")}
	case "start":
		return machine.Start{}
	case "begin":
		return machine.Begin{Op: op}
	case "generated":
		return machine.Generated{Op: op, Message: anyReply(t), Usage: anyUsage(t)}
	case "failed":
		return machine.GenerationFailed{Op: op}
	case "completed":
		n := len(s.Batch())
		if rapid.IntRange(0, 5).Draw(t, "miscount") == 0 {
			n = rapid.IntRange(0, 3).Draw(t, "results")
		}
		results := make([]llm.Result, n)
		for i := range results {
			results[i] = anyResult(t)
		}
		return machine.ToolsCompleted{Op: op, Results: results, Cancelled: rapid.Bool().Draw(t, "cancelled")}
	case "cancel":
		return machine.CancelAtBoundary{}
	case "replace-at":
		return machine.ReplaceAtBoundary{Messages: anyHistory(t), Usage: anyUsage(t)}
	case "interrupted":
		return machine.RecoverInterrupted{}
	case "notice":
		return machine.Notice{Op: op, Text: rapid.SampledFrom([]string{"", "left: 2", "left: 1"}).Draw(t, "text"), Fresh: rapid.Bool().Draw(t, "fresh")}
	case "cap":
		return machine.SetTruncationCap{N: rapid.IntRange(-1, 4).Draw(t, "n")}
	case "started":
		n := rapid.IntRange(0, 2).Draw(t, "calls")
		calls := make([]machine.StartedCall, n)
		for i := range calls {
			calls[i] = machine.StartedCall{Ordinal: ordinal(t, s), Repeat: rapid.Bool().Draw(t, "repeat")}
		}
		return machine.Started{Op: op, Calls: calls}
	case "settled":
		return machine.Settled{Op: op, Ordinal: ordinal(t, s), Result: anyResult(t)}
	case "rest":
		return machine.SettleRest{Op: op, Cause: "over", Cancelled: rapid.Bool().Draw(t, "cancelled")}
	case "pause":
		return machine.Pause{Reason: rapid.SampledFrom([]string{"", "tea"}).Draw(t, "reason")}
	case "resume":
		return machine.Resume{}
	case "recovered":
		return machine.Recovered{Doubt: true}
	case "steer":
		return machine.Steer{Messages: rapid.SliceOfN(rapid.Custom(anyMessage), 0, 2).Draw(t, "messages")}
	}
	panic("unreachable")
}

// operation is most often the current one, else a stale or future one (S-145).
func operation(t *rapid.T, s *machine.State) machine.OperationID {
	cur := s.Sequence()
	switch rapid.IntRange(0, 9).Draw(t, "op") {
	case 0:
		return cur + 1
	case 1:
		return cur - 1 // wraps at 0, which is as good as any
	case 2:
		return 0
	}
	return cur
}

func ordinal(t *rapid.T, s *machine.State) int {
	return rapid.IntRange(-1, len(s.Batch())).Draw(t, "ordinal")
}

// anyMessage is most often one that a user may write.
func anyMessage(t *rapid.T) llm.Message {
	return rapid.SampledFrom([]llm.Message{
		llm.UserText("hi"), llm.UserText("more <&>"), llm.UserText(""),
		{Role: llm.RoleUser},
		{Role: llm.RoleUser, Parts: []llm.Part{llm.Image{Media: "image/png", Data: []byte{1, 2}}, llm.System{Kind: "k"}}},
		{Role: llm.RoleUser, Parts: []llm.Part{llm.Thinking{Text: "no"}}},
		llm.AssistantText("no"),
		{Role: "else"},
	}).Draw(t, "message")
}

// anyReply may be no reply at all (S-42, S-44).
func anyReply(t *rapid.T) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant}
	if rapid.IntRange(0, 19).Draw(t, "role") == 0 {
		m.Role = llm.RoleUser
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "parts") {
		switch rapid.IntRange(0, 12).Draw(t, "part") {
		case 0, 1, 2:
			m.Parts = append(m.Parts, llm.Text{Text: "text"})
		case 3:
			m.Parts = append(m.Parts, llm.Thinking{Text: "hm", Opaque: llm.Opaque{Vendor: "v", Data: json.RawMessage(`"sig<"`)}})
		case 4:
			m.Parts = append(m.Parts, llm.Image{Media: "image/png"})
		case 5:
			m.Parts = append(m.Parts, llm.System{Kind: "k"})
		case 6:
			m.Parts = append(m.Parts, llm.Call{ID: "twice", Name: "look"})
		default:
			m.Parts = append(m.Parts, llm.Call{ID: fmt.Sprintf("c%d", i), Name: "look", Args: "{}"})
		}
	}
	m.Stop = rapid.SampledFrom([]llm.StopReason{
		llm.StopToolUse, llm.StopToolUse, llm.StopToolUse, llm.StopEndTurn, llm.StopMaxTokens, llm.StopMaxTokens, llm.StopRefusal, "",
	}).Draw(t, "stop")
	return m
}

func anyHistory(t *rapid.T) []llm.Message {
	call := llm.AssistantCalls(llm.Call{ID: "x", Name: "look"})
	return rapid.SampledFrom([][]llm.Message{
		nil,
		{llm.UserText("summary")},
		{llm.UserText("a"), call, llm.ToolResults(llm.Result{CallID: "x", Name: "look"}), llm.UserText("b")},
		{llm.UserText("a"), call},
		{llm.ToolResults(llm.Result{CallID: "x"})},
	}).Draw(t, "history")
}

func anyResult(t *rapid.T) llm.Result {
	return rapid.SampledFrom([]llm.Result{
		{Status: llm.StatusSuccess, Summary: "done"},
		{Status: llm.StatusError, Summary: "no", Content: "long"},
		{Status: llm.StatusSuccess, Notes: []llm.System{{Kind: "n", Text: "note"}}},
		{CallID: "c0", Status: llm.StatusUnknown},
		{Name: "other"},
	}).Draw(t, "result")
}

func anyUsage(t *rapid.T) llm.Usage {
	return rapid.SampledFrom([]llm.Usage{
		{}, use(10, 3), use(20, 1<<62), {Output: llm.N(0)}, {Input: llm.N(5), Reasoning: llm.N(1)},
	}).Draw(t, "usage")
}
