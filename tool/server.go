// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Server keeps tools and runs their calls. It is an [Executor] and safe for
// concurrent use. The zero value is empty and ready.
type Server struct {
	mu     sync.RWMutex
	tools  map[string]*entry
	limit  *int // nil is the default
	limits map[string]int
	onCut  func(Cut)
	locked int
	specs  []Spec // sorted; nil when it must be made anew
}

type entry struct {
	tool   Tool
	spec   Spec
	traits Traits
}

// entryOf asks a tool what it is, once.
func entryOf(t Tool) (e *entry, err error) {
	defer func() {
		if p := recover(); p != nil {
			e, err = nil, fmt.Errorf("%w: %T panics when it is asked what it is: %v", ErrUnusable, t, p)
		}
	}()
	if t == nil {
		return nil, fmt.Errorf("%w: it is nil", ErrUnusable)
	}
	return &entry{tool: t, spec: t.Spec(), traits: t.Traits()}, nil
}

// The reasons why a server refuses a change, for errors.Is.
var (
	ErrDuplicate = errors.New("a tool of this name is registered already")
	ErrNoTool    = errors.New("there is no tool of this name")
	ErrUnusable  = errors.New("what was given is no tool")
	ErrLocked    = errors.New("the list of tools is part of a locked prefix; unlock the engine first")
)

// A ServerError says which change of a server was refused, and why.
type ServerError struct {
	Op   string // register, unregister, replace
	Tool string
	Err  error // [ErrDuplicate], [ErrNoTool], [ErrUnusable], [ErrLocked]
}

func (e *ServerError) Error() string {
	return "tool: " + strings.TrimSpace(e.Op+" "+e.Tool) + ": " + e.Err.Error()
}
func (e *ServerError) Unwrap() error { return e.Err }

// NewServer returns a server that holds tools. Two of one name are an error, and
// then there is no server.
func NewServer(tools ...Tool) (*Server, error) {
	s := &Server{}
	if err := s.Register(tools...); err != nil {
		return nil, err
	}
	return s, nil
}

// Register adds tools, all of them or none.
func (s *Server) Register(tools ...Tool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := make(map[string]*entry, len(tools))
	for _, t := range tools {
		e, err := entryOf(t)
		if err != nil {
			return &ServerError{"register", "", err}
		}
		name := e.spec.Name
		if s.locked > 0 {
			return &ServerError{"register", name, ErrLocked}
		}
		if s.tools[name] != nil || added[name] != nil {
			return &ServerError{"register", name, ErrDuplicate}
		}
		added[name] = e
	}
	if s.tools == nil {
		s.tools = map[string]*entry{}
	}
	maps.Copy(s.tools, added)
	s.specs = nil
	return nil
}

// Unregister takes a tool off the list. Calls of it that run go on and end as
// they would.
func (s *Server) Unregister(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.tools[name] == nil:
		return &ServerError{"unregister", name, ErrNoTool}
	case s.locked > 0:
		return &ServerError{"unregister", name, ErrLocked}
	}
	delete(s.tools, name)
	s.specs = nil
	return nil
}

// Replace puts t in the place of the tool of its name. Calls that run keep the
// old one. While the list is locked only a tool with the very same definition may
// take the place.
func (s *Server) Replace(t Tool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := entryOf(t)
	if err != nil {
		return &ServerError{"replace", "", err}
	}
	old := s.tools[e.spec.Name]
	switch {
	case old == nil:
		return &ServerError{"replace", e.spec.Name, ErrNoTool}
	case s.locked > 0 && !sameSpec(old.spec, e.spec):
		return &ServerError{"replace", e.spec.Name, ErrLocked}
	}
	s.tools[e.spec.Name] = e
	s.specs = nil
	return nil
}

// Lock forbids every change of the advertised list until the returned function
// is called, once. Locks add up.
func (s *Server) Lock() (unlock func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.locked++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.locked--
	})
}

// SetOutputLimit sets the most bytes that a model is shown of the content of a
// result, and of its summary, instead of [DefaultOutputLimit]; what is cut ends with
// a note that says how much is left out. 0 or less means no limit. perTool overrides
// it, in either direction (E-113), and [Traits.OutputLimit]; there, too, less than
// nothing means no limit. A summary of up to 4096 bytes, as good ones are, is never
// cut (E-112); the text of an error is a summary. onCut, when not nil, hears of every
// cut; it may be called concurrently.
//
// The limits are no part of what is advertised, and may be set at any time; calls
// that run keep the old ones. The error is always nil.
func (s *Server) SetOutputLimit(limit int, perTool map[string]int, onCut func(Cut)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.limits, s.onCut = &limit, maps.Clone(perTool), onCut
	return nil
}

