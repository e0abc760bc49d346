// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// An Entry is one part of the design, as kicad-cli lists it.
type Entry struct {
	Ref, Value, Footprint string
	DNP                   bool // do not populate
	NoBOM                 bool // excluded from the bill of materials
	NoBoard               bool // excluded from the board
}

// bomFields lists every part with all its flags; the netlist hides the parts excluded from the board.
const bomFields = "Reference,Value,Footprint,${DNP},${EXCLUDE_FROM_BOM},${EXCLUDE_FROM_BOARD}"

// Inventory lists every part of a schematic, one entry for each reference; parts that share one (an annotation
// error) have an entry each. Power symbols and other # parts are left out. It is kicad-cli's bill of materials with
// everything included. Errors: NotLoaded, Crashed, NoReport, BadOutput, and those of [Runner.Probe].
func (r *Runner) Inventory(ctx context.Context, in Input) ([]Entry, error) {
	v, err := r.open(in)
	if err != nil {
		return nil, err
	}
	defer v.close()
	if kindOf(v.file) != Schematic {
		return nil, &Error{Kind: BadInput, Detail: in.File + " is not a schematic"}
	}
	out := v.out("bom.csv")
	run, err := r.exec(ctx, v, v.limit(perMB),
		"sch", "export", "bom", "--include-excluded-from-bom", "--fields", bomFields, "--ref-range-delimiter", "", "-o", out, v.file)
	if err != nil {
		return nil, err
	}
	data, err := output(run, out, "")
	if err != nil {
		return nil, r.unread(err, "sch", "export", "bom")
	}
	entries, err := readBOM(string(data))
	if err != nil {
		return nil, r.unread(run.fail(BadOutput, "the bill of materials cannot be read", err), "sch", "export", "bom")
	}
	return entries, nil
}

const noOutput = "it left no output: the file could not be loaded or the output not written"

// output reads what a run wrote, after judging how it ended. hint says what makes this command crash, "" for nothing known.
func output(run Run, file, hint string) ([]byte, error) {
	switch {
	case run.Signal != "" && run.killed():
		return nil, run.fail(Crashed, "it was killed from outside (signal: "+run.Signal+"), as the system does when memory runs out; nothing is known of the design", nil)
	case run.Signal != "":
		return nil, run.fail(Crashed, "it crashed by signal "+run.Signal+" and gave no result"+hint, nil)
	case run.ExitCode == 3:
		return nil, run.fail(NotLoaded, "the file could not be loaded", nil)
	case run.ExitCode != 0:
		return nil, run.fail(BadOutput, "it ended with an unexpected exit code", nil)
	}
	data, err := readOutput(file, maxReport)
	if errors.Is(err, errTooLarge) {
		return nil, run.fail(BadOutput, errTooLarge.Error(), errTooLarge)
	}
	if errors.Is(err, fs.ErrNotExist) { // of a folder of ours, whose path tells nobody anything
		return nil, run.fail(NoReport, noOutput, nil)
	}
	if err != nil {
		return nil, run.fail(NoReport, noOutput, err)
	}
	return data, nil
}

func readBOM(text string) ([]Entry, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || len(rows[0]) != 6 || rows[0][0] != "Reference" {
		return nil, fmt.Errorf("unknown columns in %q", clip(text))
	}
	entries := make([]Entry, 0, len(rows)-1)
	for _, row := range rows[1:] {
		for ref := range strings.SplitSeq(row[0], ",") {
			entries = append(entries, Entry{
				Ref: ref, Value: row[1], Footprint: row[2], DNP: row[3] != "", NoBOM: row[4] != "", NoBoard: row[5] != "",
			})
		}
	}
	return entries, nil
}
