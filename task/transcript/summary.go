// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

const summaryName = "summary.md"

// A Summary is what a person reads after a run. Its sections are those of B-63;
// one that holds nothing says so.
type Summary struct {
	Request string // in the user's words
	Run     string // the run's id
	Outcome string // for example "done" or "turn-budget-exhausted"

	Environment  []Field
	Statistics   []Field
	Plan         string // markdown
	Files        []File
	Verification []Verdict
	Decisions    []string
	Obligations  []string // those still open
	Detail       string   // markdown
}

// A Field is a named value.
type Field struct{ Name, Value string }

// A File is one that the run changed.
type File struct {
	Path           string
	Change         string // for example "added"
	Added, Deleted int    // lines
	Binary         bool   // then the lines are not told
}

// A Result is the outcome of a check.
type Result string

// The results.
const (
	Pass   Result = "PASS"
	Fail   Result = "FAIL"
	NotRun Result = "NOT RUN"
)

// A Verdict is what one check said.
type Verdict struct {
	Check   string // for example "ERC"
	Result  Result
	Command string // that gave it, may be empty
	Detail  string // may be empty
}

// Markdown is the summary's text, not masked.
func (s Summary) Markdown() string {
	var b strings.Builder
	title := s.Request
	if strings.TrimSpace(title) == "" {
		title = "Run " + s.Run
	}
	fmt.Fprintf(&b, "# %s\n\n", oneLine(title))
	fmt.Fprintf(&b, "Run %s: **%s**\n", code(s.Run), oneLine(s.Outcome))
	list(&b, "Environment", fields(s.Environment))
	list(&b, "Run statistics", fields(s.Statistics))
	text(&b, "Plan", s.Plan)
	var files []string
	for _, f := range s.Files {
		size := fmt.Sprintf("+%d -%d", f.Added, f.Deleted)
		if f.Binary {
			size = "binary"
		}
		files = append(files, fmt.Sprintf("%s: %s, %s", code(f.Path), f.Change, size))
	}
	list(&b, "Files touched", files)
	var verdicts []string
	for _, v := range s.Verification {
		l := fmt.Sprintf("%s: **%s**", oneLine(v.Check), v.Result)
		if v.Command != "" {
			l += ", by " + code(v.Command)
		}
		if v.Detail != "" {
			l += "\n" + v.Detail
		}
		verdicts = append(verdicts, l)
	}
	list(&b, "Verification", verdicts)
	list(&b, "Decisions", s.Decisions)
	list(&b, "Open obligations", s.Obligations)
	text(&b, "Detail", s.Detail)
	return b.String()
}

func fields(all []Field) []string {
	var l []string
	for _, f := range all {
		l = append(l, oneLine(f.Name)+": "+f.Value)
	}
	return l
}

func text(b *strings.Builder, title, body string) {
	body = strings.TrimSpace(body)
	if body == "" {
		body = "None."
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n", title, body)
}

func list(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		text(b, title, "")
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n", title)
	for _, it := range items {
		fmt.Fprintf(b, "- %s\n", strings.ReplaceAll(strings.TrimSpace(it), "\n", "\n  "))
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// code is a code span that shows s as it is: a path may hold anything.
func code(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }) {
		s = strconv.Quote(s)
	}
	longest, run := 0, 0
	for _, r := range s {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 || strings.HasPrefix(s, " ") {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// WriteSummary stores the summary as summary.md beside the transcript, masked. It
// replaces an earlier one as a whole: after an error of KindWrite that one stands.
func (l *Log) WriteSummary(s Summary) error {
	const op = "write the summary of"
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return &Error{Kind: KindInvalid, Op: op, Run: l.run, Err: os.ErrClosed}
	}
	const temp = summaryName + ".new"
	f, err := l.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return &Error{Kind: KindWrite, Op: op, Run: l.run, Err: err}
	}
	_, err = io.WriteString(f, l.mask.Text(s.Markdown()))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = l.root.Rename(temp, summaryName)
	}
	if err != nil {
		_ = l.root.Remove(temp) // the first error counts
		return &Error{Kind: KindWrite, Op: op, Run: l.run, Err: err}
	}
	return nil
}

// ReadSummary returns the summary of a run. The error is of KindNotFound when the
// run ended before it wrote one.
func ReadSummary(top, run string) (string, error) {
	const op = "read the summary of"
	dir, err := openRun(top, run)
	if err != nil {
		return "", wrap(op, run, err)
	}
	defer func() { _ = dir.Close() }()
	b, err := dir.ReadFile(run + "/" + summaryName)
	if err != nil {
		return "", wrap(op, run, err)
	}
	return string(b), nil
}
