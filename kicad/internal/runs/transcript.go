package runs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
)

// ErrTorn says that the last line of a transcript was cut off: the run was killed while it wrote.
var ErrTorn = errors.New("the last line is cut off")

// Transcript yields the lines of a run's transcript, each a JSON value. A line that is none comes with an error and the
// others follow all the same; [ErrTorn] for the last one, without a newline. No transcript is an empty one.
func Transcript(top, id string) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		if err := checkID(id); err != nil {
			yield(nil, err)
			return
		}
		f, err := os.Open(filepath.Join(Folder(top), id, TranscriptFile))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(nil, fmt.Errorf("runs: %w", err))
			return
		}
		defer func() { _ = f.Close() }()
		lines(f, yield)
	}
}

func lines(f io.Reader, yield func(json.RawMessage, error) bool) {
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		whole := err == nil
		if err != nil && !errors.Is(err, io.EOF) {
			yield(nil, fmt.Errorf("runs: transcript, line %d: %w", n, err))
			return
		}
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
		case json.Valid(line):
			if !yield(json.RawMessage(line), nil) {
				return
			}
		case !whole:
			yield(nil, fmt.Errorf("runs: transcript, line %d: %w", n, ErrTorn))
			return
		case !yield(nil, fmt.Errorf("runs: transcript, line %d: not JSON", n)):
			return
		}
		if !whole {
			return
		}
	}
}
