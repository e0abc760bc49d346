// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

var headerName = regexp.MustCompile(`(?i)^(?:.*[_-])?(?:pins?|pinout|pinmap|pin[_-]?config)(?:[_-].*)?\.(?:h|hh|hpp)$`)

// IsHeader reports whether a file is, by its name, a firmware's table of pins: pins.h, board_pins.h, pin_config.hpp.
func IsHeader(name string) bool { return headerName.MatchString(path.Base(name)) }

// headerFolders are where such files lie as a rule, relative to the project and to the repository.
var headerFolders = []string{".", "firmware", "firmware/include", "firmware/src", "include", "src"}

// headers finds the tables of pins of a project's firmware. Of projects that share a folder nobody can tell whose they are.
func headers(fsys fs.FS, proj *project.Project) (files []string) {
	if len(proj.Others) > 0 {
		return nil
	}
	for _, top := range []string{proj.Dir, "."} {
		for _, folder := range headerFolders {
			entries, err := fs.ReadDir(fsys, path.Join(top, folder))
			if err != nil {
				continue // there is none, as a rule
			}
			for _, e := range entries {
				if !e.IsDir() && IsHeader(e.Name()) {
					files = append(files, path.Join(top, folder, e.Name()))
				}
			}
		}
	}
	return files
}

// A define is a name of a header with what it stands for: #define PIN_LED PA3, constexpr int PIN_LED = 3;, PIN_LED = 3,.
type define struct {
	line        int
	name, value string
}

var (
	comment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	defines = []*regexp.Regexp{
		regexp.MustCompile(`^\s*#\s*define\s+([A-Za-z_]\w*)\s+\(?\s*([\w.:]+?)\s*\)?\s*$`),
		regexp.MustCompile(`^\s*(?:(?:static|inline|extern)\s+)*(?:constexpr|const)\s+(?:[\w:]+\s+)+([A-Za-z_]\w*)\s*[={]\s*([\w.:]+)\s*\}?\s*;`),
		regexp.MustCompile(`^\s*([A-Za-z_]\w*)\s*=\s*([\w.:]+)\s*,?\s*$`),
	}
)

// readHeader finds the names of a header. One that stands for another has that one's value.
func readHeader(src []byte) (all []define) {
	text := comment.ReplaceAllStringFunc(string(src), func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
	values := map[string]string{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		for _, form := range defines {
			if m := form.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
				all = append(all, define{n, m[1], m[2]})
				values[m[1]] = m[2]
				break
			}
		}
	}
	for i := range all {
		for range 8 { // in a circle, at the worst
			next, ok := values[all[i].value]
			if !ok {
				break
			}
			all[i].value = next
		}
	}
	return all
}

// affix is what names of pins have around that of the net.
var affix = regexp.MustCompile(`(?i)^(?:PIN_NUM_|GPIO_NUM_|PIN_|GPIO_|kPin)|(?:_PIN_NUM|_PIN|_GPIO|_IO)$`)

// nets are those that a name of a header may mean: PIN_SPI_CS is SPI/CS, and LED_PIN is /LED.
func (c *checker) headerNets(name string) (nets []string) {
	for _, text := range []string{name, affix.ReplaceAllString(name, "")} {
		want := key(text)
		if want == "" {
			continue
		}
		for _, n := range c.d.Nets {
			if !slices.Contains(nets, n.Name) && slices.ContainsFunc(tails(n.Name), func(t string) bool { return key(t) == want }) {
				nets = append(nets, n.Name)
			}
		}
		if len(nets) > 0 {
			return nets
		}
	}
	return nil
}

// tails are the names that a net may be called by, without the path of sheets.
func tails(net string) []string {
	all := []string{sch.Plain(net)}
	for i := range net {
		if net[i] == '/' {
			all = append(all, sch.Plain(net[i+1:]))
		}
	}
	return all
}

var (
	pinPrefix = regexp.MustCompile(`(?i)^(?:GPIO_NUM_|PIN_)`)
	gpio      = regexp.MustCompile(`(?i)^(?:GPIO|IO|GP)_?([0-9]{1,3})$`)
	port      = regexp.MustCompile(`(?i)^(?:P[A-K]_?[0-9]{1,2}|P[0-9][._][0-9]{1,2}|(?:GPIO|IO|GP)_?[0-9]{1,3})$`)
	whole     = regexp.MustCompile(`^[0-9]{1,3}$`)
)

