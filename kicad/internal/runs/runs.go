// SPDX-License-Identifier: Apache-2.0

// Package runs keeps what is known of each run of the command beside its transcript and summary: one folder a run,
// .fiducial/runs/<id>/ at the top of the repository, with a run.json in it.
//
// run.json is written when a run begins, again when something a reader wants to know has changed, and when it ends. One
// without an outcome is a run that is going on or was interrupted; whether it is held, the journal tells.
package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/llm"
)

// Files of a run, in its folder. Package transcript writes the last two.
const (
	MetaFile       = "run.json"
	TranscriptFile = "transcript.jsonl"
	SummaryFile    = "summary.md"
)

// Version is the format of run.json.
const Version = 1

// Folder is where the runs of a repository are, below its top.
func Folder(top string) string { return filepath.Join(top, ".fiducial", "runs") }

// Journal is the journal of a repository, below its top.
func Journal(top string) string { return filepath.Join(top, ".fiducial", "journal.db") }

// An Outcome is how a run ended.
type Outcome string

// The outcomes. The empty one is written while the run goes on; [List] and [Read] leave it empty, and who knows that
// nobody holds the run calls it Interrupted.
const (
	Going       Outcome = ""
	Done        Outcome = "done"
	Refused     Outcome = "refused"
	Failed      Outcome = "failed"
	Interrupted Outcome = "interrupted" // cancelled by a person, or killed
	Paused      Outcome = "paused"
)

// ExitInterrupted is the exit path of a run that a person cancelled. The others are those of a task (B-60).
const ExitInterrupted = "interrupted"

// Meta is what is known of a run.
type Meta struct {
	Version int    `json:"version"` // [Version]; [Write] sets it
	ID      string `json:"id"`      // the folder's name and the run's name in the journal
	Request string `json:"request"`
	Model   string `json:"model"`
	// Environment is what the run was made with: versions by name.
	Environment map[string]string `json:"environment,omitempty"`
	Project     string            `json:"project,omitempty"` // the .kicad_pro, or what stands for it, relative to the top
	DryRun      bool              `json:"dry_run,omitempty"`
	Store       string            `json:"store,omitempty"` // where its records are, without a password

	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"` // zero while it goes on
	// UndoneAt is when Undone was made.
	UndoneAt time.Time `json:"undone_at,omitzero"`

	Outcome Outcome `json:"outcome"`
	Exit    string  `json:"exit,omitempty"`   // the exit path
	Reason  string  `json:"reason,omitempty"` // in words

	Head      string   `json:"head,omitempty"`      // the commit that the run began on
	Commit    string   `json:"commit,omitempty"`    // what it committed
	Preserved string   `json:"preserved,omitempty"` // the stash or commit that holds what a failed run had changed
	Undone    string   `json:"undone,omitempty"`    // the commit that took Commit back
	Restored  *bool    `json:"restored,omitempty"`  // whether the tree is as before; absent when it was not tried
	Files     []string `json:"files"`               // that it changed, relative to the top

	Turns    int       `json:"turns"`
	MaxTurns int       `json:"max_turns,omitempty"`
	Usage    llm.Usage `json:"usage"`

	// Findings are the rule checks before the first change and after the last, absent for those that did not run.
	Findings struct {
		Before Checks `json:"before"`
		After  Checks `json:"after"`
	} `json:"findings"`
}

// Checks are the counts of both rule checks.
type Checks struct {
	ERC *Count `json:"erc,omitempty"`
	DRC *Count `json:"drc,omitempty"`
}

// A Count counts findings.
type Count struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Excluded int `json:"excluded"`
	Library  int `json:"library"` // of any severity, not among the others
}

// CountOf counts the findings of a report.
func CountOf(r findings.Report) *Count {
	c := &Count{Excluded: len(r.Excluded()), Library: len(r.Library())}
	for _, f := range r.Gating() {
		if f.Severity == findings.Error {
			c.Errors++
		} else {
			c.Warnings++
		}
	}
	return c
}

// Total is how many of the findings gate.
func (c *Count) Total() int { return c.Errors + c.Warnings }

// ErrBadID says that a run's name is not one: it would lead out of the folder of the runs.
var ErrBadID = errors.New("no name of a run")

func checkID(id string) error {
	if id == "" || strings.HasPrefix(id, ".") || strings.ContainsAny(id, "/\\\x00") || !filepath.IsLocal(id) {
		return fmt.Errorf("runs: %q: %w", id, ErrBadID)
	}
	return nil
}

// Write stores the meta file in the folder of the run, which it makes when it is missing. A reader sees the old
// content or the new one, also after a crash. Nothing is written through a link that leads out of top.
func Write(top string, m Meta) (err error) {
	if err := checkID(m.ID); err != nil {
		return err
	}
	m.Version = Version
	if m.Files == nil {
		m.Files = []string{}
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("runs: %s: %w", m.ID, err)
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return fmt.Errorf("runs: %s: %w", m.ID, err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	dir := filepath.Join(Folder(""), m.ID)
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("runs: %s: %w", m.ID, err)
	}
	if err := replace(root, filepath.Join(dir, MetaFile), append(data, '\n')); err != nil {
		return fmt.Errorf("runs: %s: %w", m.ID, err)
	}
	return nil
}

// replace writes a file beside the old one and renames it over. The run has one writer, so one name will do.
func replace(root *os.Root, file string, data []byte) error {
	tmp := file + ".new"
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(tmp, file)
	}
	if err != nil {
		_ = root.Remove(tmp) // the first error counts
	}
	return err
}

// Read reads the meta file of a run. Errors: [fs.ErrNotExist] when there is no such run, or it has no run.json;
// [ErrBadID]; and a [*DamageError].
func Read(top, id string) (Meta, error) {
	if err := checkID(id); err != nil {
		return Meta{}, err
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return Meta{}, fmt.Errorf("runs: %w", err)
	}
	defer func() { _ = root.Close() }()
	file := filepath.Join(Folder(""), id, MetaFile)
	data, err := root.ReadFile(file)
	if err != nil {
		return Meta{}, fmt.Errorf("runs: %w", err)
	}
	file = filepath.Join(top, file)
	var m Meta
	if err := json.Unmarshal(data, &m); err != nil {
		return Meta{}, &DamageError{File: file, Err: err}
	}
	switch {
	case m.Version > Version || m.Version < 1:
		return Meta{}, &DamageError{File: file, Err: fmt.Errorf("it has version %d, this program reads up to %d: use a newer one", m.Version, Version)}
	case m.ID != id:
		return Meta{}, &DamageError{File: file, Err: fmt.Errorf("it is of run %q", m.ID)}
	}
	return m, nil
}

// A DamageError says that a run.json cannot be read.
type DamageError struct {
	File string
	Err  error
}

func (e *DamageError) Error() string { return fmt.Sprintf("runs: %s: %v", e.File, e.Err) }

func (e *DamageError) Unwrap() error { return e.Err }

// An Entry is a run's folder.
type Entry struct {
	ID   string
	Meta Meta  // with no more than the ID when Err is set
	Err  error // the run.json is missing or damaged
}

// List lists the folders of runs, the newest first as their names sort. No folder of runs is an empty list.
func List(top string) ([]Entry, error) {
	dirs, err := os.ReadDir(Folder(top))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	var list []Entry
	for _, d := range slices.Backward(dirs) {
		if !d.IsDir() || checkID(d.Name()) != nil {
			continue
		}
		e := Entry{ID: d.Name()}
		e.Meta, e.Err = Read(top, e.ID)
		e.Meta.ID = e.ID
		list = append(list, e)
	}
	return list, nil
}
