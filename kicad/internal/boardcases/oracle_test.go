// SPDX-License-Identifier: Apache-2.0

package boardcases

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// An oracle is what kicad-cli says of one file.
type oracle struct {
	Netlist   *run                 `json:"netlist"`
	Pos       *run                 `json:"pos"`
	Nets      *map[string][]string `json:"nets"`
	Inventory *[]part              `json:"inventory"`
	ERC       *check               `json:"erc"`
	DRC       *check               `json:"drc"`
}

type run struct {
	RC     *int   `json:"rc"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

type check struct {
	RC     *int            `json:"rc"`
	Sheets *[]string       `json:"sheets"`
	Counts *map[string]int `json:"counts"`
}

type part struct {
	Ref       *string `json:"ref"`
	Value     string  `json:"value"`
	Footprint string  `json:"footprint"`
	DNP       string  `json:"dnp"`
	NoBOM     string  `json:"xbom"`
	NoBoard   string  `json:"xboard"`
}

func (p part) entry() kicadcli.Entry {
	return kicadcli.Entry{Ref: *p.Ref, Value: p.Value, Footprint: p.Footprint, DNP: p.DNP != "", NoBOM: p.NoBOM != "", NoBoard: p.NoBoard != ""}
}

// readOracle reads an oracle.json. A field that is not known, one that is missing where nothing could be compared without
// it, and anything behind the object are errors: what is not understood must not pass.
func readOracle(data []byte) (map[string]oracle, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var files map[string]oracle
	if err := dec.Decode(&files); err != nil {
		return nil, fmt.Errorf("this runner does not know what the oracle says: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the oracle")
	}
	if len(files) == 0 {
		return nil, errors.New("the oracle is of no file")
	}
	for name, o := range files {
		if err := o.understood(filepath.Ext(name)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

func (o oracle) understood(ext string) error {
	board := strings.EqualFold(ext, ".kicad_pcb")
	if ext = strings.ToLower(ext); !board && ext != ".kicad_sch" && ext != ".sch" {
		return fmt.Errorf("a file of the kind %q is not judged by this runner", ext)
	}
	switch {
	case o.Netlist == nil && o.Pos == nil && o.ERC == nil && o.DRC == nil:
		return errors.New("it says nothing of the file")
	case board && (o.Netlist != nil || o.ERC != nil || o.Nets != nil || o.Inventory != nil):
		return errors.New("netlist, nets, inventory and erc are of schematics")
	case !board && (o.Pos != nil || o.DRC != nil):
		return errors.New("pos and drc are of boards")
	case o.Nets != nil && o.Netlist == nil:
		return errors.New("nets without a netlist")
	}
	for _, r := range []*run{o.Netlist, o.Pos} {
		if r != nil && r.RC == nil {
			return errors.New("a probe without rc")
		}
	}
	for _, c := range []*check{o.ERC, o.DRC} {
		switch {
		case c == nil:
		case c.RC == nil:
			return errors.New("a check without rc")
		case *c.RC == 0 && c.Counts == nil:
			return errors.New("a check that ran, without counts")
		}
	}
	if o.Inventory != nil && slices.ContainsFunc(*o.Inventory, func(p part) bool { return p.Ref == nil }) {
		return errors.New("a part without ref")
	}
	return nil
}

// harmless are the lines on stderr that come with a file that loads: those of fonts, locks and libraries say nothing
// about the file.
var harmless = regexp.MustCompile(`^(Font '.*' not found; substituting.*|(Warning: )?Legacy zone fill strategy is not supported anymore.*|` +
	`Zone fills will be converted on best-effort basis\.?|can't open file '.*\.lib'.*|.*Got an error trying to lock.*|.*Failed to inspect the lock file.*|` +
	`(Error: )?Error loading the symbol library table.*|(Error: )?Error loading .*footprint libraries.*|.*project footprint libraries.*|.*Fontconfig error.*)$`)

// complains reports whether the oracle's run says anything against the file.
func (r run) complains() bool {
	table := false // what follows a message about a library's table explains it
	for line := range strings.Lines(r.Stderr) {
		line = strings.TrimSpace(line)
		if line == "" || harmless.MatchString(line) {
			table = table || strings.Contains(line, "library table")
			continue
		}
		if !table || !strings.Contains(line, "-lib-table") && !strings.HasPrefix(line, "line") && !strings.HasPrefix(line, "offset") {
			return true
		}
	}
	return false
}

// TestOracle_NothingPassesUnread: what a runner does not know is a failure.
func TestOracle_NothingPassesUnread(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"unknown field":     `{"a.kicad_sch": {"netlist": {"rc": 0}, "zones": {}}}`,
		"unknown inner one": `{"a.kicad_sch": {"netlist": {"rc": 0, "time": 1}}}`,
		"unknown of a part": `{"a.kicad_sch": {"netlist": {"rc": 0}, "inventory": [{"ref": "R1", "mpn": "x"}]}}`,
		"part without ref":  `{"a.kicad_sch": {"netlist": {"rc": 0}, "inventory": [{"value": "1k"}]}}`,
		"no rc":             `{"a.kicad_sch": {"netlist": {"stdout": ""}}}`,
		"no counts":         `{"a.kicad_sch": {"erc": {"rc": 0}}}`,
		"nothing said":      `{"a.kicad_sch": {}}`,
		"no file":           `{}`,
		"other kind":        `{"a.kicad_sym": {"netlist": {"rc": 0}}}`,
		"board's on sheet":  `{"a.kicad_sch": {"pos": {"rc": 0}}}`,
		"sheet's on board":  `{"a.kicad_pcb": {"erc": {"rc": 0, "counts": {}}}}`,
		"nets alone":        `{"a.kicad_sch": {"erc": {"rc": 3}, "nets": {}}}`,
		"more behind":       `{"a.kicad_sch": {"erc": {"rc": 3}}} {}`,
		"no object":         `[]`,
	} {
		if files, err := readOracle([]byte(text)); err == nil {
			t.Errorf("%s: read as %v", name, files)
		}
	}
	if _, err := readOracle([]byte(`{"a.kicad_pcb": {"pos": {"rc": 0}, "drc": {"rc": 0, "counts": {}}}}`)); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]bool{
		"": false, "Fontconfig error: Cannot load": false, "Error: Invalid net ID in\nfile: 'x'": true,
		"Warning: Legacy zone fill strategy is not supported anymore.\nZone fills will be converted on best-effort basis.":      false,
		"Error: Error loading the symbol library table 'sym-lib-table'.\n\nExpecting '(' in 'sym-lib-table', line 2, offset 3.": false,
	} {
		if got := (run{Stderr: text}).complains(); got != want {
			t.Errorf("%q complains: %v", text, got)
		}
	}
}

