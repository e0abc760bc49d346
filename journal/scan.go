// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine is longer than any record: a body of RecordLimit and its head.
const maxLine = 8 << 20

// errTorn ends a scan at an append that was never finished. What it left behind
// was never acknowledged.
var errTorn = errors.New("the last append is unfinished")

// A scan reads a log in appends. It gives only whole ones.
type scan struct {
	in    *bufio.Reader
	run   string
	where string
	inbox bool // offers, not records: no header

	// The state after the last whole append.
	end   int64 // offset of the next one
	seq   uint64
	epoch uint64
	mark  Mark
}

// raw is a record whose sum was checked and whose body was not yet looked at.
type raw struct {
	head   headJSON
	data   []byte
	offset int64
}

func newScan(r io.ReaderAt, run, where string) *scan {
	return &scan{in: bufio.NewReaderSize(io.NewSectionReader(r, 0, 1<<62), 64<<10), run: run, where: where}
}

// resume goes on behind the last whole append, after the log has grown.
func (s *scan) resume(r io.ReaderAt) {
	s.in.Reset(io.NewSectionReader(r, s.end, 1<<62-s.end))
}

// next returns the records of the next append. It returns io.EOF at the end,
// errTorn in front of an unfinished append, or a [*DamageError].
func (s *scan) next() ([]raw, error) {
	var group []raw
	at, seq := s.end, s.seq
	for {
		line, err := s.line()
		if err != nil {
			if len(group) > 0 && errors.Is(err, io.EOF) {
				return nil, errTorn
			}
			return nil, s.locate(err, at, seq+1)
		}
		head, data, err := splitRecord(line)
		if err != nil {
			return nil, s.locate(err, at, seq+1)
		}
		if why := s.fits(head, seq, group); why != "" {
			return nil, s.locate(damaged("%s", why), at, seq+1)
		}
		group = append(group, raw{head, bytes.Clone(data), at})
		at += int64(len(line)) + 1
		seq = head.Seq
		if head.More == 0 {
			s.end, s.seq, s.epoch = at, seq, head.Epoch
			s.mark = Mark{}
			if head.Mark != nil {
				s.mark = Mark(*head.Mark)
			}
			return group, nil
		}
	}
}

// fits says why a record cannot stand where it stands.
func (s *scan) fits(h headJSON, seq uint64, group []raw) string {
	switch {
	case h.Seq != seq+1:
		return fmt.Sprintf("record %d stands where %d should", h.Seq, seq+1)
	case s.inbox != (h.Kind == "offer"):
		return fmt.Sprintf("a record of kind %s has no place here", h.Kind)
	case !s.inbox && (h.Seq == 1) != (h.Kind == "header"):
		return fmt.Sprintf("a %s is record %d", h.Kind, h.Seq)
	case h.Epoch < s.epoch:
		return fmt.Sprintf("epoch %d follows epoch %d", h.Epoch, s.epoch)
	case h.More < 0:
		return "its count of following records is negative"
	case len(group) > 0 && (h.Epoch != group[0].head.Epoch || h.More != group[len(group)-1].head.More-1):
		return "it is no part of the append that it stands in"
	}
	return ""
}

// line returns the next line without its end. The last line may be unfinished.
func (s *scan) line() ([]byte, error) {
	var long []byte
	for {
		part, err := s.in.ReadSlice('\n')
		if err == nil {
			line := part[:len(part)-1]
			if long != nil {
				line = append(long, line...)
			}
			return line, nil
		}
		long = append(long, part...)
		switch {
		case len(long) > maxLine:
			return nil, damaged("the line is longer than any record")
		case errors.Is(err, bufio.ErrBufferFull):
		case !errors.Is(err, io.EOF):
			return nil, err
		case len(long) == 0:
			return nil, io.EOF
		default:
			return nil, tail(long)
		}
	}
}

// tail tells an unfinished line from one whose end was changed afterwards.
func tail(line []byte) error {
	if _, _, err := splitRecord(line[:len(line)-1]); err == nil {
		return damaged("the record does not end with a newline")
	}
	return errTorn
}

// locate says where the damage is.
func (s *scan) locate(err error, at int64, seq uint64) error {
	if d, ok := errors.AsType[*DamageError](err); ok {
		d.Run, d.Where, d.Offset, d.Seq = s.run, s.where, at, seq
	}
	return err
}
