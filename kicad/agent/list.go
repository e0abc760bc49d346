// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/tool"
)

type listInput struct {
	Filter string `json:"filter,omitempty" jsonschema:"only entries that contain this text"`
}

// listSymbols lists the parts as kicad-cli counts them, with where they stand.
func (b *Bench) listSymbols(_ context.Context, in listInput) (tool.Output, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	d, err := b.design()
	if err != nil {
		return notYet(err)
	}
	variables := b.variables()
	var lines []string
	for _, p := range d.Parts() {
		line := fmt.Sprintf("%s | %s | %s | %s%s | %s", orTilde(p.Ref), shown(p, p.Value, variables), shown(p, p.Footprint, variables), p.LibID, flags(p), places(p))
		if strings.Contains(line, in.Filter) {
			lines = append(lines, line)
		}
	}
	sum := []string{fmt.Sprintf("%d parts (reference | value | footprint | symbol | file:line)", len(lines))}
	for _, p := range d.Problems {
		sum = append(sum, "problem: "+p.String())
	}
	return tool.Output{Summary: strings.Join(sum, "\n"), Content: strings.Join(lines, "\n")}, nil
}

// variables are the project's text variables.
func (b *Bench) variables() map[string]string {
	if b.project.Pro == "" {
		return nil
	}
	data, err := b.read(b.project.Pro)
	if err != nil {
		return nil // KiCad goes without them
	}
	return sch.TextVariables(data)
}

// shown is a field in one line: with its text variables put in, and as it is written where that differs.
func shown(p sch.Part, text string, variables map[string]string) string {
	s := orTilde(breaks.Replace(p.Resolve(text, variables)))
	if strings.Contains(text, "${") {
		s += " (written " + breaks.Replace(text) + ")"
	}
	return s
}

