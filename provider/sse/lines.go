// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"errors"
	"io"
)

// firstBuffer is how many bytes are read at once to begin with.
const firstBuffer = 16 << 10

// lines hands on whole lines only. The parser above scans what it has of an event
// anew for each read, so that an event of megabytes that comes in small pieces
// would cost the square of its size.
//
// It also adds the blank line that a body lacks at its end, but only at a clean
// end: a body that broke off has no last event.
type lines struct {
	r     io.Reader
	limit int

	buf   []byte  // what was read and is not yet handed on
	ready int     // how much of buf ends with a line
	tail  [3]byte // the last bytes of r, newest last
	rest  string  // what is still to be added
	added bool    // set once it was: what is parsed from here on r did not end
	err   error   // of r
}

func (l *lines) Read(p []byte) (int, error) {
	for l.ready == 0 && l.err == nil {
		l.fill()
	}
	if l.ready > 0 {
		n := copy(p, l.buf[:l.ready])
		l.buf = l.buf[n:]
		l.ready -= n
		return n, nil
	}
	if l.rest != "" {
		n := copy(p, l.rest)
		l.rest, l.added = l.rest[n:], true
		return n, nil
	}
	return 0, l.err
}

// fill reads once from r.
func (l *lines) fill() {
	have := len(l.buf)
	if have > l.limit {
		l.err = ErrTooLong
		return
	}
	if have == cap(l.buf) {
		l.buf = append(make([]byte, 0, max(2*have, firstBuffer)), l.buf...)
	}
	n, err := l.r.Read(l.buf[have:cap(l.buf)])
	l.buf = l.buf[:have+n]
	for i := len(l.buf) - 1; i >= have; i-- {
		if l.buf[i] == '\n' || l.buf[i] == '\r' {
			l.ready = i + 1
			break
		}
	}
	for _, b := range l.buf[max(have, have+n-len(l.tail)):] {
		l.tail = [3]byte{l.tail[1], l.tail[2], b}
	}
	l.err = err
	if errors.Is(err, io.EOF) {
		l.err, l.ready = io.EOF, len(l.buf)
		if !l.blank() {
			l.rest = "\n\n"
		}
	}
}

// blank reports whether r ended with a blank line.
func (l *lines) blank() bool {
	end := len(l.tail)
	switch {
	case l.tail[end-2] == '\r' && l.tail[end-1] == '\n':
		end -= 2
	case l.tail[end-1] == '\n' || l.tail[end-1] == '\r':
		end--
	default:
		return false
	}
	return l.tail[end-1] == '\n' || l.tail[end-1] == '\r'
}
