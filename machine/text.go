// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
)

// Storable says why [EncodeInput] could not write an input so that it reads back as
// the same one: [ErrNotUTF8] or [ErrNotJSON] in a [*CodecError]. Whoever feeds a state
// that is stored asks before, for what was accepted cannot be taken back.
func Storable(in Input) error {
	if err := storable(in); err != nil {
		return &CodecError{Kind: kindOf(in), Err: err}
	}
	return nil
}

// StorableMessage is [Storable] for one message; the error is [ErrNotUTF8] or
// [ErrNotJSON] itself.
func StorableMessage(m llm.Message) error {
	if err := texts(string(m.Role), string(m.Stop)); err != nil {
		return err
	}
	for _, p := range m.Parts {
		if err := storablePart(p); err != nil {
			return err
		}
	}
	return nil
}

// StorableData reports why data cannot be stored inside a message: it must be JSON in
// UTF-8, or empty. Values may stand in each other up to a depth of 1000.
func StorableData(data []byte) error {
	switch {
	case len(data) == 0:
		return nil
	case !utf8.Valid(data):
		return ErrNotUTF8
	case depth(data) > maxDepth || !json.Valid(data):
		return ErrNotJSON
	}
	return nil
}

// maxDepth leaves room for what the data is stored in: package json reads 10000.
const maxDepth = 1000

// depth is how deep the values of JSON stand in each other.
func depth(data []byte) int {
	deepest, now := 0, 0
	inside, escaped := false, false
	for _, c := range data {
		switch {
		case escaped:
			escaped = false
		case inside:
			escaped, inside = c == '\\', c != '"'
		case c == '"':
			inside = true
		case c == '{', c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}', c == ']':
			now--
		}
	}
	return deepest
}

func storable(in Input) error {
	switch in := in.(type) {
	case AppendInput:
		return first(StorableMessage(in.Message), texts(in.Keys...))
	case AppendSystem:
		return storableNotes(in.Parts)
	case ReplaceContext:
		return storableMessages(in.Messages)
	case Generated:
		return StorableMessage(in.Message)
	case ToolsCompleted:
		for i := range in.Results {
			if err := storableResult(&in.Results[i]); err != nil {
				return err
			}
		}
	case ReplaceAtBoundary:
		return storableMessages(in.Messages)
	case Notice:
		return texts(in.Text)
	case Settled:
		return storableResult(&in.Result)
	case SettleRest:
		return texts(in.Cause)
	case Pause:
		return texts(in.Reason)
	case Steer:
		return first(storableMessages(in.Messages), texts(in.Keys...))
	case Truncate, Start, Begin, GenerationFailed, CancelAtBoundary, RecoverInterrupted,
		SetTruncationCap, Started, Resume, Recovered:
	}
	return nil
}

func storableMessages(messages []llm.Message) error {
	for _, m := range messages {
		if err := StorableMessage(m); err != nil {
			return err
		}
	}
	return nil
}

func storablePart(p llm.Part) error {
	switch p := p.(type) {
	case llm.Text:
		return first(texts(p.Text), storableOpaque(p.Opaque))
	case llm.Image:
		return texts(p.Media)
	case llm.Thinking:
		return first(texts(p.Text), storableOpaque(p.Opaque))
	case llm.System:
		return first(texts(p.Kind, p.Text), StorableData(p.Data))
	case llm.Call:
		return first(texts(p.ID, p.Name, p.Args), storableOpaque(p.Opaque))
	case llm.Result:
		return storableResult(&p)
	}
	return nil
}

func storableResult(r *llm.Result) error {
	for _, i := range r.Images {
		if !utf8.ValidString(i.Media) {
			return ErrNotUTF8
		}
	}
	return first(texts(r.CallID, r.Name, string(r.Status), r.Summary, r.Content), storableNotes(r.Notes))
}

func storableNotes(notes []llm.System) error {
	for _, n := range notes {
		if err := first(texts(n.Kind, n.Text), StorableData(n.Data)); err != nil {
			return err
		}
	}
	return nil
}

func storableOpaque(o llm.Opaque) error {
	if o.Data != nil && len(o.Data) == 0 && o.Vendor != "" { // written as nothing at all
		return ErrNotJSON
	}
	return first(texts(o.Vendor), StorableData(o.Data))
}

func texts(all ...string) error {
	for _, s := range all {
		if !utf8.ValidString(s) {
			return ErrNotUTF8
		}
	}
	return nil
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
