// SPDX-License-Identifier: Apache-2.0

package drawn

import (
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// text are the cases about bytes, strings, numbers and format stamps.
func text() []Case {
	latin := swap(divider(), `"4k7"`, "\"4k7 \xb1 5%\"")
	return []Case{
		{
			Name:  "escapes-in-values",
			Wrong: "Readers know \\\" at most; a line feed, a tab, a hex or octal escape or an unknown one comes out wrong.",
			Right: "KiCad's escapes are decoded: R1 is a line feed between two words, R2 a tab, R3 letters from hex and octal, R4 an unknown escape, whose backslash stays, R5 ends in a backslash.",
			Files: files{"p.kicad_sch": values(`"one\ntwo"`, `"a\tb"`, `"\x41\102c"`, `"\q\w"`, `"end\\"`), "p.kicad_pro": pro},
		},
		{
			Name:  "brackets-and-signs-in-names",
			Wrong: "Brackets, semicolons and number signs inside strings are taken for structure or comments.",
			Right: "All three names are plain text: the nets are /A(B, /C);D and /#E, two pins each.",
			Files: files{"p.kicad_sch": named("A(B", "C);D", "#E"), "p.kicad_pro": pro},
		},
		{
			Name:  "comments-and-blanks",
			Wrong: "A line that begins with # is data to a reader that does not know comments; every control character is taken for a blank.",
			Right: "Comment lines, a carriage return and a NUL between items change nothing. A form feed is a word, so that sheet does not load; nor does one with a comment behind an item.",
			Files: files{
				"p.kicad_sch": swap(divider(), "\t(paper \"A4\")\n", "# a comment with (a bracket\n\r\t(paper \"A4\")\n  # \"another\n"), "p.kicad_pro": pro,
				"feed.kicad_sch": swap(divider(), "\t(paper \"A4\")\n", "\t\f(paper \"A4\")\n"), "tail.kicad_sch": swap(divider(), "\t(paper \"A4\")\n", "\t(paper \"A4\") # tail\n"),
			},
		},
		{
			Name:  "semicolon-comment-and-merge-marks",
			Wrong: "A file with the marks of a merge conflict, or with a comment in Lisp's manner, is read as far as it goes.",
			Right: "Neither loads; the reason names the line.",
			Files: files{
				"marks.kicad_sch":     swap(divider(), "\t(paper \"A4\")\n", "<<<<<<< ours\n\t(paper \"A4\")\n=======\n\t(paper \"A3\")\n>>>>>>> theirs\n"),
				"semicolon.kicad_sch": swap(divider(), "\t(paper \"A4\")\n", "; the sheet\n\t(paper \"A4\")\n"),
			},
		},
		{
			Name:  "line-ends",
			Wrong: "Only one kind of line end is known; a file without a last one loses its last item.",
			Right: "Carriage returns alone, a mixture, and a missing last line end load with the same parts and nets.",
			Files: files{
				"cr.kicad_sch": strings.ReplaceAll(divider(), "\n", "\r"), "none.kicad_sch": strings.TrimRight(divider(), "\n"),
				"mixed.kicad_sch": strings.Replace(divider(), "\n", "\r\n", 40),
			},
		},
		{
			Name:  "utf16-without-mark-and-marks-elsewhere",
			Wrong: "Only a UTF-16 file with its mark is recognised.",
			Right: "UTF-16 of either order and without its mark does not load. A byte order mark inside a string is a letter; one in front of the board makes it fail as it does the sheet.",
			Files: files{
				"be.kicad_sch": "\xfe\xff" + utf16(divider(), true), "le-bare.kicad_sch": utf16(divider(), false),
				"inside.kicad_sch": swap(divider(), `"4k7"`, "\"\ufeff4k7\""), "mark.kicad_pcb": "\ufeff" + kicadtest.Board,
			},
		},
		{
			Name:  "latin-1-bytes",
			Wrong: "The file is refused or converted; or the value is believed to be what an editor shows.",
			Right: "kicad-cli reads the whole string as empty and says nothing: the value is empty. Our lint names the byte.",
			Files: files{"p.kicad_sch": latin, "p.kicad_pro": pro},
		},
		{
			Name:  "letters-from-everywhere",
			Wrong: "Names are cut between bytes, folded or normalised, so that two different spellings become one.",
			Right: "Letters of several bytes, an emoji, right-to-left text and a letter with a combining accent are kept as they are: /\u00c5 and /A\u030a are two nets.",
			Files: files{"p.kicad_sch": named("\u00c5", "A\u030a", "\U0001F50B+", "\u05d0\u05d1"), "p.kicad_pro": pro},
		},
		{
			Name:  "long-lines",
			Wrong: "A file on one line is refused, or an edit makes one that KiCad no longer reads.",
			Right: "999,000 bytes load, 1,000,100 do not, wherever the line is.",
			Files: files{
				"below.kicad_sch":  swap(divider(), "\t(paper", strings.Repeat(" ", 999_000-13)+"\t(paper"),
				"above.kicad_sch":  swap(divider(), "\t(paper", strings.Repeat(" ", 1_000_100)+"\t(paper"),
				"string.kicad_sch": swap(divider(), `"4k7"`, `"`+strings.Repeat("x", 1_000_100)+`"`),
			},
		},
		{
			Name:  "number-forms",
			Wrong: "Numbers with an exponent or no digit in front of the point are refused; a decimal comma is read as two numbers.",
			Right: "1.0668e2, .10668e3 and 106.68 are the same place, so the label names the net. A plus sign, a decimal comma and a word do not load.",
			Files: files{
				"exponent.kicad_sch": swap(divider(), "(label \"OUT\"\n\t\t(at 106.68 54.61 0)", "(label \"OUT\"\n\t\t(at 1.0668e2 54.610000000 0)"),
				"sign.kicad_sch":     swap(divider(), "(label \"OUT\"\n\t\t(at 106.68 54.61 0)", "(label \"OUT\"\n\t\t(at +106.68 54.61 0)"),
				"point.kicad_sch":    swap(divider(), "(label \"OUT\"\n\t\t(at 106.68 54.61 0)", "(label \"OUT\"\n\t\t(at .10668e3 54.61 -0)"),
				"comma.kicad_sch":    swap(divider(), "(label \"OUT\"\n\t\t(at 106.68 54.61 0)", "(label \"OUT\"\n\t\t(at 106,68 54.61 0)"),
				"word.kicad_pcb":     swap(kicadtest.Board, "(thickness 1.6)", "(thickness thin)"),
			},
		},
		{
			Name:  "format-stamps",
			Wrong: "Every stamp is believed; a sheet of the next KiCad is edited as if it were known.",
			Right: "A stamp one day beyond 20250114 (sheets) or 20241229 (boards) does not load, and our answer says that the format is newer. An older stamp loads. Without one, or with a word, it does not load.",
			Files: files{
				"newer.kicad_sch": swap(divider(), "20250114", "20250115"), "older.kicad_sch": swap(divider(), "20250114", "20231120"),
				"none.kicad_sch": swap(divider(), "\t(version 20250114)\n", ""), "word.kicad_sch": swap(divider(), "20250114", "nine"),
				"newer.kicad_pcb": swap(kicadtest.Board, "20241229", "20241230"), "far.kicad_pcb": swap(kicadtest.Board, "20241229", "20991231"),
				"older.kicad_pcb": swap(kicadtest.Board, "20241229", "20240108"),
			},
		},
		{
			Name:  "cut-off-and-empty",
			Wrong: "A file that ends early is repaired by adding brackets, an empty one is taken for a new design.",
			Right: "None loads.",
			Files: files{
				"half.kicad_sch": divider()[:3000], "empty.kicad_sch": "", "blank.kicad_sch": "\n\n", "json.kicad_sch": "{}\n",
				"board-inside.kicad_sch": kicadtest.Board, "sheet-inside.kicad_pcb": divider(), "open.kicad_pcb": strings.TrimSuffix(kicadtest.Board, ")\n"),
			},
		},
		{
			Name:  "open-quotes",
			Wrong: "A string that is not closed swallows the rest, and the reader goes on behind the next quote.",
			Right: "A quote inside a value, a line feed inside one and a missing closing quote do not load.",
			Files: files{
				"inner.kicad_sch": swap(divider(), `"4k7"`, `"4"k7"`), "feed.kicad_sch": swap(divider(), `"4k7"`, "\"4\nk7\""),
				"missing.kicad_sch": swap(divider(), `"4k7"`, `"4k7`),
			},
		},
		{
			Name:  "words-without-quotes",
			Wrong: "Only quoted values are known.",
			Right: "A value without quotes is read as it stands.",
			Files: files{"p.kicad_sch": swap(divider(), `"4k7"`, `4k7`), "p.kicad_pro": pro},
		},
		{
			Name:  "unknown-words",
			Wrong: "Unknown words are skipped, and the file is written back without them.",
			Right: "kicad-cli loads neither: the reason names the line.",
			Files: files{
				"item.kicad_sch": swap(divider(), "\t(paper", "\t(tesseract (at 1 1))\n\t(paper"),
				"item.kicad_pcb": swap(kicadtest.Board, "\t(segment\n", "\t(tesseract (at 1 1))\n\t(segment\n"),
			},
		},
		{
			Name:  "uuids",
			Wrong: "Parts are kept by UUID, so that one of two that share it disappears; a missing one is a crash.",
			Right: "A UUID that two symbols share, one that is no UUID, and one that is missing change neither parts nor nets.",
			Files: files{
				"shared.kicad_sch":  strings.ReplaceAll(divider(), kicadtest.UUID(4), kicadtest.UUID(2)),
				"invalid.kicad_sch": swap(divider(), kicadtest.UUID(2), "not-a-uuid"),
				"missing.kicad_sch": swap(divider(), fmt.Sprintf("\t\t(uuid %q)\n", kicadtest.UUID(2)), ""),
			},
		},
	}
}

// values is a sheet of resistors with values as they are to stand in the file.
func values(tokens ...string) string {
	s := kicadtest.NewSheet("p", 1)
	for i := range tokens {
		s.Resistor(fmt.Sprintf("R%d", i+1), fmt.Sprintf("VALUE%d", i), 20+float64(i)*6, 20)
	}
	text := s.String()
	for i, token := range tokens {
		text = swap(text, fmt.Sprintf("%q", fmt.Sprintf("VALUE%d", i)), token)
	}
	return text
}

// named is a sheet with a net of two pins for each local label.
func named(labels ...string) string {
	s := kicadtest.NewSheet("p", 1)
	for i, l := range labels {
		two(s, "label", l, fmt.Sprintf("R%d", 2*i+1), fmt.Sprintf("R%d", 2*i+2), 10+float64(i%4)*10, 20+float64(i/4)*10)
	}
	return s.String()
}

func utf16(s string, big bool) string {
	var b strings.Builder
	for _, r := range s {
		if big {
			b.WriteString(string([]byte{byte(r >> 8), byte(r)}))
		} else {
			b.WriteString(string([]byte{byte(r), byte(r >> 8)}))
		}
	}
	return b.String()
}
