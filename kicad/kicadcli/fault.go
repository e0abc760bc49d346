// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
)

// A fault is not what the design says: kicad-cli cannot be started, was killed, took too long, wrote nothing, or crashed
// before it has answered once. What it says of a design then says nothing about it.

// faults are the commands that do not work, with the reason, and those that have answered.
type faults struct {
	mu       sync.Mutex
	known    map[string]*Error
	answered map[string]bool
}

// answers notes that a command came to its end by itself, whatever it said.
func (f *faults) answers(command string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.answered == nil {
		f.answered = map[string]bool{}
	}
	f.answered[command] = true
}

// crash tells whether a crash is a fault: one of a command that has answered before comes from what was changed since.
func (f *faults) crash(command string, run Run) *Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if run.Signal == "" || f.answered[command] {
		return nil
	}
	return run.fail(Crashed, "it crashed by signal "+run.Signal+" before it checked anything, and again at the second try; open the design in KiCad, "+
		"and if that crashes too, report it with the design at https://gitlab.com/kicad/code/kicad/-/issues", nil)
}

// note keeps a fault until the same command works again.
func (f *faults) note(command string, fault *Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case fault == nil:
		delete(f.known, command)
	case f.known == nil:
		f.known = map[string]*Error{command: fault}
	default:
		f.known[command] = fault
	}
}

// Fault is why kicad-cli did not work the last time, when that was the computer's doing and not the design's: it cannot
// be started, was killed, took longer than its limit, left no output, or said without end, each but the limit twice in a
// row; or it wrote what cannot be read. So is a crash of a command that this Runner has seen no answer of, whatever
// crashes it: then nobody changed the design in between, and nothing is known of it. A crash after an answer is none.
// nil means that it works. A verdict that such a run led to, and an edit that it kept from being checked, say nothing
// about the design.
func (r *Runner) Fault() error {
	r.faults.mu.Lock()
	defer r.faults.mu.Unlock()
	for _, command := range slices.Sorted(maps.Keys(r.faults.known)) {
		return r.faults.known[command]
	}
	return nil
}

// unread notes that a command wrote what nobody can read, where err says so: that is kicad-cli's fault, for whatever the
// design is, a report has a form. The error comes back.
func (r *Runner) unread(err error, args ...string) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Kind == BadOutput && e.ExitCode == 0 {
		r.faults.note(commandOf(args), e)
	}
	return err
}

// Exit codes of a shell or a loader for what cannot be run, such as a kicad-cli whose shared libraries are missing.
const (
	notRunnable = 126
	notFound    = 127
)

// fault tells what of a run is the computer's to answer for. err is what the attempt returned, out the file or folder
// that the command should have written, "" for none.
func (run Run) fault(err error, out string) *Error {
	if err != nil {
		e, _ := errors.AsType[*Error](err) // nil for the end of the context
		return e
	}
	switch {
	case run.Signal != "" && run.killed():
		return run.fail(Crashed, "it was killed from outside (signal: "+run.Signal+"), as the system does when memory runs out", nil)
	case run.ExitCode == notRunnable || run.ExitCode == notFound || unloadable(uint32(run.ExitCode)):
		return run.fail(NotFound, fmt.Sprintf("it cannot be run (exit code %d); see fiducial doctor", run.ExitCode), nil)
	case run.ExitCode == 0 && out != "":
		if _, missing := os.Lstat(out); missing != nil {
			return run.fail(NoReport, noOutput, nil)
		}
	}
	return nil
}

// commandOf are the words of a command before its flags, for instance sch export netlist.
func commandOf(args []string) string {
	n := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") })
	if n < 0 {
		n = len(args)
	}
	return strings.Join(args[:n], " ")
}

// outputOf is what a command is told to write.
func outputOf(args []string) string {
	if i := slices.Index(args, "-o"); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

// exception names what ended a process on Windows by its exit code: there that is the number of an exception that nobody
// caught, an error of [MS-ERREF] 2.3. It is "" for any other code, and for that of a process that ended itself.
//
// [MS-ERREF]: https://learn.microsoft.com/openspecs/windows_protocols/ms-erref/596a1078-e883-4972-9bbc-49e60bebca55
func exception(code uint32) string {
	switch code {
	case 0xC0000005:
		return "access violation"
	case 0xC00000FD:
		return "stack overflow"
	case 0xC0000409:
		return "abort"
	case 0xFFFFFFFF: // -1
		return ""
	}
	if code>>28 == 0xC && !unloadable(code) {
		return fmt.Sprintf("exception 0x%08X", code)
	}
	return ""
}

// unloadable tells the exit codes of a program on Windows whose libraries are missing, are of another version or do not
// start: STATUS_DLL_NOT_FOUND, STATUS_ENTRYPOINT_NOT_FOUND, STATUS_DLL_INIT_FAILED.
func unloadable(code uint32) bool {
	return code == 0xC0000135 || code == 0xC0000139 || code == 0xC0000142
}