// Specs are the definitions, sorted by name. The slice must not be changed.
func (s *Server) Specs() []Spec {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.specs == nil {
		s.specs = make([]Spec, 0, len(s.tools))
		for _, name := range slices.Sorted(maps.Keys(s.tools)) {
			s.specs = append(s.specs, s.tools[name].spec)
		}
	}
	return slices.Clip(s.specs)
}

// Traits tells how a tool may be run.
func (s *Server) Traits(name string) (Traits, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.tools[name]
	if e == nil {
		return Traits{}, false
	}
	return e.traits, true
}

// Execute runs a call and answers it whatever happens: an unknown tool, an
// error, a panic, a time limit.
func (s *Server) Execute(ctx context.Context, call Call) Result {
	r, _ := s.ExecuteCut(ctx, call)
	return r
}

// ExecuteCut is Execute that tells what was cut; the zero Cut means nothing.
func (s *Server) ExecuteCut(ctx context.Context, call Call) (Result, Cut) {
	s.mu.RLock()
	e := s.tools[call.Name]
	limit, own := DefaultOutputLimit, s.limits[call.Name]
	if s.limit != nil {
		limit = *s.limit
	}
	onCut := s.onCut
	s.mu.RUnlock()
	if e == nil {
		return resultOf(ctx, call, Output{}, s.unknown(cutText(call.masked(call.Name)))), Cut{} // E-121: not subject to limits
	}
	out, err := runLimited(ctx, e, call)
	r := resultOf(ctx, call, out, err)
	cut, isCut := limitResult(call, &r, cmp.Or(own, e.traits.OutputLimit, limit))
	if isCut && onCut != nil {
		onCut(cut)
	}
	return r, cut
}

func (s *Server) unknown(name string) error {
	var names []string
	for _, spec := range s.Specs() {
		names = append(names, spec.Name)
	}
	return Errorf(NotFound, "there is no tool %q; the tools are: %q", name, names)
}

// A tool that does not return when its time is over is left behind after this
// long, and its effects are unknown.
const graceAfterLimit = 2 * time.Second

// runLimited runs the call and, when the tool has a time limit, does not wait
// for one that ignores it.
func runLimited(ctx context.Context, e *entry, call Call) (Output, error) {
	if e.traits.TimeLimit <= 0 {
		return runSafe(ctx, e.tool, call)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.traits.TimeLimit, ErrTimeLimit)
	defer cancel()
	type done struct {
		out Output
		err error
	}
	ch := make(chan done, 1)
	go func() {
		d := done{err: &Error{Kind: Internal, Message: "the tool ended its goroutine instead of returning"}}
		defer func() { ch <- d }()
		d.out, d.err = runSafe(ctx, e.tool, call)
	}()
	overtime := time.NewTimer(e.traits.TimeLimit + graceAfterLimit)
	defer overtime.Stop()
	select {
	case d := <-ch:
		_, own := errors.AsType[*Error](d.err)
		if d.err != nil && !own && errors.Is(d.err, context.DeadlineExceeded) && errors.Is(context.Cause(ctx), ErrTimeLimit) {
			return d.out, &Error{Kind: Interrupted, Message: ErrTimeLimit.Error(), Err: d.err}
		}
		return d.out, d.err
	case <-overtime.C:
		return Output{}, &unknownError{limit: e.traits.TimeLimit}
	}
}

// runSafe turns a panic of the tool, or of its error's own words, into an error
// (S-100, E-110). The stack goes to the program, not to the model.
func runSafe(ctx context.Context, t Tool, call Call) (out Output, err error) {
	defer func() {
		if p := recover(); p != nil {
			out = Output{}
			err = &Error{Kind: Internal, Message: fmt.Sprintf("the tool panicked: %v", p), Err: &PanicError{Value: p, Stack: debug.Stack()}}
		}
	}()
	out, err = t.Run(ctx, call)
	if err != nil {
		_ = err.Error() // a nil *Error in an error panics here
	}
	return out, err
}

// A PanicError is the cause of a result that a panic made.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

type unknownError struct{ limit time.Duration }

func (e *unknownError) Error() string {
	return fmt.Sprintf("the call did not stop when its time limit of %v had passed; its outcome is unknown and it may still be running: look before you try again", e.limit)
}

func sameSpec(a, b Spec) bool {
	return a.Name == b.Name && a.Description == b.Description && string(a.Schema) == string(b.Schema)
}
