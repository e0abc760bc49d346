// SPDX-License-Identifier: Apache-2.0

// Command fiducialgen makes tools for a model of the methods that are marked with
// //fiducial:tool. Package toolgen says what the directives mean.
//
//	fiducialgen [-check] [packages]
//
// It writes a file TYPE_tools.go beside each marked type in the packages, by
// default that of the current folder, and deletes those of types that are no
// longer marked. Mistakes in the source are printed as file:line:col: message, all of
// them; then the exit status is 1 and no file is touched, as when a package is not
// found or go.mod does not require the module that generated code imports. With -check
// it writes nothing, and the exit status is 1 when a file is not what it would write.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/fiducial-dev/fiducial/toolgen"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command; its result is the exit status: 0, 1 for mistakes and stale
// files, 2 for wrong usage.
func run(ctx context.Context, args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("fiducialgen", flag.ContinueOnError)
	flags.SetOutput(stderr)
	check := flags.Bool("check", false, "write nothing; fail when a file is stale")
	flags.Usage = func() {
		fmt.Fprintln(stderr, "usage: fiducialgen [-check] [packages]")
		flags.PrintDefaults()
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	wd, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(stderr, "fiducialgen:", err)
		return 1
	}
	files, err := toolgen.Generate(ctx, toolgen.Config{Dir: wd, Patterns: flags.Args()})
	if e, ok := errors.AsType[*toolgen.Error](err); ok {
		for _, d := range e.Diagnostics {
			d.Pos.Filename = relative(wd, d.Pos.Filename)
			fmt.Fprintln(stderr, d)
		}
		return 1
	}
	if err == nil && *check {
		return reportStale(wd, files, stderr)
	}
	if err == nil {
		_, err = toolgen.Write(files)
	}
	if err != nil {
		fmt.Fprintln(stderr, "fiducialgen:", err)
		return 1
	}
	if len(files) == 0 {
		fmt.Fprintln(stderr, "fiducialgen: no type is marked //fiducial:tools")
	}
	return 0
}

func reportStale(wd string, files []toolgen.File, stderr io.Writer) int {
	stale, err := toolgen.Stale(files)
	if err != nil {
		fmt.Fprintln(stderr, "fiducialgen:", err)
		return 1
	}
	for _, path := range stale {
		fmt.Fprintf(stderr, "%s: stale; run go generate\n", relative(wd, path))
	}
	return min(len(stale), 1)
}

// relative shortens a path below the current folder.
func relative(wd, path string) string {
	rel, err := filepath.Rel(wd, path)
	if !filepath.IsAbs(path) || err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return path
	}
	return rel
}
