package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/task"
)

// A Bench is the KiCad project of one run, with its tools. It is a [task.Domain].
type Bench struct {
	top     string   // absolute path of the repository
	root    *os.Root // the same; every path goes through it
	project *project.Project
	cli     *kicadcli.Runner

	session *task.Session

	// mu guards what follows. Tools that write hold it for the whole of their work,
	// so that no reader sees half an edit.
	mu       sync.Mutex
	proposal *proposal
	base     baseline
	erc, drc check
	netlist  cachedNetlist
	changes  []string // the electrical differences of the run's edits, in order
}

// Options set a [Bench] up.
type Options struct {
	Top     string           // the repository's top folder
	Project *project.Project // found in Top
	CLI     *kicadcli.Runner
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
	return &Bench{top: opts.Top, root: root, project: opts.Project, cli: opts.CLI}, nil
}

// Close frees what the bench holds.
func (b *Bench) Close() error {
	b.base.wait()
	return b.root.Close()
}

// abs is the absolute path of a path of the repository.
func (b *Bench) abs(name string) string { return filepath.Join(b.top, filepath.FromSlash(name)) }

// input is what kicad-cli looks at, judged by the rules that the project had when
// the run began: a run cannot silence a rule (board case 30).
func (b *Bench) input(name string) kicadcli.Input {
	return kicadcli.Input{File: b.abs(name), Root: b.top, Overlay: b.base.overlay}
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

// A PathError says why a path is not one that a tool may use.
type PathError struct {
	Path   string
	Reason string
}

func (e *PathError) Error() string { return fmt.Sprintf("path %q: %s", e.Path, e.Reason) }

// clean checks a path that a model gave: relative to the repository, not leaving
// it, not git's and not ours (B-85). What links do is for os.Root to stop.
func clean(name string) (string, error) {
	switch {
	case name == "":
		return "", &PathError{name, "it is empty; give a path relative to the repository"}
	case strings.ContainsRune(name, 0):
		return "", &PathError{name, "it holds a NUL byte"}
	}
	slashed := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if !fs.ValidPath(slashed) || filepath.IsAbs(name) {
		return "", &PathError{name, "it leaves the repository; give a path relative to its top folder, without .."}
	}
	switch first, _, _ := strings.Cut(slashed, "/"); strings.ToLower(first) {
	case ".git", ".fiducial":
		return "", &PathError{name, "the folder " + first + " is not for tools"}
	}
	return slashed, nil
}

// read is a file of the repository.
func (b *Bench) read(name string) ([]byte, error) {
	data, err := b.root.ReadFile(filepath.FromSlash(name))
	if err != nil {
		return nil, pathError(name, err)
	}
	return data, nil
}

func pathError(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &PathError{name, "there is no such file"}
	case errors.Is(err, fs.ErrPermission):
		return &PathError{name, "it may not be read or written: permission denied"}
	}
	if strings.Contains(err.Error(), "escapes") { // os.Root has no sentinel for it (Go 1.26)
		return &PathError{name, "it leads out of the repository"}
	}
	return fmt.Errorf("%s: %w", name, err)
}

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
	r := b.session.Rules
	r.Touch(name)
	k := kindOf(name)
	if k == sheet || k == board || k == config {
		b.oblige(task.Obligation{Kind: obligeChangelog, Opener: name})
		if b.project.Root != "" {
			b.oblige(task.Obligation{Kind: obligeERC, Opener: name})
		}
	}
	switch k {
	case sheet:
		b.erc.forget()
		b.netlist = cachedNetlist{}
		if b.project.Parity() { // the board's parity rests on the sheets
			b.drc.forget()
			b.oblige(task.Obligation{Kind: obligeDRC, Opener: name})
		}
	case board:
		b.drc.forget()
		b.oblige(task.Obligation{Kind: obligeDRC, Opener: name})
	case config, markdown, other:
	}
}

func (b *Bench) oblige(o task.Obligation) { b.session.Rules.Oblige(o) }

// The kinds of obligation.
const (
	obligeERC       = "erc"
	obligeDRC       = "drc"
	obligeChangelog = "changelog"
)

// Begin takes the baseline and hands the tools over.
func (b *Bench) Begin(ctx context.Context, s *task.Session) (*task.Setup, error) {
	b.session = s
	rules, err := b.snapshotRules(ctx)
	if err != nil {
		return nil, err
	}
	b.base.overlay = rules
	if err := b.base.start(ctx, b); err != nil {
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
	return &task.Setup{
		System: b.prompt(), Prompt: s.Request, Tools: tools,
		Locked: lockedTools, UnlockHint: unlockHint, Batching: Batching,
		Gates: []task.Gate{&checkGate{b, obligeERC}, &checkGate{b, obligeDRC}}, Standing: []string{obligeChangelog},
	}, nil
}