// spellings of a pin's name, without marks: PA3/SDA is PA3 and SDA, and IO21 is GPIO21.
func spellings(name string) (all []string) {
	for _, part := range append(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("/()[], ", r) }), name) {
		if m := gpio.FindStringSubmatch(part); m != nil {
			part = "gpio" + m[1]
		}
		all = append(all, key(part))
	}
	return all
}

// headerPin finds the pin of a part that a value means, by its name, or for a bare number by that of the GPIO, and where
// the part has no such names by the number of the pin.
func headerPin(p Part, value string) (pin Pin, byNumber, ok bool) {
	value = pinPrefix.ReplaceAllString(value, "")
	number := whole.MatchString(value)
	if n, err := strconv.Atoi(value); number && err == nil {
		value = fmt.Sprintf("GPIO%d", n)
	}
	want := spellings(value)
	gpios := false
	for _, x := range p.Pins {
		for _, s := range spellings(x.Name) {
			if slices.Contains(want, s) {
				return x, false, true
			}
			gpios = gpios || strings.HasPrefix(s, "gpio")
		}
	}
	if number && !gpios {
		i := slices.IndexFunc(p.Pins, func(x Pin) bool { return "GPIO"+x.Number == value })
		if i >= 0 {
			return p.Pins[i], true, true
		}
	}
	return Pin{}, false, false
}

// header compares a firmware's table of pins with the part that it is about: the one that has most of the pins.
func (c *checker) header() {
	claims := slices.DeleteFunc(slices.Clone(c.doc.defines), func(x define) bool {
		value := pinPrefix.ReplaceAllString(x.value, "")
		return !port.MatchString(value) && (!whole.MatchString(value) || !affix.MatchString(x.name) && value == x.value)
	})
	p, ok := c.controller(claims)
	if !ok {
		if len(claims) > 0 {
			c.note(Mismatch{Kind: Unreadable, Line: claims[0].line, Claim: fmt.Sprintf("%d names of pins", len(claims)), Actual: "no part has these pins, so nothing is compared"})
		}
		return
	}
	numbered, right := 0, 0 // numbers that may be those of the pins
	for _, x := range claims {
		if pin, byNumber, ok := headerPin(p, x.value); ok && byNumber {
			if numbered++; slices.Contains(c.headerNets(x.name), pin.Net) {
				right++
			}
		}
	}
	for _, x := range claims {
		c.define(p, x, 2*right >= numbered)
	}
}

// controller is the part whose pins on the nets of their names are the most, and then that with the most of the pins.
func (c *checker) controller(claims []define) (best Part, ok bool) {
	most, of := 0, 0
	for _, p := range c.d.Parts {
		has, agree := 0, 0
		for _, x := range claims {
			pin, byNumber, found := headerPin(p, x.value)
			if !found {
				continue
			}
			on := slices.Contains(c.headerNets(x.name), pin.Net)
			if on {
				agree++
			}
			if on || !byNumber {
				has++
			}
		}
		if n := 2*agree + has; n > most || n == most && n > 0 && len(p.Pins) > of {
			best, most, of = p, n, len(p.Pins)
		}
	}
	return best, most > 0
}

// define compares one name. A name that is no net's may be the author's own, so it is worth a look and no mismatch.
func (c *checker) define(p Part, x define, numbers bool) {
	pin, byNumber, found := headerPin(p, x.value)
	nets := c.headerNets(x.name)
	m := Mismatch{Kind: Net, Line: x.line, Ref: p.Ref, Pin: pin.Number, Claim: x.name + " " + x.value}
	switch {
	case !found && whole.MatchString(pinPrefix.ReplaceAllString(x.value, "")), byNumber && !numbers:
		m.Kind, m.Pin, m.Actual = Unreadable, "", "no pin that can be told from the number; it is not compared"
		c.note(m)
		return
	case !found:
		c.report.Claims++
		m.Kind, m.Pin, m.Actual = Gone, x.value, "no such pin"
		c.add(m)
		return
	}
	c.report.Claims++
	if slices.Contains(nets, pin.Net) || pin.Open() && saysOpen(affix.ReplaceAllString(x.name, "")) {
		return
	}
	m.Actual = c.d.spell(pin.Net, false)
	if len(nets) == 0 {
		c.note(m)
		return
	}
	for _, other := range p.Pins {
		if slices.Contains(nets, other.Net) {
			m.Actual += fmt.Sprintf("; %s is on pin %s", c.d.spell(other.Net, false), strings.TrimSpace(other.Number+" "+other.Name))
			break
		}
	}
	c.add(m)
}
