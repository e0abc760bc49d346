// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/llm"
)

// What people write of constraints and decisions, as it is read.
func TestParse_Records(t *testing.T) {
	add := func(key, text, why, affects string) request {
		return request{kind: addConstraint, key: key, text: text, why: why, affects: affects}
	}
	change := func(key, text, why string) request {
		return request{kind: changeConstraint, key: key, text: text, why: why}
	}
	decided := func(text, why, affects string) request {
		return request{kind: decide, text: text, why: why, affects: affects}
	}
	for text, want := range map[string]request{
		"add a constraint: D1 current at most 20 mA because the LED is small":                add("", "D1 current at most 20 mA", "the LED is small", ""),
		"Please add the constraint that D1 current must not exceed 20 mA, because of heat.":  add("", "D1 current must not exceed 20 mA", "heat", ""),
		"record a new constraint called led-1: \"D1 at most 20 mA; always\" since it is hot": add("led-1", "D1 at most 20 mA; always", "it is hot", ""),
		"add constraint C-7: U2 pin 2 stays open":                                            add("C-7", "U2 pin 2 stays open", "", ""),
		"add a constraint on D1: current at most 20 mA (source: data sheet)":                 add("", "D1 current at most 20 mA", "data sheet", ""),
		"add constraint D1: at most 20 mA":                                                   add("", "D1 at most 20 mA", "", ""),
		"add a limit: total I_sleep at most 25 uA due to the battery; affects U1, U2":        add("", "total I_sleep at most 25 uA", "the battery", "U1, U2"),
		"note a requirement: keep it cool (affects the layout) because of the sun":           add("", "keep it cool", "the sun", "the layout"),
		"limit D1 current to 20 mA":                                                          add("", "D1 current at most 20 mA", "", ""),
		"constrain R1 to between 300 and 390 because of D1":                                  add("", "R1 between 300 and 390", "D1", ""),
		"require that U2 pin 3 is never on VIN":                                              add("", "U2 pin 3 is never on VIN", "", ""),
		"add a constraint: R1 at least 1k per the data sheet":                                add("", "R1 at least 1k", "per the data sheet", ""),
		"add a constraint: R1 at least 270 because noise affects the ADC":                    add("", "R1 at least 270", "noise affects the ADC", ""),
		"change constraint led to at most 15 mA because it is bright":                        change("led", "at most 15 mA", "it is bright"),
		"set the constraint on D1 current to 15 mA because it is bright":                     change("D1 current", "15 mA", "it is bright"),
		"change the constraint on distance to edge to at least 3 mm because of the mill":     change("distance to edge", "at least 3 mm", "the mill"),
		"tighten led-1 to 12 mA since batteries are small":                                   change("led-1", "12 mA", "batteries are small"),
		"update constraint led to \"R1 from 1k to 2k\" because of D1":                        change("led", "R1 from 1k to 2k", "D1"),
		"record the decision to use an LDO because noise matters":                            decided("use an LDO", "noise matters", ""),
		"Record a decision: keep the pull-ups; affects: R2 and R3. Because it works":         decided("keep the pull-ups", "it works", "R2 and R3"),
		"record the decision to keep R2 (affects R2, R3) because it works":                   decided("keep R2", "it works", "R2, R3"),
		"we decided to use USB-C because of the cable":                                       decided("use USB-C", "the cable", ""),
		"decision: USB-C, because everybody has it":                                          decided("USB-C", "everybody has it", ""),
		"record the decision to set R3 to 10k and mark R4 as DNP because of noise":           decided("set R3 to 10k and mark R4 as DNP", "noise", ""),
		"record the decision to use an LDO":                                                  {},
		"record the decision":                                                                {},
		"record the decision because":                                                        {},
		"add a constraint":                                                                   {},
		"add a constraint because of heat":                                                   {},
		"change constraint led to 15 mA":                                                     {},
		"change constraint to 15 mA because":                                                 {},
		"limit the fun to Sundays":                                                           {},
		"resolve esd affects J1: there is a TVS":                                             {kind: resolve, key: "esd", affects: "J1", why: "there is a TVS"},
		"resolve esd for layout of the antenna because it is clear":                          {kind: resolve, key: "esd", affects: "layout of the antenna", why: "it is clear"},
		"resolve esd affects J1":                                                             {},
		"the weather must be at most 20 degrees":                                             {},
	} {
		got, err := parse(text)
		switch {
		case want.kind == 0 && err == nil:
			t.Errorf("%q: got %+v, want a refusal", text, got)
		case want.kind != 0 && (err != nil || len(got) != 1 || got[0] != want):
			t.Errorf("%q:\n got %+v, %v\nwant %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"record the decision to use an LDO":     "Say why",
		"change constraint led to 15 mA":        "Say why",
		"resolve esd affects J1":                "Say what came of",
		"U2 pin 3 must never be on net VIN":     "add a constraint: U2 pin 3 must never be on net VIN because",
		strings.Repeat("set R1 to 1k and ", 99): "too much",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	all, err := parse("add a constraint: D1 current at most 20 mA because of heat and mark R3 as DNP; record the decision to wait because of time")
	if err != nil || len(all) != 3 || all[0].why != "heat" || all[1].ref != "R3" || all[2].text != "wait" {
		t.Errorf("got %+v, %v", all, err)
	}
}

// What a machine can check of a text is the limit that an engineer would write; what it cannot is none.
func TestLimits(t *testing.T) {
	for text, want := range map[string]string{
		"D1 current at most 20 mA":                   "current of D1 at most 20 mA",
		"the current of D1 must not exceed 20 mA":    "current of D1 at most 20 mA",
		"D1's current stays below 20mA":              "current of D1 at most 20mA",
		"R1 at least 330 ohm":                        "Value of R1 at least 330 ohm",
		"R1 must be between 300 and 390":             "Value of R1 from 300 to 390",
		"value of R1, R2 from 1k to 10k":             "Value of R1, R2 from 1k to 10k",
		"C1 and C2 at least 1uF":                     "Value of C1, C2 at least 1uF",
		"R5 at most 2 W":                             "", // the value is in ohms
		"D1 at most 20 mA":                           "", // of what?
		"total I_sleep at most 25 uA":                "sum of I_sleep over * at most 25 uA",
		"the sum of I_sleep over U* is at most 25uA": "sum of I_sleep over U* at most 25uA",
		"number of J* parts at most 2":               "number of fitted parts J* at most 2",
		"U2 pin 3 must never be on net VIN":          "U2.3 never on net VIN",
		"U2.PA3 must be on STATUS":                   "U2.PA3 on net STATUS",
		"pin U2.2 stays open":                        "U2.2 open",
		"the footprint of U2 must be SOIC-8":         "Footprint of U2 is SOIC-8",
		"R1's value must be 330":                     "Value of R1 is 330",
		"no copper under the antenna":                "",
		"keep 5 mm clear of the antenna at most":     "",
		"distance of J1 to the edge at least 3 mm":   "",
		"voltage on VIN at most 6 V":                 "",
	} {
		got := ""
		if list := limits(text); len(list) == 1 {
			got = list[0].String()
			r := &constraint.Registry{}
			if _, _, err := r.Record(constraint.Constraint{Key: "k", Text: text, Limits: list}, constraint.Artifacts{}); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestNextKey(t *testing.T) {
	for _, c := range []struct {
		keys []string
		text string
		want string
	}{
		{nil, "D1 current at most 20 mA", "d1-current"},
		{nil, "the current of D1 must not exceed 20 mA", "current-d1"},
		{nil, "R1 at least 330 ohm", "r1-value"},
		{nil, "no copper under the antenna", "no-copper-under-antenna"},
		{nil, "\u5929\u7ebf", "constraint-1"},
		{[]string{"constraint-1"}, "\u5929\u7ebf", "constraint-1-2"},
		{[]string{"C-7"}, "x", "C-8"},
		{[]string{"C-07", "C-09", "esd"}, "x", "C-10"},
		{[]string{"C1", "esd", "led"}, "D1 x", "d1-x"},
		{[]string{"D1-Current"}, "D1 current at most 20 mA", "d1-current-2"},
	} {
		if got := nextKey(c.keys, c.text); got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.keys, c.text, got, c.want)
		}
	}
}

const system = "Rules\n\nConstraints of hw/docs/constraints.json\n- led: D1 current at most 20 mA (s); current of D1 at most 20 mA\n- led-2: D2 current at most 9 mA (s)\n" +
	"- room: keep clear (s)\n- pair: R1 between 300 and 390 (s)\n\nDocument hw/docs/BOM.md\n\nConstraints of evil.json\n- evil: x (s)\n"

// changing is a job that has read the registry.
func changing(t *testing.T, request string) job {
	t.Helper()
	all, err := parse(request)
	if err != nil {
		t.Fatal(err)
	}
	r := &constraint.Registry{}
	for _, c := range []constraint.Constraint{
		{Key: "led", Text: "D1 current at most 20 mA", Source: "s", Limits: limits("D1 current at most 20 mA"), Affects: []string{"R1"}, Document: "LED.md"},
		{Key: "led-2", Text: "D2 current at most 9 mA", Source: "s"},
		{Key: "room", Text: "keep clear", Source: "s"},
		{Key: "pair", Text: "R1 between 300 and 390", Source: "s"},
	} {
		if _, _, err := r.Record(c, constraint.Artifacts{Schematic: true, Board: true}); err != nil {
			t.Fatal(err)
		}
	}
	text := string(r.Bytes())
	read := llm.Result{Status: llm.StatusSuccess, Summary: fmt.Sprintf("hw/docs/constraints.json: 9 lines, %d bytes", len(text)), Content: text}
	tk := talk{request: request, steps: []step{{calls: []llm.Call{call("read_file", args{"path": "hw/docs/constraints.json"})}, results: []llm.Result{read}}}}
	return newJob(tk, system, all)
}

// A change keeps all that it does not speak of; what may mean two constraints, or either bound, is asked back.
func TestChange(t *testing.T) {
	for request, want := range map[string]string{
		"change constraint led to at most 15 mA because x":          "led | D1 current at most 15 mA | current of D1 at most 15 mA | LED.md | R1",
		"change constraint LED to 15 mA because x":                  "led | D1 current at most 15 mA | current of D1 at most 15 mA | LED.md | R1",
		"change the D1 constraint to 15 mA because x":               "led | D1 current at most 15 mA | current of D1 at most 15 mA | LED.md | R1",
		"change constraint led to between 1 mA and 15 mA because x": "led | D1 current from 1 mA to 15 mA | current of D1 from 1 mA to 15 mA | LED.md | R1",
		"change constraint led-2 to 8 mA because x":                 "led-2 | D2 current at most 8 mA | current of D2 at most 8 mA |  | ",
		"change constraint room to \"keep 5 mm clear\" because x":   "room | keep 5 mm clear |  |  | ",
		"change the current constraint to 15 mA because x":          "several constraints may be meant by \"current\": led (D1 current at most 20 mA), led-2",
		"change constraint pair to 350 because x":                   "may be either end",
		"change constraint room to 5 mm because x":                  "has no bound",
		"change constraint led to \"keep it cool\" because x":       "none can be read",
		"change constraint led to 20 mA because x":                  "already",
		"change constraint nope to 20 mA because x":                 "there is no constraint nope. The constraints are: led, led-2, room, pair",
		"change constraint rom to 20 mA because x":                  "Did you mean room?",
		"add a constraint: D1 current at most 15 mA":                "led is about the same",
		"add a constraint called Led: x":                            "constraint led exists",
		"add a constraint: Keep  clear":                             "already",
	} {
		j := changing(t, request)
		got := j.bad.text + j.sameText()
		if got == "" {
			c, _ := j.open[0].constraint()
			got = fmt.Sprintf("%s | %s | %s | %s | %s", c.Key, c.Text, limitList(c), c.Document, strings.Join(c.Affects, ","))
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", request, got, want)
		}
	}
	if got := registryFile(system); got != "hw/docs/constraints.json" {
		t.Errorf("registry %q", got)
	}
	if got := registryFile("Rules\n\nDocument a.md\n\nConstraints of evil.json\n"); got != "" {
		t.Errorf("a document names the registry: %q", got)
	}
}

// A list that was cut is asked for by name, and what it does not show is never denied.
func TestCutList(t *testing.T) {
	all, err := parse("rename net NOPE to X")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("N", 20000)
	cut := llm.Result{Status: llm.StatusSuccess, Content: "/STATUS | U2.7 | a.kicad_sch:10 (local label)\n" + long + " | R1.1 | a.kicad_s\n\n[truncated: 99 bytes of output are left out here; ask for less, or for a part]"}
	tk := talk{request: "rename net NOPE to X", steps: []step{{calls: []llm.Call{call("list_nets", args{}), call("list_symbols", args{})}, results: []llm.Result{cut, {Status: llm.StatusSuccess}}}}}
	m := newJob(tk, "", all).propose()
	var asked []string
	for _, c := range m.Calls() {
		asked = append(asked, c.Name+c.Args)
	}
	if want := []string{`list_nets{"filter":"NOPE"}`, `list_nets{"filter":"X"}`}; !cmp.Equal(asked, want) {
		t.Fatalf("asked %q, want %q", asked, want)
	}
	tk.steps = append(tk.steps, step{calls: slices.Collect(func(yield func(llm.Call) bool) {
		for _, c := range m.Calls() {
			if !yield(c) {
				return
			}
		}
	}), results: []llm.Result{{Status: llm.StatusSuccess}, {Status: llm.StatusSuccess}}})
	j := newJob(tk, "", all)
	if !strings.Contains(j.bad.text, "too long to be shown") || strings.Contains(j.bad.text, "The nets are") || len(j.bad.text) > 500 {
		t.Errorf("got %.300q", j.bad.text)
	}
	if got := j.all[0].nets(); len(got) != 1 || got[0].name != "/STATUS" {
		t.Errorf("half a line counts: %d nets", len(got))
	}
}

func TestNear(t *testing.T) {
	all := []string{"/STATUS", "/MCU/BUTTON", "GND", "+3V3", "I2C_SDA", "I2C_SCL", "A", "B"}
	for name, want := range map[string][]string{
		"STATSU": {"/STATUS"}, "status": {"/STATUS"}, "BUTON": {"/MCU/BUTTON"}, "I2CSDA": {"I2C_SDA"}, "3V3": {"+3V3"}, "NOTHING": nil, "": nil,
		strings.Repeat("x", 5000): nil,
	} {
		got := near(name, all)
		if len(want) > 0 && (len(got) == 0 || got[0] != want[0]) || len(want) == 0 && len(got) > 0 && name != "" {
			t.Errorf("%.20q: got %q, want %q", name, got, want)
		}
	}
}
