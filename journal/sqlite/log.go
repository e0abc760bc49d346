// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"iter"
	"maps"
)

// readLog finds the newest committed content of each page. Sums of frames are not
// looked at: one bad byte would take all that follows with it.
func (m *image) readLog() {
	open := map[uint32]int64{} // of the transaction that is being read
	for at, frame := range m.frames() {
		open[binary.BigEndian.Uint32(frame)] = at + logFrame
		if binary.BigEndian.Uint32(frame[4:]) == 0 {
			continue
		}
		maps.Copy(m.newer, open) // it was committed
		clear(open)
	}
}

// spoiled is where the log is not what was written, although it is no write that was
// cut off. SQLite takes such a place for the end of the log and says nothing.
//
// A transaction is synced before the next one is written: a bad frame in front of a
// later transaction is damage. A header is written anew only when all that stands
// behind it is in the database as well: a bad one is damage when it is not.
func (m *image) spoiled() (at int64, yes bool) {
	sum, ok := m.headSum()
	switch {
	case len(m.log) < logHeader+logFrame:
		return 0, false
	case !ok:
		return 0, m.unlike()
	}
	bad := int64(0)
	over := false // a commit came behind the bad frame
	for at, frame := range m.frames() {
		if over {
			return bad, true
		}
		if bad == 0 {
			sum.add(frame[:8])
			sum.add(frame[logFrame:])
			if !sum.fits(frame[16:]) {
				bad = at
			}
		}
		over = bad != 0 && binary.BigEndian.Uint32(frame[4:]) != 0
	}
	return 0, false
}

// spoiledLog is [image.spoiled] of the database at a path.
func spoiledLog(path string) (at int64, yes bool, err error) {
	m, err := openLog(path)
	if err != nil || len(m.log) == 0 {
		return 0, false, err
	}
	if _, ok := m.headSum(); !ok {
		m, err = openImage(path)
		if errors.Is(err, fs.ErrNotExist) { // a log alone is nothing
			return 0, false, nil
		}
		if err != nil {
			return 0, false, err
		}
	}
	at, yes = m.spoiled()
	return at, yes, nil
}

// headSum is the running sum behind the log's header, and whether it is the one that
// stands there.
func (m *image) headSum() (logSum, bool) {
	if len(m.log) < logHeader {
		return logSum{}, false
	}
	sum := logSum{order: binary.LittleEndian}
	if m.log[3]&1 == 1 {
		sum.order = binary.BigEndian
	}
	sum.add(m.log[:24])
	return sum, sum.fits(m.log[24:]) && binary.BigEndian.Uint32(m.log)&^1 == 0x377f0682
}

// frames yields the frames that belong to the log, each with its offset: those with
// the salt of the header or, where that is bad, of the first one.
func (m *image) frames() iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		salt := ""
		if _, ok := m.headSum(); ok {
			salt = string(m.log[16:24])
		}
		for at := int64(logHeader); at+logFrame+m.size <= int64(len(m.log)); at += logFrame + m.size {
			frame := m.log[at : at+logFrame+m.size]
			salt = cmp.Or(salt, string(frame[8:16]))
			if string(frame[8:16]) != salt || !yield(at, frame) {
				return
			}
		}
	}
}

// unlike reports whether the log has a page that the database has not, or not so.
func (m *image) unlike() bool {
	for n, at := range m.newer {
		from := (int64(n) - 1) * m.size
		if n == 0 || from+m.size > int64(len(m.file)) || !bytes.Equal(m.file[from:from+m.size], m.log[at:at+m.size]) {
			return true
		}
	}
	return false
}

// A logSum is the running sum of a log.
type logSum struct {
	order binary.ByteOrder
	a, b  uint32
}

func (s *logSum) add(data []byte) {
	for ; len(data) >= 8; data = data[8:] {
		s.a += s.order.Uint32(data) + s.b
		s.b += s.order.Uint32(data[4:]) + s.a
	}
}

func (s *logSum) fits(said []byte) bool {
	return s.a == binary.BigEndian.Uint32(said) && s.b == binary.BigEndian.Uint32(said[4:])
}
