// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Ask puts a question that is answered with a number, for instance how many turns more. Yes means offer; no, nothing,
// zero, the end of input and of ctx mean no; what is none of these is asked for again, twice. ok is false for no, and
// when nobody can be asked.
func (u *UI) Ask(ctx context.Context, question string, offer int) (n int, ok bool) {
	if !u.CanAsk() {
		return 0, false
	}
	u.pause(true)
	defer u.pause(false)
	u.raw(indent(u.clean(question)) + "\n")
	for range 3 {
		u.raw(fmt.Sprintf("%d more? [y/N or a number] ", offer))
		answer, err := u.readLine(ctx)
		if err != nil {
			u.raw("\n")
			return 0, false
		}
		switch answer = strings.ToLower(strings.TrimSpace(answer)); answer {
		case "", "n", "no":
			return 0, false
		case "y", "yes":
			return offer, offer > 0
		}
		if n, err := strconv.Atoi(answer); err == nil {
			return max(n, 0), n > 0
		}
		u.raw("Please answer y, n or a whole number.\n")
	}
	return 0, false
}

func (u *UI) pause(on bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.paused = on; on {
		u.erase()
	}
}

func (u *UI) raw(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.write(text)
}

// readLine reads byte by byte, so that nothing of the next answer is taken. The end of ctx breaks the read off for
// good: no question can be asked after it.
func (u *UI) readLine(ctx context.Context) (string, error) {
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		var line []byte
		buf := make([]byte, 1)
		for {
			n, err := u.in.Read(buf)
			switch {
			case err != nil:
				got <- answer{"", err}
				return
			case n == 1 && buf[0] == '\n':
				got <- answer{string(line), nil}
				return
			case n == 1:
				line = append(line, buf[0])
			}
		}
	}()
	select {
	case a := <-got:
		return a.text, a.err
	case <-ctx.Done():
		if u.in.Cancel() { // else the reader has no way to be broken off; it ends with the process
			<-got
		}
		return "", context.Cause(ctx)
	}
}
