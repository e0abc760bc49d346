// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Supplier is a shop whose page reads a bill of materials.
type Supplier string

// The suppliers.
const (
	JLCPCB  Supplier = "jlcpcb"  // assembles boards; https://jlcpcb.com/help/article/bill-of-materials-for-pcb-assembly
	DigiKey Supplier = "digikey" // its list manager lets one say what each column is
	Mouser  Supplier = "mouser"  // likewise
)

// ParseSupplier reads a name.
func ParseSupplier(name string) (Supplier, error) {
	s := Supplier(key(name))
	if !slices.Contains([]Supplier{JLCPCB, DigiKey, Mouser}, s) {
		return "", fmt.Errorf("there is no supplier %q", name)
	}
	return s, nil
}

// An Order is a bill of materials for a supplier.
type Order struct {
	Header []string
	Rows   [][]string
	Parts  int // in the rows, for one board
	// LeftOut are the parts that should be ordered and are not in Rows, for nobody has confirmed what to order. Skipped
	// are those that should not be ordered.
	LeftOut, Skipped []LeftOut
}

// A LeftOut is a part that is not in an order, and why.
type LeftOut struct {
	Ref    string `json:"ref"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

// JLCPCB takes at most so many references in a line, as of 2026
// (https://jlcpcb.com/help/article/advice-for-bom-and-cpl-files-preparation).
const maxRefs = 200

// NewOrder makes the bill of materials for so many boards.
func NewOrder(s Supplier, d *Design, documents []*Document, boards int) Order {
	o := Order{Header: map[Supplier][]string{
		JLCPCB:  {"Comment", "Designator", "Footprint", "JLCPCB Part #"},
		DigiKey: {"Digi-Key Part Number", "Manufacturer Part Number", "Manufacturer", "Quantity", "Customer Reference", "Description"},
		Mouser:  {"Mouser Part Number", "Manufacturer Part Number", "Manufacturer", "Quantity", "Customer Reference", "Description"},
	}[s]}
	listings := Listings(d, documents)
	var lines []*orderLine
	for _, p := range d.Parts {
		if why := skip(s, p); why != "" {
			o.Skipped = append(o.Skipped, LeftOut{p.Ref, p.Value, why})
			continue
		}
		l, why := order(s, d, p, listings[p.Ref])
		if why != "" {
			o.LeftOut = append(o.LeftOut, LeftOut{p.Ref, p.Value, why})
			continue
		}
		o.Parts++
		i := slices.IndexFunc(lines, func(x *orderLine) bool {
			return x.identity() == l.identity() && (s != JLCPCB || len(x.refs) < maxRefs)
		})
		if i < 0 {
			lines = append(lines, l)
			continue
		}
		lines[i].refs = append(lines[i].refs, p.Ref)
	}
	for _, l := range lines {
		o.Rows = append(o.Rows, l.row(s, boards))
	}
	return o
}

// skip says why a part is not to be ordered.
func skip(s Supplier, p Part) string {
	switch {
	case p.DNP:
		return "not fitted (DNP)"
	case p.NoBOM:
		return "excluded from the bill of materials"
	case p.NoBoard && s == JLCPCB:
		return "not on the board, so nothing to assemble"
	}
	return ""
}

// An orderLine is what is ordered for some parts.
type orderLine struct {
	refs                            []string
	value, footprint                string
	number, mpn, maker, description string // number is the supplier's own
}

func (l orderLine) identity() string {
	if l.number != "" {
		return "number " + strings.ToUpper(l.number) + " " + l.footprint
	}
	return "mpn " + strings.ToUpper(l.mpn) + " " + l.footprint
}

// order finds what to order for a part, or says why nobody knows.
func order(s Supplier, d *Design, p Part, rows []Listing) (l *orderLine, why string) {
	if len(d.byRef[p.Ref]) > 1 {
		return nil, "several parts share the reference; annotate the schematic first"
	}
	if letters(p.Ref) == p.Ref || strings.HasSuffix(p.Ref, "?") {
		return nil, "not annotated"
	}
	own := map[Supplier]column{JLCPCB: colLCSC, DigiKey: colDigiKey, Mouser: colMouser}[s]
	number, why := agreed(p, rows, titles[own])
	if why != "" {
		return nil, why
	}
	mpn, why := agreed(p, rows, titles[colMPN])
	if why != "" && number == "" {
		return nil, why
	}
	if number == "" && mpn == "" {
		need := "no MPN"
		if s == JLCPCB {
			need = "no LCSC part number and no MPN"
		}
		return nil, need + " in the schematic or the documents"
	}
	l = &orderLine{refs: []string{p.Ref}, value: p.Value, footprint: p.Footprint, number: number, mpn: mpn}
	l.maker, _ = agreed(p, rows, titles[colMaker])
	l.description, _ = agreed(p, rows, titles[colDescription])
	return l, ""
}

// agreed is what the symbol's fields say, else what the documents say, provided that they describe this part and agree.
func agreed(p Part, rows []Listing, fields []string) (text, why string) {
	if text = p.Field(fields...); Unverified(text) {
		return "", fmt.Sprintf("the field of the symbol says %s", text)
	}
	for _, row := range rows {
		says := row.Cell(fields...)
		place := fmt.Sprintf("%s:%d", row.Doc, row.Line)
		switch {
		case says == "":
			continue
		case Unverified(says):
			return "", fmt.Sprintf("%s says %s", place, says)
		case text != "" && !strings.EqualFold(text, says):
			return "", fmt.Sprintf("%s says %s, and there is also %s", place, says, text)
		case len(row.Wrong) > 0:
			return "", fmt.Sprintf("%s says %s, but it describes another part: %s %s instead of %s", place, says, row.Wrong[0].Kind, row.Wrong[0].Claim, row.Wrong[0].Actual)
		}
		text = says
	}
	return text, ""
}

func (l *orderLine) row(s Supplier, boards int) []string {
	quantity := strconv.Itoa(len(l.refs) * boards)
	if s == JLCPCB {
		comment := l.value
		if l.number == "" {
			comment = l.mpn // by which their page finds the part
		}
		return []string{comment, strings.Join(l.refs, ","), l.footprint[strings.Index(l.footprint, ":")+1:], l.number}
	}
	return []string{l.number, l.mpn, l.maker, quantity, strings.Join(l.refs, ","), l.description}
}
