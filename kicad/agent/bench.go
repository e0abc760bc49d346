// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/library"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/tool"
)

// A Bench is the KiCad project of one run, with its tools. It is a [task.Domain].
type Bench struct {
	top     string   // absolute path of the repository
	root    *os.Root // the same; every path goes through it
	project *project.Project
	cli     *kicadcli.Runner

	session *task.Session
	base    baseline
	memory  memory

	// mu guards the files. Tools that write hold it for the whole of their work, so
	// that no reader sees half an edit; tools that read, and checks, share it.
	mu       sync.RWMutex
	proposal *proposal
	pending  []*edit           // of the edit that is under way
	written  map[string]digest // what the run wrote last, by path
	changes  []string          // the electrical differences of the run's edits, in order

	// checks guards the last results, which two checks may write side by side.
	checks   sync.Mutex
	erc, drc check

	driftLine string // what check_drift said the last time
	driftRan  bool   // since the last edit that concerns it

	libraries func() *library.Set
	now       func() time.Time // nil: the computer's clock
}

// Options set a [Bench] up.
type Options struct {
	Top     string           // the repository's top folder
	Project *project.Project // found in Top
	CLI     *kicadcli.Runner
	Share   string // KiCad's folder of shared files; empty means the one that belongs to CLI

	Now func() time.Time // the day of decisions; nil means the computer's clock
}

// A LockedError says that the design is open in an editor (board case 27): saving
// there would undo the run, and the run would be undone there.
type LockedError struct{ Locks []project.Lock }

func (e *LockedError) Error() string {
	var who []string
	for _, l := range e.Locks {
		who = append(who, l.String())
	}
	return "the design is open in KiCad: " + strings.Join(who, "; ") + ". Close it there first, or remove the lock file when no editor is running"
}

// New opens the project. Close frees it; the runner stays the caller's.
func New(opts Options) (*Bench, error) {
	if len(opts.Project.Locks) > 0 {
		return nil, &LockedError{opts.Project.Locks}
	}
	root, err := os.OpenRoot(opts.Top)
	if err != nil {
		return nil, err
	}
	b := &Bench{top: opts.Top, root: root, project: opts.Project, cli: opts.CLI, now: opts.Now}
	b.libraries = sync.OnceValue(func() *library.Set {
		share := opts.Share
		if share == "" {
			share, _ = opts.CLI.Share() // without one the set says what it looked for
		}
		return library.Open(library.Options{Share: share, Project: b.abs(opts.Project.Dir)})
	})
	return b, nil
}

// Close frees what the bench holds.
func (b *Bench) Close() error {
	b.base.end()
	return b.root.Close()
}

// abs is the absolute path of a path of the repository.
func (b *Bench) abs(name string) string { return filepath.Join(b.top, filepath.FromSlash(name)) }

// input is what kicad-cli looks at, judged by the rules that the project had when
// the run began: a run cannot silence a rule (board case 30).
func (b *Bench) input(name string) kicadcli.Input {
	return kicadcli.Input{File: b.abs(name), Root: b.top, Overlay: b.base.overlay}
}

// locked is a lock file that an editor has made since the run began (case 27).
func (b *Bench) locked() error {
	for _, name := range []string{b.project.Root, b.project.PCB, b.project.Pro} {
		if name == "" {
			continue
		}
		lock := path.Join(path.Dir(name), "~"+path.Base(name)+".lck")
		if _, err := b.root.Lstat(filepath.FromSlash(lock)); err == nil {
			return tool.Errorf(tool.Failed, "%s is there: the design was opened in KiCad during the run. Nothing was changed; it must be closed there first", lock)
		}
	}
	return nil
}

// design reads the sheets as they stand.
func (b *Bench) design() (*sch.Design, error) {
	if b.project.Root == "" {
		return nil, errNoSheet
	}
	return sch.LoadWith(b.read, b.project.Root)
}

