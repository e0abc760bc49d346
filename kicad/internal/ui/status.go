// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
)

// A Status is what goes on now. The zero value is nothing.
type Status struct {
	Turn, Budget        int   // turns used and allowed; a budget of 0 is not shown
	TokensIn, TokensOut int64 // of the whole run
	Cached              int64 // the part of TokensIn that came from the provider's cache
	Now                 string
	Since               time.Time // when Now began; zero: no time is shown
	Streamed            int       // characters of the reply that is coming in
}

// Status says what goes on. On a terminal the status line shows it and keeps time; elsewhere a line is written when the
// turn or Now has changed, and a heartbeat while one thing goes on for long.
func (u *UI) Status(s Status) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.out == nil {
		return
	}
	was := u.status
	u.status = s
	if u.stop == nil && s != (Status{}) {
		u.stop, u.done = make(chan struct{}), make(chan struct{})
		go u.keep(u.stop, u.done)
	}
	if u.live {
		switch {
		case s == (Status{}):
			u.erase()
		case s.Turn != was.Turn || s.Now != was.Now:
			u.draw() // else the next frame will do: a reply that streams brings many of these
		}
		return
	}
	text := s.Now
	if s.Turn > 0 {
		text = fmt.Sprintf("turn %s: %s", s.turns(), s.Now)
	}
	if s.Now != "" && text != u.printed {
		u.printed, u.beat = text, time.Now()
		if tokens := s.tokens(); tokens != "" {
			text += "  (" + tokens + ")"
		}
		u.write(u.cleanLine(text) + "\n")
	}
}

// keep redraws the status line, or writes heartbeats, until Close.
func (u *UI) keep(stop, done chan struct{}) {
	defer close(done)
	every := u.opts.Frame
	if !u.live {
		if u.opts.Heartbeat < 0 {
			<-stop
			return
		}
		every = max(u.opts.Heartbeat/10, time.Millisecond)
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			u.tick()
		}
	}
}

func (u *UI) tick() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.live {
		u.frame++
		u.draw()
		return
	}
	s := u.status
	if s.Now == "" || s.Since.IsZero() || time.Since(u.beat) < u.opts.Heartbeat {
		return
	}
	u.beat = time.Now()
	text := fmt.Sprintf("still %s, %s", s.Now, elapsed(s.Since))
	if s.Streamed > 0 {
		text += fmt.Sprintf(", %s characters so far", short(int64(s.Streamed)))
	}
	u.write(u.cleanLine(text) + "\n")
}

// erase takes the status line off the terminal.
func (u *UI) erase() {
	if u.shown {
		u.write("\r\x1b[2K")
		u.shown = false
	}
}

// draw puts the status line on the terminal, or over the old one.
func (u *UI) draw() {
	if !u.live || u.paused || u.status == (Status{}) {
		return
	}
	width := 0
	if u.opts.Width != nil {
		width = u.opts.Width()
	}
	if width <= 0 {
		width = 80
	}
	u.write("\r" + u.statusLine(width-1) + "\x1b[K") // the last column would wrap on some terminals
	u.shown = true
}

const spinner = `|/-\`

// statusLine is at most width columns wide. What runs now comes last and is cut first.
func (u *UI) statusLine(width int) string {
	s := u.status
	parts := []string{u.look.pass.Render(string(spinner[u.frame%len(spinner)]))}
	if s.Turn > 0 {
		parts = append(parts, u.look.heading.Render("turn "+s.turns()))
	}
	if t := s.tokens(); t != "" {
		parts = append(parts, u.look.dim.Render(t))
	}
	now := u.cleanLine(s.Now)
	if !s.Since.IsZero() {
		now += " " + elapsed(s.Since)
	}
	if s.Streamed > 0 {
		now += fmt.Sprintf(" (%s characters)", short(int64(s.Streamed)))
	}
	parts = append(parts, now)
	return lipgloss.NewStyle().Inline(true).MaxWidth(max(width, 1)).Render(strings.Join(parts, "  "))
}

func (s Status) turns() string {
	if s.Budget > 0 {
		return fmt.Sprintf("%d/%d", s.Turn, s.Budget)
	}
	return fmt.Sprint(s.Turn)
}

func (s Status) tokens() string {
	if s.TokensIn == 0 && s.TokensOut == 0 {
		return ""
	}
	cached := ""
	if s.Cached > 0 && s.TokensIn > 0 {
		cached = fmt.Sprintf(", %d%% cached", min(s.Cached, s.TokensIn)*100/s.TokensIn)
	}
	return fmt.Sprintf("%s in%s, %s out", short(s.TokensIn), cached, short(s.TokensOut))
}

// short writes a count in at most five characters, for instance 950, 12.3k, 4.0M.
func short(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_950:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	default:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
}

func elapsed(since time.Time) string {
	return time.Since(since).Truncate(time.Second).String()
}
