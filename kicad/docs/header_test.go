// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

const controller = `
	U1 MCU T:QFN
	U2 LDO T:SOT
	R1 1k T:R
	VCC: U1.1=VDD U2.3=OUT
	/LED: U1.2=PA3/TXD R1.1
	/SPI{slash}CS: U1.3=PA4
	/MCU/SDA: U1.4=PB_5
	GND: U1.5=GND U2.1=GND R1.2
	unconnected-(U1-PA6-Pad6): U1.6=PA6
`

// A firmware's table of pins is compared as PINOUT.md is (B-110): only names that are nets, or pins that are none, differ.
func TestDriftOfHeader(t *testing.T) {
	d := design(t, controller)
	for name, c := range map[string]struct{ text, want string }{
		"in line": {
			"#ifndef PINS_H\n#define PINS_H\n#include <stdint.h>\n#define PIN_LED PA3 // the LED\n#define SPI_CS_PIN (PA4)\n" +
				"static constexpr uint8_t SDA = PIN_PB5;\nconst int PIN_TXD = PA3;\nenum {\n  PIN_UNUSED = PA6,\n};\n#define LED_PIN PIN_LED\n#define BAUD 9600\n#endif\n", "",
		},
		"swapped": {
			"#define PIN_LED PA4\n#define PIN_SPI_CS PA3\n#define PIN_SDA PB5\n",
			"pins.h:1: U1 pin 3 net: the document says PIN_LED PA4, the design says /SPI/CS; /LED is on pin 2 PA3/TXD\n" +
				"pins.h:2: U1 pin 2 net: the document says PIN_SPI_CS PA3, the design says /LED; /SPI/CS is on pin 3 PA4\n",
		},
		"by another name":      {"#define PIN_LED PA3\n#define CS LED2\n#define LED2 PIN_LED\n#define SDA_PIN LED2\n", "pins.h:4: U1 pin 2 net: the document says SDA_PIN PA3, the design says /LED; /MCU/SDA is on pin 4 PB_5\n"},
		"in a circle":          {"#define A B\n#define B A\n#define PIN_LED PA3\n", ""},
		"no such pin":          {"#define PIN_LED PA3\n#define PIN_SDA PC7\n", "pins.h:2: U1 pin PC7 gone: the document says PIN_SDA PC7, the design says no such pin\n"},
		"left open":            {"#define PIN_LED PA3\n#define PIN_SDA PA6\n", "pins.h:2: U1 pin 6 net: the document says PIN_SDA PA6, the design says NC; /MCU/SDA is on pin 4 PB_5\n"},
		"commented out":        {"/* #define PIN_LED PA4\n#define PIN_LED PA4 */\n// #define PIN_LED PA4\n#define PIN_LED PA3\n", ""},
		"numbers of pins":      {"#define PIN_LED 2\r\n#define PIN_SPI_CS 3\r\n#define PIN_SDA 5\r\n", "pins.h:3: U1 pin 5 net: the document says PIN_SDA 5, the design says GND; /MCU/SDA is on pin 4 PB_5\n"},
		"numbers of one's own": {"#define PIN_LED 13\n#define PIN_SPI_CS 1\n#define PIN_SDA 2\n", ""},
		"names of one's own":   {"#define PIN_LAMP PA3\n#define PIN_BUS_DATA PB5\n", ""},
		"nothing of pins":      {"#define WIDTH 3\n#define PIN_COUNT 100\n", ""},
		"empty":                {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			doc := read(t, "pins.h", c.text)
			r := docs.Drift(d, []*docs.Document{doc})
			if diff := cmp.Diff(c.want, lines(r.Mismatches)); diff != "" {
				t.Errorf("mismatches (-want +got)\n%s%s", diff, lines(r.Notes))
			}
			sound(t, d, doc)
			if edits := docs.Fix(d, doc); len(edits) > 0 {
				t.Errorf("a header would be rewritten: %v", edits)
			}
		})
	}
	r := docs.Drift(d, []*docs.Document{read(t, "pins.h", "#define PIN_LED PA3\n#define PIN_LAMP PA4\n")})
	if got := lines(r.Notes); r.Claims != 2 || got != "pins.h:2: U1 pin 3 net: the document says PIN_LAMP PA4, the design says /SPI/CS\n" {
		t.Errorf("%d claims, notes %q", r.Claims, got)
	}
}

// The numbers of an ESP32 or an RP2040 are those in the names of its pins, never those of the package.
func TestDriftOfHeader_GPIO(t *testing.T) {
	d := design(t, "U1 ESP32 T:M\n/LED: U1.2=IO4\n/SCK: U1.4=GPIO2/ADC1\n/SDA: U1.5=IO21\n")
	text := "#define LED_PIN 4\n#define SCK_PIN GPIO_NUM_2\nconstexpr gpio_num_t PIN_SDA = GPIO_NUM_21;\n"
	if r := docs.Drift(d, []*docs.Document{read(t, "firmware/board_pins.hpp", text)}); len(r.Mismatches)+len(r.Notes) > 0 || r.Claims != 3 {
		t.Errorf("%d claims\n%s%s", r.Claims, lines(r.Mismatches), lines(r.Notes))
	}
	r := docs.Drift(d, []*docs.Document{read(t, "pins.h", strings.ReplaceAll(text, " 4\n", " 2\n"))})
	if got := lines(r.Mismatches); got != "pins.h:1: U1 pin 4 net: the document says LED_PIN 2, the design says /SCK; /LED is on pin 2 IO4\n" {
		t.Errorf("got %q", got)
	}
}

// A header of pins is found in the docs folder, beside the project, and where firmware lies; another header is not.
func TestReadAll_Headers(t *testing.T) {
	file := func() *fstest.MapFile { return &fstest.MapFile{Data: []byte("#define PIN_LED PA3\n")} }
	fsys := fstest.MapFS{
		"hw/p.kicad_pro": file(), "hw/pins.h": file(), "hw/docs/PinOut.H": file(), "hw/firmware/include/board_pins.hpp": file(), "src/pin_config.h": file(),
		"src/main.h": file(), "src/spins.h": file(), "src/pins.c": file(), "other/pins.h": file(),
	}
	proj := &project.Project{Dir: "hw", Name: "p", Docs: "hw/docs"}
	all, problems, err := docs.ReadAll(fsys, proj, docs.Config{})
	if err != nil || len(problems) > 0 || !docs.Claims(all) {
		t.Fatal(problems, err)
	}
	var names []string
	for _, d := range all {
		names = append(names, d.Name)
	}
	if want := []string{"hw/docs/PinOut.H", "hw/firmware/include/board_pins.hpp", "hw/pins.h", "src/pin_config.h"}; !cmp.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	proj.Others = []string{"q"}
	if all, _, _ := docs.ReadAll(fsys, proj, docs.Config{}); len(all) != 1 {
		t.Errorf("of two projects: %d documents, want that of the docs folder alone", len(all))
	}
}
