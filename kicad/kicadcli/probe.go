// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// A Probe tells whether kicad-cli loads a file.
type Probe struct {
	Run
	// Loads is true when kicad-cli took the file without a complaint. Child sheets are not covered: kicad-cli skips
	// broken ones in silence, so probe each file of the sheet tree.
	Loads bool
	// Crashed is true when kicad-cli died instead of answering.
	Crashed bool
	// Annotation is true when kicad-cli warns of missing or duplicate reference designators, its only sign of them.
	Annotation bool
	// Problems are the complaints that make Loads false.
	Problems []string
	// Notices are messages about fonts, locks and libraries, which say nothing about the file.
	Notices []string
	// Netlist is what a schematic's probe exported, nil for a board.
	Netlist *Netlist
}

// Summary says in a line what the probe found.
func (p Probe) Summary() string {
	switch {
	case p.Crashed:
		return "kicad-cli crashed: " + p.Signal
	case !p.Loads:
		return "kicad-cli does not load it: " + strings.Join(p.Problems, "; ")
	case p.Annotation:
		return "kicad-cli loads it and warns of annotation errors (missing or duplicate references)"
	}
	return "kicad-cli loads it"
}

// Probe asks kicad-cli to load a .kicad_sch or .kicad_pcb. A file that does not load is a result, not an error.
// Errors: Timeout, BadOutput, BadInput, Environment, NotFound, and the end of ctx.
func (r *Runner) Probe(ctx context.Context, in Input) (Probe, error) {
	v, err := r.open(in)
	if err != nil {
		return Probe{}, err
	}
	defer v.close()
	return r.probe(ctx, v)
}

func (r *Runner) probe(ctx context.Context, v *view) (Probe, error) {
	out := v.out("probe.out")
	args := []string{"pcb", "export", "pos", "-o", out, v.file}
	if kindOf(v.file) == Schematic {
		args = []string{"sch", "export", "netlist", "-o", out, v.file}
	}
	run, err := r.exec(ctx, v, v.limit(perMB), args...)
	p := Probe{Run: run, Crashed: run.Signal != ""}
	if err != nil {
		return p, err
	}
	p.sort(run.Stderr)
	p.Annotation = strings.Contains(run.Stdout, "schematic has annotation errors")
	_, missing := os.Lstat(out)
	switch {
	case p.Crashed:
		p.Problems = append(p.Problems, "kicad-cli died by signal: "+run.Signal)
	case run.ExitCode != 0 && len(p.Problems) == 0:
		p.Problems = append(p.Problems, strings.TrimSpace(fmt.Sprintf("exit code %d %s", run.ExitCode, run.Stdout)))
	case run.ExitCode == 0 && missing != nil:
		p.Problems = append(p.Problems, "kicad-cli left no output")
	case kindOf(v.file) == Schematic && run.ExitCode == 0:
		if err := p.netlist(out); err != nil {
			return p, r.unread(p.fail(BadOutput, err.Error(), err), args...)
		}
	}
	p.Loads = len(p.Problems) == 0
	return p, nil
}

func (p *Probe) netlist(file string) error {
	data, err := readOutput(file, maxReport)
	if err == nil {
		p.Netlist, err = ReadNetlist(data)
	}
	return err
}

// harmless are the messages on stderr that come with a file that loads. The notice about legacy zone fills has two lines
// (kicad-cli 9.0.8). The last message is two first runs at a time that make the same folder.
var harmless = regexp.MustCompile(`Font '.*' not found; substituting|Legacy zone fill strategy is not supported anymore|` +
	`^Zone fills will be converted on best-effort basis|` +
	`can't open file '.*\.lib'|Got an error trying to lock|Failed to inspect the lock file|Error loading the symbol library table|` +
	`Error loading .*footprint libraries|project footprint libraries|Fontconfig error|` +
	`Directory '.*' couldn't be created \(error 17`)

// sort takes stderr apart. A message may span lines; those that follow a harmless one and start in lower case
// (file:, line:) belong to it.
func (p *Probe) sort(stderr string) {
	for line := range strings.Lines(stderr) {
		fresh := clock.MatchString(line)
		line = strings.TrimSpace(clock.ReplaceAllString(line, ""))
		switch {
		case line == "":
		case harmless.MatchString(line):
			p.Notices = append(p.Notices, line)
		case !fresh && len(p.Problems) > 0 && continues.MatchString(line):
			p.Problems[len(p.Problems)-1] += " " + line
		default:
			p.Problems = append(p.Problems, line)
		}
	}
}

var continues = regexp.MustCompile(`^(file|line|offset)\b`)