// breaks shows what would end a line.
var breaks = strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`)

func orTilde(s string) string {
	if s == "" {
		return "~"
	}
	return s
}

func flags(p sch.Part) string {
	var f []string
	if p.DNP {
		f = append(f, "DNP")
	}
	if p.NoBOM {
		f = append(f, "not in BOM")
	}
	if p.NoBoard {
		f = append(f, "not on board")
	}
	if len(f) == 0 {
		return ""
	}
	return " (" + strings.Join(f, ", ") + ")"
}

func places(p sch.Part) string {
	var at []string
	for _, u := range p.Units {
		line, _ := u.Symbol.File.Doc.Position(u.Symbol.Node.Start())
		if place := fmt.Sprintf("%s:%d", u.Symbol.File.Name, line); !slices.Contains(at, place) {
			at = append(at, place)
		}
	}
	return strings.Join(at, " ")
}

// listNets lists the nets of kicad-cli's netlist with their pins and the places
// that spell their names.
func (b *Bench) listNets(ctx context.Context, in listInput) (tool.Output, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	d, err := b.design()
	if err != nil {
		return notYet(err)
	}
	list, err := b.nets(ctx)
	if err != nil {
		return tool.Output{}, tool.Errorf(tool.Failed, "the netlist cannot be had: %w", err)
	}
	var lines []string
	for _, n := range list.Nets {
		line := fmt.Sprintf("%s | %s | %s", n.Name, pinList(n.Pins), spelled(d, n.Name))
		if strings.Contains(n.Name, in.Filter) {
			lines = append(lines, line)
		}
	}
	return tool.Output{
		Summary: fmt.Sprintf("%d nets (name | pins | where the name is spelled)", len(lines)),
		Content: strings.Join(lines, "\n"),
	}, nil
}

func notYet(err error) (tool.Output, error) {
	if err == errNoSheet { //nolint:errorlint // it is never wrapped
		return tool.Output{Summary: err.Error()}, nil
	}
	return tool.Output{}, tool.Errorf(tool.Failed, "%w", err)
}

func pinList(pins []kicadcli.Pin) string {
	if len(pins) == 0 {
		return "no pins"
	}
	s := make([]string, len(pins))
	for i, p := range pins {
		s[i] = p.String()
	}
	return strings.Join(s, " ")
}

func spelled(d *sch.Design, net string) string {
	var at []string
	for _, g := range d.Groups(sch.Plain(net[strings.LastIndex(net, "/")+1:])) {
		if !slices.Contains(g.Nets, net) {
			continue
		}
		for _, l := range g.Labels {
			at = append(at, fmt.Sprintf("%s:%d (%s)", l.File.Name, l.Line(), l.Kind))
		}
	}
	switch {
	case len(at) == 0 && strings.Contains(net, "-("): // Net-(R1-Pad1), unconnected-(U1-A-Pad2)
		return "nowhere; KiCad made the name up"
	case len(at) == 0:
		return "by no label as it stands: by a text variable, a bus or a hidden power pin"
	}
	return strings.Join(at, ", ")
}

// find is the net of that name: as KiCad spells it, else in plain spelling, else the one
// net that has the name without the path of its sheet.
func find(list *kicadcli.Netlist, name string) (kicadcli.Net, error) {
	if n, ok := list.Net(name); ok {
		return n, nil
	}
	var found []kicadcli.Net
	bare := strings.ReplaceAll(sch.Plain(name), "/", "{slash}")
	for _, n := range list.Nets {
		if sch.Plain(n.Name) == sch.Plain(name) || n.Name[strings.LastIndex(n.Name, "/")+1:] == bare {
			found = append(found, n)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	var names []string
	for _, n := range list.Nets {
		if len(found) == 0 && len(names) < 10 && strings.Contains(strings.ToLower(n.Name), strings.ToLower(bare)) {
			names = append(names, n.Name)
		}
	}
	for _, n := range found {
		names = append(names, n.Name)
	}
	switch {
	case len(found) > 1:
		return kicadcli.Net{}, tool.Errorf(tool.Failed, "several nets are called %q: %s", name, strings.Join(names, ", "))
	case len(names) > 0:
		return kicadcli.Net{}, tool.Errorf(tool.Failed, "there is no net %q; there are %s. list_nets lists all", name, strings.Join(names, ", "))
	}
	return kicadcli.Net{}, tool.Errorf(tool.Failed, "there is no net %q; list_nets lists them", name)
}

type netInput struct {
	Net string `json:"net" jsonschema:"the net as list_nets spells it, or its name without the sheet when one net has it"`
}

type pinsInput struct {
	Reference string `json:"reference" jsonschema:"reference designator, for example U1"`
}

// pinsOf tells what is on each pin of a part.
func (b *Bench) pinsOf(ctx context.Context, in pinsInput) (string, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	list, err := b.nets(ctx)
	if err != nil {
		return "", tool.Errorf(tool.Failed, "the netlist cannot be had: %w", err)
	}
	var lines []string
	for _, n := range list.Nets {
		for _, p := range n.Pins {
			if p.Ref == in.Reference {
				lines = append(lines, fmt.Sprintf("%s %s (%s): %s", p.Number, p.Function, p.Type, n.Name))
			}
		}
	}
	if len(lines) == 0 {
		return "", b.noPins(in.Reference)
	}
	slices.SortFunc(lines, sch.CompareRefs)
	return strings.Join(lines, "\n"), nil
}

// noPins is why a reference has no pin in the netlist.
func (b *Bench) noPins(ref string) error {
	if d, err := b.design(); err == nil {
		switch p, err := d.Find(ref); {
		case err == nil && p.NoBoard:
			return tool.Errorf(tool.Failed, "%s is excluded from the board, and kicad-cli's netlist leaves such parts out", ref)
		case err == nil:
			return tool.Errorf(tool.Failed, "%s is placed, and kicad-cli's netlist has no pin of it: it has none, or its library symbol is not in the file", ref)
		default:
			return tool.Errorf(tool.Failed, "%s; list_symbols lists the parts", strings.TrimPrefix(err.Error(), "sch: "))
		}
	}
	return tool.Errorf(tool.Failed, "no part %q has a pin in the netlist; list_symbols lists the parts", ref)
}

// netOf tells what a net connects.
func (b *Bench) netOf(ctx context.Context, in netInput) (string, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	d, err := b.design()
	if err != nil {
		return "", tool.Errorf(tool.Failed, "%w", err)
	}
	list, err := b.nets(ctx)
	if err != nil {
		return "", tool.Errorf(tool.Failed, "the netlist cannot be had: %w", err)
	}
	n, err := find(list, in.Net)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s | %s | %s", n.Name, pinList(n.Pins), spelled(d, n.Name)), nil
}
