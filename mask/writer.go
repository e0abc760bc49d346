// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
)

// window is how much of a line without an end is held back: no secret that is
// known by its shape is longer, save private keys, which are held back as a whole.
const window = 16 << 10

// A Writer masks a stream. What it writes on may be cut anywhere: a secret is found
// also when it arrives in pieces. It is not safe for concurrent use.
type Writer struct {
	m    *Masker
	to   io.Writer
	buf  []byte
	done int // of buf, what was written on already and is kept to look back at
	err  error
}

// lookBack is how far back the beginning of a word is looked for.
const lookBack = 8

var errClosed = errors.New("mask: write after close")

// Writer returns a Writer on w. Whole lines are passed on at once; of the last line
// at most its end is held back until more comes or Close is called.
func (m *Masker) Writer(w io.Writer) *Writer { return &Writer{m: m, to: w} }

// Write takes p whole, or fails with the error of the underlying writer, which
// every later call then returns again.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	w.buf = append(w.buf, p...)
	if len(w.buf)-w.done < 2*w.hold() && !bytes.Contains(p, []byte("\n")) {
		return len(p), nil // not worth a look: little of it could be passed on
	}
	spans := w.m.find(view(w.buf), w.done)
	cut := w.cut(spans)
	if cut <= w.done {
		return len(p), nil
	}
	if err := w.pass(spans, cut); err != nil {
		return 0, err
	}
	return len(p), nil
}

// hold is how many bytes at the end of an unfinished line may be part of a secret.
func (w *Writer) hold() int {
	if w.m == nil {
		return 0
	}
	if len(w.m.values) > 0 {
		return max(window, len(w.m.values[0]))
	}
	return window
}

// cut is up to where nothing can become a secret by what comes later.
func (w *Writer) cut(spans []span) int {
	if w.m == nil {
		return len(w.buf)
	}
	s := view(w.buf)
	cut := max(strings.LastIndexByte(s, '\n')+1, len(s)-w.hold())
	cut = min(cut, len(s)-max(w.m.multiline-1, 0))
	for _, sp := range slices.Backward(spans) {
		if sp.anchor < cut && (sp.to > cut || sp.to == len(s)) {
			cut = sp.anchor
		}
	}
	return cut
}

// pass writes on what is before cut.
func (w *Writer) pass(spans []span, cut int) error {
	var b strings.Builder
	at := w.done
	for _, sp := range spans {
		if sp.from >= cut {
			break
		}
		b.WriteString(view(w.buf[at:sp.from]))
		b.WriteString(Mask)
		at = sp.to
	}
	b.WriteString(view(w.buf[at:cut]))
	keep := max(cut-lookBack, 0)
	w.buf = append(w.buf[:0], w.buf[keep:]...)
	w.done = cut - keep
	if _, err := io.WriteString(w.to, b.String()); err != nil {
		w.err = err
	}
	return w.err
}

// Close writes on what was held back. It does not close the underlying writer.
func (w *Writer) Close() error {
	if errors.Is(w.err, errClosed) {
		return nil
	}
	if w.err != nil {
		return w.err
	}
	spans := w.m.find(view(w.buf), w.done)
	if err := w.pass(spans, len(w.buf)); err != nil {
		return err
	}
	w.err = errClosed
	return nil
}
