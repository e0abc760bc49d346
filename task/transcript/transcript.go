// SPDX-License-Identifier: Apache-2.0

// Package transcript keeps what a run did, for people: an append-only log of events
// and a summary, in .fiducial/runs/<run>/. Both are masked. The transcript is no
// part of the run's state; that is the journal.
package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/fiducial-dev/fiducial/mask"
)

const (
	own      = ".fiducial"
	runs     = own + "/runs"
	fileName = "transcript.jsonl"
)

// An EventKind names what happened. The domain may use kinds of its own: lower-case
// words joined by dashes.
type EventKind string

// The kinds of events that every run may have (B-62).
const (
	RunStart             EventKind = "run-start"
	Assistant            EventKind = "assistant"
	Tool                 EventKind = "tool"
	ToolsUnlocked        EventKind = "edit-tools-unlocked"
	AffectsReopened      EventKind = "deferred-affects-reopened"
	BudgetExtended       EventKind = "budget-extended"
	TurnTimeout          EventKind = "turn-timeout"
	ProviderFailover     EventKind = "provider-failover"
	SessionLimit         EventKind = "session-limit"
	ChangelogFailed      EventKind = "changelog-append-failed"
	ProposalArchived     EventKind = "proposal-archived"
	ProposalArchiveError EventKind = "proposal-archive-failed"
	RunFailed            EventKind = "run-failed"
	WorkPreserved        EventKind = "work-preserved"
	RestoreFailed        EventKind = "restore-failed"
	RunRefused           EventKind = "run-refused"
	RunCommitted         EventKind = "run-committed"
	RunEnd               EventKind = "run-end"
)

