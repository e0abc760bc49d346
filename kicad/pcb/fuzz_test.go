// SPDX-License-Identifier: Apache-2.0

package pcb_test

import (
	"errors"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// FuzzRead reads any bytes as a board and edits what it finds: an edit either is refused by an EditError or applies,
// and a net that was renamed and renamed back has the bytes it had.
func FuzzRead(f *testing.F) {
	f.Add([]byte(kicadtest.Board), "/OUT", "R1")
	f.Add([]byte("(kicad_pcb (net 1 \"A\") (net 1 \"B\") (footprint (property) (pad (net 9))) (zone (net_name \"A\")))"), "A", "")
	f.Add([]byte("(kicad_pcb (footprint \"x\" (pad \"1\" (net \"A\")) (fp_text reference)) (segment (net \"A\")))"), "A", "x")
	f.Fuzz(func(t *testing.T, src []byte, net, ref string) {
		b := pcb.Read("p.kicad_pcb", src)
		b.Pins()
		b.Counts()
		for _, n := range b.Nets {
			net = n.Name
		}
		for _, p := range b.Footprints {
			ref = p.Reference
		}
		const fresh = "zz fresh zz"
		edits, err := b.RenameNets(map[string]string{net: fresh})
		if after := fuzzed(t, src, edits, err); after != nil {
			again := pcb.Read("p.kicad_pcb", after)
			back, err := again.RenameNets(map[string]string{fresh: net})
			if after = fuzzed(t, after, back, err); after == nil {
				t.Fatalf("the way back is refused: %v", err)
			}
			if now := pcb.Read("p.kicad_pcb", after); len(now.Nets) != len(b.Nets) || len(now.Uses) != len(b.Uses) {
				t.Fatalf("%d nets and %d uses, had %d and %d", len(now.Nets), len(now.Uses), len(b.Nets), len(b.Uses))
			}
		}
		edits, err = b.SetField(ref, "Value", "a \"b\" \\")
		fuzzed(t, src, edits, err)
		edits, err = b.RenameReference(ref, "ZZ9")
		fuzzed(t, src, edits, err)
	})
}

func fuzzed(t *testing.T, src []byte, edits []sexpr.Edit, err error) []byte {
	t.Helper()
	if err != nil {
		if e := (*pcb.EditError)(nil); !errors.As(err, &e) || e.Detail == "" {
			t.Fatalf("%v is no EditError", err)
		}
		return nil
	}
	out, err := sexpr.Apply(src, edits)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
