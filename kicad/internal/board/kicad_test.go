// SPDX-License-Identifier: Apache-2.0

package board_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/board"
)

// A cli runs kicad-cli in an environment of its own.
type cli struct {
	t    *testing.T
	path string
	env  []string
}

// newCLI finds kicad-cli; without it the test is skipped, or fails when
// REQUIRE_KICAD=1. tables makes the global library table of a kind.
func newCLI(t *testing.T, tables func(kind string) string, env ...string) cli {
	t.Helper()
	path, err := exec.LookPath("kicad-cli")
	if err != nil {
		if os.Getenv("REQUIRE_KICAD") == "1" {
			t.Fatalf("REQUIRE_KICAD=1, but %v", err)
		}
		t.Skipf("kicad-cli is not installed: %v", err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config", "9.0")
	for _, d := range []string{config, filepath.Join(dir, "home"), filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"sym", "fp"} {
		if err := os.WriteFile(filepath.Join(config, kind+"-lib-table"), []byte(tables(kind)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env = append(env, "PATH="+os.Getenv("PATH"), "LC_ALL=C.UTF-8", "HOME="+filepath.Join(dir, "home"),
		"KICAD_CONFIG_HOME="+filepath.Join(dir, "config"), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"),
		"XDG_DATA_HOME="+filepath.Join(dir, "data"), "TMPDIR="+filepath.Join(dir, "tmp"))
	return cli{t, path, env}
}

func emptyTable(kind string) string { return "(" + kind + "_lib_table (version 7))\n" }

// stockTable is the table that KiCad installs beside its libraries.
func stockTable(t *testing.T) func(string) string {
	return func(kind string) string {
		b, err := os.ReadFile(filepath.Join("/usr/share/kicad/template", kind+"-lib-table"))
		if err != nil {
			if os.Getenv("REQUIRE_KICAD") == "1" {
				t.Fatalf("REQUIRE_KICAD=1, but %v", err)
			}
			t.Skipf("no stock library tables: %v", err)
		}
		return string(b)
	}
}

// run writes to a new file, whose content it returns.
func (c cli) run(args ...string) []byte {
	c.t.Helper()
	out := filepath.Join(c.t.TempDir(), "out")
	last := len(args) - 1
	args = slices.Insert(args, last, "-o", out)
	cmd := exec.CommandContext(c.t.Context(), c.path, args...)
	cmd.Env = c.env
	said, err := cmd.CombinedOutput()
	if err != nil {
		c.t.Fatalf("kicad-cli %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	if strings.Contains(string(said), "annotation errors") {
		c.t.Errorf("kicad-cli %s: %s", strings.Join(args, " "), said)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

type finding struct {
	Type        string
	Description string
}

func (f finding) library() bool {
	return strings.HasPrefix(f.Type, "lib_") || f.Type == "footprint_link_issues"
}

// erc is every finding of every sheet.
func (c cli) erc(dir string) []finding {
	c.t.Helper()
	var r struct {
		Sheets []struct{ Violations []finding }
	}
	if err := json.Unmarshal(c.run("sch", "erc", "--severity-all", "--format", "json", filepath.Join(dir, board.Root)), &r); err != nil {
		c.t.Fatal(err)
	}
	var out []finding
	for _, s := range r.Sheets {
		out = append(out, s.Violations...)
	}
	if len(r.Sheets) != 2 {
		c.t.Errorf("sheets in the ERC report: got %d, want 2", len(r.Sheets))
	}
	return out
}

// drc is every finding, parity and open connections included.
func (c cli) drc(dir string) []finding {
	c.t.Helper()
	var r struct {
		Violations  []finding
		Unconnected []finding `json:"unconnected_items"`
		Parity      []finding `json:"schematic_parity"`
	}
	args := []string{"pcb", "drc", "--severity-all", "--schematic-parity", "--format", "json", filepath.Join(dir, board.PCB)}
	if err := json.Unmarshal(c.run(args...), &r); err != nil {
		c.t.Fatal(err)
	}
	return slices.Concat(r.Violations, r.Unconnected, r.Parity)
}

func TestChecksAreClean(t *testing.T) {
	t.Parallel()
	nowhere := t.TempDir()
	for name, open := range map[string]func(*testing.T) cli{
		"stock library tables": func(t *testing.T) cli { return newCLI(t, stockTable(t)) },
		"empty library tables": func(t *testing.T) cli { return newCLI(t, emptyTable) },
		"no libraries": func(t *testing.T) cli {
			return newCLI(t, emptyTable, "KICAD9_SYMBOL_DIR="+nowhere, "KICAD9_FOOTPRINT_DIR="+nowhere)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, dir := open(t), write(t)
			for _, f := range slices.Concat(c.erc(dir), c.drc(dir)) {
				if name != "stock library tables" && f.library() {
					continue
				}
				t.Errorf("%s: %s", f.Type, f.Description)
			}
		})
	}
}

// A netlist is what kicad-cli says is connected: net name to "ref.pin", and
// the fields of each part.
type netlist struct {
	nets  map[string][]string
	parts map[string]component
}

type component struct {
	Ref         string `xml:"ref,attr"`
	Value       string `xml:"value"`
	Footprint   string `xml:"footprint"`
	Description string `xml:"description"`
	Fields      []struct {
		Name string `xml:"name,attr"`
		Text string `xml:",chardata"`
	} `xml:"fields>field"`
}

func (c component) mpn() string {
	for _, f := range c.Fields {
		if f.Name == "MPN" {
			return f.Text
		}
	}
	return ""
}

func (c cli) netlist(dir string) netlist {
	c.t.Helper()
	var x struct {
		Components []component `xml:"components>comp"`
		Nets       []struct {
			Name  string `xml:"name,attr"`
			Nodes []struct {
				Ref string `xml:"ref,attr"`
				Pin string `xml:"pin,attr"`
			} `xml:"node"`
		} `xml:"nets>net"`
	}
	if err := xml.Unmarshal(c.run("sch", "export", "netlist", "--format", "kicadxml", filepath.Join(dir, board.Root)), &x); err != nil {
		c.t.Fatal(err)
	}
	n := netlist{map[string][]string{}, map[string]component{}}
	for _, p := range x.Components {
		n.parts[p.Ref] = p
	}
	for _, net := range x.Nets {
		for _, node := range net.Nodes {
			n.nets[net.Name] = append(n.nets[net.Name], node.Ref+"."+node.Pin)
		}
		slices.Sort(n.nets[net.Name])
	}
	return n
}

func TestNetlist(t *testing.T) {
	t.Parallel()
	got := newCLI(t, emptyTable).netlist(write(t)).nets
	want := map[string][]string{
		"/VIN":                      {"C1.1", "J1.1", "U1.3"},
		"+3V3":                      {"C2.1", "C3.1", "J2.1", "J3.1", "R2.1", "R3.1", "U1.2", "U2.1"},
		"GND":                       {"C1.2", "C2.2", "C3.2", "D1.1", "J1.2", "J2.4", "J3.3", "SW1.2", "U1.1", "U2.8"},
		"/STATUS":                   {"R1.1", "U2.7"},
		"/LED_A":                    {"D1.2", "R1.2"},
		"/MCU/BUTTON":               {"SW1.1", "U2.3"},
		"/MCU/UPDI":                 {"J3.2", "U2.6"},
		"I2C_SDA":                   {"J2.2", "R2.2", "U2.4"},
		"I2C_SCL":                   {"J2.3", "R3.2", "U2.5"},
		"unconnected-(U2-PA6-Pad2)": {"U2.2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nets: -want +got\n%s", diff)
	}
}

// rows are the table rows of a document, heads left out.
func rows(doc, head string) [][]string {
	var out [][]string
	for line := range strings.Lines(doc) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|-") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if cells[0] != head {
			out = append(out, cells)
		}
	}
	return out
}

func TestPinoutAgrees(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for net, pins := range newCLI(t, emptyTable).netlist(write(t)).nets {
		if strings.HasPrefix(net, "unconnected-") {
			net = "NC"
		}
		for _, pin := range pins {
			if pin[0] == 'J' || strings.HasPrefix(pin, "U2.") {
				want[pin] = net
			}
		}
	}
	got := map[string]string{}
	for _, row := range rows(read(t, board.Pinout), "Refdes") {
		got[row[0]+"."+row[1]] = row[3]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("PINOUT.md: -netlist +document\n%s", diff)
	}
}

func TestBOMAgrees(t *testing.T) {
	t.Parallel()
	want, got := map[string][]string{}, map[string][]string{}
	for ref, p := range newCLI(t, emptyTable).netlist(write(t)).parts {
		want[ref] = []string{p.Value, p.Footprint, p.mpn(), p.Description}
	}
	for _, row := range rows(read(t, board.BOM), "Refdes") {
		refs := strings.Split(row[0], ", ")
		if row[1] != fmt.Sprint(len(refs)) {
			t.Errorf("BOM.md: %s: got quantity %s, want %d", row[0], row[1], len(refs))
		}
		for _, ref := range refs {
			got[ref] = row[2:]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("BOM.md: -netlist +document\n%s", diff)
	}
}

// renamed is the project with the demo's net renamed everywhere by hand.
func renamed(t *testing.T, to string) string {
	t.Helper()
	dir := write(t)
	for name, mark := range map[string]string{board.Root: `"%s"`, board.Child: `"%s"`, board.PCB: `"/%s"`} {
		path := filepath.Join(dir, name)
		text := strings.ReplaceAll(read(t, name), fmt.Sprintf(mark, board.Renamed), fmt.Sprintf(mark, to))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestGoodRenameIsClean(t *testing.T) {
	t.Parallel()
	c, dir := newCLI(t, emptyTable), renamed(t, board.NewName)
	for _, f := range slices.Concat(c.erc(dir), c.drc(dir)) {
		if !f.library() {
			t.Errorf("%s: %s", f.Type, f.Description)
		}
	}
	if got := c.netlist(dir).nets["/"+board.NewName]; !slices.Equal(got, []string{"R1.1", "U2.7"}) {
		t.Errorf("net /%s: got %v, want R1.1 and U2.7", board.NewName, got)
	}
}

// The doc comment says that ERC is blind to the bad rename and what it does.
func TestBadRenameShortsQuietly(t *testing.T) {
	t.Parallel()
	c, dir := newCLI(t, emptyTable), renamed(t, board.TakenName)
	for _, f := range c.erc(dir) {
		if !f.library() {
			t.Errorf("ERC: %s: %s", f.Type, f.Description)
		}
	}
	got := c.netlist(dir).nets["/"+board.TakenName]
	if want := []string{"R1.1", "SW1.1", "U2.3", "U2.7"}; !slices.Equal(got, want) {
		t.Errorf("net /%s: got %v, want %v", board.TakenName, got, want)
	}
}
