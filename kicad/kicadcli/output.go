// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// What is taken of a run at most, in bytes. The largest board among KiCad's own demos makes a report of 3 MB and says a few lines.
const (
	maxHead   = 384 << 10 // that is kept of the beginning of each output stream
	maxTail   = 128 << 10 // and of its end
	maxSaid   = 64 << 20  // of both streams together, kept or not: who says more is killed
	maxReport = 256 << 20 // of a file that it wrote
)

var errFlood = fmt.Errorf("it said more than %d MiB", maxSaid>>20)

// A flood ends a run that says too much. It is for both streams.
type flood struct {
	mu    sync.Mutex
	bytes int64
	end   func(error)
}

func (f *flood) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes += int64(n); f.bytes > maxSaid {
		f.end(errFlood)
	}
}

// said is one output stream: its beginning and its end, and how much of the middle is gone. It is no [io.ReaderFrom], by
// which everything would be kept.
type said struct {
	flood      *flood
	head, tail []byte
	gone       int
}

// Write takes everything.
func (s *said) Write(p []byte) (int, error) {
	n := len(p)
	s.flood.add(n)
	room := min(maxHead-len(s.head), len(p))
	s.head = append(s.head, p[:room]...)
	s.tail = append(s.tail, p[room:]...)
	if over := len(s.tail) - maxTail; over > maxTail { // seldom, for it moves what is kept
		s.cut(over)
	}
	return n, nil
}

func (s *said) cut(over int) {
	s.gone += over
	s.tail = append(s.tail[:0], s.tail[over:]...)
}

func (s *said) String() string {
	if over := len(s.tail) - maxTail; over > 0 {
		s.cut(over)
	}
	if s.gone == 0 {
		return string(s.head) + string(s.tail)
	}
	return fmt.Sprintf("%s\n... %d bytes are left out ...\n%s", s.head, s.gone, s.tail)
}

// errTooLarge says that a file which kicad-cli wrote has more than maxReport bytes.
var errTooLarge = fmt.Errorf("the file that it wrote has more than %d MiB, and is not read", maxReport>>20)

// readOutput reads a regular file that kicad-cli wrote, of at most so many bytes.
func readOutput(file string, most int64) (data []byte, err error) {
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: filepath.Base(file), Err: errors.New("it is no regular file")}
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if st.Size() > most {
		return nil, errTooLarge
	}
	if data, err = io.ReadAll(io.LimitReader(f, most+1)); err == nil && int64(len(data)) > most { // it grows
		return nil, errTooLarge
	}
	return data, err
}
