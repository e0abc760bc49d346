// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/internal/cli"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// BenchmarkCheck holds check on the bundled board beside what it cannot do without: kicad-cli's ERC and DRC, by
// themselves, one after the other and side by side, without any of our reading and comparing.
func BenchmarkCheck(b *testing.B) {
	path := kicadtest.CLI(b)
	dir := b.TempDir()
	if err := board.Write(dir); err != nil {
		b.Fatal(err)
	}
	out := b.TempDir()
	erc := func() *exec.Cmd {
		return bare(b.Context(), path, "sch", "erc", "--format", "json", "--severity-all", "-o", filepath.Join(out, "erc.json"), filepath.Join(dir, board.Root))
	}
	drc := func() *exec.Cmd {
		return bare(b.Context(), path, "pcb", "drc", "--format", "json", "--severity-all", "--schematic-parity", "-o", filepath.Join(out, "drc.json"), filepath.Join(dir, board.PCB))
	}
	b.Run("fiducial", func(b *testing.B) {
		for b.Loop() {
			code := cli.Run(b.Context(), cli.Env{Out: io.Discard, Err: os.Stderr, Environ: os.Environ(), Dir: dir}, []string{"check"})
			if code != 0 {
				b.Fatalf("exit code %d", code)
			}
		}
	})
	b.Run("bare-beside", func(b *testing.B) {
		for b.Loop() {
			var wg sync.WaitGroup
			for _, cmd := range []*exec.Cmd{erc(), drc()} {
				wg.Go(func() { run(b, cmd) })
			}
			wg.Wait()
		}
	})
	b.Run("bare-after", func(b *testing.B) {
		for b.Loop() {
			run(b, erc())
			run(b, drc())
		}
	})
}

func bare(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	return cmd
}

func run(b *testing.B, cmd *exec.Cmd) {
	if err := cmd.Run(); err != nil {
		b.Error(err)
	}
}

// BenchmarkStart is what the command itself costs: the time from main to the exit of fiducial version.
func BenchmarkStart(b *testing.B) {
	self, err := exec.LookPath("fiducial")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		run(b, exec.CommandContext(b.Context(), self, "version"))
	}
}
