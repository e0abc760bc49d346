// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The JSON form of a message is {"role", "parts": [{"type", ...}], "stop"}; types
// are text, image, thinking, system, call and result (E-204).
type messageJSON struct {
	Role  Role              `json:"role"`
	Parts []json.RawMessage `json:"parts"`
	Stop  StopReason        `json:"stop,omitempty"`
}

// An UnknownPartError reports a stored part of a type that this version does not
// know (E-210). Reading it as anything else would lose it.
type UnknownPartError struct{ Type string }

func (e *UnknownPartError) Error() string {
	return fmt.Sprintf("llm: unknown part type %q: the data was written by a newer version, or is damaged", e.Type)
}

// Each part is stored with its type beside its fields. The fields are those of a
// twin without methods, for whatever embeds a part is one itself.
type (
	textFields     Text
	imageFields    Image
	thinkingFields Thinking
	systemFields   System
	callFields     Call
	resultFields   Result

	textJSON struct {
		Type string `json:"type"`
		textFields
	}
	imageJSON struct {
		Type string `json:"type"`
		imageFields
	}
	thinkingJSON struct {
		Type string `json:"type"`
		thinkingFields
	}
	systemJSON struct {
		Type string `json:"type"`
		systemFields
	}
	callJSON struct {
		Type string `json:"type"`
		callFields
	}
	resultJSON struct {
		Type string `json:"type"`
		resultFields
	}
)

// MarshalJSON writes the stored form. Equal messages give equal bytes.
func (m Message) MarshalJSON() ([]byte, error) {
	out := messageJSON{Role: m.Role, Stop: m.Stop, Parts: make([]json.RawMessage, len(m.Parts))}
	for i, p := range m.Parts {
		data, err := marshalPart(p)
		if err != nil {
			return nil, err
		}
		out.Parts[i] = data
	}
	return marshal(out)
}

// UnmarshalJSON reads the stored form. A part of an unknown type is an
// [*UnknownPartError], an unknown field is an error, too: to drop either would lose
// what a newer version wrote.
func (m *Message) UnmarshalJSON(data []byte) error {
	var in messageJSON
	if err := unmarshal(data, &in); err != nil {
		return err
	}
	out := Message{Role: in.Role, Stop: in.Stop}
	if len(in.Parts) > 0 {
		out.Parts = make([]Part, len(in.Parts))
	}
	for i, raw := range in.Parts {
		p, err := unmarshalPart(raw)
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		out.Parts[i] = p
	}
	*m = out
	return nil
}

func marshalPart(p Part) ([]byte, error) {
	switch p := p.(type) {
	case Text:
		return marshal(textJSON{"text", textFields(p)})
	case Image:
		return marshal(imageJSON{"image", imageFields(p)})
	case Thinking:
		return marshal(thinkingJSON{"thinking", thinkingFields(p)})
	case System:
		return marshal(systemJSON{"system", systemFields(p)})
	case Call:
		return marshal(callJSON{"call", callFields(p)})
	case Result:
		return marshal(resultJSON{"result", resultFields(p)})
	}
	return nil, fmt.Errorf("llm: a message holds a %T, which is no part", p)
}

func unmarshalPart(raw json.RawMessage) (Part, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	switch head.Type {
	case "text":
		var p textJSON
		err := unmarshal(raw, &p)
		return Text(p.textFields), err
	case "image":
		var p imageJSON
		err := unmarshal(raw, &p)
		return Image(p.imageFields), err
	case "thinking":
		var p thinkingJSON
		err := unmarshal(raw, &p)
		return Thinking(p.thinkingFields), err
	case "system":
		var p systemJSON
		err := unmarshal(raw, &p)
		return System(p.systemFields), err
	case "call":
		var p callJSON
		err := unmarshal(raw, &p)
		return Call(p.callFields), err
	case "result":
		var p resultJSON
		err := unmarshal(raw, &p)
		return Result(p.resultFields), err
	}
	return nil, &UnknownPartError{Type: head.Type}
}

// marshal writes JSON without the escapes that HTML would need, so that vendors'
// own data, when compact, is stored byte for byte.
func marshal[T any](v T) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func unmarshal[T any](data []byte, v *T) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}
