// SPDX-License-Identifier: Apache-2.0

package sse

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

func read(t *testing.T, r io.Reader, limit int) ([]Event, error) {
	t.Helper()
	var events []Event
	for ev, err := range Read(r, limit) {
		if err != nil {
			return events, err
		}
		events = append(events, ev)
	}
	return events, nil
}

// E-217.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       []Event
	}{
		{"one", "event: a\ndata: 1\n\n", []Event{{Type: "a", Data: "1"}}},
		{"crlf", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []Event{{Type: "a", Data: "1"}, {Data: "2"}}},
		{"cr", "data: 1\r\rdata: 2\r\r", []Event{{Data: "1"}, {Data: "2"}}},
		{"byte order mark", "\ufeffdata: 1\n\n", []Event{{Data: "1"}}},
		{"several data lines", "data: 1\ndata: 2\n\n", []Event{{Data: "1\n2"}}},
		{"no space after the colon", "data:1\n\n", []Event{{Data: "1"}}},
		{"comments, retry, id and bare types", ": hi\n\nretry: 3\n\nevent: ping\n\nid: 7\n\n:\ndata: 1\n\n\n\n", []Event{{Data: "1"}}},
		{"empty data", "data:\n\ndata: 1\n\n", []Event{{Data: "1"}}},
		{"last event without blank line", "data: 1\n\ndata: 2\n", []Event{{Data: "1"}, {Data: "2", Unterminated: true}}},
		{"last line without end", "data: 1\n\ndata: {\"a", []Event{{Data: "1"}, {Data: `{"a`, Unterminated: true}}},
		{"last event without blank line, cr", "data: 1\r\rdata: 2\r", []Event{{Data: "1"}, {Data: "2", Unterminated: true}}},
		{"last event without blank line, crlf", "data: 2\r\n", []Event{{Data: "2", Unterminated: true}}},
		{"nothing", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"whole": strings.NewReader(tt.body), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.body)),
				"data with the end": iotest.DataErrReader(strings.NewReader(tt.body)),
			} {
				got, err := read(t, r, 0)
				if err != nil || !slices.Equal(got, tt.want) {
					t.Errorf("%s: got %+v, %v; want %+v", name, got, err, tt.want)
				}
			}
			for cut := range len(tt.body) {
				r := io.MultiReader(strings.NewReader(tt.body[:cut]), strings.NewReader(tt.body[cut:]))
				if got, err := read(t, r, 0); err != nil || !slices.Equal(got, tt.want) {
					t.Errorf("cut at %d: got %+v, %v; want %+v", cut, got, err, tt.want)
				}
			}
		})
	}
}

// A body that breaks off has no last event, and its error comes through.
func TestReadBroken(t *testing.T) {
	broken := errors.New("reset")
	r := io.MultiReader(strings.NewReader("data: 1\n\ndata: 2\n"), iotest.ErrReader(broken))
	got, err := read(t, r, 0)
	if !errors.Is(err, broken) || !slices.Equal(got, []Event{{Data: "1"}}) {
		t.Errorf("got %+v, %v; want event 1 and the error", got, err)
	}
}

func TestReadLimit(t *testing.T) {
	body := "data: 1\n\ndata: " + strings.Repeat("x", 100_000) + "\n\n"
	if got, err := read(t, strings.NewReader(body), 0); err != nil || len(got) != 2 {
		t.Errorf("got %d events, %v; want 2 within the default limit", len(got), err)
	}
	if got, err := read(t, strings.NewReader(body), 70_000); !errors.Is(err, ErrTooLong) || len(got) != 1 {
		t.Errorf("got %d events, %v; want 1 and ErrTooLong", len(got), err)
	}
}

// An event is there once its blank line is; nobody waits for the next one.
func TestReadAtOnce(t *testing.T) {
	r, w := io.Pipe()
	go func() { _, _ = io.WriteString(w, "data: 1\n\n") }() // the pipe stays open
	for ev, err := range Read(r, 0) {
		if err != nil || ev.Data != "1" {
			t.Errorf("got %+v, %v", ev, err)
		}
		break
	}
	r.Close()
}

// However a body is cut into reads, the same events come out.
func FuzzRead(f *testing.F) {
	f.Add("event: a\r\ndata: 1\r\n\r\n: c\n\ndata: 2", 3)
	f.Add("\ufeffdata\n\ndata:\rdata: x\r\r\n", 1)
	f.Add("data: 1\n\n\r\r\r\n\ndata:2", 2)
	f.Fuzz(func(t *testing.T, body string, size int) {
		size = 1 + max(size, -size)&0xff
		whole, wholeErr := read(t, strings.NewReader(body), 1<<16)
		split, splitErr := read(t, &stepReader{rest: body, size: size}, 1<<16)
		if !slices.Equal(whole, split) || (wholeErr == nil) != (splitErr == nil) {
			t.Errorf("whole: %+v, %v\nby %d bytes: %+v, %v", whole, wholeErr, size, split, splitErr)
		}
		for i, ev := range whole {
			if ev.Data == "" || ev.Unterminated && i != len(whole)-1 {
				t.Errorf("event %d of %d: %+v", i, len(whole), ev)
			}
		}
	})
}

type stepReader struct {
	rest string
	size int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.size)], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// An event of megabytes costs its size, not the square of it, however small the
// pieces are that it comes in.
func BenchmarkReadLarge(b *testing.B) {
	for _, size := range []int{1 << 20, 4 << 20} {
		b.Run(strconv.Itoa(size>>20)+"MiB", func(b *testing.B) {
			body := "data: " + strings.Repeat("x", size) + "\n\n"
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				for _, err := range Read(&stepReader{rest: body, size: 1400}, 0) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	body := strings.Repeat("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0}\n\n", 1000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range Read(strings.NewReader(body), 0) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
