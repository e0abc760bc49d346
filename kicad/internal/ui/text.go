// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// Clean makes a text safe for a terminal: control characters but line feed and tab, what turns the direction of
// writing, and bytes that are no UTF-8 become escapes that a reader can see. A carriage return before a line feed goes.
func Clean(s string) string {
	if !unsafe(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !paints(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// CleanLine is [Clean] for a text that must stay in one line.
func CleanLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", " ").Replace(Clean(s))
}

func unsafe(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, paints)
}

// paints tells characters that do something to a terminal or to the order of what stands around them.
func paints(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == '\u2028' || r == '\u2029' || r == '\ufeff' || r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// indent keeps the following lines of a text from looking like lines of ours.
func indent(s string) string {
	s = strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
	return strings.ReplaceAll(s, "\n    \n", "\n\n")
}

// look is how parts of the text are shown.
type look struct {
	pass, fail, notRun, warn, heading, dim, added, removed, hunk lipgloss.Style
}

func newLook(colour bool) look {
	plain := lipgloss.NewStyle().Inline(true)
	if !colour {
		return look{plain, plain, plain, plain, plain, plain, plain, plain, plain}
	}
	return look{
		pass: plain.Bold(true).Foreground(lipgloss.Green), fail: plain.Bold(true).Foreground(lipgloss.Red),
		notRun: plain.Bold(true).Foreground(lipgloss.Yellow), warn: plain.Foreground(lipgloss.Yellow),
		heading: plain.Bold(true), dim: plain.Faint(true),
		added: plain.Foreground(lipgloss.Green), removed: plain.Foreground(lipgloss.Red), hunk: plain.Foreground(lipgloss.Cyan),
	}
}

// A Verdict is the result of a check. Status is PASS, FAIL or NOT RUN; other words stand for themselves.
type Verdict struct {
	Status  string
	Check   string // for instance ERC
	Reason  string
	Command string // that gave it, "" when none was run
	Seconds float64
}

// Verdict writes a verdict and, below it, the command that gave it.
func (u *UI) Verdict(v Verdict) {
	style := u.look.notRun
	switch v.Status {
	case "PASS":
		style = u.look.pass
	case "FAIL":
		style = u.look.fail
	}
	text := style.Render(fmt.Sprintf("%-7s", u.cleanLine(v.Status))) + " " + u.cleanLine(v.Check) + ": " + indent(u.clean(v.Reason))
	if v.Command != "" {
		took := ""
		if v.Seconds > 0 {
			took = fmt.Sprintf("  (%.1f s)", v.Seconds)
		}
		text += "\n        " + u.look.dim.Render(u.cleanLine(v.Command)+took)
	}
	u.print(text)
}

// Diff writes a unified diff, indented.
func (u *UI) Diff(text string) {
	text = strings.TrimRight(u.clean(text), "\n")
	if text == "" {
		return
	}
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		style := lipgloss.NewStyle().Inline(true)
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
			style = u.look.heading
		case strings.HasPrefix(line, "+"):
			style = u.look.added
		case strings.HasPrefix(line, "-"):
			style = u.look.removed
		case strings.HasPrefix(line, "@@"):
			style = u.look.hunk
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("    " + style.Render(line))
	}
	u.print(b.String())
}
