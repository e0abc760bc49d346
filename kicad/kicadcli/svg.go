// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// A SheetSVG is the picture of one sheet.
type SheetSVG struct {
	// File is what kicad-cli called it, as [SheetFile] tells.
	File string
	SVG  []byte
}

// SheetFile is the name that kicad-cli 9.0.8 gives the picture of a sheet: the root's file name without its extension,
// and the names of the sheets down to it, the root's not among them. Two sheets may get one name: then kicad-cli keeps
// the picture that it drew last.
func SheetFile(root string, names ...string) string {
	stem := strings.TrimSuffix(filepath.Base(root), Schematic)
	return strings.ReplaceAll(strings.Join(append([]string{stem}, names...), "-"), "/", "_") + ".svg"
}

// SchematicSVG draws every sheet of a schematic, each in the coordinates of its page in millimetres, with the drawing
// sheet and without a background. A child sheet that does not load is left out in silence. Errors: NotLoaded, Crashed,
// NoReport, Timeout, BadInput, and the end of ctx.
func (r *Runner) SchematicSVG(ctx context.Context, in Input) ([]SheetSVG, error) {
	v, err := r.open(in)
	if err != nil {
		return nil, err
	}
	defer v.close()
	out := v.out("sheets")
	run, err := r.plot(ctx, v, "sch", "export", "svg", "--no-background-color", "-o", out, v.file)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) == 0 {
		return nil, run.fail(NoReport, "kicad-cli left no picture", err)
	}
	var list []SheetSVG
	for _, e := range entries {
		data, err := readSVG(filepath.Join(out, e.Name()))
		if err != nil {
			return nil, run.fail(BadOutput, "a picture cannot be read", err)
		}
		list = append(list, SheetSVG{File: e.Name(), SVG: data})
	}
	return list, nil
}

// BoardSVG draws layers of a board, each as a picture of its own in the board's coordinates in millimetres, with holes
// in white and neither drawing sheet nor background. The layers are KiCad's own names, such as F.SilkS; the picture of
// one that the board has not is missing. Errors are as for [Runner.SchematicSVG].
func (r *Runner) BoardSVG(ctx context.Context, in Input, layers []string) (map[string][]byte, error) {
	if len(layers) == 0 {
		return map[string][]byte{}, nil
	}
	version, err := r.Version(ctx)
	if err != nil {
		return nil, err
	}
	v, err := r.open(in)
	if err != nil {
		return nil, err
	}
	defer v.close()
	if version.Major >= 9 { // --mode-multi came with 9
		pictures, err := r.manyLayers(ctx, v, layers)
		if err != nil || pictures != nil {
			return pictures, err
		}
	}
	pictures := map[string][]byte{}
	for _, layer := range layers {
		out := v.out("layer.svg")
		if err := os.Remove(out); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, &Error{Kind: Environment, Detail: "cannot remove a picture", Err: err}
		}
		args := append(boardArgs(layer), "-o", out)
		if version.Major >= 9 {
			args = append(args, "--mode-single")
		}
		run, err := r.plot(ctx, v, append(args, v.file)...)
		if err != nil {
			return nil, err
		}
		data, err := readSVG(out)
		if errors.Is(err, os.ErrNotExist) {
			continue // the board has no such layer
		}
		if err != nil {
			return nil, run.fail(BadOutput, "the picture of layer "+layer+" cannot be read", err)
		}
		pictures[layer] = data
	}
	return pictures, nil
}

func boardArgs(layers ...string) []string {
	return []string{
		"pcb", "export", "svg", "--layers", strings.Join(layers, ","), "--exclude-drawing-sheet", "--page-size-mode", "0",
	}
}

// manyLayers draws all layers in one run. kicad-cli names the files after what the user calls the layers, so they are
// told apart by the order in which it reports them. It returns nil when the report does not fit, for instance because
// two layers have one name.
func (r *Runner) manyLayers(ctx context.Context, v *view, layers []string) (map[string][]byte, error) {
	out := v.out("layers")
	run, err := r.plot(ctx, v, append(boardArgs(layers...), "--mode-multi", "-o", out, v.file)...)
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.Lines(run.Stdout) {
		name, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "Plotted to '")
		if name, closed := strings.CutSuffix(name, "'."); ok && closed {
			files = append(files, filepath.Base(name))
		}
	}
	if len(files) != len(layers) {
		return nil, nil
	}
	pictures := map[string][]byte{}
	seen := map[string]bool{}
	for i, name := range files {
		if seen[name] {
			return nil, nil
		}
		data, err := readSVG(filepath.Join(out, name))
		if err != nil {
			return nil, run.fail(BadOutput, "the picture of layer "+layers[i]+" cannot be read", err)
		}
		seen[name], pictures[layers[i]] = true, data
	}
	return pictures, nil
}

// plot runs an export that takes longer the larger the design is.
func (r *Runner) plot(ctx context.Context, v *view, args ...string) (Run, error) {
	run, err := r.exec(ctx, v, v.limit(slowPerMB), args...)
	switch {
	case err != nil:
		return run, err
	case run.Signal != "":
		return run, run.fail(Crashed, "kicad-cli died by signal: "+run.Signal, nil)
	case run.ExitCode != 0:
		return run, run.fail(NotLoaded, "kicad-cli cannot draw "+filepath.Base(v.file), nil)
	}
	return run, nil
}

func readSVG(file string) ([]byte, error) { return readOutput(file, maxReport) }
