// SPDX-License-Identifier: Apache-2.0

package sch

import (
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// A LabelKind tells what spells a net's name.
type LabelKind uint8

// The kinds.
const (
	Local        LabelKind = iota // (label ...): names a net within its sheet
	Global                        // (global_label ...): names a net of the whole design
	Hierarchical                  // (hierarchical_label ...): leads to the pin of the same name on the sheet's symbol
	SheetPin                      // (pin ...) of a sheet symbol
	// Power is the Value of a placed power symbol: it names a net of the whole design. In files of KiCad 7 and older
	// the name of the library symbol's pin does where it is hidden, and kicad-cli 9 reads them so; a rename then changes that pin in the
	// file's lib_symbols, for which a label without a Symbol stands, and the Values along with it.
	Power
)

var labelKinds = map[string]LabelKind{"label": Local, "global_label": Global, "hierarchical_label": Hierarchical}

// String names the kind in words.
func (k LabelKind) String() string {
	return [...]string{"local label", "global label", "hierarchical label", "sheet pin", "power symbol"}[k]
}

// A Label is a place where a net's name is spelled.
type Label struct {
	Kind   LabelKind
	File   *File
	Text   string     // as written, escapes of the file decoded
	Token  sexpr.Node // what an edit replaces
	UUID   string
	At     Point
	Sheet  *Sheet  // of a sheet pin, else nil
	Symbol *Symbol // of a placed power symbol, else nil
}

// Name is the text in plain spelling, see [Plain].
func (l *Label) Name() string { return Plain(l.Text) }

// Line is the line in the file, from 1.
func (l *Label) Line() int { return l.Token.Line() }

// wide reports whether the label names a net of the whole design.
func (l *Label) wide() bool { return l.Kind == Global || l.Kind == Power }

func (f *File) addLabel(kind LabelKind, item, token sexpr.Node) *Label {
	l := &Label{Kind: kind, File: f, Text: token.Text(), Token: token, UUID: item.Get("uuid").Arg(0).Text(), At: point(item.Get("at"))}
	f.Labels = append(f.Labels, l)
	return l
}

// editableValue is the format since which a power symbol's net is its Value: 2023-02-21, "modern power symbols", in
// KiCad 8. Measured with the same sheet under different stamps.
const editableValue = 20230221

// addPower adds the power symbols once the library is known. Their pin stands at the symbol's origin.
func (f *File) addPower() {
	pins := map[string]bool{}
	for _, s := range f.Symbols {
		lib, ok := s.Lib()
		value, has := s.Property("Value")
		if !ok || !lib.Power || !has {
			continue
		}
		text, old := value.Value, f.Version < editableValue && lib.pin.OK()
		if old {
			text = lib.pin.Text()
		}
		if old && !pins[lib.Name] {
			pins[lib.Name] = true
			f.Labels = append(f.Labels, &Label{Kind: Power, File: f, Text: text, Token: lib.pin, At: s.At})
		}
		f.Labels = append(f.Labels, &Label{Kind: Power, File: f, Text: text, Token: value.Text, UUID: s.UUID, At: s.At, Symbol: s})
	}
}

// KiCad's escapes in names, from its UnescapeString. In a net's name only the slash stays escaped, since it divides
// sheets there: a label SPI/CS of the root makes the net /SPI{slash}CS.
var unescape = strings.NewReplacer(
	"{slash}", "/", "{backslash}", `\`, "{lt}", "<", "{gt}", ">", "{dblquote}", `"`, "{quote}", "'", "{bar}", "|",
	"{comma}", ",", "{colon}", ":", "{space}", " ", "{dollar}", "$", "{tab}", "\t", "{return}", "\n", "{brace}", "{",
)

// Plain is a label's text in plain spelling, in which two labels of the same net are equal: SPI{slash}CS and SPI/CS
// are both SPI/CS. An overbar stays as it is written: ~{RESET}.
func Plain(text string) string { return unescape.Replace(text) }

// NetName is the name that KiCad gives the net of a label: with the sheet's path of names in front, "/" for the root,
// or "" for a global name, and with the slashes inside the label written {slash}.
func NetName(sheet, text string) string {
	return sheet + strings.ReplaceAll(Plain(text), "/", "{slash}")
}
