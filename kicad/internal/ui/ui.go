// SPDX-License-Identifier: Apache-2.0

// Package ui is what a person sees of the command: a live status line on a terminal, plain lines elsewhere, or one JSON
// object.
//
// Texts come from models and files. Whatever in them could paint the terminal is shown as an escape, see [Clean], and
// the following lines of a text are indented, so that nothing can pass for a line of ours.
package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/muesli/cancelreader"
)

// Options say what a [UI] writes to. Out is required.
type Options struct {
	Out io.Writer
	// Err gets, with JSON, what else is to be said, as plain lines. Nil: nothing.
	Err io.Writer
	// In is where a person answers; nil when nobody can be asked. Give it only when In and Out are terminals (B-20).
	In io.Reader

	Terminal bool // Out is a terminal
	Plain    bool // no escape codes and no line that is drawn again, also on a terminal
	JSON     bool // nothing but [UI.Object] goes to Out

	// Width is how many columns the terminal has now; nil, or 0 from it, means 80.
	Width func() int
	// Environ is looked at for NO_COLOR (no-color.org: any value but the empty one) and TERM; a dumb terminal is Plain.
	Environ []string

	// Mask takes secrets out of every text and object before it is written; nil takes out none.
	Mask func(string) string

	Frame     time.Duration // between two drawings of the status line; 0 means 100 ms
	Heartbeat time.Duration // between two plain lines while one thing goes on (B-30); 0 means 30 s, negative none
}

// A UI writes for a person. It is safe for concurrent use. Close it.
type UI struct {
	opts Options
	out  io.Writer // of lines, nil for none
	live bool
	look look
	in   cancelreader.CancelReader

	mu      sync.Mutex
	status  Status
	shown   bool      // the status line stands on the terminal
	paused  bool      // a question stands on the terminal
	beat    time.Time // of the last plain line about the status
	printed string    // the last plain line about the status
	frame   int
	err     error // the first failure to write
	stop    chan struct{}
	done    chan struct{}
}

// New makes a UI. A reader that cannot be waited for with an end makes nobody be asked.
func New(opts Options) *UI {
	u := &UI{opts: opts, out: opts.Out}
	term := variable(opts.Environ, "TERM")
	u.live = opts.Terminal && !opts.Plain && !opts.JSON && term != "" && term != "dumb"
	if opts.JSON {
		u.out = opts.Err
	}
	if u.opts.Mask == nil {
		u.opts.Mask = func(s string) string { return s }
	}
	if u.opts.Frame <= 0 {
		u.opts.Frame = 100 * time.Millisecond
	}
	if u.opts.Heartbeat == 0 {
		u.opts.Heartbeat = 30 * time.Second
	}
	u.look = newLook(u.live && variable(opts.Environ, "NO_COLOR") == "")
	if opts.In != nil && !opts.JSON {
		if in, err := cancelreader.NewReader(opts.In); err == nil {
			u.in = in
		}
	}
	return u
}

// variable looks a name up in an environment.
func variable(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// Live reports whether a status line is drawn.
func (u *UI) Live() bool { return u.live }

// CanAsk reports whether [UI.Ask] reaches somebody.
func (u *UI) CanAsk() bool { return u.in != nil }

// clean makes a text fit to be shown: without secrets, and [Clean].
func (u *UI) clean(s string) string { return Clean(u.opts.Mask(s)) }

// cleanLine is clean for a text that must stay in one line.
func (u *UI) cleanLine(s string) string { return CleanLine(u.opts.Mask(s)) }

// Line writes a line. Further lines in it are indented.
func (u *UI) Line(format string, args ...any) { u.print(indent(u.clean(fmt.Sprintf(format, args...)))) }

// Warn writes a line that stands out.
func (u *UI) Warn(format string, args ...any) {
	u.print(u.look.warn.Render("warning:") + " " + indent(u.clean(fmt.Sprintf(format, args...))))
}

// Heading writes a line that begins a part.
func (u *UI) Heading(format string, args ...any) {
	u.print(u.look.heading.Render(u.cleanLine(fmt.Sprintf(format, args...))))
}

// Object writes v as indented JSON, the one thing on Out with JSON.
func (u *UI) Object(v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("ui: %w", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	_, err = io.WriteString(u.opts.Out, u.opts.Mask(string(data))+"\n")
	return err
}

// ObjectLine writes v as JSON in one line, for a stream of objects with JSON.
func (u *UI) ObjectLine(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("ui: %w", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	_, err = io.WriteString(u.opts.Out, u.opts.Mask(string(data))+"\n")
	return err
}

// Close takes the status line away and ends what [Status] began. The error is the first failure to write.
func (u *UI) Close() error {
	u.mu.Lock()
	stop, done := u.stop, u.done
	u.stop = nil
	u.mu.Unlock()
	if stop != nil {
		close(stop)
		<-done
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.erase()
	u.status = Status{}
	if u.in != nil {
		u.err = errors.Join(u.err, u.in.Close())
		u.in = nil
	}
	return u.err
}

// print writes text and a newline above the status line.
func (u *UI) print(text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.printLocked(text)
}

func (u *UI) printLocked(text string) {
	if u.out == nil {
		return
	}
	u.erase()
	u.write(text + "\n")
	u.draw()
}

func (u *UI) write(text string) {
	if _, err := io.WriteString(u.out, text); err != nil && u.err == nil {
		u.err = err
	}
}
