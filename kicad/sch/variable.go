// SPDX-License-Identifier: Apache-2.0

package sch

import (
	"encoding/json"
	"path"
	"strings"
)

// TextVariables are the text variables of a project file (.kicad_pro), by name; none when it cannot be read, as KiCad
// passes such a file over.
func TextVariables(pro []byte) map[string]string {
	var settings struct {
		Variables map[string]string `json:"text_variables"`
	}
	if json.Unmarshal(pro, &settings) != nil {
		return nil
	}
	return settings.Variables
}

// maxNesting is how deep fields may stand for fields.
const maxNesting = 10

// Resolve puts the text variables in a field of a part in, as kicad-cli does in netlists and bills of materials: the
// part's own fields (in any letter case, and with the variables in them), its flags and symbol, its sheet and title
// block, and those of the project, see [TextVariables]. Unknown ones, those of another part, dates of today and page
// numbers stay as written. Measured on kicad-cli 9.0.8.
func (p Part) Resolve(text string, project map[string]string) string {
	return p.resolve(text, project, maxNesting)
}

func (p Part) resolve(text string, project map[string]string, depth int) string {
	if depth == 0 || !strings.Contains(text, "${") {
		return text
	}
	var b strings.Builder
	for {
		head, rest, found := strings.Cut(text, "${")
		b.WriteString(head)
		if !found {
			return b.String()
		}
		name, tail, closed := strings.Cut(rest, "}")
		if !closed { // KiCad drops the mark alone
			name, tail = "", rest
		}
		text = tail
		if field, ok := p.field(name); ok {
			b.WriteString(p.resolve(field, project, depth-1))
		} else if value, ok := p.variable(name, project); ok {
			b.WriteString(value)
		} else {
			b.WriteString("${" + name + "}")
		}
	}
}

// field is the part's own field of that name, in any letter case.
func (p Part) field(name string) (string, bool) {
	if strings.EqualFold(name, "Reference") {
		return p.Ref, true
	}
	for _, f := range p.Units[0].Symbol.Properties {
		if strings.EqualFold(f.Name, name) {
			return f.Value, true
		}
	}
	return "", false
}

// variable is what any other name stands for.
func (p Part) variable(name string, project map[string]string) (string, bool) {
	mark := func(on bool, text string) (string, bool) {
		if !on {
			text = ""
		}
		return text, true
	}
	first := p.Units[0]
	library, symbol, _ := strings.Cut(p.LibID, ":")
	switch name {
	case "":
		return "", true
	case "DNP":
		return mark(p.DNP, "DNP")
	case "EXCLUDE_FROM_BOM":
		return mark(p.NoBOM, "Excluded from BOM")
	case "EXCLUDE_FROM_BOARD":
		return mark(p.NoBoard, "Excluded from board")
	case "SYMBOL_LIBRARY":
		return library, true
	case "SYMBOL_NAME":
		return symbol, true
	case "SHEETPATH":
		return first.Sheet.Name, true
	case "SHEETNAME":
		if first.Sheet.Sheet == nil {
			return "", true
		}
		return first.Sheet.Sheet.Name, true
	case "SHEETFILE", "FILENAME":
		return path.Base(first.Sheet.File.Name), true
	}
	if text, ok := first.Sheet.File.title(name); ok {
		return p.resolve(text, project, 1), true
	}
	value, known := project[name]
	return value, known
}

// title is what the sheet's title block says.
func (f *File) title(name string) (string, bool) {
	block := f.Doc.Root().Get("title_block")
	if tag, ok := map[string]string{"TITLE": "title", "ISSUE_DATE": "date", "REVISION": "rev", "COMPANY": "company"}[name]; ok {
		return block.Get(tag).Arg(0).Text(), true
	}
	number, ok := strings.CutPrefix(name, "COMMENT")
	if !ok || len(number) != 1 || number < "1" || number > "9" {
		return "", false
	}
	for c := range block.Lists("comment") {
		if c.Arg(0).Text() == number {
			return c.Arg(1).Text(), true
		}
	}
	return "", true
}
