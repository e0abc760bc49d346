// SPDX-License-Identifier: Apache-2.0

// Command fiducial is a design agent for KiCad boards, judged by kicad-cli.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/charmbracelet/x/term"

	"github.com/fiducial-dev/fiducial/kicad/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	// The first Ctrl-C ends the command in order. Then the default is back, so the second one kills it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fiducial: the working folder cannot be told:", err)
		return 2
	}
	return cli.Run(ctx, cli.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Dir: dir,
		InTerminal: term.IsTerminal(os.Stdin.Fd()), OutTerminal: term.IsTerminal(os.Stdout.Fd()),
		Width: func() int {
			w, _, err := term.GetSize(os.Stdout.Fd())
			if err != nil {
				return 0
			}
			return w
		},
	}, os.Args[1:])
}
