// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fiducial-dev/fiducial/mask"
)

// marshal is json.Marshal without escapes for HTML, so that the file is readable.
// Keys of maps are sorted, those of structs stand as declared.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// maskJSON masks each string in valid JSON for itself, keys too: the text as a
// whole would be cut within escapes.
func maskJSON(m *mask.Masker, b []byte) []byte {
	var out []byte
	last := 0
	for i := 0; i < len(b); i++ {
		if b[i] != '"' {
			continue
		}
		from := i
		for i++; b[i] != '"'; i++ {
			if b[i] == '\\' {
				i++
			}
		}
		var s string
		if err := json.Unmarshal(b[from:i+1], &s); err != nil || !m.Found(s) {
			continue
		}
		masked, err := marshal(m.Text(s))
		if err != nil { // no string does that
			masked = []byte(`"` + mask.Mask + `"`)
		}
		out = append(append(out, b[last:from]...), masked...)
		last = i + 1
	}
	if last == 0 {
		return b
	}
	return append(out, b[last:]...)
}

// Decoded is what a transcript holds.
type Decoded struct {
	Events []Event
	Size   int64 // bytes of whole lines
	Torn   int64 // bytes of half a line after them, which a killed process left
}

// Read returns the transcript of a run. Half a line at its end is tolerated and
// told by Torn. A whole line that is no event, or does not follow the one before, is
// an error of KindDamaged; the result then holds what is before it.
func Read(top, run string) (Decoded, error) {
	const op = "read"
	dir, err := openRun(top, run)
	if err != nil {
		return Decoded{}, wrap(op, run, err)
	}
	defer func() { _ = dir.Close() }()
	f, err := dir.Open(run + "/" + fileName)
	if err != nil {
		return Decoded{}, wrap(op, run, err)
	}
	defer func() { _ = f.Close() }()
	d, err := Decode(f)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Run = run
	}
	return d, err
}

// Decode reads a transcript; see [Read].
func Decode(in io.Reader) (Decoded, error) {
	const op = "read"
	var d Decoded
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			d.Torn = int64(len(line))
			return d, nil
		}
		if err != nil {
			return d, &Error{Kind: KindRead, Op: op, Err: err}
		}
		var e Event
		err = json.Unmarshal(line, &e)
		if want := int64(len(d.Events)) + 1; err == nil && e.Seq != want {
			err = fmt.Errorf("event %d, want %d", e.Seq, want)
		}
		if err == nil && !kindName.MatchString(string(e.Kind)) {
			err = fmt.Errorf("kind %q", e.Kind)
		}
		if err != nil {
			return d, &Error{Kind: KindDamaged, Op: op, Offset: d.Size, Err: err}
		}
		d.Events = append(d.Events, e)
		d.Size += int64(len(line))
	}
}