// A folder is one case.
type folder struct {
	name, dir string
	files     map[string]oracle
}

// readFolders finds the cases below a folder. One that has files and no oracle is an error.
func readFolders(top string) ([]folder, error) {
	entries, err := os.ReadDir(top)
	if err != nil {
		return nil, err
	}
	var list []folder
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		f := folder{name: e.Name(), dir: filepath.Join(top, e.Name())}
		data, err := os.ReadFile(filepath.Join(f.dir, "oracle.json"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the case %s has no oracle.json, so it cannot be judged", e.Name())
		}
		if err == nil {
			f.files, err = readOracle(data)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("there is no case in %s", top)
	}
	return list, nil
}

// entries sorts a list of parts, with references in one spelling: kicad-cli's bill of materials puts a question mark
// behind a reference without a number, calls an empty one U?, shows an empty value as ~, and drops line ends and tabs.
func entries(list []kicadcli.Entry) []kicadcli.Entry {
	out := slices.Clone(list)
	for i := range out {
		out[i].Ref = cmp.Or(strings.TrimSuffix(out[i].Ref, "?"), "U")
		out[i].Value = cmp.Or(strings.NewReplacer("\n", "", "\r", "", "\t", "").Replace(out[i].Value), "~")
	}
	slices.SortStableFunc(out, func(a, b kicadcli.Entry) int {
		return cmp.Or(sch.CompareRefs(a.Ref, b.Ref), strings.Compare(a.Value, b.Value), strings.Compare(a.Footprint, b.Footprint),
			strings.Compare(flags(a), flags(b)))
	})
	return out
}

func flags(e kicadcli.Entry) string { return fmt.Sprint(e.DNP, e.NoBOM, e.NoBoard) }

// TestEntries: parts that are not annotated, of one value, are compared whatever their order.
func TestEntries(t *testing.T) {
	t.Parallel()
	list := []kicadcli.Entry{
		{Ref: "SW?", Value: "SW_Push", Footprint: "T:1u"},
		{Ref: "SW?", Value: "SW_Push", Footprint: "T:1u", DNP: true},
		{Ref: "SW?", Value: "SW_Push", Footprint: "T:1.5u"},
		{Ref: "R?", Value: "1k"},
	}
	back := slices.Clone(list)
	slices.Reverse(back)
	if diff := gocmp.Diff(entries(list), entries(back)); diff != "" {
		t.Errorf("the order matters (-want +got):\n%s", diff)
	}
}
