// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/fiducial-dev/fiducial/machine"
)

// The format of a record, version 1, is one line of JSON without white space:
//
//	{"v":1,"seq":7,"epoch":2,"at":"2026-11-30T08:00:00Z","kind":"step","name":"settled",
//	 "more":1,"mark":{...},"blobs":[...],"data":{...},"crc":"0a1b2c3d"}
//
// Name is the input's kind or the note's, absent for a header. More is how many
// records of the same append follow, absent for the last one, which has the mark.
// Crc is the CRC32C (Castagnoli) of everything before `,"crc":`, in lower-case
// hexadecimal. That v comes first and crc last holds for every version to come.
type headJSON struct {
	V     int       `json:"v"`
	Seq   uint64    `json:"seq"`
	Epoch uint64    `json:"epoch"`
	At    time.Time `json:"at"`
	Kind  string    `json:"kind"`
	Name  string    `json:"name,omitempty"`
	More  int       `json:"more,omitempty"`
	Mark  *markJSON `json:"mark,omitempty"`
	Blobs []blobRef `json:"blobs,omitempty"`
}

type markJSON struct {
	Phase   string              `json:"phase"`
	Pending machine.OperationID `json:"pending,omitempty"`
	Ended   bool                `json:"ended,omitempty"`
}

type headerJSON struct {
	Run       string            `json:"run"`
	Rules     int               `json:"rules"`
	Labels    map[string]string `json:"labels,omitempty"`
	Config    json.RawMessage   `json:"config,omitempty"`
	Parent    string            `json:"parent,omitempty"`
	ParentSeq uint64            `json:"parent_seq,omitempty"`
}

const (
	dataKey   = `,"data":`
	crcKey    = `,"crc":"`
	crcSuffix = len(crcKey) + 8 + len(`"}`)
)

// Checksum is the CRC32C that guards a record.
func Checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// Stored is a record as a store keeps it.
type Stored struct {
	Record
	Run  string // of a header, else empty
	Mark Mark   // of the append's last record, else zero
	More int    // how many records of the same append follow
}

// Encoded is a record that is ready to be stored. The blobs have to be durable
// before the line is.
type Encoded struct {
	Line  []byte // without a newline at its end
	CRC   uint32
	Blobs []Blob
}

// EncodeRecord writes the newest version of the format. It is for stores. A body
// that has no JSON form is an [ErrInvalid].
func EncodeRecord(run string, s Stored) (Encoded, error) {
	head := headJSON{V: FormatVersion, Seq: s.Seq, Epoch: s.Epoch, At: s.At, More: s.More}
	data, err := encodeBody(run, s.Body, &head)
	if err != nil {
		return Encoded{}, &Error{Kind: KindInvalid, Op: "encode", Run: run, Err: err}
	}
	if s.Mark != (Mark{}) {
		m := markJSON(s.Mark)
		head.Mark = &m
	}
	out, err := encodeLine(head, data)
	if err != nil {
		return Encoded{}, &Error{Kind: KindInvalid, Op: "encode", Run: run, Err: err}
	}
	return out, nil
}

// EncodeAppend encodes the bodies of one append behind a head. It is for stores.
func EncodeAppend(
	run string, head, epoch uint64, at time.Time, state Mark, bodies []Body,
) (lines []Encoded, blobs []Blob, err error) {
	for i, b := range bodies {
		s := Stored{
			Record: Record{Seq: head + uint64(i) + 1, Epoch: epoch, At: at, Body: b},
			More:   len(bodies) - 1 - i,
		}
		if s.More == 0 {
			s.Mark = state
		}
		e, err := EncodeRecord(run, s)
		if err != nil {
			return nil, nil, err
		}
		lines, blobs = append(lines, e), append(blobs, e.Blobs...)
	}
	return lines, blobs, nil
}

// encodeLine puts a head and one line of JSON together.
func encodeLine(head headJSON, data []byte) (Encoded, error) {
	var out Encoded
	data, head.Blobs, out.Blobs = extract(data)
	start, err := json.Marshal(head)
	if err != nil {
		return Encoded{}, err
	}
	// With room for the newline that a file has behind it.
	line := make([]byte, 0, len(start)+len(dataKey)+len(data)+crcSuffix+1)
	line = append(line, start[:len(start)-1]...) // without the closing brace
	line = append(line, dataKey...)
	line = append(line, data...)
	out.CRC = Checksum(line)
	line = append(line, crcKey...)
	line = appendSum(line, out.CRC)
	out.Line = append(line, `"}`...)
	return out, nil
}

// appendSum appends a sum as eight hexadecimal digits.
func appendSum(to []byte, sum uint32) []byte {
	return hex.AppendEncode(to, binary.BigEndian.AppendUint32(nil, sum))
}

func encodeBody(run string, b Body, head *headJSON) (data []byte, err error) {
	switch b := b.(type) {
	case Header:
		head.Kind = "header"
		return json.Marshal(headerJSON{
			Run: run, Rules: b.Rules, Labels: b.Labels, Config: b.Config, Parent: b.Parent, ParentSeq: b.ParentSeq,
		})
	case Step:
		head.Kind = "step"
		if head.Name, data, err = machine.EncodeInput(b.Input); err != nil {
			return nil, err
		}
		if bytes.IndexByte(data, '\n') < 0 {
			return data, nil
		}
		var one bytes.Buffer
		if err := json.Compact(&one, data); err != nil {
			return nil, err
		}
		return one.Bytes(), nil
	case Note:
		head.Kind, head.Name = "note", b.Kind
		return json.Marshal(b.Data)
	}
	return nil, fmt.Errorf("a %T is no body of a record", b)
}

