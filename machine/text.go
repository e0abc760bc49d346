// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
)

// textOf reports whether every text in an input is valid UTF-8, so that its JSON
// form reads back as the same input.
func textOf(in Input) bool {
	switch in := in.(type) {
	case AppendInput:
		return textMessages(in.Message) && textStrings(in.Keys...)
	case AppendSystem:
		return textNotes(in.Parts)
	case ReplaceContext:
		return textMessages(in.Messages...)
	case Generated:
		return textMessages(in.Message)
	case ToolsCompleted:
		for i := range in.Results {
			if !textResult(&in.Results[i]) {
				return false
			}
		}
		return true
	case ReplaceAtBoundary:
		return textMessages(in.Messages...)
	case Notice:
		return textStrings(in.Text)
	case Settled:
		return textResult(&in.Result)
	case SettleRest:
		return textStrings(in.Cause)
	case Pause:
		return textStrings(in.Reason)
	case Steer:
		return textMessages(in.Messages...) && textStrings(in.Keys...)
	case Truncate, Start, Begin, GenerationFailed, CancelAtBoundary, RecoverInterrupted,
		SetTruncationCap, Started, Resume, Recovered:
	}
	return true
}

func textMessages(messages ...llm.Message) bool {
	for _, m := range messages {
		if !textStrings(string(m.Role), string(m.Stop)) {
			return false
		}
		for _, p := range m.Parts {
			if !textPart(p) {
				return false
			}
		}
	}
	return true
}

func textPart(p llm.Part) bool {
	switch p := p.(type) {
	case llm.Text:
		return textStrings(p.Text) && textOpaque(p.Opaque)
	case llm.Image:
		return textStrings(p.Media)
	case llm.Thinking:
		return textStrings(p.Text) && textOpaque(p.Opaque)
	case llm.System:
		return textNotes([]llm.System{p})
	case llm.Call:
		return textStrings(p.ID, p.Name, p.Args) && textOpaque(p.Opaque)
	case llm.Result:
		return textResult(&p)
	}
	return true
}

func textResult(r *llm.Result) bool {
	for _, i := range r.Images {
		if !utf8.ValidString(i.Media) {
			return false
		}
	}
	return textStrings(r.CallID, r.Name, string(r.Status), r.Summary, r.Content) && textNotes(r.Notes)
}

func textNotes(notes []llm.System) bool {
	for _, n := range notes {
		if !textStrings(n.Kind, n.Text) || !utf8.Valid(n.Data) {
			return false
		}
	}
	return true
}

func textOpaque(o llm.Opaque) bool { return utf8.ValidString(o.Vendor) && utf8.Valid(o.Data) }

func textStrings(texts ...string) bool {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			return false
		}
	}
	return true
}
