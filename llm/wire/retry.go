// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RetryAfter is how long the headers ask to wait, 0 when they do not: by
// Retry-After-Ms in milliseconds, else by Retry-After in seconds or as an HTTP
// date (RFC 9110, section 10.2.3). A date is counted from the response's own Date
// where it has one, so that a clock that is off does no harm, else from now; a
// date that has passed asks for no wait.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if ms, ok := number(header.Get("Retry-After-Ms")); ok {
		return span(ms, time.Millisecond)
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if s, ok := number(value); ok {
		return span(s, time.Second)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(header.Get("Date")); err == nil {
		now = sent
	}
	return max(at.Sub(now), 0)
}

func number(s string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return f, err == nil && f >= 0 && !math.IsInf(f, 0)
}

// span is n units, at most what a duration holds.
func span(n float64, unit time.Duration) time.Duration {
	if d := n * float64(unit); d < math.MaxInt64 {
		return time.Duration(d)
	}
	return math.MaxInt64
}