// DecodeRecord reads a line of any version that was ever written. It is for
// stores. Blob gives the content that a digest names. A line that is not what was
// written is a [*DamageError] with a reason alone; the store adds where. What this
// program does not know is a [*FormatError].
func DecodeRecord(line []byte, blob func(digest string) ([]byte, error)) (Stored, error) {
	head, data, err := splitRecord(line)
	if err != nil {
		return Stored{}, err
	}
	return head.decode(data, blob)
}

func damaged(format string, args ...any) error {
	return &DamageError{Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

// splitRecord checks the line's sum and version and takes the body's data off it.
func splitRecord(line []byte) (headJSON, []byte, error) {
	cut := len(line) - crcSuffix
	if cut < 0 || string(line[cut:cut+len(crcKey)]) != crcKey || string(line[len(line)-2:]) != `"}` {
		return headJSON{}, nil, damaged("it is not a record")
	}
	want := appendSum(nil, Checksum(line[:cut]))
	if got := line[cut+len(crcKey) : len(line)-2]; !bytes.Equal(got, want) {
		return headJSON{}, nil, damaged("its checksum is %s and should be %q", want, got)
	}
	v, err := version(line)
	if err != nil {
		return headJSON{}, nil, err
	}
	if v != FormatVersion {
		return headJSON{}, nil, &FormatError{Version: v}
	}
	i := bytes.Index(line, []byte(dataKey))
	if i < 0 || i > cut {
		return headJSON{}, nil, damaged("it has no data")
	}
	head := headJSON{}
	dec := json.NewDecoder(bytes.NewReader(append(bytes.Clone(line[:i]), '}')))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&head); err != nil {
		return headJSON{}, nil, &FormatError{Version: v, Err: err}
	}
	return head, line[i+len(dataKey) : cut], nil
}

// version reads the number after {"v":.
func version(line []byte) (int, error) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"v":`))
	n := bytes.IndexByte(rest, ',')
	if !ok || n < 0 {
		return 0, damaged("it does not begin with a version")
	}
	v, err := strconv.Atoi(string(rest[:n]))
	if err != nil || v < 1 {
		return 0, damaged("its version is %q", rest[:n])
	}
	return v, nil
}

func (h headJSON) decode(data []byte, blob func(string) ([]byte, error)) (Stored, error) {
	s := Stored{Record: Record{Seq: h.Seq, Epoch: h.Epoch, At: h.At}, More: h.More}
	if h.Mark != nil {
		s.Mark = Mark(*h.Mark)
	}
	data, err := restore(data, h.Blobs, blob)
	if err != nil {
		return Stored{}, err
	}
	if err := h.decodeBody(&s, data); err != nil {
		if _, ok := errors.AsType[*FormatError](err); ok {
			return Stored{}, err
		}
		return Stored{}, &FormatError{Version: h.V, Kind: h.Kind + "/" + h.Name, Err: err}
	}
	return s, nil
}

func (h headJSON) decodeBody(s *Stored, data []byte) error {
	switch h.Kind {
	case "header":
		var b headerJSON
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&b); err != nil {
			return err
		}
		s.Run = b.Run
		s.Body = Header{Rules: b.Rules, Labels: b.Labels, Config: b.Config, Parent: b.Parent, ParentSeq: b.ParentSeq}
		return nil
	case "step":
		in, err := machine.DecodeInput(h.Name, data)
		s.Body = Step{Input: in}
		return err
	case "note":
		n := Note{Kind: h.Name}
		if !json.Valid(data) {
			return errors.New("the note's data is not JSON")
		}
		if string(data) != "null" {
			n.Data = bytes.Clone(data)
		}
		s.Body = n
		return nil
	}
	return &FormatError{Version: h.V, Kind: h.Kind + "/" + h.Name}
}

// mayTake reports whether a step can hold keys of outside inputs.
func mayTake(data []byte) bool { return bytes.Contains(data, []byte(`"keys":`)) }

// EncodeOffer writes an offer in the format of records: its kind is "offer", its
// name the key, its data the message. It is for stores.
func EncodeOffer(run string, seq uint64, i Item) (Encoded, error) {
	data, err := json.Marshal(i.Message)
	if err == nil {
		head := headJSON{V: FormatVersion, Seq: seq, At: i.At, Kind: "offer", Name: i.Key}
		var e Encoded
		if e, err = encodeLine(head, data); err == nil {
			return e, nil
		}
	}
	return Encoded{}, &Error{Kind: KindInvalid, Op: "offer", Run: run, Err: err}
}

// DecodeOffer reads what [EncodeOffer] wrote, with the errors of [DecodeRecord].
func DecodeOffer(line []byte, blob func(digest string) ([]byte, error)) (Item, error) {
	head, data, err := splitRecord(line)
	if err != nil {
		return Item{}, err
	}
	if head.Kind != "offer" {
		return Item{}, damaged("a record of kind %s has no place here", head.Kind)
	}
	return head.item(data, blob)
}

func (h headJSON) item(data []byte, blob func(string) ([]byte, error)) (Item, error) {
	data, err := restore(data, h.Blobs, blob)
	if err != nil {
		return Item{}, err
	}
	i := Item{Key: h.Name, At: h.At}
	if err := json.Unmarshal(data, &i.Message); err != nil {
		return Item{}, &FormatError{Version: h.V, Kind: h.Kind, Err: err}
	}
	return i, nil
}

// RecordChecksum is the sum that stands in a line that [DecodeRecord] has accepted.
func RecordChecksum(line []byte) uint32 {
	return Checksum(line[:max(len(line)-crcSuffix, 0)])
}
