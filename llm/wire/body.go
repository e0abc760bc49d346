// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"mime"
	"net/http"
	"strings"
)

// IsJSON reports whether a response is one JSON value and no stream. What stands in
// the body counts where the header says otherwise, as gateways have it; blank lines
// before a JSON value keep the connection.
func IsJSON(h http.Header, body *bufio.Reader) bool {
	media, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	said := err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
	if mark, err := body.Peek(1); err == nil && mark[0] == 0xEF { // a byte order mark is no part of either
		if mark, err = body.Peek(3); err == nil && string(mark) == "\uFEFF" {
			_, _ = body.Discard(3) // what was peeked is there
		}
	}
	for {
		next, err := body.Peek(1)
		if err != nil {
			return said
		}
		switch next[0] {
		case '{', '[':
			return true
		case ' ', '\t', '\r', '\n':
			if !said {
				return false
			}
			if _, err := body.Discard(1); err != nil {
				return said
			}
		default:
			return false
		}
	}
}