var (
	errNoSheet = errors.New("the project has no schematic yet, so this does not apply")
	errNoBoard = errors.New("the project has no board yet, so this does not apply")
)

// kind is what an edit of a file concerns.
type kind uint8

const (
	other    kind = iota
	markdown      // documents
	sheet         // .kicad_sch
	board         // .kicad_pcb
	config        // .kicad_pro, .kicad_dru and library files: KiCad's, and never probed (B-97)
)

func kindOf(name string) kind {
	switch strings.ToLower(path.Ext(name)) {
	case ".kicad_sch":
		return sheet
	case ".kicad_pcb":
		return board
	case ".kicad_pro", ".kicad_dru", ".kicad_sym", ".kicad_mod", ".kicad_prl", ".kicad_wks":
		return config
	case ".md":
		return markdown
	}
	switch path.Base(name) {
	case "sym-lib-table", "fp-lib-table":
		return config
	}
	return other
}

// touched does what every kept edit of a file entails: the file is the run's, and
// its checks are due again (B-67 to B-76, B-104).
func (b *Bench) touched(name string) {
	if kindOf(name) != other || path.Base(name) == docs.RegistryName || docs.IsHeader(name) {
		b.obligeDriftCheck(name)
	}
	b.recorded(name)
}

// recorded is touched for an edit after which the documents need not be compared
// again (B-120).
func (b *Bench) recorded(name string) {
	r := b.session.Rules
	r.Touch(name)
	k := kindOf(name)
	if k == sheet || k == board || k == config {
		b.oblige(task.Obligation{Kind: obligeChangelog, Opener: name})
		if b.project.Root != "" {
			b.oblige(task.Obligation{Kind: obligeERC, Opener: name})
		}
	}
	b.checks.Lock()
	defer b.checks.Unlock()
	switch k {
	case sheet:
		b.erc.forget()
		if b.project.Parity() { // the board's parity rests on the sheets
			b.drc.forget()
			b.oblige(task.Obligation{Kind: obligeDRC, Opener: name})
		}
	case board:
		b.drc.forget()
		b.oblige(task.Obligation{Kind: obligeDRC, Opener: name})
	case config:
		b.memory.forget() // what the checks rest on beside sheets and board
	case markdown, other:
	}
}

func (b *Bench) oblige(o task.Obligation) { b.session.Rules.Oblige(o) }

// The kinds of obligation.
const (
	obligeERC       = "erc"
	obligeDRC       = "drc"
	obligeChangelog = "changelog"
	obligeDrift     = "drift"
	obligeRevisit   = "affects-revisit"       // detail is "key affects item" (B-74)
	obligeDualWrite = "constraint-dual-write" // detail is the key (B-73)
	obligeDecision  = "decision-log"          // detail is the key of a constraint that changed (B-72)
)

// Begin takes the baseline and hands the tools over.
func (b *Bench) Begin(ctx context.Context, s *task.Session) (*task.Setup, error) {
	b.session = s
	if s.Resumed {
		if err := b.takeBack(); err != nil {
			return nil, err
		}
	}
	rules, err := b.snapshotRules(ctx)
	if err != nil {
		return nil, err
	}
	b.base.overlay = rules
	if err := b.base.start(ctx, b); err != nil {
		return nil, err
	}
	if err := b.reopen(ctx); err != nil { // before the prompt is made (B-9)
		return nil, err
	}
	if s.Resumed {
		changes, err := s.Snapshot.Changed(ctx)
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			b.touched(c.Path)
		}
	}
	tools, err := b.tools()
	if err != nil {
		return nil, err
	}
	system, err := b.system()
	if err != nil {
		return nil, err
	}
	return &task.Setup{
		System: system, Prompt: s.Request, Tools: tools,
		Locked: lockedTools, UnlockHint: unlockHint, Batching: Batching,
		Gates: []task.Gate{&checkGate{b, obligeERC}, &checkGate{b, obligeDRC}, &limitGate{b}, &rulesGate{b}}, Standing: []string{obligeChangelog},
	}, nil
}
