// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"os"

	"github.com/fiducial-dev/fiducial/tool"
)

// createNew opens a file that must not exist yet.
const createNew = os.O_WRONLY | os.O_CREATE | os.O_EXCL

// The names of the tools.
const (
	toolRead      = "read_file"
	toolSearch    = "search"
	toolSymbols   = "list_symbols"
	toolNets      = "list_nets"
	toolNetOf     = "net_of"
	toolPinsOf    = "pins_of"
	toolPropose   = "propose_change"
	toolValidate  = "validate_change"
	toolEdit      = "edit_file"
	toolWrite     = "write_file"
	toolRenameNet = "rename_net"
	toolRenameRef = "rename_reference"
	toolSetField  = "edit_symbol"
	toolERC       = "run_erc"
	toolDRC       = "run_drc"
	toolDrift     = "check_drift"
	toolFixDocs   = "fix_docs"
	toolRecord    = "record_constraint"
	toolResolve   = "resolve_affected"
	toolDecide    = "record_decision"
	toolFind      = "symbol_search"
	toolLibPins   = "symbol_pins"
	toolLimits    = "check_constraints"
	toolFindPads  = "footprint_search"
	toolPads      = "footprint_pads"
)

// tools are all of the bench's, without finish.
func (b *Bench) tools() ([]tool.Tool, error) {
	reading, writing := tool.Traits{ReadOnly: true}, tool.Traits{Exclusive: true}
	return collect(
		add(toolRead, "Returns a text file of the repository, whole or a range of lines.", b.readFile, reading),
		add(toolSearch, "Finds lines that match a regular expression in the text files of the repository. Each match is path:line: text.", b.search, reading),
		add(toolSymbols, "Lists the parts of the schematic, all sheets: reference, value, footprint, symbol, place.", b.listSymbols, reading),
		add(toolNets, "Lists the nets of the schematic, all sheets, as kicad-cli's netlist has them: name, pins, and where the name is spelled.", b.listNets, reading),
		add(toolNetOf, "Tells what a net connects, from kicad-cli's netlist.", b.netOf, reading),
		add(toolPinsOf, "Tells the net on each pin of a part, from kicad-cli's netlist.", b.pinsOf, reading),
		add(toolPropose, "Stores a proposal of the change: why, what, tasks, files. It must validate before anything can be edited.", b.propose, writing),
		add(toolValidate, "Validates the proposal and unlocks the edit tools.", b.validate, writing),
		add(toolEdit, "Replaces an exact text in a file. A KiCad file that loaded before and would not load after is put back as it was.", b.editFile, writing),
		add(toolWrite, "Makes a new document. KiCad files and files that exist are refused.", b.writeFile, writing),
		add(toolRenameNet, "Renames a net everywhere in one stroke: labels and sheet pins in every sheet, power symbols, and the board. Refused when it would connect or part anything. Documents are not changed.", b.renameNet, writing),
		add(toolRenameRef, "Gives a part another reference designator, in every sheet and on the board. Documents are not changed.", b.renameReference, writing),
		add(toolSetField, "Sets a field of a part by its reference: Value, Footprint or another, or a flag (dnp, in_bom, on_board), in every unit, and on the board where the footprint has it. Documents are not changed.", b.setField, writing),
		add(toolERC, "Runs kicad-cli's electrical rules check and compares it with the start of the run. Due after every edit of a KiCad file.", b.checkTool(obligeERC, errNoSheet), reading),
		add(toolDRC, "Runs kicad-cli's design rules check with schematic parity and compares it with the start of the run. Due after every edit of the board, and of a sheet that has a board.", b.checkTool(obligeDRC, errNoBoard), reading),
		add(toolDrift, "Compares the documents (bill of materials, pinout, the firmware's pins.h, constraints) with the design and with the start of the run. Due after every edit of a KiCad file or a document.", b.checkDrift, reading),
		add(toolFixDocs, "Brings the tables of the documents in line with the design: values, footprints, part numbers, marks, counts, nets, pin names, rows that are gone or missing. All other bytes stay.", b.fixDocs, writing),
		add(toolRecord, "Records a constraint in the registry and in its document, and opens what it affects for another look. Recording a key again replaces it.", b.recordConstraint, writing),
		add(toolResolve, "Says that what a constraint affects was looked at again: one, or several as entries.", b.resolveAffected, writing),
		add(toolDecide, "Appends a decision to DECISIONS.md.", b.recordDecision, writing),
		add(toolFind, "Searches the installed symbol libraries, and the project's own, by words. Each match is LIBRARY:NAME with its description.", b.symbolSearch, reading),
		add(toolLibPins, "Lists the pins of a library symbol: number, name, electrical type, unit.", b.symbolPins, reading),
		add(toolLimits, "Holds the limits of the constraints (sums, ranges, pins, nets) against the design, with the figures. One that held at the start must hold at the end.", b.checkConstraints, reading),
		add(toolFindPads, "Searches the installed footprint libraries, and the project's own, by name. Each match is LIBRARY:NAME.", b.footprintSearch, reading),
		add(toolPads, "Lists the pads of a library footprint, or names similar footprints when there is none of that name.", b.footprintPads, reading),
	)
}

type made struct {
	t   tool.Tool
	err error
}

func add[In, Out any](name, description string, f func(context.Context, In) (Out, error), traits tool.Traits) made {
	traits.OutputLimit = 48 << 10
	t, err := tool.New(name, description, f, tool.WithTraits(traits))
	return made{t, err}
}

func collect(all ...made) ([]tool.Tool, error) {
	var tools []tool.Tool
	for _, m := range all {
		if m.err != nil {
			return nil, m.err
		}
		tools = append(tools, m.t)
	}
	return tools, nil
}
