// SPDX-License-Identifier: Apache-2.0

// Package board holds the bundled board project "beacon": a light, a button and
// a sensor header around an 8-pin microcontroller, on two sheets and a routed
// two-layer board, with docs/BOM.md and docs/PINOUT.md. It is the input of the
// demo and the main fixture of the tests.
//
// The files are in the form of KiCad 9 (schematic 20250114, board 20241229),
// are clean under ERC, DRC and schematic parity of kicad-cli 9.0.8, and embed
// their symbols and footprints, so that no library is needed to use them. They
// are drawn by the command in the folder draw; NOTICE.md says whose symbols and
// footprints they hold.
//
// # Nets to rename
//
// As KiCad's netlist spells them, with what holds the name:
//
//	/STATUS      label and sheet pin on the root, hierarchical label on the child, board, PINOUT.md
//	/MCU/BUTTON  sheet pin on the root, hierarchical label on the child, board, PINOUT.md
//	/MCU/UPDI    two local labels on the child, board, PINOUT.md
//	/VIN, /LED_A one local label each on the root, board; /VIN also in PINOUT.md
//	I2C_SDA      a global label on each sheet, board, PINOUT.md
//	I2C_SCL      a global label on each sheet, board, PINOUT.md
//	+3V3, GND    power symbols on both sheets, board, PINOUT.md
//	unconnected-(U2-PA6-Pad2)  a no-connect flag; NC in PINOUT.md
//
// The good rename is [Renamed] to [NewName]: seven lines in four files. The bad
// one is [Renamed] to [TakenName]: it shorts two pins of U2, and ERC finds
// nothing, because KiCad lets labels of one name be one net.
package board

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:generate go run ./draw -o project

//go:embed all:project
var project embed.FS

// Files of the project that others name, relative to its folder.
const (
	Name      = "beacon"
	Root      = "beacon.kicad_sch"
	Child     = "mcu.kicad_sch"
	PCB       = "beacon.kicad_pcb"
	BOM       = "docs/BOM.md"
	Pinout    = "docs/PINOUT.md"
	SheetName = "MCU" // of the child, as in the net name /MCU/BUTTON
)

// Names for a demo: Renamed is a net that goes through both sheets, the board
// and the docs; NewName is free; TakenName is another net.
const (
	Renamed   = "STATUS"
	NewName   = "HEARTBEAT"
	TakenName = "BUTTON"
)

// Files is the project, read-only; its root is the project folder.
func Files() fs.FS {
	sub, err := fs.Sub(project, "project")
	if err != nil {
		panic(err) // the name is a valid path
	}
	return sub
}

// Write copies the project into dir, which it makes when it is missing. It
// overwrites nothing: when a file of the project is there already, the error
// names it, is [fs.ErrExist], and no file was written.
func Write(dir string) error {
	files := Files()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		switch _, err := os.Lstat(path); {
		case err == nil:
			return fmt.Errorf("%s: %w; choose an empty folder", path, fs.ErrExist)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
		return nil
	})
	if err == nil {
		err = os.CopyFS(dir, files)
	}
	if err != nil {
		return fmt.Errorf("write the bundled project: %w", err)
	}
	return nil
}
