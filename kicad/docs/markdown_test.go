// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/docs"
)

// Byte ranges are those of the cells, whatever stands around the table (cases 06 and 23).
func TestReadDocument(t *testing.T) {
	text := "\ufeff# Parts\r\n\r\n| Refdes | MPN |\r\n|:------:|-----|\r\n| R1 | a\\|b `x` |\r\n R2 | **bold** [link](http://x) |\r\n\r\n" +
		"Legend: DNP | not fitted\r\n\r\n```\r\n| Refdes | Value |\r\n|---|---|\r\n| R99 | 1M |\r\n```\r\n\r\n<!--\r\n| Refdes | Value |\r\n|---|---|\r\n-->\r\n"
	d := read(t, "x.md", text)
	if len(d.Tables) != 1 {
		t.Fatalf("%d tables, want 1: no fenced one, no comment, no line without a ruler", len(d.Tables))
	}
	tab := d.Tables[0]
	if tab.Heading != "Parts" {
		t.Errorf("heading %q", tab.Heading)
	}
	var got [][]string
	for _, r := range tab.Rows {
		var row []string
		for _, c := range r.Cells {
			row = append(row, c.Text)
			if raw := strings.Trim(string(d.Src[c.Start:c.End]), " "); raw != c.Raw {
				t.Errorf("the range of %q holds %q", c.Raw, raw)
			}
		}
		got = append(got, row)
	}
	if diff := cmp.Diff([][]string{{"R1", "a|b x"}, {"R2", "bold link"}}, got); diff != "" {
		t.Errorf("cells (-want +got)\n%s", diff)
	}
	if tab.Rows[1].Line != 6 {
		t.Errorf("line %d, want 6", tab.Rows[1].Line)
	}
	for _, bad := range []string{"\xff\xfea\x00", "a\x00b"} {
		if _, err := docs.ReadDocument("x.md", []byte(bad)); err == nil || !strings.Contains(err.Error(), "save it as UTF-8") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseRefs(t *testing.T) {
	known := func(ref string) bool { return strings.Contains(" U1 R1 R2 R3 R4 R5 J_IN ", " "+ref+" ") }
	for _, c := range []struct{ cell, refs, bad string }{
		{"R1, R2,R3", "R1 R2 R3", ""},
		{"R1 R2", "R1 R2", ""},
		{"R1-R3", "R1 R2 R3", ""},
		{"R1–R3; R5", "R1 R2 R3 R5", ""},
		{"R1 - R3", "R1 R2 R3", ""},
		{"R1-3", "R1 R2 R3", ""},
		{"R1 to R2", "R1 R2", ""},
		{"R1..R2", "R1 R2", ""},
		{"U1A, U1B", "U1", ""},
		{"r1", "R1", ""},
		{"J_IN", "J_IN", ""},
		{"R1 (top)", "R1", ""},
		{"R9", "R9", ""},
		{"PCB", "", ""},
		{"-", "", ""},
		{"", "", ""},
		{"R4-C8", "", "R4-C8"},
		{"R8-R4", "", "R8-R4"},
		{"R1, 12x", "R1", "12x"},
	} {
		refs, bad := docs.ParseRefs(c.cell, known)
		if got, wrong := strings.Join(refs, " "), strings.Join(bad, " "); got != c.refs || wrong != c.bad {
			t.Errorf("ParseRefs(%q) = %q, %q, want %q, %q", c.cell, got, wrong, c.refs, c.bad)
		}
	}
}

// Values as engineers mean them.
func TestSameValue(t *testing.T) {
	for _, c := range []struct {
		doc, design string
		same        bool
	}{
		{"4k7", "4.7k", true},
		{"4k7", "4.7 kOhm", true},
		{"4.7kΩ", "4K7", true},
		{"4.7k\u2126", "4700", true},
		{"4,7k", "4k7", true},
		{"4k7", "47k", false},
		{"100n", "0.1uF", true},
		{"0.1 µF", "100nF", true},
		{"0.1\u03bcF", "100nF", true},
		{"100nF", "100nH", false},
		{"1M", "1m", false},
		{"1Meg", "1M", true},
		{"0R22", "220m", true},
		{"R10", "0.1", true},
		{"0", "0R", true},
		{"1 k", "1k", true},
		{"1u0", "1uF", true},
		{"4k7 1%", "4k7", true},
		{"4k7 1%", "4.7k 5%", false},
		{"10uF/16V", "10u 16 V X7R", true},
		{"10uF 16V", "10uF 25V", false},
		{"16MHz", "16 MHz", true},
		{"ATtiny412-SS", "attiny412-ss", true},
		{"ATtiny412-SS (8-bit)", "ATtiny412-SS", true},
		{"1N4148", "1N4148", true},
		{"1N4148", "1N4149", false},
		{"1k DNP", "1k", true},
		{"1k (DNP)", "1k", true},
		{"", "~", true},
		{"-", "", true},
		{"", "1k", false},
		{"POWER", "PWR", false},
		{"10k", "POWER", false},
	} {
		if got := docs.SameValue(c.doc, c.design); got != c.same {
			t.Errorf("SameValue(%q, %q) = %v", c.doc, c.design, got)
		}
	}
}

func TestSameFootprint(t *testing.T) {
	const r = "Resistor_SMD:R_0603_1608Metric"
	for _, c := range []struct {
		doc, design string
		same        bool
	}{
		{r, r, true},
		{"R_0603_1608Metric", r, true},
		{"0603", r, true},
		{"0805", r, false},
		{"Capacitor_SMD:R_0603_1608Metric", r, false},
		{"SOT-23", "Package_TO_SOT_SMD:SOT-23", true},
		{"SOIC-8", "Package_SO:SOIC-8_3.9x4.9mm_P1.27mm", true},
		{"SOIC-8", "Package_SO:SOIC-16_3.9x9.9mm", false},
		{"R", r, true},
	} {
		if got := docs.SameFootprint(c.doc, c.design); got != c.same {
			t.Errorf("SameFootprint(%q, %q) = %v", c.doc, c.design, got)
		}
	}
}

func TestQuantity(t *testing.T) {
	for text, want := range map[string]string{
		"33uA": "33 uA", "25 µA": "25 uA", "4k7": "4.7 k", "0R22": "220 mOhm", "1.5 mA": "1.5 mA", "-5 V": "-5 V", "5%": "5 %", "0": "0", "100n": "100 n",
	} {
		q, ok := docs.ParseQuantity(text)
		if !ok || q.String() != want {
			t.Errorf("ParseQuantity(%q) = %v, %v, want %q", text, q, ok, want)
		}
	}
	for _, text := range []string{"", "BC847", "USB_C", "1N4148", "12:00", "3.3.3"} {
		if q, ok := docs.ParseQuantity(text); ok {
			t.Errorf("ParseQuantity(%q) = %v", text, q)
		}
	}
}
