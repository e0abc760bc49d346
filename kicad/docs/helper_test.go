// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
)

func read(t testing.TB, name, text string) *docs.Document {
	t.Helper()
	d, err := docs.ReadDocument(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// design makes a design of "R1 10k T:R_0603 dnp" lines and "NET: R1.1 R2.2" lines.
func design(t testing.TB, text string) *docs.Design {
	t.Helper()
	var entries []kicadcli.Entry
	n := &kicadcli.Netlist{Sheets: []string{"/"}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, pins, ok := strings.Cut(line, ": "); ok {
			net := kicadcli.Net{Name: name}
			for p := range strings.FieldsSeq(pins) {
				p, function, _ := strings.Cut(p, "=")
				ref, number, _ := strings.Cut(p, ".")
				net.Pins = append(net.Pins, kicadcli.Pin{Ref: ref, Number: number, Function: function})
			}
			n.Nets = append(n.Nets, net)
			continue
		}
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		e := kicadcli.Entry{Ref: w[0], Value: w[1], Footprint: w[2]}
		part := kicadcli.Part{Ref: e.Ref, Value: e.Value, Footprint: e.Footprint, Sheet: "/", Properties: map[string]string{}}
		for _, flag := range w[3:] {
			switch flag {
			case "dnp":
				e.DNP = true
			case "nobom":
				e.NoBOM = true
			case "noboard":
				e.NoBoard = true
			default:
				name, v, _ := strings.Cut(flag, "=")
				part.Properties[name] = v
			}
		}
		entries = append(entries, e)
		if !e.NoBoard {
			n.Parts = append(n.Parts, part)
		}
	}
	return docs.NewDesign(entries, n)
}

func lines(list []docs.Mismatch) string {
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintln(&b, m)
	}
	return b.String()
}

func runner(t testing.TB) *kicadcli.Runner {
	t.Helper()
	r, err := kicadcli.New(kicadcli.Options{Path: kicadtest.CLI(t), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// load has the real kicad-cli read a schematic.
func load(t testing.TB, dir, file string) *docs.Design {
	t.Helper()
	d, err := docs.Load(t.Context(), runner(t), kicadcli.Input{File: filepath.Join(dir, file), Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func open(t testing.TB, dir, name string) *docs.Document {
	t.Helper()
	src, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, name, string(src))
}

func input(file string) kicadcli.Input {
	return kicadcli.Input{File: file, Root: filepath.Dir(file)}
}
