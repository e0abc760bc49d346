// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/docs"
)

// tableState follows the tables of a document and knows what the columns of the
// one it is in are called.
type tableState struct {
	columns []string // in lower case; nil outside a table
}

var ruler = regexp.MustCompile(`^[\s|:-]+$`)

// see looks at the next line.
func (t *tableState) see(line string) {
	trimmed := strings.TrimSpace(line)
	switch {
	case !strings.HasPrefix(trimmed, "|"):
		t.columns = nil
	case t.columns == nil:
		for _, c := range cells(trimmed) {
			t.columns = append(t.columns, strings.ToLower(strings.TrimSpace(c)))
		}
	}
}

// cells are what stands between the bars of a table's line.
func cells(line string) []string {
	line = strings.TrimRight(line, "\r\n ")
	return strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|"), "|")
}

var (
	refColumns   = []string{"refdes", "ref", "refs", "reference", "references", "designator", "designators"}
	countColumns = []string{"qty", "quantity", "count"}
	netColumns   = []string{"net", "nets", "net name", "signal", "signals"}
)

func (t *tableState) column(names ...string) int {
	return slices.IndexFunc(t.columns, func(c string) bool { return slices.Contains(names, c) })
}

// setCell sets the value or footprint of a part in a line of a bill of materials.
// A line that stands for several parts is parted: they no longer are the same. In the columns that leaves tells of
// the part's number is marked UNVERIFIED.
func (t *tableState) setCell(line, ref, field, text string, leaves func(column string) bool) string {
	refs, at := t.column(refColumns...), t.column(strings.ToLower(field))
	if refs < 0 || at < 0 || ruler.MatchString(line) {
		return line
	}
	row := cells(line)
	if len(row) != len(t.columns) {
		return line
	}
	list := splitRefs(row[refs])
	i := slices.Index(list, ref)
	if i < 0 || strings.TrimSpace(row[at]) == text {
		return line
	}
	end := line[len(strings.TrimRight(line, "\r\n")):]
	own := slices.Clone(row)
	own[at] = refill(row[at], text)
	for n, c := range t.columns {
		if number := strings.TrimSpace(row[n]); n != at && strings.Trim(number, "~-–—") != "" && !docs.Unverified(number) && leaves(c) {
			own[n] = refill(row[n], number+" (UNVERIFIED)")
		}
	}
	if len(list) == 1 {
		return join(own) + end
	}
	rest := slices.Delete(slices.Clone(list), i, i+1)
	row[refs], own[refs] = refill(row[refs], strings.Join(rest, ", ")), refill(row[refs], ref)
	if n := t.column(countColumns...); n >= 0 {
		row[n], own[n] = refill(row[n], strconv.Itoa(len(rest))), refill(row[n], "1")
	}
	if end == "" {
		end = "\n"
		return join(row) + end + join(own)
	}
	return join(row) + end + join(own) + end
}

// inColumns changes the cells of the named columns in a line of a table.
func (t *tableState) inColumns(line string, names []string, change func(cell string) string) string {
	row := cells(line)
	if ruler.MatchString(line) || len(row) != len(t.columns) {
		return line
	}
	changed := false
	for i, c := range t.columns {
		if !slices.Contains(names, c) {
			continue
		}
		text := strings.TrimSpace(row[i])
		if now := change(text); now != text {
			row[i], changed = refill(row[i], now), true
		}
	}
	if !changed {
		return line
	}
	body := strings.TrimRight(line, "\r\n")
	return strings.TrimSuffix(body, strings.TrimLeft(body, " \t")) + join(row) + line[len(body):]
}

func splitRefs(cell string) []string {
	return strings.FieldsFunc(cell, func(r rune) bool { return r == ',' || r == ' ' || r == ';' })
}

func join(row []string) string { return "|" + strings.Join(row, "|") + "|" }
