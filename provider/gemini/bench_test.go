// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/gemini"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

// longReply is a reply of many pieces of text and many calls.
func longReply(pieces int) string {
	var b strings.Builder
	chunk := func(part, rest string) {
		fmt.Fprintf(&b, `data: {"candidates": [{"content": {"parts": [%s],"role": "model"}%s,"index": 0}],"usageMetadata": {"promptTokenCount": 30,"candidatesTokenCount": 8,`+
			`"totalTokenCount": 38,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 30}]},"modelVersion": "gemini-3-pro-preview","responseId": "x"}`+"\r\n\r\n", part, rest)
	}
	for i := range pieces {
		chunk(fmt.Sprintf(`{"text": " some more words of the reply, number %d"}`, i), "")
	}
	for i := range pieces / 10 {
		chunk(fmt.Sprintf(`{"functionCall": {"name": "read","args": {"path": "a%d","from": 1,"to": 200}},"thoughtSignature": "c2lnbmF0dXJl"}`, i), "")
	}
	chunk(`{"text": ""}`, `,"finishReason": "STOP"`)
	return b.String()
}

// BenchmarkDecode reads a long reply.
func BenchmarkDecode(b *testing.B) {
	body := longReply(4000)
	h := &http.Client{Transport: replytest.Canned(func() io.Reader { return strings.NewReader(body) })}
	c, err := gemini.New("gemini-3-pro-preview", gemini.WithBaseURL("http://localhost"), gemini.WithHTTPClient(h))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := collect.Stream(b.Context(), c, replytest.Ask("go"))
		if err != nil || r.Message.CountCalls() != 400 {
			b.Fatal(r, err)
		}
	}
}
