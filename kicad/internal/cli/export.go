// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
)

// exportJSON is what export bom prints with --json.
type exportJSON struct {
	Project  projectJSON `json:"project"`
	Supplier string      `json:"supplier"`
	File     string      `json:"file"`
	Lines    int         `json:"lines"`
	Parts    int         `json:"parts"`
	// LeftOut are parts that should be ordered and are not in the file, Skipped those that should not be ordered.
	LeftOut  []docs.LeftOut `json:"left_out"`
	Skipped  []docs.LeftOut `json:"skipped"`
	ExitCode int            `json:"exit_code"`
}

func newExport(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "export", Short: "Write what others need of the project", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newExportBOM(a))
	return cmd
}

// exportFlags are what export bom is told.
type exportFlags struct {
	supplier string
	out      string
	boards   int
}

func newExportBOM(a *app) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "bom --supplier SUPPLIER -o FILE",
		Short: "Write a bill of materials that a supplier takes",
		Long: `Writes a bill of materials as CSV, in the columns that a supplier's page reads, from the design and its documents. The
supplier (--supplier) and the file (-o) must be named.

The part number comes from a field of the symbol (MPN, or LCSC for JLCPCB), else from the tables of parts in the
documents. A part is left out, and named with the reason, when nobody has confirmed what to order: no part number, one
that is marked UNVERIFIED (as do marks it when it changes the value or footprint and not the number), two that differ,
or a document that describes the part otherwise than the design does. Parts that are not fitted (DNP) or excluded from
the bill of materials are skipped and named; for JLCPCB, which assembles, those that are not on the board as well.

Exit codes: 0 every part to be ordered is in the file, 1 the file is written and parts were left out, 2 could not run.

JSON keys: project {name, dir, schematic, board}, supplier, file, lines, parts, left_out [{ref, value, reason}], skipped
[{ref, value, reason}], exit_code.`,
		Example: `  fiducial export bom --supplier jlcpcb -o bom.csv
  fiducial export bom --supplier digikey --boards 10 -o digikey.csv
  fiducial export bom --supplier mouser -o -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.exportBOM(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.supplier, "supplier", "", "required: jlcpcb, digikey or mouser")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "required: the file to write; - is stdout")
	cmd.Flags().IntVar(&f.boards, "boards", 1, "for how many boards; JLCPCB counts itself")
	return cmd
}

func (a *app) exportBOM(ctx context.Context, f exportFlags) error {
	if f.supplier == "" {
		return cannot(errors.New("--supplier is missing: each supplier reads columns of its own"), "give --supplier jlcpcb, digikey or mouser")
	}
	supplier, err := docs.ParseSupplier(f.supplier)
	switch {
	case err != nil:
		return cannot(fmt.Errorf("--supplier: %w", err), "give --supplier jlcpcb, digikey or mouser")
	case f.out == "":
		return cannot(errors.New("-o is missing: where shall the file go?"), "name a file: -o bom.csv", "or stdout: -o -")
	case f.out == "-" && a.json:
		return cannot(errors.New("-o - and --json both want stdout"), "name a file: -o bom.csv")
	case f.boards < 1:
		return cannot(fmt.Errorf("--boards %d: there is nothing to order", f.boards), "give a number from 1 on")
	}
	p, err := a.place()
	if err != nil {
		return err
	}
	proj, err := a.find(p)
	if err != nil {
		return err
	}
	if proj.Root == "" {
		return cannot(fmt.Errorf("%s has no schematic of its name, so there are no parts to order", proj.Name), "name another project: --project FILE")
	}
	r, err := a.runner()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	mask := a.newMasker().Text
	o := ui.Options{Out: a.Err, Environ: a.Environ, Mask: mask}
	if f.out != "-" {
		o = ui.Options{Out: a.Out, Terminal: a.OutTerminal, Plain: a.plain, JSON: a.json, Width: a.Width, Environ: a.Environ, Mask: mask}
	}
	u := ui.New(o)
	defer func() { _ = u.Close() }()
	if u.Live() {
		u.Status(ui.Status{Now: "reading " + proj.Name, Since: time.Now()})
	}
	t := tree{top: p.top, proj: proj}
	if s := lookAtSheets(ctx, r, t); len(s.bad) > 0 {
		return unread(ctx, r, fmt.Errorf("the schematic can be read in part only: %s", s.bad[0]))
	}
	d, err := loadDesign(ctx, r, t)
	if err != nil {
		return unread(ctx, r, err)
	}
	order := docs.NewOrder(supplier, d, readPapers(t).documents, f.boards)
	if err := a.writeOrder(f.out, order); err != nil {
		return cannot(fmt.Errorf("-o: %w", err))
	}
	u.Status(ui.Status{})
	out := exportJSON{
		Project: newCheckJSON(proj).Project, Supplier: f.supplier, File: f.out, Lines: len(order.Rows), Parts: order.Parts,
		LeftOut: append([]docs.LeftOut{}, order.LeftOut...), Skipped: append([]docs.LeftOut{}, order.Skipped...),
	}
	if len(out.LeftOut) > 0 {
		out.ExitCode = exitNo
	}
	if a.json {
		return errors.Join(u.Object(out), told(out.ExitCode))
	}
	a.reportOrder(u, out)
	return errors.Join(u.Close(), told(out.ExitCode))
}

func (a *app) reportOrder(u *ui.UI, out exportJSON) {
	for _, l := range out.Skipped {
		u.Line("skipped  %s %s: %s", l.Ref, l.Value, l.Reason)
	}
	e := ui.New(ui.Options{Out: a.Err, Mask: a.newMasker().Text})
	for _, l := range out.LeftOut {
		e.Warn("left out: %s %s: %s", l.Ref, l.Value, l.Reason)
	}
	_ = e.Close() // what it lacks, the count below tells
	u.Heading("%s: %s in %s for %s, %s left out", out.File, count(out.Parts, "part"), count(out.Lines, "line"), out.Supplier, count(len(out.LeftOut), "part"))
}

// writeOrder writes the CSV, a file in one stroke.
func (a *app) writeOrder(name string, order docs.Order) error {
	if name == "-" {
		return writeCSV(a.Out, order)
	}
	var b strings.Builder
	if err := writeCSV(&b, order); err != nil {
		return err
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(a.Dir, name)
	}
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return replaceFile(root, filepath.Base(name), []byte(b.String()))
}

func writeCSV(w io.Writer, order docs.Order) error {
	c := csv.NewWriter(w)
	if err := c.Write(order.Header); err != nil {
		return err
	}
	return c.WriteAll(order.Rows)
}
