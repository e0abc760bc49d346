// SPDX-License-Identifier: Apache-2.0

// Command draw writes the bundled board project "beacon" from the symbol and
// footprint libraries of an installed KiCad 9. It is run by go generate; the
// product itself needs no libraries, the drawn files embed what they use.
//
//	draw [-symbols DIR] [-footprints DIR] [-o DIR]
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// Where KiCad keeps its libraries on Debian and its kin.
const (
	debianSymbols    = "/usr/share/kicad/symbols"
	debianFootprints = "/usr/share/kicad/footprints"
)

func main() {
	symbols := flag.String("symbols", symbolDir(), "folder of the KiCad symbol libraries")
	footprints := flag.String("footprints", footprintDir(), "folder of the KiCad footprint libraries")
	out := flag.String("o", "project", "folder to write the project to")
	flag.Parse()
	if err := run(*symbols, *footprints, *out); err != nil {
		fmt.Fprintln(os.Stderr, "draw:", err)
		os.Exit(1)
	}
}

// KiCad's own variables name the folders when they are set.
func symbolDir() string { return cmp.Or(os.Getenv("KICAD9_SYMBOL_DIR"), debianSymbols) }

func footprintDir() string { return cmp.Or(os.Getenv("KICAD9_FOOTPRINT_DIR"), debianFootprints) }

func run(symbols, footprints, out string) error {
	files, err := draw(&library{symbols: symbols, footprints: footprints, files: map[string]node{}})
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(out, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(f.text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// A file is one file of the project; name is relative, with slashes.
type file struct{ name, text string }

// draw makes the whole project.
func draw(lib *library) ([]file, error) {
	parts, err := catalogue(lib)
	if err != nil {
		return nil, err
	}
	top, err := drawRoot(lib, parts)
	if err != nil {
		return nil, fmt.Errorf("root sheet: %w", err)
	}
	child, err := drawMCU(lib, parts)
	if err != nil {
		return nil, fmt.Errorf("mcu sheet: %w", err)
	}
	pcb, err := drawBoard(lib, parts)
	if err != nil {
		return nil, fmt.Errorf("board: %w", err)
	}
	files := []file{
		{project + ".kicad_sch", format(top)},
		{childFile, format(child)},
		{project + ".kicad_pcb", format(pcb)},
		{"docs/BOM.md", bom(parts)},
		{"docs/PINOUT.md", pinout(parts)},
	}
	return append(files, settings(parts)...), nil
}
