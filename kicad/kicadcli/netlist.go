// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// A Netlist is what kicad-cli says is connected. It holds parts that are not fitted or excluded from the BOM, but not
// those excluded from the board, nor power symbols.
type Netlist struct {
	Nets  []Net
	Parts []Part
	// Sheets are the instances of the sheet tree that were loaded, by path of names: "/", "/A/".
	Sheets []string
}

// A Net is one net. Its name is KiCad's: "/OUT" for a label of the root sheet, "/A/OUT" in sheet A, "GND" for a global
// one, with a slash inside a label written {slash}.
type Net struct {
	Name  string
	Class string // as KiCad writes it, "Default" for none
	Pins  []Pin  // sorted by reference and pin
}

// A Pin is one end of a net.
type Pin struct {
	Ref      string
	Number   string
	Function string // the pin's name, may be empty
	Type     string // for instance passive, power_in, passive+no_connect
}

// String is "R1.2".
func (p Pin) String() string { return p.Ref + "." + p.Number }

// A Part is one part of the netlist.
type Part struct {
	Ref, Value, Footprint string
	LibID                 string
	Sheet                 string // path of names, "/" for the root
	Properties            map[string]string
}

// Net returns the net with exactly that name.
func (n *Netlist) Net(name string) (Net, bool) {
	for _, net := range n.Nets {
		if net.Name == name {
			return net, true
		}
	}
	return Net{}, false
}

// Netlist loads a schematic and returns what is connected. The error is NotLoaded when kicad-cli complains.
func (r *Runner) Netlist(ctx context.Context, in Input) (*Netlist, error) {
	p, err := r.Probe(ctx, in)
	if err != nil {
		return nil, err
	}
	if p.Crashed {
		return nil, p.fail(Crashed, "kicad-cli died by signal: "+p.Signal, nil)
	}
	if p.Netlist == nil && p.Loads {
		return nil, &Error{Kind: BadInput, Detail: "a board has no netlist of its own; name the schematic"}
	}
	if p.Netlist == nil {
		return nil, p.fail(NotLoaded, p.Summary(), nil)
	}
	return p.Netlist, nil
}

// ReadNetlist parses a netlist in KiCad's own format (kicadsexpr, version E).
func ReadNetlist(data []byte) (*Netlist, error) {
	doc, err := sexpr.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("the netlist cannot be read: %w", err)
	}
	root := doc.Root()
	if !root.Is("export") {
		return nil, errors.New("the netlist cannot be read: it is no (export ...)")
	}
	n := &Netlist{}
	for s := range root.Get("design").Lists("sheet") {
		n.Sheets = append(n.Sheets, s.Get("name").Arg(0).Text())
	}
	for c := range root.Get("components").Lists("comp") {
		n.Parts = append(n.Parts, readPart(c))
	}
	for l := range root.Get("nets").Lists("net") {
		net := Net{Name: l.Get("name").Arg(0).Text(), Class: l.Get("class").Arg(0).Text()}
		for p := range l.Lists("node") {
			net.Pins = append(net.Pins, Pin{
				Ref: p.Get("ref").Arg(0).Text(), Number: p.Get("pin").Arg(0).Text(),
				Function: p.Get("pinfunction").Arg(0).Text(), Type: p.Get("pintype").Arg(0).Text(),
			})
		}
		slices.SortFunc(net.Pins, func(a, b Pin) int { return cmp.Or(cmp.Compare(a.Ref, b.Ref), cmp.Compare(a.Number, b.Number)) })
		n.Nets = append(n.Nets, net)
	}
	return n, nil
}

func readPart(c sexpr.Node) Part {
	lib := c.Get("libsource")
	p := Part{
		Ref: c.Get("ref").Arg(0).Text(), Value: c.Get("value").Arg(0).Text(), Footprint: c.Get("footprint").Arg(0).Text(),
		LibID: lib.Get("lib").Arg(0).Text() + ":" + lib.Get("part").Arg(0).Text(),
		Sheet: c.Get("sheetpath", "names").Arg(0).Text(), Properties: map[string]string{},
	}
	for q := range c.Lists("property") {
		p.Properties[q.Get("name").Arg(0).Text()] = q.Get("value").Arg(0).Text()
	}
	return p
}
