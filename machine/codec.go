// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// RulesVersion names the transition rules of this package. A journal states it,
// for its inputs give the same state again only under the rules that they were
// accepted under. The texts that the machine writes into a history belong to them. A
// rule may be added without another version where an input says that it is meant, as
// with [Recovered]; a program that does not know the field refuses the journal.
const RulesVersion = 1

// A CodecError says why an input, or a state, cannot be written or read.
type CodecError struct {
	Kind string // of the input; "state" for a [State]
	Err  error
}

func (e *CodecError) Error() string { return fmt.Sprintf("machine: codec: %s: %v", e.Kind, e.Err) }
func (e *CodecError) Unwrap() error { return e.Err }

// Causes of a [CodecError] that callers may branch on.
var (
	// ErrUnknownKind is an input of a kind that this version does not know: the
	// data were written by a newer version, or are damaged.
	ErrUnknownKind = errors.New("unknown kind of input; a newer version wrote it, or it is damaged")

	// ErrNotUTF8 is text that JSON cannot hold without changing it. Whoever feeds
	// the state makes text valid before.
	ErrNotUTF8 = errors.New("a text is not valid UTF-8")

	// ErrNotJSON is data of a note or of a vendor that is no JSON, or that is nested
	// too deeply to be stored.
	ErrNotJSON = errors.New("data of a note or a vendor is not JSON, or nested more than 1000 deep")
)

// EncodeInput writes an input as a kind and one line of JSON. Kinds are words in
// lower case joined by dashes. Equal inputs give equal bytes. An error is a
// [*CodecError].
func EncodeInput(in Input) (kind string, data []byte, err error) {
	kind = kindOf(in)
	if in == nil {
		return "", nil, &CodecError{Kind: kind, Err: ErrUnknownKind}
	}
	if err := Storable(in); err != nil {
		return "", nil, err
	}
	data, err = marshal(in)
	if err != nil {
		return "", nil, &CodecError{Kind: kind, Err: err}
	}
	return kind, data, nil
}

// DecodeInput reads what [EncodeInput] wrote. An unknown kind, an unknown field
// and anything after the value are a [*CodecError].
func DecodeInput(kind string, data []byte) (Input, error) {
	read, known := decoders[kind]
	if !known {
		return nil, &CodecError{Kind: kind, Err: ErrUnknownKind}
	}
	in, err := read(data)
	if err != nil {
		return nil, &CodecError{Kind: kind, Err: err}
	}
	return in, nil
}

// kindOf is the name of an input in journals and errors.
func kindOf(in Input) string {
	switch in.(type) {
	case AppendInput:
		return "append-input"
	case AppendSystem:
		return "append-system"
	case ReplaceContext:
		return "replace-context"
	case Truncate:
		return "truncate"
	case Start:
		return "start"
	case Begin:
		return "begin"
	case Generated:
		return "generated"
	case GenerationFailed:
		return "generation-failed"
	case ToolsCompleted:
		return "tools-completed"
	case CancelAtBoundary:
		return "cancel-at-boundary"
	case ReplaceAtBoundary:
		return "replace-at-boundary"
	case RecoverInterrupted:
		return "recover-interrupted"
	case Notice:
		return "notice"
	case SetTruncationCap:
		return "set-truncation-cap"
	case Started:
		return "started"
	case Settled:
		return "settled"
	case SettleRest:
		return "settle-rest"
	case Pause:
		return "pause"
	case Resume:
		return "resume"
	case Recovered:
		return "recovered"
	case Steer:
		return "steer"
	}
	return "nil"
}

// decoders is never written to.
var decoders = map[string]func([]byte) (Input, error){
	kindOf(AppendInput{}):        decode[AppendInput],
	kindOf(AppendSystem{}):       decode[AppendSystem],
	kindOf(ReplaceContext{}):     decode[ReplaceContext],
	kindOf(Truncate{}):           decode[Truncate],
	kindOf(Start{}):              decode[Start],
	kindOf(Begin{}):              decode[Begin],
	kindOf(Generated{}):          decode[Generated],
	kindOf(GenerationFailed{}):   decode[GenerationFailed],
	kindOf(ToolsCompleted{}):     decode[ToolsCompleted],
	kindOf(CancelAtBoundary{}):   decode[CancelAtBoundary],
	kindOf(ReplaceAtBoundary{}):  decode[ReplaceAtBoundary],
	kindOf(RecoverInterrupted{}): decode[RecoverInterrupted],
	kindOf(Notice{}):             decode[Notice],
	kindOf(SetTruncationCap{}):   decode[SetTruncationCap],
	kindOf(Started{}):            decode[Started],
	kindOf(Settled{}):            decode[Settled],
	kindOf(SettleRest{}):         decode[SettleRest],
	kindOf(Pause{}):              decode[Pause],
	kindOf(Resume{}):             decode[Resume],
	kindOf(Recovered{}):          decode[Recovered],
	kindOf(Steer{}):              decode[Steer],
}

func decode[T Input](data []byte) (Input, error) {
	var in T
	if err := unmarshal(data, &in); err != nil {
		return nil, err
	}
	return in, nil
}

// marshal writes JSON without the escapes that HTML would need.
func marshal[T any](v T) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// unmarshal reads one JSON object of known fields and nothing else.
func unmarshal[T any](data []byte, v *T) error {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return errors.New("not a JSON object")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return nil
}
