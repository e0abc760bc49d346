// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// names finds nets by what documents call them.
type names struct {
	plain map[string][]string // by the whole name in plain spelling
	tail  map[string][]string // by what stands behind a slash between sheets: MCU/BUTTON and BUTTON for /MCU/BUTTON
}

func newNames(nets []kicadcli.Net) names {
	n := names{plain: map[string][]string{}, tail: map[string][]string{}}
	for _, net := range nets {
		whole := sch.Plain(net.Name)
		n.plain[whole] = append(n.plain[whole], net.Name)
		for i := range net.Name {
			if net.Name[i] == '/' {
				tail := sch.Plain(net.Name[i+1:])
				n.tail[tail] = append(n.tail[tail], net.Name)
			}
		}
	}
	return n
}

var openBar = regexp.MustCompile(`~([^{}~\s]+)`)

// find gives the nets that a name may mean: those of exactly that name, else those of which it is the end, without the
// path of sheets before it. ~NAME is ~{NAME}.
func (n names) find(claim string) []string {
	for _, text := range []string{sch.Plain(claim), sch.Plain(openBar.ReplaceAllString(claim, "~{$1}"))} {
		if found := n.plain[text]; len(found) > 0 {
			return found
		}
		if found := n.tail[text]; len(found) > 0 {
			return found
		}
	}
	return nil
}

// saysOpen reports whether a document says that nothing is connected to a pin, unless the words name its net.
func saysOpen(claim string) bool {
	switch key(claim) {
	case "", "nc", "noconnect", "notconnected", "unconnected", "open", "none", "notused", "unused":
		return true
	}
	return strings.HasPrefix(claim, "unconnected-(")
}

// strange reports whether a claim has neither letters and digits nor dashes alone, which would say that a pin is open.
func strange(claim string) bool { return key(claim) == "" && strings.Trim(claim, "-–— ") != "" }

// claimed is how a claim about a pin's net ended.
type claimed struct {
	ok    bool
	other []string // the further nets that an ambiguous name may mean
}

// check compares the claims, spellings of one cell, with the net of a pin.
func (d *Design) checkNet(pin Pin, claims ...string) claimed {
	var others []string
	for _, claim := range claims {
		found := d.names.find(claim) // also of /NC, and of a name without letters, which says open elsewhere
		if pin.Open() && saysOpen(claim) && (len(found) == 0 || !strange(claim)) && (!strings.HasPrefix(claim, "unconnected-(") || claim == pin.Net) {
			return claimed{ok: true}
		}
		if claim == "" || !slices.Contains(found, pin.Net) {
			continue
		}
		if len(found) == 1 {
			return claimed{ok: true}
		}
		for _, f := range found {
			if f != pin.Net && !slices.Contains(others, f) {
				others = append(others, f)
			}
		}
	}
	return claimed{other: others}
}

// spell is a net's name for a document: NC for an open pin, else the name in plain spelling; short leaves the path of
// sheets out where that is clear.
func (d *Design) spell(net string, short bool) string {
	if (Pin{Net: net}).Open() {
		return "NC"
	}
	if short {
		if i := strings.LastIndexByte(net, '/'); i >= 0 {
			tail := sch.Plain(net[i+1:])
			if found := d.names.find(tail); len(found) == 1 && !saysOpen(tail) {
				return tail
			}
		}
	}
	text := sch.Plain(net)
	if found := d.names.find(text); len(found) != 1 {
		return net // {slash} tells it from another
	}
	return text
}

// IsNet reports whether a name is that of a pin's net, as a document may spell it: OUT for /OUT while there is no other
// OUT, SPI/CS for SPI{slash}CS, NC for a pin left open.
func (d *Design) IsNet(pin Pin, name string) bool { return d.checkNet(pin, name).ok }

// MayBeNet reports whether a name may mean a pin's net: [Design.IsNet], or one of several that it fits.
func (d *Design) MayBeNet(pin Pin, name string) bool {
	res := d.checkNet(pin, name)
	return res.ok || len(res.other) > 0
}

var rail = regexp.MustCompile(`^[+]?V?([0-9]+)(?:[Vv.]([0-9]+))?[Vv]?$`)

// SimilarRails lists pairs of nets that differ in nothing but how a voltage is spelled, such as +3.3V and +3V3: two
// nets for KiCad, and as a rule one for whoever drew them.
func (d *Design) SimilarRails() [][2]string {
	first := map[string]string{}
	var pairs [][2]string
	for _, n := range d.Nets {
		m := rail.FindStringSubmatch(n.Name)
		if m == nil || !strings.ContainsAny(n.Name, "vV+") {
			continue
		}
		volts := m[1] + "." + strings.TrimRight(m[2], "0")
		if was, ok := first[volts]; ok {
			pairs = append(pairs, [2]string{was, n.Name})
			continue
		}
		first[volts] = n.Name
	}
	return pairs
}
