// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of a stream the beginning and the end are kept, however it comes, and no more; the end of a flood is asked for once.
func TestSaid(t *testing.T) {
	for _, chunk := range []int{1 << 10, 32 << 10, 3 << 20} {
		var ended error
		s := &said{flood: &flood{end: func(err error) { ended = err }}}
		total := 0
		write := func(b []byte) {
			t.Helper()
			if n, err := s.Write(b); n != len(b) || err != nil {
				t.Fatalf("Write: %d, %v", n, err)
			}
			total += len(b)
		}
		write([]byte("first\n"))
		for total < maxSaid-2*chunk {
			write(bytes.Repeat([]byte("a"), chunk))
		}
		write([]byte("\nlast"))
		if ended != nil || cap(s.head)+cap(s.tail) > 8<<20 {
			t.Errorf("chunks of %d: ended %v, %d bytes are held", chunk, ended, cap(s.head)+cap(s.tail))
		}
		text := s.String()
		if !strings.HasPrefix(text, "first\n") || !strings.HasSuffix(text, "\nlast") || !strings.Contains(text, "bytes are left out") || len(text) > maxHead+maxTail+100 {
			t.Errorf("chunks of %d: %d bytes kept", chunk, len(text))
		}
		if write(bytes.Repeat([]byte("a"), 3*chunk)); !errors.Is(ended, errFlood) {
			t.Errorf("chunks of %d: a flood ended %v", chunk, ended)
		}
	}
	// By io.Copy, as package exec does it, nothing else happens: a buffer that reads by itself keeps all of it.
	s := &said{flood: &flood{end: func(error) {}}}
	if _, err := io.Copy(s, io.LimitReader(zeros{}, 16<<20)); err != nil || len(s.String()) > maxHead+maxTail+100 || cap(s.tail) > 1<<20 {
		t.Errorf("by Copy %d bytes are kept, %v", len(s.String()), err)
	}
	if s = (&said{flood: &flood{}}); s.String() != "" {
		t.Errorf("of nothing: %q", s)
	}
	_, _ = s.Write([]byte("short"))
	if s.String() != "short" {
		t.Errorf("got %q", s)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestReadOutput(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := readOutput(file, 10); err != nil || string(data) != "0123456789" {
		t.Errorf("got %q, %v", data, err)
	}
	if _, err := readOutput(file, 9); !errors.Is(err, errTooLarge) {
		t.Errorf("a large one: %v", err)
	}
	if _, err := readOutput(filepath.Dir(file), 9); err == nil {
		t.Error("a folder was read")
	}
}
