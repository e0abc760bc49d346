package llm

import (
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
	return json.Marshal(out)
}

// UnmarshalJSON reads the stored form. A part of an unknown type is an
// [*UnknownPartError].
func (m *Message) UnmarshalJSON(data []byte) error {
	var in messageJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*m = Message{Role: in.Role, Stop: in.Stop}
	if in.Parts != nil {
		m.Parts = make([]Part, len(in.Parts))
	}
	for i, raw := range in.Parts {
		p, err := unmarshalPart(raw)
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		m.Parts[i] = p
	}
	return nil
}

func marshalPart(p Part) ([]byte, error) {
	switch p := p.(type) {
	case Text:
		return json.Marshal(struct {
			Type string `json:"type"`
			Text
		}{"text", p})
	case Image:
		return json.Marshal(struct {
			Type string `json:"type"`
			Image
		}{"image", p})
	case Thinking:
		return json.Marshal(struct {
			Type string `json:"type"`
			Thinking
		}{"thinking", p})
	case System:
		return json.Marshal(struct {
			Type string `json:"type"`
			System
		}{"system", p})
	case Call:
		return json.Marshal(struct {
			Type string `json:"type"`
			Call
		}{"call", p})
	case Result:
		return json.Marshal(struct {
			Type string `json:"type"`
			Result
		}{"result", p})
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
		return decode[Text](raw)
	case "image":
		return decode[Image](raw)
	case "thinking":
		return decode[Thinking](raw)
	case "system":
		return decode[System](raw)
	case "call":
		return decode[Call](raw)
	case "result":
		return decode[Result](raw)
	}
	return nil, &UnknownPartError{Type: head.Type}
}

func decode[P Part](raw json.RawMessage) (Part, error) {
	var p P
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, err
	}
	return p, nil
}
