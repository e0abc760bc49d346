// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fiducial-dev/fiducial/kicad/agent"
	"github.com/fiducial-dev/fiducial/task"
)

// passedOver is why a check of a design that was read in part has no verdict.
const passedOver = "kicad-cli passed over a part of the schematic: "

// beginsWhole refuses a run on a design of which kicad-cli sees a part only, with the words of check: what its verdict
// would be worth, no edit changes. A sheet that is there and does not load may be what the run is to mend; that one
// keeps it from ending as done, see wholeGate.
func beginsWhole(t tree) error {
	if t.proj.Root == "" {
		return nil
	}
	bad := readSheets(t).bad
	if len(bad) == 0 {
		return nil
	}
	return cannot(fmt.Errorf("ERC and DRC would be NOT RUN: %s%s", passedOver, strings.Join(bad, "; ")),
		"mend the sheet in KiCad, then ask again", "see what else is wrong: fiducial check")
}

// A wholeBench is a bench whose run ends as done only when kicad-cli sees every sheet.
type wholeBench struct {
	*agent.Bench
	gate *wholeGate
}

func newWholeBench(b *agent.Bench, t tree, loads func(ctx context.Context, file string) string) *wholeBench {
	return &wholeBench{Bench: b, gate: &wholeGate{tree: t, loads: loads, known: map[[sha256.Size]byte]string{}}}
}

// Begin adds the gate.
func (b *wholeBench) Begin(ctx context.Context, s *task.Session) (*task.Setup, error) {
	setup, err := b.Bench.Begin(ctx, s)
	if err == nil {
		setup.Gates = append(slices.Clip(setup.Gates), b.gate)
	}
	return setup, err
}

// A wholeGate keeps a run from finishing as done while check would say NOT RUN for a sheet that kicad-cli passes over.
type wholeGate struct {
	tree  tree
	loads func(ctx context.Context, file string) string // why a sheet does not load, "" when it does

	mu    sync.Mutex
	known map[[sha256.Size]byte]string // what loads said, by the sheet's contents
}

// Name is the gate's name in the reasons.
func (g *wholeGate) Name() string { return "sheets" }

// Closed are the sheets that kicad-cli passes over.
func (g *wholeGate) Closed(ctx context.Context) []string {
	if g.tree.proj.Root == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	found := readSheets(g.tree)
	bad := found.bad
	if len(bad) == 0 && found.design != nil {
		for _, file := range found.files[1:] {
			key := sha256.Sum256(found.design.Files[file].Doc.Source())
			why, known := g.known[key]
			if !known {
				if why = g.loads(ctx, file); ctx.Err() == nil {
					g.known[key] = why
				}
			}
			if why != "" {
				bad = append(bad, why)
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return []string{passedOver + strings.Join(bad, "; ") + ". Mend it, or refuse: no check has seen the whole design"}
}

var (
	_ task.Domain   = (*wholeBench)(nil)
	_ task.Recorder = (*wholeBench)(nil)
	_ task.Judge    = (*wholeBench)(nil)
	_ task.Gate     = (*wholeGate)(nil)
)