var (
	kindName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	runName  = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-[0-9]{3}(-[0-9]{1,4})?$`)
)

// An Event is one line of a transcript. In the file its keys stand in this order.
type Event struct {
	Time time.Time       `json:"time"` // UTC, to the millisecond
	Seq  int64           `json:"seq"`  // 1, 2, 3 ...
	Kind EventKind       `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

// A Log appends to the transcript of one run. It is safe for concurrent use.
type Log struct {
	run  string
	mask *mask.Masker

	mu   sync.Mutex
	root *os.Root // the run's folder
	f    *os.File
	size int64 // of all whole lines
	seq  int64
	torn bool // there may be half a line after size
}

// Create makes the folder of a new run below the top of a working tree, and its
// empty transcript. The run's id is the folder's name: the time in UTC to the
// millisecond, so that ids sort as runs began, with a number when that is taken
// already. Folders are made with mode 0700, files with 0600. A nil masker knows the
// known shapes only.
func Create(top string, now time.Time, m *mask.Masker) (*Log, error) {
	const op = "create"
	dir, err := openRuns(top, true)
	if err != nil {
		return nil, wrap(op, "", err)
	}
	defer func() { _ = dir.Close() }()
	now = now.UTC()
	stamp := fmt.Sprintf("%s-%03d", now.Format("20060102-150405"), now.Nanosecond()/int(time.Millisecond))
	run := stamp
	for n := 2; ; n++ {
		err := dir.Mkdir(run, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) || n > 9999 {
			return nil, &Error{Kind: KindWrite, Op: op, Err: err}
		}
		run = stamp + "-" + strconv.Itoa(n)
	}
	l, err := open(dir, run, m, os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, &Error{Kind: KindWrite, Op: op, Run: run, Err: err}
	}
	return l, nil
}

// Open goes on with the transcript of a run that was interrupted. Half a line at
// its end is cut off; torn is how many bytes that was.
func Open(top, run string, m *mask.Masker) (l *Log, torn int64, err error) {
	const op = "open"
	dir, err := openRun(top, run)
	if err != nil {
		return nil, 0, wrap(op, run, err)
	}
	defer func() { _ = dir.Close() }()
	if l, err = open(dir, run, m, 0); err != nil {
		return nil, 0, wrap(op, run, err)
	}
	got, err := Decode(l.f)
	if err == nil && got.Torn > 0 {
		err = l.f.Truncate(got.Size)
	}
	if err != nil {
		return nil, 0, wrap(op, run, errors.Join(err, l.Close()))
	}
	l.size = got.Size
	l.seq = int64(len(got.Events))
	return l, got.Torn, nil
}

func open(dir *os.Root, run string, m *mask.Masker, flag int) (*Log, error) {
	root, err := dir.OpenRoot(run)
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(fileName, os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if m == nil {
		m = mask.New()
	}
	return &Log{run: run, mask: m, root: root, f: f}, nil
}

// Run is the run's id: the name of its folder.
func (l *Log) Run() string { return l.run }

// Dir is the run's folder, relative to the top of the working tree, with slashes.
func (l *Log) Dir() string { return runs + "/" + l.run }

// Append adds one event. data is anything that encoding/json takes, or nil; every
// string in it is masked (B-64). Either the whole line is stored or nothing of it
// counts: after an error of KindWrite, which a full disk gives, the log is as
// before and may be appended to again.
func (l *Log) Append(at time.Time, kind EventKind, data any) error {
	const op = "append"
	if !kindName.MatchString(string(kind)) {
		return &Error{Kind: KindInvalid, Op: op, Run: l.run, Err: fmt.Errorf("kind %q: want lower-case words joined by dashes", kind)}
	}
	e := Event{Time: at.UTC().Truncate(time.Millisecond), Kind: kind}
	if data != nil {
		b, err := marshal(data)
		if err != nil {
			return &Error{Kind: KindInvalid, Op: op, Run: l.run, Err: err}
		}
		e.Data = maskJSON(l.mask, b)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return &Error{Kind: KindInvalid, Op: op, Run: l.run, Err: fs.ErrClosed}
	}
	e.Seq = l.seq + 1
	line, err := marshal(e)
	if err != nil {
		return &Error{Kind: KindInvalid, Op: op, Run: l.run, Err: err}
	}
	if err := l.write(append(line, '\n')); err != nil {
		return &Error{Kind: KindWrite, Op: op, Run: l.run, Err: err}
	}
	l.seq++
	return nil
}

// write stores a line after the last whole one, over what a failed write may have
// left there.
func (l *Log) write(line []byte) error {
	if l.torn {
		if err := l.f.Truncate(l.size); err != nil {
			return err
		}
		l.torn = false
	}
	if _, err := l.f.WriteAt(line, l.size); err != nil {
		l.torn = l.f.Truncate(l.size) != nil
		return err
	}
	l.size += int64(len(line))
	return nil
}

// Close syncs and closes the transcript. It may be called more than once.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	err := errors.Join(l.f.Sync(), l.f.Close(), l.root.Close())
	l.f = nil
	if err != nil {
		return &Error{Kind: KindWrite, Op: "close", Run: l.run, Err: err}
	}
	return nil
}

// Runs lists the ids of all runs, oldest first. Where there was none yet the list
// is empty.
func Runs(top string) ([]string, error) {
	const op = "list"
	dir, err := openRuns(top, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap(op, "", err)
	}
	defer func() { _ = dir.Close() }()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, wrap(op, "", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && runName.MatchString(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	slices.SortFunc(ids, compare)
	return ids, nil
}

// compare sorts ids by time, and the tenth of a millisecond after the second.
func compare(a, b string) int {
	const stamp = len("20060102-150405-000")
	if len(a) != len(b) && a[:stamp] == b[:stamp] {
		return len(a) - len(b)
	}
	return bytes.Compare([]byte(a), []byte(b))
}

// openRuns opens the folder of all runs. No part of the way may be a link: it would
// lead what is written somewhere else.
func openRuns(top string, make bool) (*os.Root, error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	for _, d := range []string{own, runs} {
		if make {
			if err := root.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, &Error{Kind: KindWrite, Op: "create", Err: err}
			}
		}
		st, err := root.Lstat(d)
		if err != nil {
			return nil, err
		}
		if !st.IsDir() {
			return nil, &Error{Kind: KindUnsafe, Op: "open", Err: fmt.Errorf("%s is no folder; move it away", d)}
		}
	}
	return root.OpenRoot(runs)
}

func openRun(top, run string) (*os.Root, error) {
	if !runName.MatchString(run) {
		return nil, &Error{Kind: KindInvalid, Op: "open", Run: run, Err: errors.New("no run has such an id")}
	}
	dir, err := openRuns(top, false)
	if err != nil {
		return nil, err
	}
	if st, err := dir.Lstat(run); err != nil || !st.IsDir() {
		return nil, &Error{Kind: KindNotFound, Op: "open", Run: run, Err: errors.Join(fs.ErrNotExist, dir.Close())}
	}
	return dir, nil
}

func wrap(op, run string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	kind := KindRead
	if errors.Is(err, fs.ErrNotExist) {
		kind = KindNotFound
	}
	return &Error{Kind: kind, Op: op, Run: run, Err: err}
}
