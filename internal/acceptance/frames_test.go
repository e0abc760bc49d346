// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCasesFramedOtherwise plays the cases once more with streams that say the same
// in other bytes: in small chunks, with other line ends, with comments between.
// What must come of a case does not depend on that.
func TestCasesFramedOtherwise(t *testing.T) {
	if testing.Short() {
		t.Skip("each case is played once in TestCases")
	}
	files := caseFiles(t, filepath.Join("testdata", "cases"))
	if dir := os.Getenv("FIDUCIAL_CASES"); dir != "" {
		files = append(files, caseFiles(t, dir)...)
	}
	n := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for name, frame := range framings {
			c, err := parseCase(data)
			if err != nil {
				t.Fatal(err)
			}
			if !reframe(c, frame) {
				continue
			}
			n++
			t.Run(c.ID+"/"+name, func(t *testing.T) { playCase(t, c, "file") })
		}
	}
	t.Logf("%d plays", n)
}

// framings say the same stream otherwise.
var framings = map[string]func(r *reply){
	"small chunks": func(r *reply) { r.Chunks, r.ChunkEvery = nil, 3 },
	"crlf": func(r *reply) {
		body := strings.ReplaceAll(*r.Body, "\r\n", "\n")
		body = strings.ReplaceAll(body, "\n", "\r\n")
		r.Body, r.Chunks, r.ChunkEvery = &body, nil, 11
	},
	"comments": func(r *reply) {
		body := strings.ReplaceAll(*r.Body, "\r\n", "\n")
		body = ": begin\n\n" + strings.ReplaceAll(body, "\n\ndata:", "\n\n: ping\n\nid: 1\n:\ndata:")
		r.Body, r.Chunks = &body, nil
	},
}

// reframe changes the streams of a case. It reports false when there is none, or
// when the case is about the bytes themselves or about time.
func reframe(c *wireCase, frame func(*reply)) bool {
	if c.Category == "sse" || c.Category == "retry" || c.Category == "stream-fault" || c.Expect.Delays != nil {
		return false
	}
	changed := false
	for i := range c.Replies {
		r := &c.Replies[i]
		kind := r.Headers["content-type"].text
		if r.Body == nil || r.Cut != nil || r.Stall != nil || len(*r.Body) > 1<<16 || !strings.HasPrefix(kind, "text/event-stream") {
			continue
		}
		if strings.HasPrefix(*r.Body, "\ufeff") {
			continue
		}
		frame(r)
		changed = true
	}
	return changed
}
