// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// A column is what a column of a table is about.
type column uint8

const (
	colRef column = iota + 1
	colQty
	colValue
	colFootprint
	colMPN
	colMaker
	colDNP
	colFitted
	colNote
	colDescription
	colPin
	colName
	colNet
	colLCSC
	colDigiKey
	colMouser
	colVariant
)

// titles are the headers that are understood, in lower case and without marks.
var titles = map[column][]string{
	colRef:         {"refdes", "ref", "refs", "reference", "references", "designator", "designators", "refdesignator", "referencedesignator"},
	colQty:         {"qty", "quantity", "count", "amount", "pcs", "qtyperboard"},
	colValue:       {"value", "val", "partvalue"},
	colFootprint:   {"footprint", "package", "kicadfootprint", "case"},
	colMPN:         {"mpn", "mfrpn", "mfgpn", "mfrpart", "mfrpartno", "mfrpartnumber", "manufacturerpn", "manufacturerpart", "manufacturerpartno", "manufacturerpartnumber", "partnumber", "partno", "orderingcode", "ordercode"},
	colMaker:       {"manufacturer", "mfr", "mfg", "maker", "vendor"},
	colDNP:         {"dnp", "dnf", "dni", "donotpopulate", "donotfit"},
	colFitted:      {"fitted", "populate", "populated", "mount", "mounted", "fit"},
	colNote:        {"note", "notes", "remark", "remarks", "comment", "comments", "status", "use"},
	colDescription: {"description", "desc", "function", "purpose"},
	colPin:         {"pin", "pins", "pinno", "pinnumber", "pinnum", "pad", "pads", "padno"},
	colName:        {"name", "pinname"},
	colNet:         {"net", "nets", "netname", "signalnet", "netlabel", "connectedto"},
	colLCSC:        {"lcsc", "lcscpart", "lcscpn", "lcscpartnumber", "lcscpartno", "jlcpcbpart", "jlcpcb", "jlcpcbpartnumber", "jlcpart"},
	colDigiKey:     {"digikey", "dk", "dkpn", "dkpart", "dkpartnumber", "digikeypart", "digikeypn", "digikeypartnumber", "digikeypartno"},
	colVariant:     {"variant", "variants", "assemblyvariant", "option", "population"},
	colMouser:      {"mouser", "mouserpart", "mouserpn", "mouserpartnumber", "mouserpartno"},
}

// numberColumns are those that say what to order.
var numberColumns = []column{colMPN, colLCSC, colDigiKey, colMouser}

// NumberOf reports whether a field or a column of that name says what to order, and whose number it is: "mpn" for the
// manufacturer's, else "lcsc", "digikey" or "mouser". [NewOrder] reads these.
func NumberOf(name string) (whose string, ok bool) {
	for _, c := range numberColumns {
		if slices.Contains(titles[c], key(name)) {
			return titles[c][0], true
		}
	}
	return "", false
}

var notWord = regexp.MustCompile(`[^\p{L}\p{N}]+`)

// key is a header or the name of a field as it is compared.
func key(s string) string { return notWord.ReplaceAllString(strings.ToLower(s), "") }

// columnsOf tells the columns of a header row. Of two columns that mean the same the first counts.
func columnsOf(header Row) map[column]int {
	cols := map[column]int{}
	for i, c := range header.Cells {
		k := key(c.Text)
		for col, names := range titles {
			if _, taken := cols[col]; !taken && slices.Contains(names, k) {
				cols[col] = i
			}
		}
	}
	return cols
}

func (t *Table) has(cols ...column) bool {
	return slices.ContainsFunc(cols, func(c column) bool { _, ok := t.cols[c]; return ok })
}

// parts reports whether the table lists parts, pins whether it lists pins.
func (t *Table) parts() bool {
	if !t.has(colRef) || t.has(colPin) {
		return false
	}
	title := key(t.Header.Cells[t.cols[colRef]].Text)
	if strings.HasPrefix(title, "refdes") || strings.HasPrefix(title, "designator") {
		return t.has(colValue, colFootprint, colMPN, colQty, colDNP, colFitted, colDescription, colNote, colMaker)
	}
	return t.has(colValue, colFootprint, colMPN, colQty, colDNP, colFitted)
}

func (t *Table) pins() bool { return t.has(colPin) && t.has(colNet, colName) }

// bom reports whether the document is the bill of materials, which must have every part: BOM.md.
func (d *Document) bom() bool { return strings.EqualFold(d.stem(), "bom") }

// share reports whether the document is a bill of materials among others, such as BOM-connectors.md: together they must
// have every part, where there is no BOM.md.
func (d *Document) share() bool {
	stem := strings.ToLower(d.stem())
	return len(stem) > 3 && strings.HasPrefix(stem, "bom") && (stem[3] < 'a' || stem[3] > 'z') &&
		slices.ContainsFunc(d.Tables, (*Table).parts)
}

func (d *Document) stem() string { return strings.TrimSuffix(path.Base(d.Name), path.Ext(d.Name)) }

// History reports whether a document tells what was, so that it is compared with nothing and never rewritten.
func History(name string) bool {
	return slices.Contains([]string{"changelog.md", "decisions.md", "history.md"}, strings.ToLower(path.Base(name)))
}

var notFitted = regexp.MustCompile(`(?i)(^|[^\p{L}\p{N}])(dnp|dnf|dni|do not (?:populate|fit|place|install|mount)|not (?:fitted|populated|placed|mounted)|no[- ]?(?:pop|stuff)|unpopulated)($|[^\p{L}\p{N}])`)

// saysNotFitted reports whether a text says that a part is left off the board.
func saysNotFitted(text string) bool {
	if !strings.ContainsAny(text, "dDnNuU") {
		return false // most cells; the expression is slow
	}
	low := strings.ToLower(text)
	for _, begin := range []string{"dn", "do not", "not ", "no", "unpop"} {
		if strings.Contains(low, begin) {
			return notFitted.MatchString(text)
		}
	}
	return false
}

var variantHeading = regexp.MustCompile(`(?i)\bvariants?\b`)

// ours are the headings that init writes, of which one part is a name from the design.
var ours = regexp.MustCompile(`^(?:.*: (?:bill of materials|pinout|subsystems|layout)|Sheet /.*)$`)

// about is the table's heading as far as people wrote it: the name of a project or a sheet says nothing of its parts.
func (t *Table) about() string {
	if ours.MatchString(t.Heading) {
		return ""
	}
	return t.Heading
}

// variant names the assembly variant that a row is about, by a column or the heading; "" for all of them.
func (t *Table) variant(row *Row) string {
	if text := cleanValue(row.cell(t, colVariant).Text); text != "" {
		return text
	}
	if !t.has(colVariant) && variantHeading.MatchString(t.about()) {
		return t.Heading
	}
	return ""
}

// yes tells whether a cell of a column of marks is ticked.
func yes(text string) bool {
	return slices.Contains([]string{"x", "y", "yes", "true", "1", "dnp", "dnf", "dni", "✓", "✔", "☑", "✗", "✘"}, strings.ToLower(text))
}

func no(text string) bool {
	return slices.Contains([]string{"n", "no", "false", "0", "-", "–", "dnp", "dnf", "dni", "✗", "✘", "☐"}, strings.ToLower(text))
}
